// SPDX-License-Identifier: MIT OR Apache-2.0
//! Encodes messages into blocks. No I/O, no clock; after construction, only compression allocates.
//!
//! Called by the writer thread, which owns the buffers and the files. The steps of a segment:
//!
//! 1. In a recycled file write [`Encoder::definitions_copy`] and [`Encoder::head`] (in any order,
//!    both durable before anything else): the copy lies over the old summary, which must be gone
//!    before the first old block is overwritten. A growing file needs the head only. This may be
//!    done while the segment before it still takes messages.
//! 2. [`Encoder::begin`] this life, and [`Encoder::definitions`].
//! 3. [`Encoder::push`] messages into a block's buffer; [`Encoder::flush`] it when it is full or
//!    the loss window ends. Blocks are reported durable in order, or not at all;
//!    [`Encoder::note_durable`] puts it into those that follow.
//!    Definitions may be added: [`Encoder::flush`] what is pending, [`Encoder::add`] them, write
//!    [`Encoder::added`] twice, and [`Encoder::end_added`].
//! 4. [`Encoder::end_block`], then, when that is durable, [`Encoder::tail`], then, when that is
//!    durable, [`Encoder::open_gate`]. The recovery makes up for missing steps.
//!
//! Steps 1 and 2 may be replaced: [`Encoder::resume_life`] continues a finished segment, after its
//! copy and head were written as in step 1.
//!
//! Each step fills the caller's buffer and returns its place in the file. Steps out of order are a
//! bug of the caller and panic.

mod continuing;

use std::io;
use std::ops::Range;

use super::account::{
    ChannelLedger, CompletedBy, GAPS_ROOM_BYTES, Gaps, LEDGER_ENTRY_BYTES, put_ledger,
    put_ledger_entry, put_ledger_metadata, put_repeated,
};
use super::chunk::Chunk;
pub use super::chunk::Message;
use super::compression::{Compression, Compressor};
use super::definitions::{ChannelSpec, DefinitionError, Definitions, Mark, SchemaSpec};
use super::index::{MetadataPlace, SegmentIndex};
use super::layout::{
    ALIGN_BYTES, HEAD_BYTES, LENGTH_AT_END_BYTES, Layout, NEARLY_FULL, Placement,
    added_block_bytes, align_up, block_ledger_channels, block_overhead_bytes,
    definitions_block_bytes, message_bytes,
};
use super::private::{
    BLOCK_RECORD_BYTES, BlockKind, BlockRecord, Identity, Life, SEAL_RECORD_BYTES, Seal,
    private_op, put_head, put_padding,
};
use super::wire::{MESSAGE_INDEX_HEAD_BYTES, Put, RECORD_HEAD_BYTES};

/// The place in the file for the beginning of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct FileRange {
    /// The offset in the file: a multiple of 4096, except for the tail of a growing file.
    pub offset: u64,
    /// The number of bytes of the buffer: a multiple of 4096, except for the tail of a growing
    /// file.
    pub bytes: usize,
}

/// The reason why a message was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    /// The block is full: flush, then push the message again.
    #[error("the block is full")]
    Block,
    /// The segment is full: finish it, begin the next segment, then push the message again. No
    /// message is pending.
    #[error("the segment is full")]
    Segment,
    /// The message never fits.
    #[error("a message of {bytes} bytes: a block takes at most {bytes_max}")]
    TooLong {
        bytes: usize,
        /// [`Layout::payload_bytes_max`].
        bytes_max: usize,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    New,
    Begun,
    Data,
    Ended {
        end_offset: u64,
        /// The end of the padding that the end block begins.
        padding_end: u64,
    },
    Sealed,
}

/// The number of copies of a block of added definitions. Without this block, the rest of the
/// segment could not be read.
pub const ADDED_COPIES: usize = 2;

