// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tracks which records are in flight, written, and durable. The stage calls it.
//!
//! Writes may complete in any order, and recovery may find a block after a gap, but this is not
//! guaranteed. A block counts as written when all blocks before it are written, and as durable when
//! a sync that began after that succeeded.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::ledger::{Amount, Ledger};
use crate::mcap::encoder::FileRange;

#[derive(Debug, Clone, Copy, Default)]
struct Part {
    amount: Amount,
    last_ns: u64,
}

/// The records of the block in a buffer, and the time since which the oldest of them waits.
#[derive(Debug, Clone)]
struct Tally {
    /// The records by channel.
    parts: Vec<Part>,
    since_ns: Option<u64>,
}

/// A submitted block.
#[derive(Debug)]
struct Sent {
    slot: usize,
    place: FileRange,
    landed: bool,
}

/// A block that is written, and not durable.
#[derive(Debug)]
struct Written {
    place: FileRange,
    /// The buffer from which it was written.
    slot: usize,
    /// The channels with records in it.
    parts: Vec<(usize, Part)>,
    since_ns: Option<u64>,
}

/// The writer thread's account.
#[derive(Debug)]
pub struct Flight {
    ledgers: Vec<Arc<Ledger>>,
    /// The blocks by buffer.
    blocks: Vec<Tally>,
    /// Submitted blocks, in the order of the file, like the written ones.
    sent: VecDeque<Sent>,
    written: VecDeque<Written>,
    /// The number of written blocks that are being synced.
    syncing: usize,
    /// The number of durable blocks of the segment in use, from the first.
    durable: u32,
}

impl Flight {
    /// Makes an account for this number of buffers.
    pub fn new(ledgers: Vec<Arc<Ledger>>, slots: usize) -> Flight {
        let tally = Tally { parts: vec![Part::default(); ledgers.len()], since_ns: None };
        Flight {
            blocks: vec![tally; slots],
            sent: VecDeque::with_capacity(slots),
            written: VecDeque::new(),
            syncing: 0,
            durable: 0,
            ledgers,
        }
    }

    /// Adds a channel.
    pub fn add_channel(&mut self, ledger: Arc<Ledger>) {
        self.ledgers.push(ledger);
        for block in &mut self.blocks {
            block.parts.push(Part::default());
        }
    }

    /// Counts the records of a channel in another ledger from now on.
    pub fn replace_channel(&mut self, channel: usize, ledger: Arc<Ledger>) {
        self.ledgers[channel] = ledger;
    }

    /// Removes all channels but the first ones. The others have no records in flight.
    pub fn truncate(&mut self, channels: usize) {
        self.ledgers.truncate(channels);
        self.blocks.iter_mut().for_each(|block| block.parts.truncate(channels));
    }

    /// Begins a segment. All blocks of the previous one are durable, or failed.
    pub fn begin_segment(&mut self) {
        self.durable = 0;
    }

    /// Continues a segment with the block of this number. All blocks before it are durable.
    pub fn resume_segment(&mut self, blocks: u32) {
        self.durable = blocks;
    }

    /// The number of durable blocks of the segment in use, from the first.
    pub fn durable_blocks(&self) -> u32 {
        self.durable
    }

    /// Adds a record that was copied into the block of this buffer. It may have waited since
    /// `since_ns`.
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

    /// The time since which the oldest record of this buffer's block waits.
    pub fn block_since_ns(&self, slot: usize) -> Option<u64> {
        self.blocks[slot].since_ns
    }

    /// The time since which the oldest record waits that is written and not being synced.
    pub fn written_since_ns(&self) -> Option<u64> {
        self.written.range(self.syncing..).find_map(|block| block.since_ns)
    }

    /// Records that the block of this buffer was submitted for this place.
    pub fn send(&mut self, slot: usize, place: FileRange) {
        self.sent.push_back(Sent { slot, place, landed: false });
    }

    /// Whether the block of this buffer was submitted, and does not count as written yet.
    pub fn is_sent(&self, slot: usize) -> bool {
        self.sent.iter().any(|sent| sent.slot == slot)
    }

    /// The buffers whose writes have not completed, with their places.
    pub fn on_their_way(&self) -> Vec<(usize, FileRange)> {
        let not_landed = self.sent.iter().filter(|sent| !sent.landed);
        not_landed.map(|sent| (sent.slot, sent.place)).collect()
    }

