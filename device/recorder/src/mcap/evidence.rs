// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes how many messages a segment should hold, from its own records. [`crate::audit`]
//! compares segments with it.
//!
//! Damage may destroy blocks together with their counts, so every remaining count is used: the
//! summary, the account in the end block, and the account at the beginning. The last one has the
//! number of messages that were durable before the segment.

use super::account::ChannelLedger;
use super::layout::HEAD_BYTES;
use super::private::Life;
use super::scan::Scanned;
use super::sealed::Sealed;
use super::wire::{MESSAGE_HEAD_BYTES, MESSAGE_INDEX_ENTRY_BYTES, RECORD_HEAD_BYTES};

/// The size of the smallest message.
const MESSAGE_BYTES_MIN: u64 =
    (RECORD_HEAD_BYTES + MESSAGE_HEAD_BYTES + MESSAGE_INDEX_ENTRY_BYTES) as u64;
/// The same in a compressed chunk, of which only the message index has a known size.
const COMPRESSED_BYTES_MIN: u64 = MESSAGE_INDEX_ENTRY_BYTES as u64;

/// The counts of a segment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Evidence {
    /// The messages that were found.
    pub present: u64,
    /// The durable messages of the recording before this segment.
    pub begun: Option<u64>,
    /// The count in the summary.
    pub counted: Option<u64>,
    /// The count in the end block, if not all may have been written, or in a summary that counts
    /// the messages found by a recovery.
    pub at_least: u64,
    /// The limit of the messages in missing blocks, without other counts.
    pub missing_at_most: u64,
}

impl Evidence {
    /// The counts of a valid tail, without reading its blocks.
    pub(super) fn of_tail(life: &Life, tail: &Sealed, begun: Option<u64>) -> Evidence {
        let present = tail.messages();
        // After a gap, the recovery's summary counts the messages that it found.
        let is_damage = tail.gaps.durable_blocks > 0;
        let gap_bytes = if is_damage { tail.gaps.bytes } else { 0 };
        let missing_at_most = messages_max(life.is_compressed, gap_bytes);
        let counted = (!is_damage).then_some(present);
        Evidence { present, begun, counted, at_least: present, missing_at_most }
    }

    /// The counts after this number of messages was found.
    pub(super) fn with_found(self, present: u64) -> Evidence {
        let gone = self.present.saturating_sub(present);
        let missing_at_most = if self.counted.is_some() { 0 } else { self.missing_at_most + gone };
        Evidence { present, missing_at_most, ..self }
    }

    /// The counts of a segment of which there are two copies. One may lack the messages that came
    /// later, so a count is one of all messages only if no copy may have had more.
    pub(crate) fn joined(self, other: Evidence) -> Evidence {
        let both = [self, other];
        let count = |one: &Evidence| one.counted.unwrap_or(0).max(one.at_least);
        let limit = |one: &Evidence| match one.counted {
            Some(_) => 0,
            None => one.present + one.missing_at_most,
        };
        let present = self.present.max(other.present);
        let at_least = both.iter().map(count).max().unwrap_or(0);
        let limit = both.iter().map(limit).max().unwrap_or(0);
        Evidence {
            present,
            begun: self.begun.or(other.begun),
            counted: self.counted.max(other.counted).filter(|_| limit <= at_least),
            at_least,
            missing_at_most: limit.saturating_sub(present),
        }
    }

    /// The counts of a segment of which a file outside of the pool has a part. That file does not
    /// tell what the segment had later.
    pub(crate) fn with_aside(self, aside: Evidence) -> Evidence {
        let counted = Some(aside.counted.unwrap_or(0).max(aside.at_least));
        self.joined(Evidence { counted, ..aside })
    }

    /// The counts after so many missing messages were found elsewhere.
    pub fn with_more(self, messages: u64) -> Evidence {
        let missing_at_most = self.missing_at_most.saturating_sub(messages);
        Evidence { present: self.present + messages, missing_at_most, ..self }
    }

    pub(super) fn of_blocks(life: &Life, scanned: &Scanned) -> Evidence {
        let before = scanned.begun_ledger.as_ref();
        let at_least = match (before, scanned.end) {
            (Some(before), Some(_)) => written(&scanned.ledger).saturating_sub(written(before)),
            _ => 0,
        };
        let is_damage = scanned.gaps.durable_blocks > 0;
        let gap_bytes = if is_damage { scanned.gaps.bytes } else { 0 };
        let missing_at_most = messages_max(life.is_compressed, gap_bytes);
        Evidence {
            present: scanned.index.messages(),
            begun: before.map(|before| durable(before)),
            counted: None,
            at_least,
            missing_at_most,
        }
    }

    /// The counts of a segment that had been finished. The data after its last block is lost, too.
    pub(super) fn with_lost_end(self, life: &Life, data_end: u64) -> Evidence {
        let bytes = life.segment_bytes.saturating_sub(data_end);
        let behind = messages_max(life.is_compressed, bytes);
        Evidence { missing_at_most: self.missing_at_most + behind, ..self }
    }
}

/// The highest number of messages in this number of bytes of a segment.
fn messages_max(is_compressed: bool, bytes: u64) -> u64 {
    bytes / if is_compressed { COMPRESSED_BYTES_MIN } else { MESSAGE_BYTES_MIN }
}

/// The highest number of messages in a segment of this size.
pub fn segment_messages_max(is_compressed: bool, segment_bytes: u64) -> u64 {
    messages_max(is_compressed, segment_bytes.saturating_sub(HEAD_BYTES as u64))
}

pub(super) fn durable(ledger: &[ChannelLedger]) -> u64 {
    ledger.iter().map(|channel| channel.durable).sum()
}

fn written(ledger: &[ChannelLedger]) -> u64 {
    ledger.iter().map(|channel| channel.written).sum()
}