/// Turns the messages of a recording into segments.
#[derive(Debug)]
pub struct Encoder {
    /// The layout of the segment in progress.
    layout: Layout,
    /// The layout with all definitions that have room.
    largest: Layout,
    definitions: Definitions,
    /// The definitions with which the segment in progress began.
    begun: Mark,
    /// The definitions that are in it now.
    in_file: Mark,
    index: SegmentIndex,
    life: Life,
    step: Step,
    offset: u64,
    number: u32,
    chunk: Chunk,
    /// The number of blocks known to be durable.
    durable: u32,
    /// The highest number of bytes that the current block needs now.
    needed_bytes: usize,
    lost_written: Vec<u64>,
    /// The channel whose losses go first into the next block, because not all may fit.
    ledger_turn: usize,
    /// The gaps of a damaged segment; only the recovery sets them.
    gaps: Gaps,
}

impl Encoder {
    /// Allocates all memory.
    pub fn new(layout: Layout, definitions: Definitions) -> Encoder {
        Encoder::with_room(layout.clone(), definitions, layout)
    }

    /// Like [`Encoder::new`], with room for definitions that are added later: `largest` is the
    /// layout with all of them.
    pub fn with_room(layout: Layout, definitions: Definitions, largest: Layout) -> Encoder {
        let channels = definitions.channel_ids().len();
        assert_eq!(channels, layout.channels(), "the layout was made for other channels");
        let config = *layout.config();
        let life = Life {
            identity: Identity { recording_id: [0; 16], sequence: 0 },
            created_ns: 0,
            placement: config.placement,
            segment_bytes: config.segment_bytes,
            block_bytes_max: config.block_bytes_max as u32,
            index_bytes: config.index_bytes as u32,
            is_compressed: config.is_compressed,
        };
        let mark = definitions.mark();
        Encoder {
            index: SegmentIndex::new(&definitions, config.index_bytes),
            chunk: Chunk::new(definitions.channel_ids(), layout.block_messages_max()),
            lost_written: vec![0; channels],
            layout,
            largest,
            definitions,
            begun: mark,
            in_file: mark,
            life,
            step: Step::New,
            offset: 0,
            number: 0,
            durable: 0,
            needed_bytes: 0,
            ledger_turn: 0,
            gaps: Gaps::default(),
        }
    }

    /// Compresses blocks, if the layout says that chunks may be compressed.
    pub fn compressing(mut self, compression: Compression) -> io::Result<Encoder> {
        let config = self.layout.config();
        assert!(config.is_compressed, "readers must know");
        self.chunk.compressor = Some(Compressor::new(compression, config.block_bytes_max)?);
        Ok(self)
    }

    /// Begins the life of this head. Messages that were not flushed are dropped.
    pub fn begin(&mut self, identity: Identity, created_ns: u64) {
        self.begin_with(identity, created_ns, self.definitions.mark());
    }

    /// Like [`Encoder::begin`], if definitions were added since the copy for this life was made.
    pub fn begin_with(&mut self, identity: Identity, created_ns: u64, begun: Mark) {
        self.layout = Layout::of(*self.layout.config(), begun);
        (self.begun, self.in_file) = (begun, begun);
        self.life = Life { identity, created_ns, ..self.life };
        self.index.clear();
        self.chunk.clear();
        self.lost_written.fill(0);
        self.step = Step::Begun;
        self.offset = HEAD_BYTES as u64;
        self.number = 0;
        self.durable = 0;
    }

    /// Records that this number of blocks of this life, from the first, are durable. Later blocks
    /// contain the number. A missing block below it was not lost in a power cut, but damaged.
    pub fn note_durable(&mut self, blocks: u32) {
        self.durable = blocks;
    }

    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The layout with all definitions that have room. Buffers of its sizes are always large
    /// enough.
    pub fn largest_layout(&self) -> &Layout {
        &self.largest
    }

    pub fn all_definitions(&self) -> &Definitions {
        &self.definitions
    }

    /// The present mark of the definitions.
    pub fn mark(&self) -> Mark {
        self.definitions.mark()
    }

