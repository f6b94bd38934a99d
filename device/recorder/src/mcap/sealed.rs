// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that a tail belongs to a life, and decodes it. It reads only the tail and the end block.
//! The recovery and [`super::reading`] call it.

use std::io;

use super::account::{ChannelLedger, GAPS_ROOM_BYTES, Gaps, get_ledger};
use super::definitions::Definitions;
use super::index::{BlockSpan, ChannelCount, channels_of_chunk};
use super::layout::{ALIGN_BYTES, ANY_BLOCK_BYTES_LIMIT, Placement};
use super::private::{
    BLOCK_RECORD_BYTES, BlockKind, BlockRecord, Life, SEAL_RECORD_BYTES, Seal, private_op,
};
use super::storage::Storage;
use super::wire::{DATA_END_BYTES, FOOTER_BYTES, Get, MAGIC, RECORD_HEAD_BYTES, op};

pub const ENDING_BYTES: usize = RECORD_HEAD_BYTES + FOOTER_BYTES + MAGIC.len();
/// The limit of a tail to read: index, definitions and statistics at their limits are shorter.
const TAIL_BYTES_LIMIT: u64 = 96 << 20;

/// The contents of a finished segment's tail and end block.
#[derive(Debug)]
pub struct Sealed {
    pub definitions: Definitions,
    /// The numbers of messages per channel; repeated ones are counted separately.
    pub counts: Vec<ChannelCount>,
    /// The earliest and the latest log time.
    pub times_ns: (u64, u64),
    pub chunks: u32,
    /// The blocks of data, in the order of the file.
    pub blocks: Vec<BlockSpan>,
    /// The ledger of the end block; empty if the summary has no end block.
    pub ledger: Vec<ChannelLedger>,
    /// The place of the end block.
    pub end_offset: u64,
    /// The missing blocks that the recovery found.
    pub gaps: Gaps,
    /// Whether the end block, which was durable before the tail, has vanished.
    pub end_is_lost: bool,
}

impl Sealed {
    pub(super) fn messages(&self) -> u64 {
        self.counts.iter().map(|count| count.messages).sum()
    }
}

/// Reads exactly these bytes; None if the file is shorter.
pub(super) fn read_exactly(
    storage: &dyn Storage,
    offset: u64,
    bytes: usize,
) -> io::Result<Option<Vec<u8>>> {
    let mut buffer = vec![0; bytes];
    let count = storage.read(offset, &mut buffer)?;
    Ok((count == bytes).then_some(buffer))
}

/// The beginning of the summary, if the file ends like a finished one.
pub(super) fn summary_start(storage: &dyn Storage) -> io::Result<Option<u64>> {
    let Some(offset) = storage.bytes()?.checked_sub(ENDING_BYTES as u64) else { return Ok(None) };
    let Some(ending) = read_exactly(storage, offset, ENDING_BYTES)? else { return Ok(None) };
    let mut get = Get::new(&ending);
    let start = match get.record() {
        Some((op::FOOTER, content)) if get.rest() == MAGIC => Get::new(content).u64(),
        _ => None,
    };
    Ok(start)
}

/// The tail of this life, if it is complete and unchanged.
pub fn sealed(storage: &dyn Storage, life: &Life) -> io::Result<Option<Sealed>> {
    let file_bytes = storage.bytes()?;
    if life.placement == Placement::Recycled && file_bytes != life.segment_bytes {
        return Ok(None);
    }
    let Some(summary) = summary_start(storage)? else { return Ok(None) };
    let between = GAPS_ROOM_BYTES + RECORD_HEAD_BYTES + DATA_END_BYTES;
    let before = (SEAL_RECORD_BYTES + between) as u64;
    let Some(offset) = summary.checked_sub(before) else { return Ok(None) };
    let Some(bytes) = file_bytes.checked_sub(offset).filter(|bytes| *bytes <= TAIL_BYTES_LIMIT)
    else {
        return Ok(None);
    };
    let Some(tail) = read_exactly(storage, offset, bytes as usize)? else { return Ok(None) };
    let (seal, tail) = tail.split_at(SEAL_RECORD_BYTES);
    let seal = Seal::get(seal)
        .filter(|seal| seal.identity == life.identity && seal.tail_crc == crc32fast::hash(tail));
    let Some(seal) = seal else { return Ok(None) };
    let end = end_block(storage, life, seal.end_offset)?;
    Ok(read_tail(tail, end.as_deref(), seal.end_offset))
}

