// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decodes blocks. It does no I/O and trusts no byte. The recovery and [`super::reading`] call it.
//!
//! A block counts if it names the expected life, its own place in the file and in the order of
//! blocks, and has the right checksum. A reader skips other blocks up to the next one that counts;
//! the skipped part is a [`Gap`]. The bytes after the last block were never reported durable, or
//! belong to an earlier life.

use std::borrow::Cow;

use super::account::{ChannelLedger, Gaps, get_ledger};
use super::compression::Compression;
use super::definitions::{Definitions, Mark};
use super::digest::{ChannelDigest, Digesting};
use super::index::{ChunkPlace, MetadataPlace, SegmentIndex};
use super::layout::{
    ALIGN_BYTES, ANY_BLOCK_BYTES_LIMIT, HEAD_BYTES, Layout, LayoutConfig, chunk_index_bytes,
};
use super::private::{
    BLOCK_RECORD_BYTES, BlockKind, BlockRecord, Life, private_op, profile_in_metadata,
};
use super::wire::{Get, RECORD_HEAD_BYTES, op};

/// The reason why the data ends.
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
    /// The reason, for reports.
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

/// The end block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndBlock {
    /// The offset in the file.
    pub offset: u64,
    /// The end of its padding.
    pub padding_end: u64,
}

/// Missing blocks between existing ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The offset of the first missing block in the file.
    pub offset: u64,
    /// The length, up to the next existing block.
    pub bytes: u64,
    /// The number of the first missing block.
    number: u32,
    blocks: u32,
}

/// The state that needs the definitions block.
#[derive(Debug)]
struct Defined {
    definitions: Definitions,
    /// The mark of the definitions block.
    begun: Mark,
    layout: Layout,
    index: SegmentIndex,
    ledger: Vec<ChannelLedger>,
    begun_ledger: Option<Vec<ChannelLedger>>,
    digests: Vec<Digesting>,
}

impl Defined {
    fn grow(&mut self, definitions: Definitions) {
        self.layout = self.layout.grown(definitions.mark());
        self.index.grow(&definitions);
        self.ledger.resize(self.layout.channels(), ChannelLedger::default());
        self.digests.resize(self.layout.channels(), Digesting::default());
        self.definitions = definitions;
    }
}

/// Reads the blocks of one life.
#[derive(Debug)]
pub struct Scanner {
    life: Life,
    offset: u64,
    number: u32,
    defined: Option<Defined>,
    is_defined_by_copy: bool,
    gaps: Vec<Gap>,
    /// The highest number of durable blocks that any block contains.
    durable: u32,
    end: Option<EndBlock>,
}

/// The contents of a life.
#[derive(Debug)]
pub struct Scanned {
    /// Schemas and channels.
    pub definitions: Definitions,
    /// The mark of the definitions with which the segment began.
    pub begun: Mark,
    pub layout: Layout,
    /// The index, for the summary.
    pub index: SegmentIndex,
    /// The last ledger in the file.
    pub ledger: Vec<ChannelLedger>,
    /// The ledger at the beginning of the segment; the copy of the definitions has none.
    pub begun_ledger: Option<Vec<ChannelLedger>>,
    /// The digest per channel, in the order of the definitions.
    pub digests: Vec<ChannelDigest>,
    /// The end of the last block.
    pub offset: u64,
    pub blocks: u32,
    /// The number of blocks, from the first, that are known to have been durable.
    pub durable: u32,
    /// The end block, if the recorder ended the segment.
    pub end: Option<EndBlock>,
    /// Whether the definitions block itself is damaged, so that the copy is used.
    pub is_defined_by_copy: bool,
    /// The sum of all gaps.
    pub gaps: Gaps,
    /// The single gaps.
    pub gap_places: Vec<Gap>,
}

impl Scanner {
    /// Starts at the first block of a life.
    pub fn new(life: Life) -> Scanner {
        Scanner {
            life,
            offset: HEAD_BYTES as u64,
            number: 0,
            defined: None,
            is_defined_by_copy: false,
            gaps: Vec::new(),
            durable: 0,
            end: None,
        }
    }

    /// The place of the next block.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether the definitions are known, which data blocks need.
    pub fn is_defined(&self) -> bool {
        self.defined.is_some()
    }

    /// Whether any block after the definitions was accepted.
    pub fn has_blocks(&self) -> bool {
        self.number > 1
    }