    /// Adds a channel, after its schema if that is new. Then [`Encoder::added`] must be written
    /// before the next message of the segment in use.
    pub fn add(
        &mut self,
        schema: Option<&SchemaSpec>,
        channel: &ChannelSpec,
    ) -> Result<(), DefinitionError> {
        self.definitions.add(schema, channel)?;
        self.index.grow(&self.definitions);
        self.lost_written.push(0);
        // The channel that was added.
        let id = self.definitions.channel_ids().last().copied().unwrap_or(0);
        self.chunk.add_channel(id);
        Ok(())
    }

    /// Whether the segment in use has room for this number of further channels, and bytes of
    /// definitions.
    pub fn has_room_for(&self, channels: usize, bytes: usize) -> bool {
        let all = self.definitions.mark();
        let grown = Mark::of(all.channels + channels, all.bytes() + bytes);
        let data_end = self.layout.grown(grown).data_end(self.index.bytes());
        let added = ADDED_COPIES * added_block_bytes(bytes);
        self.offset + added as u64 <= data_end
    }

    /// The definitions that the segment in use lacks, if any.
    pub fn added(&mut self, block: &mut [u8]) -> Option<FileRange> {
        assert_eq!(self.step, Step::Data, "what is added comes behind the definitions");
        assert_eq!(self.pending(), 0, "messages are pending: flush them first");
        let records = self.definitions.records_since(self.in_file);
        let bytes = records.iter().map(|records| records.len()).sum();
        if bytes == 0 {
            return None;
        }
        let block_bytes = added_block_bytes(bytes);
        let mut put = Put::new(&mut block[..block_bytes]);
        put.zeros_to(BLOCK_RECORD_BYTES);
        records.iter().for_each(|records| put.bytes(records));
        put_padding(&mut put, block_bytes);
        let body_crc = crc32fast::hash(&block[BLOCK_RECORD_BYTES..block_bytes]);
        Some(self.close_block(block, block_bytes, BlockKind::Added, body_crc))
    }

    /// Records that the segment in use has all definitions.
    pub fn end_added(&mut self) {
        self.in_file = self.definitions.mark();
        self.layout = self.layout.grown(self.in_file);
    }

    /// The index of the segment so far, with flushed blocks only.
    pub fn index(&self) -> &SegmentIndex {
        &self.index
    }

    /// The number of messages pushed and not flushed.
    pub fn pending(&self) -> usize {
        self.chunk.messages()
    }

    /// The first block of the file in this life. In a recycled file its gate is closed.
    pub fn head(&self, buffer: &mut [u8], identity: Identity, created_ns: u64) -> FileRange {
        let life = Life { identity, created_ns, ..self.life };
        put_head(&mut buffer[..HEAD_BYTES], &life, self.definitions.profile(), self.is_growing());
        FileRange { offset: 0, bytes: HEAD_BYTES }
    }

    /// The block that replaces the footer of the file's former life until the tail is written: a
    /// copy of the definitions, far from the original. `None` for a growing file, which has no
    /// footer yet.
    pub fn definitions_copy(
        &self,
        buffer: &mut [u8],
        identity: Identity,
        created_ns: u64,
    ) -> Option<FileRange> {
        self.definitions_copy_of(self.definitions.mark(), buffer, identity, created_ns)
    }

    /// The same for a segment that began with these definitions and is continued. The size of the
    /// copy tells where its data begins.
    pub fn definitions_copy_of(
        &self,
        begun: Mark,
        buffer: &mut [u8],
        identity: Identity,
        created_ns: u64,
    ) -> Option<FileRange> {
        if self.is_growing() {
            return None;
        }
        let life = Life { identity, created_ns, ..self.life };
        let block_bytes = definitions_block_bytes(begun);
        let _ = self.put_definitions(&mut buffer[..block_bytes], &life, begun, &[]);
        let offset = self.layout.segment_bytes() - block_bytes as u64;
        let body_crc = crc32fast::hash(&buffer[BLOCK_RECORD_BYTES..block_bytes]);
        let record = BlockRecord {
            identity,
            offset,
            block_bytes: block_bytes as u32,
            number: 0,
            kind: BlockKind::Definitions,
            durable: 0,
            body_crc,
        };
        record.put(&mut Put::new(buffer));
        Some(FileRange { offset, bytes: block_bytes })
    }

