// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds a finished segment that a new recording can continue: complete, and with the same
//! definitions, or more. The pool calls it at the start.
//!
//! Its life continues. The next block replaces its end block, and the next end block contains the
//! old account. As at the beginning of a life, first its gate is closed, and a copy of the
//! definitions replaces its tail. When that is durable, zeros overwrite the end block. A power cut
//! leaves it in the same states as any other segment.

use std::io;

use super::account::ChannelLedger;
use super::definitions::{Definitions, Mark};
use super::encoder::FileRange;
use super::follow::scan;
use super::layout::{ALIGN_BYTES, Layout, Placement};
use super::private::Life;
use super::recover::find_life;
use super::scan::{Scanned, Stop};
use super::sealed::sealed;
use super::storage::Storage;

/// The limit of reading at the start of a recording.
const READ_BYTES_MAX: u64 = 256 << 20;

/// A segment to continue.
#[derive(Debug)]
pub struct Resumable {
    pub life: Life,
    pub(super) scanned: Scanned,
}

impl Resumable {
    /// The first bytes of the block that the next one replaces.
    pub fn end_block(&self) -> FileRange {
        let offset = self.scanned.end.map_or(self.scanned.offset, |end| end.offset);
        FileRange { offset, bytes: ALIGN_BYTES }
    }

    /// The definitions of the segment. It may have more channels than the recording.
    pub fn definitions(&self) -> &Definitions {
        &self.scanned.definitions
    }

    /// The definitions with which the segment began.
    pub fn begun(&self) -> Mark {
        self.scanned.begun
    }

    /// The accounts with which this recording begins.
    pub fn base(&self) -> Vec<ChannelLedger> {
        let begun = self.scanned.begun_ledger.iter().flatten().map(|begun| begun.durable);
        let begun = begun.chain(std::iter::repeat(0));
        let channels = self.scanned.index.channels().iter().zip(&self.scanned.digests);
        let of = |((ledger, (count, digest)), before): ((&ChannelLedger, _), u64)| {
            let (count, digest): (&super::index::ChannelCount, &super::digest::ChannelDigest) =
                (count, digest);
            let written = before + count.messages;
            // A kill may have left an older account.
            let received = ledger.received.max(u64::from(digest.sequence_last));
            let received = received.max(written + ledger.lost);
            ChannelLedger { received, written, durable: written, ..*ledger }
        };
        self.scanned.ledger.iter().zip(channels).zip(begun).map(of).collect()
    }
}

/// The segment, if a recording with these definitions and sizes can continue it. `largest` is the
/// layout with all definitions that have room.
pub fn resumable(
    storage: &dyn Storage,
    definitions: &Definitions,
    layout: &Layout,
    largest: &Layout,
) -> io::Result<Option<Resumable>> {
    let Some((life, true)) = find_life(storage)? else { return Ok(None) };
    let config = layout.config();
    let same_sizes = life.placement == Placement::Recycled
        && config.placement == Placement::Recycled
        && life.segment_bytes == config.segment_bytes
        && life.block_bytes_max as usize == config.block_bytes_max
        && life.index_bytes as usize == config.index_bytes
        && life.is_compressed == config.is_compressed;
    let Some(tail) = sealed(storage, &life)?.filter(|_| same_sizes) else { return Ok(None) };
    let room = layout.data_end(0).saturating_sub(config.block_bytes_max as u64);
    let is_small = tail.end_offset <= room && tail.end_offset <= READ_BYTES_MAX;
    if tail.end_is_lost || tail.gaps.blocks > 0 || !is_small {
        return Ok(None);
    }
    let (stop, scanned) = scan(storage, life, None)?;
    let is_whole = |scanned: &Scanned| {
        stop == Stop::End
            && scanned.gaps.blocks == 0
            && scanned.begun_ledger.is_some()
            && scanned.end.is_some_and(|end| end.offset == tail.end_offset)
            && definitions.begin(&scanned.definitions)
            && largest.has_room_for(scanned.definitions.mark())
    };
    Ok(scanned.filter(is_whole).map(|scanned| Resumable { life, scanned }))
}
