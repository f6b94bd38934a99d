// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which ring and which loss window suffice on a device whose worst stall is known.
//!
//! While the device stalls, the writer thread is stuck, and what comes is kept by the ring; and
//! what was appended before becomes durable only afterwards. `docs/reference/steady-record.md` has
//! the formulas, with an example that the tests below follow.

use std::time::Duration;

use super::config::{BLOCK_BYTES, defaults, poll_of};
use super::ring::HEADER_BYTES;

/// The worst stall in service is longer than the worst one measured.
pub const MARGIN: u32 = 2;

/// Sizes that suffice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizing {
    /// The stall that they cover: the known one times [`MARGIN`].
    pub stall: Duration,
    /// How often the writer thread polls the rings.
    pub poll: Duration,
    /// Records that come between two polls of the rings, at most.
    pub ring_records: u64,
    /// Ring for these records, in whole blocks.
    pub ring_bytes: u64,
    /// Shortest loss window that can be kept, in whole milliseconds.
    pub loss_window: Duration,
}

/// Sizes for records of up to `record_bytes`, one per period, and this worst stall.
pub fn sizing(record_bytes_max: u64, period: Duration, worst_stall: Duration) -> Sizing {
    let stall = worst_stall * MARGIN;
    let loss_window = loss_window(stall);
    // With the window that is in force by default the writer polls less often.
    let poll = poll_of(loss_window.max(defaults::LOSS_WINDOW));
    let gap_ns = (poll + stall).as_nanos();
    // One more: the first may arrive just after a poll.
    let records = gap_ns.div_ceil(period.as_nanos().max(1)) + 1;
    let ring_records = u64::try_from(records).unwrap_or(u64::MAX);
    let slot = record_bytes_max.saturating_add(HEADER_BYTES as u64);
    let blocks = ring_records.saturating_mul(slot).div_ceil(BLOCK_BYTES);
    let ring_bytes = blocks.saturating_mul(BLOCK_BYTES);
    Sizing { stall, poll, ring_records, ring_bytes, loss_window }
}

/// Half of the window may pass before a record is submitted; the other half is for a poll that just
/// missed it, and for the device. How often the writer polls depends on the window, so the
/// condition is raised until it holds; each step adds at most a quarter of the one before.
fn loss_window(stall: Duration) -> Duration {
    let mut window_ms: u64 = 2;
    loop {
        let window = Duration::from_millis(window_ms);
        let needed = 2 * (poll_of(window) + stall);
        if needed <= window {
            return window;
        }
        let needed_ms = needed.as_nanos().div_ceil(1_000_000);
        window_ms = u64::try_from(needed_ms).unwrap_or(u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_example_of_the_reference_page() {
        // 16 KiB every 5 ms; a worst stall of 200 ms counts as 400 ms.
        let sizing = sizing(16_384, 5 * MS, 200 * MS);
        assert_eq!(sizing.stall, 400 * MS);
        // 20 ms + 400 ms = 84 periods, and one more.
        assert_eq!((sizing.poll, sizing.ring_records), (20 * MS, 85));
        // 85 x 16400 = 1394000 bytes, in 341 blocks.
        assert_eq!(sizing.ring_bytes, 341 * 4_096);
        // 2 x (20 ms + 400 ms)
        assert_eq!(sizing.loss_window, 840 * MS);
    }

    #[test]
    fn a_device_that_never_stalls_needs_time_for_the_polls_only() {
        let sizing = sizing(84, 10 * MS, Duration::ZERO);
        // The poll interval is 1 ms at least: 2 x (1 ms + 0).
        assert_eq!(sizing.loss_window, 2 * MS);
        // 20 ms are two periods, and one more: 3 x 100 bytes.
        assert_eq!((sizing.ring_records, sizing.ring_bytes), (3, 4_096));
    }

    #[test]
    fn a_short_window_makes_the_writer_look_more_often() {
        // The poll interval is an eighth of the window: 8/8 = 3/8 for the stall + 1/8 for it + 1/2.
        let sizing = sizing(84, 10 * MS, 15 * MS);
        assert_eq!(sizing.loss_window, 80 * MS);
        assert_eq!(poll_of(sizing.loss_window), 10 * MS);
    }

    #[test]
    fn the_window_is_the_shortest_that_holds() {
        for stall_ms in 0..700 {
            let stall = stall_ms * MS;
            let holds = |window: Duration| 2 * (poll_of(window) + stall) <= window;
            let window = loss_window(stall);
            assert!(holds(window) && (window <= 2 * MS || !holds(window - MS)), "{stall_ms}");
        }
    }
}