    /// Whether at most an eighth of the room for data or for its index is left. Then it is time to
    /// prepare the next segment.
    pub fn is_nearly_full(&self) -> bool {
        let data_end = self.layout.data_end(self.index.bytes());
        let left_bytes = data_end.saturating_sub(self.offset);
        let index_share = self.layout.config().index_bytes / NEARLY_FULL as usize;
        left_bytes <= self.layout.segment_bytes() / NEARLY_FULL || !self.index.has_room(index_share)
    }

    /// The block of schemas and channels, with the ledger at the beginning of the segment; empty if
    /// that is unknown.
    pub fn definitions(&mut self, buffer: &mut [u8], ledger: &[ChannelLedger]) -> FileRange {
        assert_eq!(self.step, Step::Begun, "definitions come behind the head");
        let block_bytes = self.layout.definitions_bytes();
        let ledger = ledger.get(..self.begun.channels).unwrap_or_default();
        let block = &mut buffer[..block_bytes];
        let metadata = self.put_definitions(block, &self.life, self.begun, ledger);
        self.index.metadata[0] = Some(self.metadata_place(metadata.start, metadata.end));
        for (written, channel) in self.lost_written.iter_mut().zip(ledger) {
            *written = channel.lost;
        }
        self.step = Step::Data;
        let body_crc = crc32fast::hash(&buffer[BLOCK_RECORD_BYTES..block_bytes]);
        self.close_block(buffer, block_bytes, BlockKind::Definitions, body_crc)
    }

    /// Writes everything but the block record; returns the place of the metadata.
    fn put_definitions(
        &self,
        block: &mut [u8],
        life: &Life,
        definitions: Mark,
        ledger: &[ChannelLedger],
    ) -> Range<usize> {
        let block_bytes = block.len();
        let mut put = Put::new(block);
        put.zeros_to(BLOCK_RECORD_BYTES);
        life.put(&mut put);
        let start = put.at();
        life.put_metadata(&mut put, self.definitions.profile());
        let metadata = start..put.at();
        for records in self.definitions.records_before(definitions) {
            put.bytes(records);
        }
        put_ledger(&mut put, ledger);
        put_padding(&mut put, block_bytes);
        block[block_bytes - LENGTH_AT_END_BYTES..]
            .copy_from_slice(&(block_bytes as u64).to_le_bytes());
        metadata
    }

    /// Adds a message to the block in progress. Until [`Encoder::flush`] the buffer must stay the
    /// same, with its contents.
    pub fn push(&mut self, block: &mut [u8], message: &Message<'_>) -> Result<(), Full> {
        assert_eq!(self.step, Step::Data, "messages come behind the definitions");
        assert!(usize::from(message.channel) < self.in_file.channels, "its channel is defined");
        let payload_bytes = message.payload_bytes();
        let bytes_max = self.layout.payload_bytes_max();
        if payload_bytes > bytes_max {
            return Err(Full::TooLong { bytes: payload_bytes, bytes_max });
        }
        let config = self.layout.config();
        let overhead_bytes = block_overhead_bytes(self.layout.channels());
        // A message longer than a unit gets a separate block.
        let (before, max, full) = match self.pending() {
            0 => (overhead_bytes, config.block_bytes_max, Full::Segment),
            _ => (self.needed_bytes, config.unit_bytes, Full::Block),
        };
        let channels = self.chunk.channels_with(message.channel);
        let heads = channels - self.chunk.channels();
        let needed = before + heads * MESSAGE_INDEX_HEAD_BYTES + message_bytes(payload_bytes);
        let entry_bytes = self.layout.entry_bytes(channels);
        if needed > self.block_room_bytes(entry_bytes).min(max) || !self.index.has_room(entry_bytes)
        {
            return Err(full);
        }
        self.needed_bytes = needed;
        self.chunk.push(block, message);
        Ok(())
    }

