// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decodes blocks. No I/O; trusts no byte.
//!
//! A block counts if it names the life that is looked for, its own place in the file and in the
//! order of blocks, and its checksum is right. The first one that does not ends the data: what
//! lies behind it was never reported durable, or belongs to an earlier life.

use super::account::{ChannelLedger, get_ledger};
use super::definitions::Definitions;
use super::digest::{ChannelDigest, Digesting};
use super::index::{ChunkPlace, MetadataPlace, SegmentIndex};
use super::layout::{BLOCK_BYTES_LIMIT, HEAD_BYTES, Layout, LayoutConfig, chunk_index_bytes};
use super::private::{BLOCK_RECORD_BYTES, BlockKind, BlockRecord, Life, private_op};
use super::wire::{Get, RECORD_HEAD_BYTES, op};

/// Why the data ends where it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The end block: the recorder ended the segment itself.
    End,
    /// No block begins here: zeros, or the middle of an earlier life's block.
    NoBlock,
    /// A block of an earlier life.
    EarlierLife,
    /// A block of this life that was not written to its end, or was changed afterwards.
    Torn,
    /// A block of this life with a right checksum and invalid content: a bug, or a forgery.
    Malformed,
}

impl Stop {
    /// For reports.
    pub fn describe(self) -> &'static str {
        match self {
            Stop::End => "end block",
            Stop::NoBlock => "no block",
            Stop::EarlierLife => "block of an earlier life",
            Stop::Torn => "torn block",
            Stop::Malformed => "malformed block",
        }
    }
}

/// The end block that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndBlock {
    /// In the file.
    pub offset: u64,
    /// Where its padding ends.
    pub seal_offset: u64,
}

/// What the definitions block makes possible.
#[derive(Debug)]
struct Defined {
    definitions: Definitions,
    layout: Layout,
    index: SegmentIndex,
    ledger: Vec<ChannelLedger>,
    digests: Vec<Digesting>,
}

/// Follows the blocks of one life.
#[derive(Debug)]
pub struct Scanner {
    life: Life,
    offset: u64,
    number: u32,
    defined: Option<Defined>,
    end: Option<EndBlock>,
}

/// What was found of a life.
#[derive(Debug)]
pub struct Scanned {
    /// Schemas and channels.
    pub definitions: Definitions,
    pub layout: Layout,
    /// For the summary.
    pub index: SegmentIndex,
    /// The last one found.
    pub ledger: Vec<ChannelLedger>,
    /// Per channel, in order of definition.
    pub digests: Vec<ChannelDigest>,
    /// Behind the last block.
    pub offset: u64,
    pub blocks: u32,
    /// If the recorder ended the segment.
    pub end: Option<EndBlock>,
}

impl Scanner {
    /// From the first block of a life.
    pub fn new(life: Life) -> Scanner {
        Scanner { life, offset: HEAD_BYTES as u64, number: 0, defined: None, end: None }
    }

    /// Where the next block must be.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Length of the next block, from its first bytes.
    pub fn block_bytes(&self, start: &[u8]) -> Result<usize, Stop> {
        if self.end.is_some() {
            return Err(Stop::End);
        }
        let record = BlockRecord::get(start).ok_or(Stop::NoBlock)?;
        if record.identity != self.life.identity {
            return Err(Stop::EarlierLife);
        }
        let expected = self.defined.is_none() == (record.kind == BlockKind::Definitions);
        let end = self.offset.saturating_add(u64::from(record.block_bytes));
        let end_max = match (&self.defined, record.kind) {
            (Some(defined), BlockKind::Data) => defined.layout.data_end(),
            _ => self.life.segment_bytes,
        };
        let inside = end <= end_max && record.block_bytes as usize <= BLOCK_BYTES_LIMIT;
        if expected && inside && (record.offset, record.number) == (self.offset, self.number) {
            Ok(record.block_bytes as usize)
        } else {
            Err(Stop::Malformed)
        }
    }

