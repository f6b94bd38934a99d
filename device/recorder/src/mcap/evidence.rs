// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many messages a segment should hold, by its own records.
//!
//! Damage may take blocks together with their counts, so each count that is left is used: the summary,
//! the account in the end block, and the account at the beginning. The last one says how many
//! messages the recording had made durable before. [`crate::audit`] compares segments.

use super::account::ChannelLedger;
use super::layout::HEAD_BYTES;
use super::scan::Scanned;
use super::sealed::Sealed;
use super::wire::{MESSAGE_HEAD_BYTES, MESSAGE_INDEX_ENTRY_BYTES, RECORD_HEAD_BYTES};

/// No message takes less.
const MESSAGE_BYTES_MIN: u64 =
    (RECORD_HEAD_BYTES + MESSAGE_HEAD_BYTES + MESSAGE_INDEX_ENTRY_BYTES) as u64;

/// See the module's head.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Messages that are there, as far as it was read.
    pub present: u64,
    /// Durable messages of the recording before this segment.
    pub begun: Option<u64>,
    /// By the summary.
    pub counted: Option<u64>,
    /// By the end block, when not all may have been written, or by a summary that counts what a
    /// recovery found.
    pub at_least: u64,
    /// No more can be missing where blocks are, if nothing else tells.
    pub missing_at_most: u64,
}

impl Evidence {
    /// Of a tail that is believed: its blocks were not read.
    pub(super) fn of_tail(tail: &Sealed, begun: Option<u64>) -> Evidence {
        let present = tail.messages();
        // Where the recovery left a gap its summary counts what it found.
        let is_damage = tail.gaps.durable_blocks > 0;
        let missing_at_most = if is_damage { messages_max(tail.gaps.bytes) } else { 0 };
        let counted = (!is_damage).then_some(present);
        Evidence { present, begun, counted, at_least: present, missing_at_most }
    }

    /// The same if so many messages were found.
    pub(super) fn with_found(self, present: u64) -> Evidence {
        let gone = self.present.saturating_sub(present);
        let missing_at_most = if self.counted.is_some() { 0 } else { self.missing_at_most + gone };
        Evidence { present, missing_at_most, ..self }
    }

    pub(super) fn of_blocks(scanned: &Scanned) -> Evidence {
        let before = scanned.begun_ledger.as_ref();
        let at_least = match (before, scanned.end) {
            (Some(before), Some(_)) => written(&scanned.ledger).saturating_sub(written(before)),
            _ => 0,
        };
        let is_damage = scanned.gaps.durable_blocks > 0;
        let missing_at_most = if is_damage { messages_max(scanned.gaps.bytes) } else { 0 };
        Evidence {
            present: scanned.index.messages(),
            begun: before.map(|before| durable(before)),
            counted: None,
            at_least,
            missing_at_most,
        }
    }

    /// The same of a segment that had been finished: what lay behind the last block is gone, too.
    pub(super) fn with_lost_end(self, segment_bytes: u64, data_end: u64) -> Evidence {
        let behind = messages_max(segment_bytes.saturating_sub(data_end));
        Evidence { missing_at_most: self.missing_at_most + behind, ..self }
    }
}

/// How many messages fit into so many bytes of a segment.
pub fn messages_max(bytes: u64) -> u64 {
    bytes / MESSAGE_BYTES_MIN
}

/// How many messages a segment of this size can hold.
pub fn segment_messages_max(segment_bytes: u64) -> u64 {
    messages_max(segment_bytes.saturating_sub(HEAD_BYTES as u64))
}

pub(super) fn durable(ledger: &[ChannelLedger]) -> u64 {
    ledger.iter().map(|channel| channel.durable).sum()
}

fn written(ledger: &[ChannelLedger]) -> u64 {
    ledger.iter().map(|channel| channel.written).sum()
}