    /// The room for a block with such an entry in the index.
    fn block_room_bytes(&self, entry_bytes: usize) -> usize {
        let data_end = self.layout.data_end(self.index.bytes() + entry_bytes);
        usize::try_from(data_end.saturating_sub(self.offset)).unwrap_or(usize::MAX)
    }

    /// Completes the block; `None` if no message is pending. If there were losses since the last
    /// block, the ledger goes into it.
    pub fn flush(&mut self, block: &mut [u8], ledger: &[ChannelLedger]) -> Option<FileRange> {
        self.flush_as(BlockKind::Data, block, ledger)
    }

    /// Completes a block of latched messages from an earlier segment. It must precede all data,
    /// with one message per channel.
    pub fn flush_repeated(
        &mut self,
        block: &mut [u8],
        ledger: &[ChannelLedger],
    ) -> Option<FileRange> {
        assert_eq!(self.index.messages(), 0, "what is repeated stands in front of the data");
        self.flush_as(BlockKind::Repeated, block, ledger)
    }

    fn flush_as(
        &mut self,
        kind: BlockKind,
        block: &mut [u8],
        ledger: &[ChannelLedger],
    ) -> Option<FileRange> {
        if self.pending() == 0 {
            return None;
        }
        let indexes_end = self.chunk.close(block);
        let repeats = kind == BlockKind::Repeated;
        self.chunk.add_to(&mut self.index, self.offset, indexes_end, repeats);
        let mut put = Put::new(&mut block[indexes_end..]);
        self.put_losses(&mut put, indexes_end, ledger);
        let block_bytes = align_up(indexes_end + put.at() + RECORD_HEAD_BYTES);
        put_padding(&mut put, block_bytes - indexes_end);
        let body_crc = self.chunk.body_crc(&block[..block_bytes]);
        self.chunk.clear();
        Some(self.close_block(block, block_bytes, kind, body_crc))
    }

    /// Writes new losses of channels: as many as fit, and the others next time.
    fn put_losses(&mut self, put: &mut Put<'_>, indexes_end: usize, ledger: &[ChannelLedger]) {
        let channels = self.layout.channels();
        assert_eq!(ledger.len(), channels, "the ledger has all channels");
        let slack = align_up(indexes_end + RECORD_HEAD_BYTES) - indexes_end - RECORD_HEAD_BYTES;
        let room = slack.saturating_sub(RECORD_HEAD_BYTES) / LEDGER_ENTRY_BYTES;
        let turn = self.ledger_turn;
        let mut left = room.max(block_ledger_channels(channels));
        if ledger.iter().zip(&self.lost_written).all(|(now, then)| now.lost == *then) {
            return;
        }
        let opened = put.open_record(private_op::LEDGER);
        for at in (turn..channels).chain(0..turn) {
            if left > 0 && ledger[at].lost != self.lost_written[at] {
                put_ledger_entry(put, at, &ledger[at]);
                self.lost_written[at] = ledger[at].lost;
                self.ledger_turn = at + 1;
                left -= 1;
            }
        }
        put.close_record(opened);
    }

    /// The last block: the ledger, and padding up to the tail.
    pub fn end_block(
        &mut self,
        buffer: &mut [u8],
        ledger: &[ChannelLedger],
        by: CompletedBy,
    ) -> FileRange {
        assert_eq!(self.step, Step::Data, "the end comes behind the data");
        assert_eq!(self.pending(), 0, "messages are pending: flush them first");
        assert_eq!(self.in_file, self.definitions.mark(), "definitions are to be added first");
        let end_bytes = self.layout.end_bytes();
        let end_offset = self.offset;
        let mut put = Put::new(&mut buffer[..end_bytes]);
        put.zeros_to(BLOCK_RECORD_BYTES);
        put_ledger(&mut put, ledger);
        let metadata = put.at();
        put_ledger_metadata(&mut put, by, self.definitions.channel_ids(), ledger);
        self.index.metadata[1] = Some(self.metadata_place(metadata, put.at()));
        let padding_end = self.seal_offset(end_offset);
        let padding_at = end_offset + (put.at() + RECORD_HEAD_BYTES) as u64;
        put.record(private_op::PADDING, padding_end - padding_at);
        put.zeros_to(end_bytes);
        let body_crc = crc32fast::hash(&buffer[BLOCK_RECORD_BYTES..end_bytes]);
        let place = self.close_block(buffer, end_bytes, BlockKind::End, body_crc);
        self.step = Step::Ended { end_offset, padding_end };
        place
    }

