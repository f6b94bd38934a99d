// SPDX-License-Identifier: MIT OR Apache-2.0
//! Private records, with opcodes that MCAP leaves to applications, so other readers skip them. The
//! encoder writes them, and the recovery reads them.
//!
//! - *life*: identifies the recording in this file: a recording id, and a sequence number that
//!   grows with each use of a file of the pool. Each use of a file is called a life.
//! - *gate*: closed, it spans the rest of the file, so that a reader from the start skips an
//!   unfinished segment. It is opened last, and then ends with the head.
//! - *block*: begins each block: its life, its place, its checksum. Blocks left over from an
//!   earlier life name another life.
//! - *ledger*: the counts of each channel's messages; see [`super::account`].
//! - *padding*: fills up to the next boundary, or in a finished segment up to the tail.
//! - *gap*: covers the first bytes of a damaged block, so that readers from the start can skip it.
//! - *seal*: precedes the data end, and names the life of this tail.

use super::wire::{DIGITS_MAX, Get, MAGIC, Put, RECORD_HEAD_BYTES, op};

/// Blocks begin and end at multiples of this: direct I/O on common devices needs no larger
/// alignment.
pub const ALIGN_BYTES: usize = 4_096;
/// The size of the first block of a file. It is fixed, because recycling rewrites it.
pub const HEAD_BYTES: usize = ALIGN_BYTES;
/// The version of the layout, in the life record and the metadata.
pub const FORMAT_VERSION: u16 = 1;
/// The version of segments whose chunks may be compressed. Programs that cannot read these must not
/// complete them.
pub const COMPRESSED_VERSION: u16 = 2;

pub mod private_op {
    /// The start of a block.
    pub const BLOCK: u8 = 0xe0;
    /// The life in the file.
    pub const LIFE: u8 = 0xe1;
    /// Hides an unfinished segment.
    pub const GATE: u8 = 0xe2;
    pub const LEDGER: u8 = 0xe3;
    pub const PADDING: u8 = 0xe4;
    /// The life of the tail.
    pub const SEAL: u8 = 0xe5;
    /// Damaged blocks, up to the next valid one.
    pub const GAP: u8 = 0xe6;
    /// The number of blocks at the beginning that repeat latched messages.
    pub const REPEATED: u8 = 0xe7;
}

/// The length of the block record.
pub const BLOCK_RECORD_BYTES: usize = RECORD_HEAD_BYTES + 16 + 8 + 8 + 4 + 4 + 4 + 4 + 4 + 4;
/// The length of the life record.
pub const LIFE_RECORD_BYTES: usize = RECORD_HEAD_BYTES + 2 + 2 + 16 + 8 + 8 + 8 + 4 + 4 + 4;
/// The length of the seal record.
pub const SEAL_RECORD_BYTES: usize = RECORD_HEAD_BYTES + 16 + 8 + 8 + 4 + 4;
// The specification requires this.
const _: () =
    assert!(BLOCK_RECORD_BYTES == 65 && LIFE_RECORD_BYTES == 65 && SEAL_RECORD_BYTES == 49,);
/// The last 512 bytes of the head. A write that replaces an old gate is atomic.
pub const GATE_OFFSET: usize = HEAD_BYTES - 512;
/// The longest profile.
pub const PROFILE_BYTES_MAX: usize = 64;
/// The profile's key in the metadata of a segment's identity.
const PROFILE_KEY: &str = "profile";
/// The name of the metadata record of a segment's identity.
pub const LIFE_NAME: &str = "steadyio.segment";

const LIBRARY: &str = concat!("steadyio ", env!("CARGO_PKG_VERSION"));
// The life must lie within one sector, which is written as a whole or not at all.
const _: () = assert!(
    MAGIC.len() + RECORD_HEAD_BYTES + 8 + PROFILE_BYTES_MAX + 32 + LIFE_RECORD_BYTES <= 512
);
const _: () = assert!(LIBRARY.len() <= 32 && GATE_OFFSET % 512 == 0);