fn end_block(storage: &dyn Storage, life: &Life, offset: u64) -> io::Result<Option<Vec<u8>>> {
    let Some(start) = read_exactly(storage, offset, ALIGN_BYTES)? else { return Ok(None) };
    let Some(record) = BlockRecord::get(&start) else { return Ok(None) };
    let bytes = record.block_bytes as usize;
    let ours = record.identity == life.identity && record.offset == offset;
    if !ours || record.kind != BlockKind::End || bytes > ANY_BLOCK_BYTES_LIMIT {
        return Ok(None);
    }
    let block = read_exactly(storage, offset, bytes)?;
    Ok(block.filter(|block| record.fits(block)))
}

fn read_tail(tail: &[u8], end_block: Option<&[u8]>, end_offset: u64) -> Option<Sealed> {
    let mut definitions = Definitions::empty();
    let mut statistics = None;
    let mut gaps = Gaps::default();
    let mut blocks = Vec::new();
    // It precedes the index.
    let (mut repeated, mut repeated_ids) = (0, Vec::new());
    let mut records = Get::new(tail);
    while let Some((opcode, content)) = records.record() {
        match opcode {
            op::SCHEMA | op::CHANNEL => definitions.add_record(opcode, content)?,
            op::STATISTICS => statistics = Some(content),
            op::CHUNK_INDEX => {
                let repeats = repeated > blocks.len();
                blocks.push(BlockSpan { repeats, ..BlockSpan::get(content)? });
                if repeats {
                    repeated_ids.extend(channels_of_chunk(content)?);
                }
            }
            op::METADATA => gaps = Gaps::get_metadata(content)?,
            private_op::REPEATED => repeated = Get::new(content).u32()? as usize,
            _ => {}
        }
    }
    let (chunks, times_ns, mut counts) = read_statistics(statistics?)?;
    for count in &mut counts {
        count.repeated = repeated_ids.iter().filter(|id| **id == count.id).count() as u64;
        count.messages = count.messages.checked_sub(count.repeated)?;
    }
    let mut ledger = vec![ChannelLedger::default(); definitions.channel_ids().len()];
    let end_is_lost = end_block.is_none();
    let mut records =
        Get::new(end_block.unwrap_or_default().get(BLOCK_RECORD_BYTES..).unwrap_or_default());
    while let Some((opcode, content)) = records.record() {
        if opcode == private_op::LEDGER {
            get_ledger(content, &mut ledger)?;
        }
    }
    Some(Sealed {
        definitions,
        counts,
        times_ns,
        chunks,
        blocks,
        ledger,
        end_offset,
        gaps,
        end_is_lost,
    })
}

type Statistics = (u32, (u64, u64), Vec<ChannelCount>);

fn read_statistics(content: &[u8]) -> Option<Statistics> {
    let mut get = Get::new(content);
    let _messages = get.u64()?;
    let _counts_of_schemas_channels_attachments_metadata = get.bytes(2 + 3 * 4)?;
    let chunks = get.u32()?;
    let times_ns = (get.u64()?, get.u64()?);
    let mut map = Get::new(get.prefixed()?);
    let counts = std::iter::from_fn(|| {
        Some(ChannelCount { id: map.u16()?, messages: map.u64()?, repeated: 0 })
    });
    Some((chunks, times_ns, counts.collect()))
}
