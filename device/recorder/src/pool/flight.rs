// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which records are in flight, which are written, and which are durable.
//!
//! Writes may complete in any order, but a segment is read up to its first gap: a block counts as
//! written when all before it are, and as durable when a sync that began after that succeeded.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::ledger::{Amount, Ledger};

#[derive(Debug, Clone, Copy, Default)]
struct Part {
    amount: Amount,
    last_ns: u64,
}

/// Records of all channels, and since when the oldest of them waits.
#[derive(Debug, Clone)]
struct Tally {
    parts: Vec<Part>,
    since_ns: Option<u64>,
}

impl Tally {
    fn new(channels: usize) -> Tally {
        Tally { parts: vec![Part::default(); channels], since_ns: None }
    }

    fn clear(&mut self) {
        self.parts.fill(Part::default());
        self.since_ns = None;
    }

    fn add(&mut self, other: &Tally) {
        for (part, more) in self.parts.iter_mut().zip(&other.parts) {
            if more.amount.records > 0 {
                *part = Part { amount: part.amount.plus(more.amount), last_ns: more.last_ns };
            }
        }
        self.since_ns = self.since_ns.into_iter().chain(other.since_ns).min();
    }
}

/// The account of the writer thread.
#[derive(Debug)]
pub struct Flight {
    ledgers: Vec<Arc<Ledger>>,
    /// By buffer.
    blocks: Vec<Tally>,
    /// Buffers submitted, in the order of the file, and whether their writes have completed.
    sent: VecDeque<(usize, bool)>,
    written: Tally,
    syncing: Tally,
}

impl Flight {
    /// For so many buffers.
    pub fn new(ledgers: Vec<Arc<Ledger>>, slots: usize) -> Flight {
        let tally = Tally::new(ledgers.len());
        Flight {
            blocks: vec![tally.clone(); slots],
            sent: VecDeque::with_capacity(slots),
            written: tally.clone(),
            syncing: tally,
            ledgers,
        }
    }

    /// A record was copied into the block of this buffer; it may have waited since `since_ns`.
    pub fn add(
        &mut self,
        slot: usize,
        channel: usize,
        bytes: u64,
        log_time_ns: u64,
        since_ns: u64,
    ) {
        debug_assert!(!self.is_sent(slot), "this buffer still holds records in flight");
        let block = &mut self.blocks[slot];
        block.since_ns.get_or_insert(since_ns);
        let part = &mut block.parts[channel];
        part.amount = part.amount.plus(Amount { records: 1, bytes });
        part.last_ns = log_time_ns;
    }

    /// Since when the oldest record of the block in this buffer waits.
    pub fn block_since_ns(&self, slot: usize) -> Option<u64> {
        self.blocks[slot].since_ns
    }

    /// Since when the oldest record waits that is written and not being synced.
    pub fn written_since_ns(&self) -> Option<u64> {
        self.written.since_ns
    }

    /// The block of this buffer was submitted.
    pub fn send(&mut self, slot: usize) {
        self.sent.push_back((slot, false));
    }

    /// Whether this buffer stands for a block that does not count as written yet.
    pub fn is_sent(&self, slot: usize) -> bool {
        self.sent.iter().any(|(sent, _)| *sent == slot)
    }

    /// Its write has completed. Buffers not submitted by [`Flight::send`] hold no records.
    pub fn landed(&mut self, slot: usize) {
        if let Some(block) = self.sent.iter_mut().find(|(sent, _)| *sent == slot) {
            block.1 = true;
        }
        while let Some(&(slot, true)) = self.sent.front() {
            self.sent.pop_front();
            for (part, ledger) in self.blocks[slot].parts.iter().zip(&self.ledgers) {
                ledger.written(part.amount);
            }
            self.written.add(&self.blocks[slot]);
            self.blocks[slot].clear();
        }
    }

    pub fn begin_sync(&mut self) {
        std::mem::swap(&mut self.syncing, &mut self.written);
        self.written.clear();
    }