/// Whether the file has a fixed size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// The file has its full size from the start, and may hold an earlier recording.
    Recycled,
    /// The file is empty at first, and grows to at most this size.
    Growing,
}

/// One use of a file by one recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity {
    /// A random id, new for each recording.
    pub recording_id: [u8; 16],
    /// A number greater than that of any earlier use of a file in the same directory.
    pub sequence: u64,
}

/// A segment's description of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    pub identity: Identity,
    /// The time at which it began, on the clock of log times.
    pub created_ns: u64,
    /// Recycled or growing.
    pub placement: Placement,
    /// The size of the file, or its limit.
    pub segment_bytes: u64,
    /// The largest block.
    pub block_bytes_max: u32,
    /// The room for chunk indexes.
    pub index_bytes: u32,
    /// Whether chunks may be compressed.
    pub is_compressed: bool,
}

fn checksum(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// Ends a private record with its checksum.
fn close_checked(put: &mut Put<'_>, start: usize) {
    let crc = checksum(put.written(start..put.at()));
    put.u32(crc);
}

/// The content of a record with this opcode and length, if its checksum is right.
fn checked(bytes: &[u8], opcode: u8, record_bytes: usize) -> Option<Get<'_>> {
    let (record, crc) = bytes.get(..record_bytes)?.split_at_checked(record_bytes - 4)?;
    if Get::new(crc).u32()? != checksum(record) {
        return None;
    }
    let mut get = Get::new(record);
    let fits = get.u8()? == opcode && get.u64()? == (record_bytes - RECORD_HEAD_BYTES) as u64;
    fits.then_some(get)
}

fn put_identity(put: &mut Put<'_>, identity: &Identity) {
    put.bytes(&identity.recording_id);
    put.u64(identity.sequence);
}

fn get_identity(get: &mut Get<'_>) -> Option<Identity> {
    Some(Identity { recording_id: get.id()?, sequence: get.u64()? })
}

impl Life {
    fn version(&self) -> u16 {
        if self.is_compressed { COMPRESSED_VERSION } else { FORMAT_VERSION }
    }

    pub fn put(&self, put: &mut Put<'_>) {
        let start = put.at();
        put.record(private_op::LIFE, (LIFE_RECORD_BYTES - RECORD_HEAD_BYTES) as u64);
        put.u16(self.version());
        put.u16(match self.placement {
            Placement::Recycled => 1,
            Placement::Growing => 2,
        });
        put_identity(put, &self.identity);
        put.u64(self.created_ns);
        put.u64(self.segment_bytes);
        put.u32(self.block_bytes_max);
        put.u32(self.index_bytes);
        close_checked(put, start);
    }

    /// Decodes a record with a right checksum.
    pub fn get(bytes: &[u8]) -> Option<Life> {
        let mut get = checked(bytes, private_op::LIFE, LIFE_RECORD_BYTES)?;
        let is_compressed = match get.u16()? {
            FORMAT_VERSION => false,
            COMPRESSED_VERSION => true,
            _ => return None,
        };
        let placement = match get.u16()? {
            1 => Placement::Recycled,
            2 => Placement::Growing,
            _ => return None,
        };
        Some(Life {
            identity: get_identity(&mut get)?,
            created_ns: get.u64()?,
            placement,
            segment_bytes: get.u64()?,
            block_bytes_max: get.u32()?,
            index_bytes: get.u32()?,
            is_compressed,
        })
    }

    /// Writes the same as a metadata record for MCAP readers.
    pub fn put_metadata(&self, put: &mut Put<'_>, profile: &str) {
        let opened = put.open_record(op::METADATA);
        put.string(LIFE_NAME);
        let map = put.open_u32();
        put.number("format", u64::from(self.version()));
        put.string("recording_id");
        put.u32(32);
        for byte in self.identity.recording_id {
            put.bytes(&[hex(byte >> 4), hex(byte & 15)]);
        }
        put.number("sequence", self.identity.sequence);
        put.number("created_ns", self.created_ns);
        put.number("segment_bytes", self.segment_bytes);
        if !profile.is_empty() {
            put.string(PROFILE_KEY);
            put.string(profile);
        }
        put.close_u32(map);
        put.close_record(opened);
    }
}