    /// The next block as a whole. On an error nothing has changed.
    pub fn accept(&mut self, block: &[u8]) -> Result<(), Stop> {
        self.block_bytes(block)?;
        let record = BlockRecord::get(block).ok_or(Stop::NoBlock)?;
        if !record.fits(block) {
            return Err(Stop::Torn);
        }
        match record.kind {
            BlockKind::Definitions => self.accept_definitions(block),
            BlockKind::Data => self.accept_data(block),
            BlockKind::End => self.accept_end(block),
        }
        .ok_or(Stop::Malformed)?;
        self.offset += u64::from(record.block_bytes);
        self.number += 1;
        Ok(())
    }

    fn accept_definitions(&mut self, block: &[u8]) -> Option<()> {
        let mut definitions = Definitions::empty();
        let mut metadata = MetadataPlace::default();
        let mut ledger_content = &block[..0];
        for (at, opcode, content) in Records::of(block) {
            match opcode {
                op::SCHEMA | op::CHANNEL => definitions.add_record(opcode, content)?,
                op::METADATA => metadata = self.place(at, content),
                private_op::LEDGER => ledger_content = content,
                _ => {}
            }
        }
        let config = LayoutConfig {
            placement: self.life.placement,
            segment_bytes: self.life.segment_bytes,
            block_bytes_max: self.life.block_bytes_max as usize,
            index_bytes: self.life.index_bytes as usize,
        };
        let layout = Layout::new(config, &definitions).ok()?;
        let channels = layout.channels();
        let mut ledger = vec![ChannelLedger::default(); channels];
        get_ledger(ledger_content, &mut ledger)?;
        let mut index = SegmentIndex::new(&definitions, config.index_bytes);
        index.metadata[0] = metadata;
        let digests = vec![Digesting::default(); channels];
        self.defined = Some(Defined { definitions, layout, index, ledger, digests });
        Some(())
    }

    fn accept_data(&mut self, block: &[u8]) -> Option<()> {
        let offset = self.offset;
        let defined = self.defined.as_mut()?;
        let mut records = Records::of(block);
        let (chunk_at, opcode, chunk) = records.next()?;
        let mut indexes = Vec::new();
        let mut ledger = defined.ledger.clone();
        let mut message_index_bytes = 0;
        for (at, opcode, content) in records {
            match opcode {
                op::MESSAGE_INDEX => {
                    indexes.push((Get::new(content).u16()?, offset + at as u64));
                    message_index_bytes += (RECORD_HEAD_BYTES + content.len()) as u64;
                }
                private_op::LEDGER => get_ledger(content, &mut ledger)?,
                _ => {}
            }
        }
        let room = chunk_index_bytes(defined.layout.channels().max(indexes.len()));
        if opcode != op::CHUNK || !defined.index.has_room(room) {
            return None;
        }
        let (mut place, messages) = chunk_place(chunk)?;
        place.offset = offset + chunk_at as u64;
        place.message_index_bytes = message_index_bytes;
        let messages = Messages::checked(messages, &defined.definitions)?;
        for message in messages {
            let log_time_ns = message.log_time_ns;
            defined.index.add_messages(message.slot, 1, log_time_ns, log_time_ns);
            defined.digests[message.slot].add(message.sequence, message.payload);
        }
        defined.index.add_chunk(&place, indexes.into_iter());
        defined.ledger = ledger;
        Some(())
    }

    fn accept_end(&mut self, block: &[u8]) -> Option<()> {
        let (mut metadata, mut ledger_content) = (None, None);
        let mut records = Records::of(block);
        let mut padding_at = self.offset + BLOCK_RECORD_BYTES as u64;
        for (at, opcode, content) in records.by_ref() {
            match opcode {
                op::METADATA => metadata = Some(self.place(at, content)),
                private_op::LEDGER => ledger_content = Some(content),
                private_op::PADDING => break,
                _ => {}
            }
            padding_at = self.offset + (at + RECORD_HEAD_BYTES + content.len()) as u64;
        }
        // It reaches to the tail, and so beyond this block in a recycled file.
        let mut padding = Get::new(block.get((padding_at - self.offset) as usize..)?);
        if padding.u8()? != private_op::PADDING {
            return None;
        }
        let seal_offset = (padding_at + RECORD_HEAD_BYTES as u64).checked_add(padding.u64()?)?;
        let defined = self.defined.as_mut()?;
        get_ledger(ledger_content?, &mut defined.ledger)?;
        defined.index.metadata[1] = metadata?;
        self.end = Some(EndBlock { offset: self.offset, seal_offset });
        Some(())
    }

