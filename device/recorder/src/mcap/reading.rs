// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the messages of a segment without changing it.
//!
//! Exports and `device/python` call it, also while a recorder writes or recycles the segment. It
//! trusts the index in a tail, because the tail has a checksum and names its life. Without a tail,
//! it follows the blocks as the recovery does. It checks each block again when it reads the block.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::thread::sleep;
use std::time::Duration;

use super::account::{ChannelLedger, Gaps};
use super::chunk::put_head;
use super::definitions::Definitions;
use super::evidence::Evidence;
use super::follow::scan;
use super::index::{BlockSpan, ChannelCount};
use super::layout::{ALIGN_BYTES, ANY_BLOCK_BYTES_LIMIT};
use super::private::{BLOCK_RECORD_BYTES, BlockKind, BlockRecord, Life};
use super::recover::{RecoverError, State, begun, examine_sectors, find_life, profile};
use super::scan::{ChunkMessage, Messages, Records, Scanned, chunk_place, compression_name};
use super::sealed::{Sealed, read_exactly, sealed};
use super::sectors::{Sectors, Unreadable};
use super::storage::Storage;
use super::wire::{CHUNK_HEAD_BYTES, MESSAGE_HEAD_BYTES, Put, RECORD_HEAD_BYTES, op};

/// A segment with messages.
#[derive(Debug)]
pub struct Readable {
    pub life: Life,
    pub definitions: Definitions,
    /// MCAP's profile; empty if there is none.
    pub profile: String,
    /// The blocks of data, in the order of the file.
    pub blocks: Vec<BlockSpan>,
    /// The earliest and the latest log time.
    pub times_ns: (u64, u64),
    /// The number of messages per channel, in the order of the definitions, without repeated ones.
    pub counts: Vec<u64>,
    /// The last ledger in the segment.
    pub ledger: Vec<ChannelLedger>,
    /// Blocks that are known to be missing before a block is read.
    pub gaps: Gaps,
    /// The part that the device could not read so far.
    pub unreadable: Option<Unreadable>,
    /// The number of messages that it should hold.
    pub evidence: Evidence,
    /// Whether the recorder or the recovery has ended it.
    pub is_ended: bool,
}

/// The contents of a file.
#[derive(Debug)]
pub enum Found {
    Messages(Box<Readable>),
    /// The segment is unused, or nothing was recorded in this life.
    Empty(Option<Life>, Evidence),
    /// There are messages, but the definitions are missing.
    NoDefinitions,
    /// An MCAP file from another program.
    Foreign,
}

/// A block in flight may arrive after later ones. This is the number of checks for it, LOOK_EVERY
/// apart.
const LOOKS_MAX: u32 = 10;
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Reads the present contents. If a block is missing before one that is there, it may be in flight,
/// so this waits briefly. Otherwise it would look like a loss.
pub fn read(storage: &dyn Storage) -> Result<Found, RecoverError> {
    let mut found = read_once(storage)?;
    for _ in 0..LOOKS_MAX {
        let is_on_its_way = matches!(&found, Found::Messages(found)
            if found.gaps.blocks > found.gaps.durable_blocks && !found.is_ended);
        if !is_on_its_way {
            break;
        }
        sleep(LOOK_EVERY);
        found = read_once(storage)?;
    }
    Ok(found)
}

fn read_once(storage: &dyn Storage) -> Result<Found, RecoverError> {
    let sectors = Sectors::new(storage);
    let found = find(&sectors)?;
    match (found, sectors.unreadable()) {
        (Found::Messages(found), unreadable) => {
            Ok(Found::Messages(Box::new(Readable { unreadable, ..*found })))
        }
        (_, Some(unreadable)) => Err(RecoverError::Unreadable(unreadable)),
        (found, None) => Ok(found),
    }
}

fn find(storage: &Sectors<'_>) -> Result<Found, RecoverError> {
    if let Some((life, _)) = find_life(storage)? {
        if let Some(tail) = sealed(storage, &life)? {
            let evidence = Evidence::of_tail(&life, &tail, begun(storage, &life)?);
            let profile = profile(storage, &life)?;
            return match tail.end_is_lost {
                true => Ok(without_end(storage, life, tail, profile, evidence)?),
                false => Ok(of_tail(life, tail, profile, evidence)),
            };
        }
    }
    let found = examine_sectors(storage, false)?;
    match (found.state, found.life) {
        (State::Damaged, _) => Ok(Found::NoDefinitions),
        (State::Unused | State::Blank, life) => Ok(Found::Empty(life, found.evidence)),
        (_, None) => Ok(Found::Foreign),
        // The segment was finished in the meantime.
        (State::Finished | State::Hidden, _) => find(storage),
        (State::Unfinished, life) => {
            let evidence = found.evidence;
            let blocks = found.into_blocks();
            Ok(blocks.map_or(Found::Empty(life, evidence), |blocks| of_blocks(blocks, evidence)))
        }
    }
}

fn of_tail(life: Life, tail: Sealed, profile: String, evidence: Evidence) -> Found {
    if tail.blocks.is_empty() {
        return Found::Empty(Some(life), evidence);
    }
    let Sealed { definitions, counts, blocks, times_ns, ledger, gaps, .. } = tail;
    let counts = in_order(&definitions, &counts);
    let unreadable = None;
    let found = Readable {
        life,
        definitions,
        profile,
        blocks,
        times_ns,
        counts,
        ledger,
        gaps,
        unreadable,
        evidence,
        is_ended: true,
    };
    Found::Messages(Box::new(found))
}