/// The room for the metadata of a life.
pub fn life_metadata_bytes_max() -> usize {
    let profile = 8 + PROFILE_KEY.len() + PROFILE_BYTES_MAX;
    RECORD_HEAD_BYTES + 4 + LIFE_NAME.len() + 4 + 4 * (8 + 16 + DIGITS_MAX) + 8 + 16 + 32 + profile
}

/// The profile in the content of a metadata record; None if it is another record.
pub fn profile_in_metadata(content: &[u8]) -> Option<&str> {
    let mut get = Get::new(content);
    get.string().filter(|name| *name == LIFE_NAME)?;
    let mut map = Get::new(get.prefixed()?);
    while !map.rest().is_empty() {
        let (key, value) = (map.string()?, map.string()?);
        if key == PROFILE_KEY {
            return Some(value).filter(|profile| profile.len() <= PROFILE_BYTES_MAX);
        }
    }
    Some("")
}

/// The profile in a head of this life.
pub fn profile_in_head<'a>(head: &'a [u8], life: &Life) -> Option<&'a str> {
    let mut get = Get::new(head);
    get.bytes(MAGIC.len()).filter(|magic| *magic == MAGIC)?;
    let (_, header) = get.record().filter(|(opcode, _)| *opcode == op::HEADER)?;
    Life::get(get.rest()).filter(|found| found == life)?;
    Get::new(header).string().filter(|profile| profile.len() <= PROFILE_BYTES_MAX)
}

fn hex(digit: u8) -> u8 {
    if digit < 10 { b'0' + digit } else { b'a' + digit - 10 }
}

/// The head of a file: magic, header, life, gate.
pub fn put_head(buffer: &mut [u8], life: &Life, profile: &str, gate_open: bool) {
    let mut put = Put::new(buffer);
    put_file_start(&mut put, profile);
    life.put(&mut put);
    put_padding(&mut put, GATE_OFFSET);
    let gate_end = if gate_open { HEAD_BYTES as u64 } else { life.segment_bytes };
    put.record(private_op::GATE, gate_end - (GATE_OFFSET + RECORD_HEAD_BYTES) as u64);
    put.zeros_to(HEAD_BYTES);
}

fn put_file_start(put: &mut Put<'_>, profile: &str) {
    put.bytes(&MAGIC);
    let opened = put.open_record(op::HEADER);
    put.string(profile);
    put.string(LIBRARY);
    put.close_record(opened);
}

/// The life in a head, and whether readers from the start can pass the head: the gate is open, and
/// the records follow each other. The life alone suffices for recovery, because a head may be half
/// old and half new.
pub fn get_head(head: &[u8]) -> Option<(Life, bool)> {
    let mut get = Get::new(head);
    if get.bytes(MAGIC.len())? != MAGIC {
        return None;
    }
    let (opcode, header) = get.record()?;
    let life = Life::get(get.rest()).filter(|_| opcode == op::HEADER)?;
    get.bytes(LIFE_RECORD_BYTES)?;
    let padding = get.record().is_some_and(|(opcode, _)| opcode == private_op::PADDING);
    let at_gate = get.rest().len() == HEAD_BYTES - GATE_OFFSET;
    let gate = get.record().is_some_and(|(opcode, _)| opcode == private_op::GATE);
    let open = padding && at_gate && gate && get.rest().is_empty();
    Some((life, open && library(header).is_some()))
}

/// The library in the content of a well-formed header record.
fn library(header: &[u8]) -> Option<&str> {
    let mut get = Get::new(header);
    let _profile = get.string()?;
    get.string().filter(|_| get.rest().is_empty())
}

/// Whether a steadyio recorder wrote the head, readable or not. Such a file may hold stale blocks,
/// so it must not be read as a plain file.
pub fn is_ours(head: &[u8]) -> bool {
    let mut get = Get::new(head.get(MAGIC.len()..).unwrap_or_default());
    let library = get.record().and_then(|(_, header)| library(header));
    library.is_some_and(|library| library.starts_with("steadyio "))
        || get.u8() == Some(private_op::LIFE)
        || head.get(GATE_OFFSET) == Some(&private_op::GATE)
}