    /// The beginning of the tail, if the end block is at this place.
    fn seal_offset(&self, end_offset: u64) -> u64 {
        let tail_bytes =
            SEAL_RECORD_BYTES + GAPS_ROOM_BYTES + self.index.summary_bytes(&self.definitions);
        match self.life.placement {
            Placement::Recycled => self.layout.segment_bytes() - tail_bytes as u64,
            Placement::Growing => end_offset + self.layout.end_bytes() as u64,
        }
    }

    /// Seal, summary and footer, up to the end of the file.
    pub fn tail(&mut self, buffer: &mut [u8]) -> FileRange {
        let Step::Ended { end_offset, padding_end } = self.step else {
            unreachable!("the tail comes behind the end block, not behind {:?}", self.step)
        };
        let offset = match self.life.placement {
            Placement::Recycled => padding_end - padding_end % ALIGN_BYTES as u64,
            Placement::Growing => padding_end,
        };
        let seal_at = (self.seal_offset(end_offset) - offset) as usize;
        let sealed_at = seal_at + SEAL_RECORD_BYTES;
        let summary_at = sealed_at + GAPS_ROOM_BYTES;
        let bytes = summary_at + self.index.summary_bytes(&self.definitions);
        let mut put = Put::new(&mut buffer[..bytes]);
        put.zeros_to((padding_end - offset) as usize);
        if put.at() < seal_at {
            put_padding(&mut put, seal_at);
        }
        put.zeros_to(sealed_at);
        if let Some(place) = &mut self.index.metadata[2] {
            self.gaps.put_metadata(&mut put);
            let record_bytes = (put.at() - sealed_at) as u64;
            *place = MetadataPlace { offset: offset + sealed_at as u64, record_bytes };
        }
        put_repeated(&mut put, self.index.repeated_chunks());
        put_padding(&mut put, summary_at);
        self.index.put_summary(&mut put, offset + summary_at as u64, &self.definitions);
        assert_eq!(put.at(), bytes, "the summary is as long as it said");
        let tail_crc = crc32fast::hash(&buffer[sealed_at..bytes]);
        let seal = Seal { identity: self.life.identity, end_offset, tail_crc };
        seal.put(&mut Put::new(&mut buffer[seal_at..sealed_at]));
        self.step = Step::Sealed;
        FileRange { offset, bytes }
    }

    /// The head again, with an open gate. `None` for a growing file, which has no gate.
    pub fn open_gate(&self, buffer: &mut [u8]) -> Option<FileRange> {
        assert_eq!(self.step, Step::Sealed, "the gate opens last");
        if self.is_growing() {
            return None;
        }
        put_head(&mut buffer[..HEAD_BYTES], &self.life, self.definitions.profile(), true);
        Some(FileRange { offset: 0, bytes: HEAD_BYTES })
    }

    fn is_growing(&self) -> bool {
        self.life.placement == Placement::Growing
    }

    fn metadata_place(&self, start: usize, end: usize) -> MetadataPlace {
        MetadataPlace { offset: self.offset + start as u64, record_bytes: (end - start) as u64 }
    }

    fn close_block(
        &mut self,
        block: &mut [u8],
        block_bytes: usize,
        kind: BlockKind,
        body_crc: u32,
    ) -> FileRange {
        let record = BlockRecord {
            identity: self.life.identity,
            offset: self.offset,
            block_bytes: block_bytes as u32,
            number: self.number,
            kind,
            durable: self.durable,
            body_crc,
        };
        record.put(&mut Put::new(block));
        let place = FileRange { offset: self.offset, bytes: block_bytes };
        self.offset += block_bytes as u64;
        self.number += 1;
        place
    }
}
