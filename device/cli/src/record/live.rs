// SPDX-License-Identifier: MIT OR Apache-2.0
//! The status line on a terminal while `steady record` runs.

use std::time::Duration;

use steadyio_bench::recording::session::Live;
use steadyio_core::diagnostic;

/// The line, which overwrites itself.
pub struct LiveLine {
    shown: usize,
    last: (Duration, u64),
}

impl LiveLine {
    pub fn new() -> LiveLine {
        LiveLine { shown: 0, last: (Duration::ZERO, 0) }
    }

    /// Updates the line, unless it was updated less than `every` ago.
    pub fn show_every(&mut self, every: Duration, live: &Live) {
        if live.elapsed >= self.last.0 + every {
            self.show(live);
        }
    }

    fn show(&mut self, live: &Live) {
        let (then, bytes_then) = self.last;
        self.last = (live.elapsed, live.account.received.bytes);
        let seconds = live.elapsed.saturating_sub(then).as_secs_f64().max(1e-9);
        let text = render(live, (live.account.received.bytes - bytes_then) as f64 / seconds);
        diagnostic::write_text(&format!("\r{text:<width$}", width = self.shown));
        self.shown = text.len();
    }

    /// Ends the line.
    pub fn end(&mut self) {
        if std::mem::take(&mut self.shown) > 0 {
            diagnostic::write_text("\n");
        }
    }
}

fn render(live: &Live, bytes_per_s: f64) -> String {
    let account = &live.account;
    let mut text =
        format!("{:.1} s  {:.2} MiB/s", live.elapsed.as_secs_f64(), bytes_per_s / 1048576.);
    if live.ring_bytes > 0 {
        let percent = |bytes: u64| bytes * 100 / live.ring_bytes;
        let (now, most) = (account.ring_used_bytes, account.ring_used_bytes_max);
        text += &format!("  ring {} % (max {} %)", percent(now), percent(most));
    }
    if let Some(call_ns) = live.call_ns_max {
        text += &format!("  worst call {:.1} us", call_ns as f64 / 1e3);
    }
    if let Some(lag_ns) = live.durable_lag_ns {
        text += &format!("  durable after {:.0} ms", lag_ns as f64 / 1e6);
    }
    text + &format!("  lost {}", account.lost().records)
}

#[cfg(test)]
mod tests {
    use steadyio_recorder::ledger::{Account, Amount};

    use super::*;

    #[test]
    fn everything_that_matters_is_in_the_line() {
        let live = Live {
            elapsed: Duration::from_millis(2_500),
            account: Account {
                ring_used_bytes: 100,
                ring_used_bytes_max: 500,
                lost_ring_full: Amount { records: 3, bytes: 30 },
                ..Account::default()
            },
            ring_bytes: 1_000,
            call_ns_max: Some(7_250),
            durable_lag_ns: Some(260_000_000),
        };
        assert_eq!(
            render(&live, 3_276_800.),
            "2.5 s  3.12 MiB/s  ring 10 % (max 50 %)  worst call 7.2 us  durable after 260 ms  lost 3"
        );
    }
}
