// SPDX-License-Identifier: MIT OR Apache-2.0
//! Encodes and decodes the blocks of an area: a snapshot of all extents, then one block per durable
//! change. `examine` and `store` call it.

use super::{BLOCK, StoreId, array_at, is_sealed, put, seal, u32_at, u64_at};

const MAGIC: &[u8; 8] = b"STDYRECS";
const HEAD: usize = 56;
const ENTRY: usize = 48;
/// The number of entries in a block. This number of changes is made at once, all or none.
pub const ENTRIES_MAX: usize = (BLOCK - HEAD) / ENTRY;

const SNAPSHOT: u32 = 1;
const CHANGES: u32 = 2;

const DELETED: u32 = 1;
const CHECKED: u32 = 2;

/// A contiguous range of the device with contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Extent {
    /// The place of its contents.
    pub start: u64,
    /// A second place of the same size, which always has room for the next contents.
    pub spare: Option<u64>,
    /// The requested size, which is the limit of its contents.
    pub bytes: u64,
    /// The length of its contents.
    pub valid_bytes: u64,
    /// The checksum of its contents, if it was made with one.
    pub crc: Option<u32>,
}

/// A change of an extent: its id and new state; None if it was deleted.
pub type Entry = (u64, Option<Extent>);

/// The head of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub is_snapshot: bool,
    pub store: StoreId,
    /// The epoch of the area; each snapshot has a new one.
    pub epoch: u64,
    /// The index in the area.
    pub index: u32,
    /// The number of blocks in the area's snapshot.
    pub snapshot_blocks: u32,
}

/// A valid block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub head: Head,
    pub entries: Vec<Entry>,
}

/// Encodes at most [`ENTRIES_MAX`] entries.
pub fn encode(head: &Head, entries: &[Entry], block: &mut [u8]) {
    assert!(entries.len() <= ENTRIES_MAX, "the caller cuts them into blocks");
    let block = &mut block[..BLOCK];
    block.fill(0);
    let kind = if head.is_snapshot { SNAPSHOT } else { CHANGES };
    put(block, 0, MAGIC);
    put(block, 8, &kind.to_le_bytes());
    put(block, 16, &head.store);
    put(block, 32, &head.epoch.to_le_bytes());
    put(block, 40, &head.index.to_le_bytes());
    put(block, 44, &head.snapshot_blocks.to_le_bytes());
    put(block, 48, &(entries.len() as u32).to_le_bytes());
    for (entry, to) in entries.iter().zip(block[HEAD..].chunks_exact_mut(ENTRY)) {
        encode_entry(entry, to);
    }
    seal(block);
}

fn encode_entry((id, extent): &Entry, to: &mut [u8]) {
    put(to, 0, &id.to_le_bytes());
    let Some(extent) = extent else { return put(to, 44, &DELETED.to_le_bytes()) };
    put(to, 8, &extent.start.to_le_bytes());
    put(to, 16, &extent.spare.unwrap_or(0).to_le_bytes());
    put(to, 24, &extent.bytes.to_le_bytes());
    put(to, 32, &extent.valid_bytes.to_le_bytes());
    put(to, 40, &extent.crc.unwrap_or(0).to_le_bytes());
    let flags = if extent.crc.is_some() { CHECKED } else { 0 };
    put(to, 44, &flags.to_le_bytes());
}

/// Decodes a block; None if it is not a valid block of a store.
pub fn decode(block: &[u8]) -> Option<Record> {
    let block = &block[..BLOCK];
    if !block.starts_with(MAGIC) || !is_sealed(block) {
        return None;
    }
    let kind = u32_at(block, 8);
    let count = u32_at(block, 48) as usize;
    if !matches!(kind, SNAPSHOT | CHANGES) || count > ENTRIES_MAX {
        return None;
    }
    let head = Head {
        is_snapshot: kind == SNAPSHOT,
        store: array_at(block, 16),
        epoch: u64_at(block, 32),
        index: u32_at(block, 40),
        snapshot_blocks: u32_at(block, 44),
    };
    let entries = block[HEAD..].chunks_exact(ENTRY).take(count).map(decode_entry);
    Some(Record { head, entries: entries.collect::<Option<Vec<Entry>>>()? })
}

fn decode_entry(from: &[u8]) -> Option<Entry> {
    let (id, flags) = (u64_at(from, 0), u32_at(from, 44));
    if flags & !(DELETED | CHECKED) != 0 {
        return None;
    }
    let spare = u64_at(from, 16);
    let extent = Extent {
        start: u64_at(from, 8),
        spare: (spare != 0).then_some(spare),
        bytes: u64_at(from, 24),
        valid_bytes: u64_at(from, 32),
        crc: (flags & CHECKED != 0).then(|| u32_at(from, 40)),
    };
    Some((id, (flags & DELETED == 0).then_some(extent)))
}