/// Reads the blocks of a finished segment without its end block: they have the newest account, and
/// may reach beyond the tail. The end block counts as missing.
fn without_end(
    storage: &dyn Storage,
    life: Life,
    tail: Sealed,
    profile: String,
    evidence: Evidence,
) -> io::Result<Found> {
    let (_, scanned) = scan(storage, life, Some(&tail.definitions))?;
    let found = match scanned {
        Some(scanned) => {
            let evidence = evidence.with_found(scanned.index.messages());
            of_blocks((life, scanned), evidence)
        }
        None => of_tail(life, tail, String::new(), evidence),
    };
    let Found::Messages(mut found) = found else { return Ok(found) };
    found.gaps.blocks += 1;
    found.gaps.durable_blocks += 1;
    Ok(Found::Messages(Box::new(Readable { profile, is_ended: true, ..*found })))
}

fn of_blocks((life, scanned): (Life, Scanned), evidence: Evidence) -> Found {
    let blocks: Vec<BlockSpan> = scanned.index.blocks().collect();
    if blocks.is_empty() {
        return Found::Empty(Some(life), evidence);
    }
    let times_ns = scanned.index.times_ns();
    let counts = in_order(&scanned.definitions, scanned.index.channels());
    let is_ended = scanned.end.is_some();
    let Scanned { definitions, ledger, gaps, .. } = scanned;
    let profile = definitions.profile().into();
    let unreadable = None;
    let found = Readable {
        life,
        definitions,
        profile,
        blocks,
        times_ns,
        counts,
        ledger,
        gaps,
        unreadable,
        evidence,
        is_ended,
    };
    Found::Messages(Box::new(found))
}

fn in_order(definitions: &Definitions, counts: &[ChannelCount]) -> Vec<u64> {
    let counts: HashMap<u16, u64> = counts.iter().map(|one| (one.id, one.messages)).collect();
    definitions.channel_ids().iter().map(|id| counts.get(id).copied().unwrap_or(0)).collect()
}

/// The present life of the file.
pub fn life(storage: &dyn Storage) -> io::Result<Option<Life>> {
    Ok(find_life(&Sectors::new(storage))?.map(|(life, _)| life))
}

/// Reads a block of data and its record; None if the block has been overwritten. Compressed records
/// are returned uncompressed, so that payloads have places in the block.
pub fn read_block(
    storage: &dyn Storage,
    life: &Life,
    span: &BlockSpan,
) -> io::Result<Option<Vec<u8>>> {
    block_at(storage, life, span.offset)
}

/// [`read_block`], of the block at this place.
pub fn block_at(storage: &dyn Storage, life: &Life, offset: u64) -> io::Result<Option<Vec<u8>>> {
    let Some(start) = read_exactly(storage, offset, ALIGN_BYTES)? else { return Ok(None) };
    let ours = |record: &BlockRecord| {
        record.identity == life.identity
            && record.offset == offset
            && matches!(record.kind, BlockKind::Data | BlockKind::Repeated)
            && record.block_bytes as usize <= ANY_BLOCK_BYTES_LIMIT
    };
    let Some(record) = BlockRecord::get(&start).filter(ours) else { return Ok(None) };
    let block = read_exactly(storage, offset, record.block_bytes as usize)?;
    Ok(block.filter(|block| record.fits(block)).and_then(uncompressed))
}

/// The block with uncompressed records, and then without what follows them; None if they do not
/// match their size or checksum.
fn uncompressed(block: Vec<u8>) -> Option<Vec<u8>> {
    let (_, opcode, content) = Records::of(&block).next()?;
    if opcode != op::CHUNK || compression_name(content)?.is_empty() {
        return Some(block);
    }
    let (place, records) = chunk_place(content)?;
    let records_at = BLOCK_RECORD_BYTES + RECORD_HEAD_BYTES + CHUNK_HEAD_BYTES;
    let mut plain = vec![0; records_at + records.len()];
    let mut put = Put::new(&mut plain);
    put.bytes(&block[..BLOCK_RECORD_BYTES]);
    let bytes = place.uncompressed_bytes;
    // Without a checksum, because it was compared.
    put_head(&mut put, (place.start_ns, place.end_ns), (bytes, 0), "", bytes);
    put.bytes(&records);
    Some(plain)
}

/// A message in a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageInBlock {
    /// The position of its channel in the definitions.
    pub slot: usize,
    pub sequence: u32,
    pub log_time_ns: u64,
    pub publish_time_ns: u64,
    /// The place of its payload in the block.
    pub payload: Range<usize>,
}

/// The messages of a block that [`read_block`] returned; `None` if they do not match these
/// definitions.
pub fn messages<'a>(
    block: &'a [u8],
    definitions: &'a Definitions,
) -> Option<impl Iterator<Item = MessageInBlock> + 'a> {
    let (chunk_at, opcode, content) = Records::of(block).next()?;
    let (_, records) = chunk_place(content).filter(|_| opcode == op::CHUNK)?;
    // `read_block` has decompressed them.
    let Cow::Borrowed(records) = records else { return None };
    let mut at = chunk_at + RECORD_HEAD_BYTES + CHUNK_HEAD_BYTES;
    let place = move |message: ChunkMessage<'_>| {
        let start = at + RECORD_HEAD_BYTES + MESSAGE_HEAD_BYTES;
        at = start + message.payload.len();
        let ChunkMessage { slot, sequence, log_time_ns, publish_time_ns, .. } = message;
        MessageInBlock { slot, sequence, log_time_ns, publish_time_ns, payload: start..at }
    };
    Messages::checked(records, definitions).map(|messages| messages.map(place))
}