    fn place(&self, at: usize, content: &[u8]) -> MetadataPlace {
        MetadataPlace {
            offset: self.offset + at as u64,
            record_bytes: (RECORD_HEAD_BYTES + content.len()) as u64,
        }
    }

    /// What was found; `None` if not even the definitions were.
    pub fn finish(self) -> Option<Scanned> {
        let defined = self.defined?;
        Some(Scanned {
            definitions: defined.definitions,
            layout: defined.layout,
            index: defined.index,
            ledger: defined.ledger,
            digests: defined.digests.iter().map(Digesting::digest).collect(),
            offset: self.offset,
            blocks: self.number,
            end: self.end,
        })
    }
}

/// The records of a block behind its first one, with their places in it.
struct Records<'a> {
    get: Get<'a>,
    block_bytes: usize,
}

impl<'a> Records<'a> {
    fn of(block: &'a [u8]) -> Records<'a> {
        let get = Get::new(block.get(BLOCK_RECORD_BYTES..).unwrap_or_default());
        Records { get, block_bytes: block.len() }
    }

    fn rest(&self) -> &'a [u8] {
        self.get.rest()
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = (usize, u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.block_bytes - self.rest().len();
        self.get.record().map(|(opcode, content)| (at, opcode, content))
    }
}

/// A chunk's place but for its offset and indexes, and its records; of chunks without compression.
pub(super) fn chunk_place(content: &[u8]) -> Option<(ChunkPlace<'static>, &[u8])> {
    let mut get = Get::new(content);
    let (start_ns, end_ns, uncompressed_bytes) = (get.u64()?, get.u64()?, get.u64()?);
    let crc = get.u32()?;
    if !get.string()?.is_empty() {
        return None;
    }
    let compressed_bytes = get.u64()?;
    let records = get.bytes(usize::try_from(compressed_bytes).ok()?)?;
    if compressed_bytes != uncompressed_bytes || (crc != 0 && crc != crc32fast::hash(records)) {
        return None;
    }
    let place = ChunkPlace {
        start_ns,
        end_ns,
        offset: 0,
        record_bytes: (RECORD_HEAD_BYTES + content.len()) as u64,
        message_index_bytes: 0,
        compression: "",
        compressed_bytes,
        uncompressed_bytes,
    };
    Some((place, records))
}

struct ChunkMessage<'a> {
    slot: usize,
    sequence: u32,
    log_time_ns: u64,
    payload: &'a [u8],
}

/// The messages of a chunk.
struct Messages<'a> {
    get: Get<'a>,
    definitions: &'a Definitions,
}

impl<'a> Messages<'a> {
    /// `None` unless the records are messages of known channels, up to the last byte.
    fn checked(records: &'a [u8], definitions: &'a Definitions) -> Option<Messages<'a>> {
        let messages = Messages { get: Get::new(records), definitions };
        let mut ahead = Messages { ..messages };
        while ahead.next().is_some() {}
        ahead.get.rest().is_empty().then_some(messages)
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = ChunkMessage<'a>;

    fn next(&mut self) -> Option<ChunkMessage<'a>> {
        let mut ahead = self.get;
        let (opcode, content) = ahead.record()?;
        let mut get = Get::new(content);
        let id = get.u16().filter(|_| opcode == op::MESSAGE)?;
        let slot = self.definitions.channel_ids().iter().position(|known| *known == id)?;
        let (sequence, log_time_ns, _publish_time_ns) = (get.u32()?, get.u64()?, get.u64()?);
        self.get = ahead;
        Some(ChunkMessage { slot, sequence, log_time_ns, payload: get.rest() })
    }
}