    /// Records that the write of a buffer has completed. Buffers not submitted by [`Flight::send`]
    /// hold no records.
    pub fn landed(&mut self, slot: usize) {
        if let Some(sent) = self.sent.iter_mut().find(|sent| sent.slot == slot) {
            sent.landed = true;
        }
        while self.sent.front().is_some_and(|sent| sent.landed) {
            let Some(Sent { slot, place, .. }) = self.sent.pop_front() else { return };
            let (parts, since_ns) = self.take_block(slot);
            for (channel, part) in &parts {
                self.ledgers[*channel].written(part.amount);
            }
            self.written.push_back(Written { place, slot, parts, since_ns });
        }
    }

    fn take_block(&mut self, slot: usize) -> (Vec<(usize, Part)>, Option<u64>) {
        let block = &mut self.blocks[slot];
        let parts = block.parts.iter_mut().map(std::mem::take).enumerate();
        let parts = parts.filter(|(_, part)| part.amount.records > 0).collect();
        (parts, block.since_ns.take())
    }

    pub fn begin_sync(&mut self) {
        self.syncing = self.written.len();
    }

    /// Records that the sync succeeded. Returns the time since which the oldest of its records had
    /// waited.
    pub fn synced(&mut self) -> Option<u64> {
        let synced = std::mem::take(&mut self.syncing);
        // The number of buffers is small.
        self.durable += synced as u32;
        let mut oldest_ns: Option<u64> = None;
        for block in self.written.drain(..synced) {
            for (channel, part) in block.parts {
                self.ledgers[channel].durable(part.amount, part.last_ns);
            }
            oldest_ns = oldest_ns.into_iter().chain(block.since_ns).min();
        }
        oldest_ns
    }

    /// Discards the sync in flight, because something has failed meanwhile.
    pub fn discard_sync(&mut self) {
        self.syncing = 0;
    }

    /// The blocks that are written and not durable, with the buffers from which they were written.
    pub fn written(&self) -> impl Iterator<Item = (FileRange, usize)> {
        self.written.iter().map(|block| (block.place, block.slot))
    }

    /// Counts the written blocks from this index on as lost.
    pub fn lose_written(&mut self, from: usize) {
        self.syncing = 0;
        for (channel, part) in self.written.drain(from..).flat_map(|block| block.parts) {
            self.ledgers[channel].lost_after_writing(part.amount);
        }
    }

    /// Counts the submitted blocks as lost that have not completed.
    pub fn lose_sent(&mut self) {
        while let Some(Sent { slot, .. }) = self.sent.pop_front() {
            self.lose_block(slot);
        }
    }

    fn lose_block(&mut self, slot: usize) {
        for (channel, part) in self.take_block(slot).0 {
            self.ledgers[channel].lost_in_writing(part.amount);
        }
    }

    /// Counts all blocks of the segment as lost that are not durable, and the block in this buffer.
    pub fn fail(&mut self, slot: usize) {
        self.lose_sent();
        self.lose_block(slot);
        self.lose_written(0);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        // Writes may complete in any order: each submitted record becomes written exactly once.
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
        flight.send(slot, FileRange { offset: slot as u64, bytes: 10 });
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
        assert_eq!(flight.durable_blocks(), 2);
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
        assert_eq!((account.written.records, account.lost_in_writing.records), (0, 2));
        assert_eq!((account.durable.records, account.buffered.records), (0, 0));
    }

    #[test]
    fn a_sync_proves_nothing_behind_a_failure_and_what_is_missing_is_lost() {
        let (mut flight, ledger) = flight();
        for slot in 0..3 {
            fill(&mut flight, &ledger, slot, slot as u64);
            flight.landed(slot);
        }
        flight.begin_sync();
        flight.discard_sync();
        assert_eq!(flight.synced(), None);
        assert_eq!(flight.written().map(|(place, _)| place.offset).collect::<Vec<_>>(), [0, 1, 2]);
        flight.lose_written(2);
        flight.begin_sync();
        flight.synced();
        let account = ledger.snapshot();
        assert_eq!((account.durable.records, account.lost_in_writing.records), (2, 1));
        assert_eq!(account.buffered.records, 0);
    }
}