    /// The length of a block at the next place or after it, from its first bytes.
    pub fn block_bytes(&self, offset: u64, start: &[u8]) -> Result<usize, Stop> {
        if self.end.is_some() {
            return Err(Stop::End);
        }
        let record = BlockRecord::get(start).ok_or(Stop::NoBlock)?;
        if record.identity != self.life.identity {
            return Err(Stop::EarlierLife);
        }
        let expected = self.defined.is_none() == (record.kind == BlockKind::Definitions);
        let end = offset.saturating_add(u64::from(record.block_bytes));
        let inside = end <= self.life.segment_bytes
            && u64::from(record.block_bytes) <= ANY_BLOCK_BYTES_LIMIT as u64;
        if expected && inside && record.offset == offset && self.is_in_order(&record) {
            Ok(record.block_bytes as usize)
        } else {
            Err(Stop::Malformed)
        }
    }

    /// Whether a block follows the last one directly, or after as many blocks as fit between.
    fn is_in_order(&self, record: &BlockRecord) -> bool {
        let between = record.offset.checked_sub(self.offset);
        let missing = record.number.checked_sub(self.number);
        match (between, missing) {
            (Some(0), Some(0)) => true,
            (Some(bytes), Some(blocks)) => {
                blocks > 0 && bytes >= u64::from(blocks) * ALIGN_BYTES as u64
            }
            _ => false,
        }
    }

    /// Takes a complete block, at the next place or after it. After an error nothing has changed.
    pub fn accept(&mut self, offset: u64, block: &[u8]) -> Result<(), Stop> {
        self.block_bytes(offset, block)?;
        let record = BlockRecord::get(block).ok_or(Stop::NoBlock)?;
        if !record.fits(block) {
            return Err(Stop::Torn);
        }
        match record.kind {
            BlockKind::Definitions => self.accept_definitions(block),
            BlockKind::Added => self.accept_added(offset, block),
            BlockKind::Data => self.accept_data(offset, block, false),
            BlockKind::Repeated => self.accept_data(offset, block, true),
            BlockKind::End => self.accept_end(offset, block),
        }
        .ok_or(Stop::Malformed)?;
        if offset > self.offset {
            self.gaps.push(Gap {
                offset: self.offset,
                bytes: offset - self.offset,
                number: self.number,
                blocks: record.number - self.number,
            });
        }
        self.offset = offset + u64::from(record.block_bytes);
        self.number = record.number + 1;
        self.durable = self.durable.max(record.durable);
        Ok(())
    }

    /// Takes the complete copy of the definitions at the end of the file, in place of a damaged
    /// definitions block. Returns false, and changes nothing, if it belongs to another life.
    pub fn accept_copy(&mut self, block: &[u8]) -> bool {
        let of_this_life = |record: &BlockRecord| {
            record.identity == self.life.identity && record.kind == BlockKind::Definitions
        };
        let record = BlockRecord::get(block).filter(of_this_life);
        if self.is_defined() || !record.is_some_and(|record| record.fits(block)) {
            return false;
        }
        self.is_defined_by_copy = self.accept_definitions(block).is_some();
        if let Some(defined) = &self.defined {
            self.offset = (HEAD_BYTES + defined.layout.definitions_bytes()) as u64;
            self.number = 1;
        }
        self.is_defined_by_copy
    }

    /// Takes the definitions from the summary of a finished segment instead.
    pub fn define(&mut self, definitions: Definitions) -> bool {
        let ledger = vec![ChannelLedger::default(); definitions.channel_ids().len()];
        if self.set_defined(definitions, ledger).is_none() {
            return false;
        }
        self.is_defined_by_copy = true;
        self.number = 1;
        self.offset = self.defined.as_ref().map_or(self.offset, |defined| {
            (HEAD_BYTES + defined.layout.definitions_bytes()) as u64
        });
        true
    }

    fn accept_definitions(&mut self, block: &[u8]) -> Option<()> {
        let mut definitions = Definitions::empty();
        let mut metadata = MetadataPlace::default();
        let mut ledger_content = &block[..0];
        for (at, opcode, content) in Records::of(block) {
            match opcode {
                op::SCHEMA | op::CHANNEL => definitions.add_record(opcode, content)?,
                op::METADATA => {
                    metadata = place(HEAD_BYTES as u64, at, content);
                    let profile = profile_in_metadata(content).unwrap_or_default();
                    definitions = definitions.with_profile(profile);
                }
                private_op::LEDGER => ledger_content = content,
                _ => {}
            }
        }
        let mut ledger = vec![ChannelLedger::default(); definitions.channel_ids().len()];
        get_ledger(ledger_content, &mut ledger)?;
        let begun_ledger = (!ledger_content.is_empty()).then(|| ledger.clone());
        let defined = self.set_defined(definitions, ledger)?;
        defined.index.metadata[0] = Some(metadata);
        defined.begun_ledger = begun_ledger;
        Some(())
    }

