// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits until all records received so far are durable.
//!
//! [`super::Recorder::flush`] makes it. It does not borrow the recorder, so other threads can use
//! the recorder meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::ledger::Ledger;

/// The interval between checks.
const LOOK: Duration = Duration::from_millis(1);

/// The result of a flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flushed {
    /// All records received before are durable.
    Durable,
    /// This number of records were lost. No earlier flush has reported them.
    Lost(u64),
    /// The fate of some records is not known yet.
    Timeout,
}

/// A channel's counts when the flush began.
#[derive(Debug)]
struct Mark {
    ledger: Arc<Ledger>,
    taken: u64,
    refused: u64,
}

/// A flush in progress.
#[derive(Debug)]
pub struct Flush {
    marks: Vec<Mark>,
    /// The losses that earlier flushes have reported.
    told: Arc<AtomicU64>,
}

impl Flush {
    /// Starts a flush of everything that these ledgers have received.
    pub fn new(ledgers: &[Arc<Ledger>], told: &Arc<AtomicU64>) -> Flush {
        let mark = |ledger: &Arc<Ledger>| {
            let account = ledger.snapshot();
            let (taken, refused) = (account.taken(), account.lost_ring_full.records);
            Mark { ledger: Arc::clone(ledger), taken, refused }
        };
        Flush { marks: ledgers.iter().map(mark).collect(), told: Arc::clone(told) }
    }

    /// Waits for the result, at most for this time.
    pub fn wait(&self, timeout: Duration) -> Flushed {
        let started = Instant::now();
        loop {
            if let Some(lost) = self.lost_when_decided() {
                let told = self.told.fetch_max(lost, Ordering::Relaxed);
                return match lost.saturating_sub(told) {
                    0 => Flushed::Durable,
                    more => Flushed::Lost(more),
                };
            }
            if started.elapsed() >= timeout {
                return Flushed::Timeout;
            }
            thread::sleep(LOOK);
        }
    }

    /// The number of losses so far, if the fate of all records before the marks is known. A
    /// channel's records become durable or lost in order. Records that the ring rejected later do
    /// not count.
    fn lost_when_decided(&self) -> Option<u64> {
        let mut lost = 0;
        for mark in &self.marks {
            let now = mark.ledger.snapshot();
            let after_ring = now.lost_in_writing.records + now.lost_ram_full.records;
            // A record whose append was in progress counted as taken, and may have been rejected.
            let decided = now.durable.records + after_ring + now.expired.records;
            if decided < mark.taken.min(now.taken()) {
                return None;
            }
            lost += mark.refused + after_ring;
        }
        Some(lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Amount;

    const NOW: Duration = Duration::ZERO;

    fn with(received: u64) -> (Arc<Ledger>, Arc<AtomicU64>) {
        let ledger = Arc::new(Ledger::default());
        for time in 0..received {
            ledger.received(time, 1);
        }
        (ledger, Arc::default())
    }

    fn amount(records: u64) -> Amount {
        Amount { records, bytes: records }
    }

    #[test]
    fn what_is_lost_later_does_not_stand_for_what_was_received_before() {
        let (ledger, told) = with(10);
        let flush = Flush::new(&[Arc::clone(&ledger)], &told);
        for time in 10..20 {
            ledger.received(time, 1);
            ledger.lost(time, 1);
        }
        assert_eq!(flush.wait(NOW), Flushed::Timeout);
        ledger.written(amount(10));
        assert_eq!(flush.wait(NOW), Flushed::Timeout);
        ledger.durable(amount(10), 9);
        assert_eq!(flush.wait(NOW), Flushed::Durable);
    }

    #[test]
    fn a_loss_is_no_success_and_is_told_once() {
        let (ledger, told) = with(10);
        ledger.lost(9, 1);
        ledger.written(amount(9));
        ledger.durable(amount(8), 7);
        ledger.lost_after_writing(amount(1));
        let flush = || Flush::new(&[Arc::clone(&ledger)], &told).wait(NOW);
        assert_eq!((flush(), flush()), (Flushed::Lost(2), Flushed::Durable));
    }
}
