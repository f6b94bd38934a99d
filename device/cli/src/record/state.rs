// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports to stderr and to systemd that the device fails, or works again. `steady record` calls
//! it.

use std::time::Duration;

use steadyio_core::diagnostic;
use steadyio_recorder::ledger::Account;
use steadyio_recorder::pool::meters::{Ended, RecordingState};
use steadyio_recorder::source::now_ns;

use super::notify::Notifier;

/// A failure that continues.
#[derive(Clone, Copy)]
struct Failing {
    since_ns: u64,
    lost_before: u64,
}

pub struct StateTeller {
    notifier: Notifier,
    failing: Option<Failing>,
}

impl StateTeller {
    pub fn new(notifier: Notifier) -> StateTeller {
        StateTeller { notifier, failing: None }
    }

    /// Called with each new state, and now and then with the old one while the device fails.
    pub fn tell(&mut self, state: &RecordingState, account: &Account) {
        let lost = account.lost().records;
        if let Some(text) = self.text(state, lost, now_ns()) {
            diagnostic!("steady: {text}");
        }
        self.notifier.send(&match state {
            RecordingState::Recording => format!("READY=1\nSTATUS=recording, {lost} records lost"),
            RecordingState::Waiting { why, .. } => {
                format!("STATUS=the device fails, {lost} records lost: {why}")
            }
            RecordingState::Ended(_) => "STOPPING=1\nSTATUS=ending".into(),
        });
    }

    fn text(&mut self, state: &RecordingState, lost: u64, now_ns: u64) -> Option<String> {
        let known = self.failing;
        let after = |failing: Failing| {
            let time = Duration::from_nanos(now_ns.saturating_sub(failing.since_ns));
            (format!("{:.1} s", time.as_secs_f64()), lost - failing.lost_before)
        };
        match (state, known) {
            (RecordingState::Waiting { since_ns, why }, None) => {
                self.failing = Some(Failing { since_ns: *since_ns, lost_before: lost });
                Some(format!(
                    "the device fails: {why}; records wait in memory until it works again, and are \
                     lost when that is full"
                ))
            }
            (RecordingState::Waiting { why, .. }, Some(failing)) => {
                let (time, lost) = after(failing);
                Some(format!("the device has failed for {time}: {why}; {lost} records are lost"))
            }
            (RecordingState::Recording, failing) => {
                self.failing = None;
                let (time, lost) = after(failing?);
                Some(format!("the device works again after {time}; {lost} records were lost"))
            }
            (RecordingState::Ended(Ended::Full), _) => {
                Some("the recording ends: none of the segments may be overwritten".into())
            }
            (RecordingState::Ended(_), _) => {
                Some("the recording ends: the device failed; durable records are kept".into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_told_when_it_begins_while_it_lasts_and_when_it_ends() {
        let mut teller = StateTeller::new(Notifier::from_environment());
        let second = 1_000_000_000;
        let why = "writing segment-00001.mcap: Input/output error (os error 5)".to_string();
        let waiting = RecordingState::Waiting { since_ns: second, why };
        assert_eq!(teller.text(&RecordingState::Recording, 0, second), None);
        let mut said = |state, lost, now_ns| teller.text(state, lost, now_ns).unwrap_or_default();
        assert_eq!(
            said(&waiting, 3, second),
            "the device fails: writing segment-00001.mcap: Input/output error (os error 5); records \
             wait in memory until it works again, and are lost when that is full"
        );
        assert!(said(&waiting, 5, 11 * second).starts_with("the device has failed for 10.0 s: "));
        assert_eq!(
            said(&RecordingState::Recording, 10, 13 * second),
            "the device works again after 12.0 s; 7 records were lost"
        );
    }
}