    fn set_defined(
        &mut self,
        definitions: Definitions,
        ledger: Vec<ChannelLedger>,
    ) -> Option<&mut Defined> {
        let block_bytes_max = self.life.block_bytes_max as usize;
        let config = LayoutConfig {
            placement: self.life.placement,
            segment_bytes: self.life.segment_bytes,
            block_bytes_max,
            unit_bytes: block_bytes_max,
            index_bytes: self.life.index_bytes as usize,
            is_compressed: self.life.is_compressed,
        };
        let layout = Layout::new(config, &definitions).ok()?;
        let index = SegmentIndex::new(&definitions, config.index_bytes);
        let digests = vec![Digesting::default(); layout.channels()];
        let begun = definitions.mark();
        let begun_ledger = None;
        let defined = Defined { definitions, begun, layout, index, ledger, begun_ledger, digests };
        Some(self.defined.insert(defined))
    }

    /// Adds the definitions that the summary of a finished segment has besides the known ones.
    pub fn grow(&mut self, definitions: &Definitions) {
        let Some(defined) = self.defined.as_mut() else { return };
        if defined.definitions.mark() != definitions.mark() {
            let grown = definitions.clone().with_profile(defined.definitions.profile());
            defined.grow(grown);
        }
    }

    fn accept_added(&mut self, offset: u64, block: &[u8]) -> Option<()> {
        let defined = self.defined.as_mut()?;
        let mut definitions = defined.definitions.clone();
        for (_, opcode, content) in Records::of(block) {
            if opcode == op::SCHEMA || opcode == op::CHANNEL {
                definitions.add_record(opcode, content)?;
            }
        }
        let layout = defined.layout.grown(definitions.mark());
        if offset + block.len() as u64 > layout.data_end(defined.index.bytes()) {
            return None;
        }
        defined.grow(definitions);
        Some(())
    }

    fn accept_data(&mut self, offset: u64, block: &[u8], repeats: bool) -> Option<()> {
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
        let (mut place, records) = chunk_place(chunk).filter(|_| opcode == op::CHUNK)?;
        let entry_bytes = chunk_index_bytes(indexes.len()) + place.compression.len();
        let data_end = defined.layout.data_end(defined.index.bytes() + entry_bytes);
        if !defined.index.has_room(entry_bytes) || offset + block.len() as u64 > data_end {
            return None;
        }
        place.offset = offset + chunk_at as u64;
        place.message_index_bytes = message_index_bytes;
        let messages = Messages::checked(&records, &defined.definitions)?;
        if repeats && defined.index.messages() > 0 {
            return None;
        }
        for message in messages {
            let times_ns = (message.log_time_ns, message.log_time_ns);
            defined.index.add_messages(message.slot, 1, times_ns, repeats);
            if !repeats {
                defined.digests[message.slot].add(message.sequence, message.payload);
            }
        }
        defined.index.add_chunk(&place, indexes.into_iter());
        if repeats {
            defined.index.mark_repeated();
        }
        defined.ledger = ledger;
        Some(())
    }

    fn accept_end(&mut self, offset: u64, block: &[u8]) -> Option<()> {
        let (mut metadata, mut ledger_content) = (None, None);
        let mut records = Records::of(block);
        let mut padding_at = offset + BLOCK_RECORD_BYTES as u64;
        for (at, opcode, content) in records.by_ref() {
            match opcode {
                op::METADATA => metadata = Some(place(offset, at, content)),
                private_op::LEDGER => ledger_content = Some(content),
                private_op::PADDING => break,
                _ => {}
            }
            padding_at = offset + (at + RECORD_HEAD_BYTES + content.len()) as u64;
        }
        // In a recycled file it reaches to the tail, beyond this block.
        let mut padding = Get::new(block.get((padding_at - offset) as usize..)?);
        if padding.u8()? != private_op::PADDING {
            return None;
        }
        let padding_end = (padding_at + RECORD_HEAD_BYTES as u64).checked_add(padding.u64()?)?;
        let defined = self.defined.as_mut()?;
        let (metadata, mut ledger) = (metadata?, defined.ledger.clone());
        get_ledger(ledger_content?, &mut ledger)?;
        defined.ledger = ledger;
        defined.index.metadata[1] = Some(metadata);
        self.end = Some(EndBlock { offset, padding_end });
        Some(())
    }