    /// It succeeded; returns since when the oldest of its records had waited.
    pub fn synced(&mut self) -> Option<u64> {
        for (part, ledger) in self.syncing.parts.iter().zip(&self.ledgers) {
            ledger.durable(part.amount, part.last_ns);
        }
        let since_ns = self.syncing.since_ns;
        self.syncing.clear();
        since_ns
    }

    /// The segment failed: what is in flight is lost, what is written will not become durable. The
    /// same for the current block, in this buffer.
    pub fn fail(&mut self, slot: usize) {
        if !self.is_sent(slot) {
            self.sent.push_back((slot, false));
        }
        while let Some((slot, _)) = self.sent.pop_front() {
            for (part, ledger) in self.blocks[slot].parts.iter().zip(&self.ledgers) {
                ledger.lost_in_writing(part.amount);
            }
            self.blocks[slot].clear();
        }
        self.written.clear();
        self.syncing.clear();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        // In whatever order writes complete: all that was submitted becomes written, none of it
        // twice.
        #[test]
        fn blocks_may_land_in_any_order(choices in prop::collection::vec(0usize..6, 1..200)) {
            let (mut flight, ledger) = flight();
            let mut on_their_way = Vec::new();
            let mut sent = 0;
            for choice in choices {
                let free = (0..3).find(|slot| {
                    !flight.is_sent(*slot) && !on_their_way.contains(slot)
                });
                match free {
                    Some(slot) if choice < 4 => {
                        fill(&mut flight, &ledger, slot, sent);
                        on_their_way.push(slot);
                        sent += 1;
                    }
                    _ if !on_their_way.is_empty() => {
                        let landing = on_their_way.remove(choice % on_their_way.len());
                        flight.landed(landing);
                    }
                    _ => {}
                }
            }
            on_their_way.into_iter().rev().for_each(|slot| flight.landed(slot));
            let account = ledger.snapshot();
            prop_assert_eq!((account.written.records, account.buffered.records), (sent, 0));
        }
    }

    fn flight() -> (Flight, Arc<Ledger>) {
        let ledger = Arc::new(Ledger::default());
        (Flight::new(vec![Arc::clone(&ledger)], 3), ledger)
    }

    fn fill(flight: &mut Flight, ledger: &Ledger, slot: usize, log_time_ns: u64) {
        ledger.received(log_time_ns, 10);
        flight.add(slot, 0, 10, log_time_ns, log_time_ns);
        flight.send(slot);
    }

    #[test]
    fn a_block_that_lands_early_waits_for_those_before_it() {
        let (mut flight, ledger) = flight();
        for slot in 0..3 {
            fill(&mut flight, &ledger, slot, 100 + slot as u64);
        }
        let written = |ledger: &Ledger| ledger.snapshot().written.records;
        flight.landed(1);
        assert_eq!(written(&ledger), 0);
        flight.begin_sync();
        assert_eq!(flight.synced(), None);
        flight.landed(0);
        assert_eq!(written(&ledger), 2);
        flight.begin_sync();
        flight.landed(2);
        assert_eq!(flight.synced(), Some(100));
        let account = ledger.snapshot();
        // The third completed after the sync had begun.
        assert_eq!((account.written.records, account.durable.records), (3, 2));
        assert_eq!(account.last_durable_ns, Some(101));
        assert_eq!(flight.written_since_ns(), Some(102));
    }

    #[test]
    fn what_fails_is_lost_and_never_durable() {
        let (mut flight, ledger) = flight();
        for slot in 0..2 {
            fill(&mut flight, &ledger, slot, slot as u64);
        }
        flight.landed(0);
        flight.begin_sync();
        flight.fail(1);
        assert_eq!(flight.synced(), None);
        let account = ledger.snapshot();
        assert_eq!((account.written.records, account.lost_in_writing.records), (1, 1));
        assert_eq!((account.durable.records, account.buffered.records), (0, 0));
    }
}