/// Writes a padding record up to a position in the buffer.
pub fn put_padding(put: &mut Put<'_>, end: usize) {
    put.record(private_op::PADDING, (end - put.at() - RECORD_HEAD_BYTES) as u64);
    put.zeros_to(end);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockKind {
    /// The first block: life, schemas, channels.
    Definitions,
    /// A chunk of messages.
    Data,
    End,
    /// Schemas and channels that were declared while the segment was in use.
    Added,
    /// A chunk of latched messages from an earlier segment, before all data.
    Repeated,
}

/// The record at the start of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockRecord {
    /// The life of the block.
    pub identity: Identity,
    /// The place of the block in the file.
    pub offset: u64,
    pub block_bytes: u32,
    /// The number of blocks before it.
    pub number: u32,
    pub kind: BlockKind,
    /// The number of blocks of this life, from the first, that were known to be durable when this
    /// one was built.
    pub durable: u32,
    /// The checksum of everything after this record.
    pub body_crc: u32,
}

impl BlockRecord {
    pub fn put(&self, put: &mut Put<'_>) {
        let start = put.at();
        put.record(private_op::BLOCK, (BLOCK_RECORD_BYTES - RECORD_HEAD_BYTES) as u64);
        put_identity(put, &self.identity);
        put.u64(self.offset);
        put.u32(self.block_bytes);
        put.u32(self.number);
        put.u32(match self.kind {
            BlockKind::Definitions => 1,
            BlockKind::Data => 2,
            BlockKind::End => 3,
            BlockKind::Added => 4,
            BlockKind::Repeated => 5,
        });
        put.u32(self.durable);
        put.u32(self.body_crc);
        close_checked(put, start);
    }

    /// Decodes the first bytes of a block, if its own checksum is right and its length plausible.
    pub fn get(bytes: &[u8]) -> Option<BlockRecord> {
        let mut get = checked(bytes, private_op::BLOCK, BLOCK_RECORD_BYTES)?;
        let record = BlockRecord {
            identity: get_identity(&mut get)?,
            offset: get.u64()?,
            block_bytes: get.u32()?,
            number: get.u32()?,
            kind: match get.u32()? {
                1 => BlockKind::Definitions,
                2 => BlockKind::Data,
                3 => BlockKind::End,
                4 => BlockKind::Added,
                5 => BlockKind::Repeated,
                _ => return None,
            },
            durable: get.u32()?,
            body_crc: get.u32()?,
        };
        let bytes = record.block_bytes as usize;
        (bytes > 0 && bytes % ALIGN_BYTES == 0).then_some(record)
    }

    /// Whether the whole block is unchanged.
    pub fn fits(&self, block: &[u8]) -> bool {
        block.len() == self.block_bytes as usize
            && checksum(&block[BLOCK_RECORD_BYTES..]) == self.body_crc
    }
}

/// Connects a tail with its life and its end block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seal {
    /// The life of the tail.
    pub identity: Identity,
    /// The place of the end block.
    pub end_offset: u64,
    /// The checksum of everything after this record, to the end of the file.
    pub tail_crc: u32,
}

impl Seal {
    pub fn put(&self, put: &mut Put<'_>) {
        let start = put.at();
        put.record(private_op::SEAL, (SEAL_RECORD_BYTES - RECORD_HEAD_BYTES) as u64);
        put_identity(put, &self.identity);
        put.u64(self.end_offset);
        put.u32(self.tail_crc);
        close_checked(put, start);
    }

    /// Decodes a record with a right checksum.
    pub fn get(bytes: &[u8]) -> Option<Seal> {
        let mut get = checked(bytes, private_op::SEAL, SEAL_RECORD_BYTES)?;
        Some(Seal {
            identity: get_identity(&mut get)?,
            end_offset: get.u64()?,
            tail_crc: get.u32()?,
        })
    }
}