    /// The blocks found; `None` without definitions.
    pub fn finish(self) -> Option<Scanned> {
        let defined = self.defined?;
        Some(Scanned {
            definitions: defined.definitions,
            begun: defined.begun,
            layout: defined.layout,
            index: defined.index,
            ledger: defined.ledger,
            begun_ledger: defined.begun_ledger,
            digests: defined.digests.iter().map(Digesting::digest).collect(),
            offset: self.offset,
            blocks: self.number,
            durable: self.durable,
            end: self.end,
            is_defined_by_copy: self.is_defined_by_copy,
            gaps: self.gaps.iter().fold(Gaps::default(), |sum, gap| Gaps {
                blocks: sum.blocks + u64::from(gap.blocks),
                bytes: sum.bytes + gap.bytes,
                durable_blocks: sum.durable_blocks + gap.durable_blocks(self.durable),
            }),
            gap_places: self.gaps,
        })
    }
}

impl Gap {
    /// The number of data blocks among the first `durable` blocks of the life.
    fn durable_blocks(&self, durable: u32) -> u64 {
        u64::from(durable.saturating_sub(self.number).min(self.blocks))
    }
}

fn place(block_offset: u64, at: usize, content: &[u8]) -> MetadataPlace {
    MetadataPlace {
        offset: block_offset + at as u64,
        record_bytes: (RECORD_HEAD_BYTES + content.len()) as u64,
    }
}

/// The records of a block after its first one, with their places in it.
pub(super) struct Records<'a> {
    get: Get<'a>,
    block_bytes: usize,
}

impl<'a> Records<'a> {
    pub(super) fn of(block: &'a [u8]) -> Records<'a> {
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

/// The name of a chunk's compression.
pub(super) fn compression_name(content: &[u8]) -> Option<&[u8]> {
    let mut get = Get::new(content);
    let _times_size_and_crc = get.bytes(3 * 8 + 4)?;
    get.prefixed()
}

/// The place of a chunk, without its offset and indexes, and its uncompressed records.
pub(super) fn chunk_place(content: &[u8]) -> Option<(ChunkPlace<'static>, Cow<'_, [u8]>)> {
    let mut get = Get::new(content);
    let (start_ns, end_ns, uncompressed_bytes) = (get.u64()?, get.u64()?, get.u64()?);
    let (crc, name, compressed_bytes) = (get.u32()?, get.prefixed()?, get.u64()?);
    let stored = get.bytes(usize::try_from(compressed_bytes).ok()?)?;
    let compression = Compression::named(name);
    let records: Cow<'_, [u8]> = match compression {
        Some(method) if uncompressed_bytes <= ANY_BLOCK_BYTES_LIMIT as u64 => {
            method.decompress(stored, uncompressed_bytes).ok()?.into()
        }
        None if name.is_empty() => stored.into(),
        _ => return None,
    };
    let has_its_size = records.len() as u64 == uncompressed_bytes;
    if !has_its_size || (crc != 0 && crc != crc32fast::hash(&records)) {
        return None;
    }
    let place = ChunkPlace {
        start_ns,
        end_ns,
        offset: 0,
        record_bytes: (RECORD_HEAD_BYTES + content.len()) as u64,
        message_index_bytes: 0,
        compression: compression.map_or("", Compression::name),
        compressed_bytes,
        uncompressed_bytes,
    };
    Some((place, records))
}

/// A message in a chunk.
pub(super) struct ChunkMessage<'a> {
    /// The position of its channel in the definitions.
    pub(super) slot: usize,
    pub(super) sequence: u32,
    pub(super) log_time_ns: u64,
    pub(super) publish_time_ns: u64,
    pub(super) payload: &'a [u8],
}

/// The messages of a chunk.
pub(super) struct Messages<'a> {
    get: Get<'a>,
    definitions: &'a Definitions,
}

impl<'a> Messages<'a> {
    /// `None` unless all records, up to the last byte, are messages of known channels.
    pub(super) fn checked(records: &'a [u8], definitions: &'a Definitions) -> Option<Messages<'a>> {
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
        let slot = self.definitions.slot_of(id)?;
        let (sequence, log_time_ns, publish_time_ns) = (get.u32()?, get.u64()?, get.u64()?);
        self.get = ahead;
        let payload = get.rest();
        Some(ChunkMessage { slot, sequence, log_time_ns, publish_time_ns, payload })
    }
}
