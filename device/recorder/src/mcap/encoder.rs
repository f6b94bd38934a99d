// SPDX-License-Identifier: MIT OR Apache-2.0
//! Encodes messages into blocks. No I/O, no clock, and no allocation after construction.
//!
//! Called by the writer thread, which owns the buffers and the files. The steps of a segment:
//!
//! 1. In a recycled file write [`Encoder::blank_tail`] and [`Encoder::head`] (in any order, both
//!    durable before anything else): the old summary must be gone before the first old block is
//!    overwritten. A growing file needs the head only. This may be done while the segment before
//!    it still takes messages.
//! 2. [`Encoder::begin`] this life, and [`Encoder::definitions`].
//! 3. [`Encoder::push`] messages into a block's buffer; [`Encoder::flush`] it when it is full or
//!    the loss window ends. Blocks are reported durable in order, or not at all.
//! 4. [`Encoder::end_block`], then, when that is durable, [`Encoder::tail`], then, when that is
//!    durable, [`Encoder::open_gate`]. The recovery makes up for missing steps.
//!
//! Each step fills the caller's buffer and returns its place in the file. Steps out of order are a
//! bug of the caller and panic.

use super::account::{ChannelLedger, CompletedBy, put_ledger, put_ledger_metadata};
use super::chunk::Chunk;
use super::definitions::Definitions;
use super::index::{MetadataPlace, SegmentIndex};
use super::layout::{
    ALIGN_BYTES, HEAD_BYTES, Layout, NEARLY_FULL, Placement, align_up, block_overhead_bytes,
    chunk_index_bytes, message_bytes,
};
use super::private::{
    BLOCK_RECORD_BYTES, BlockKind, BlockRecord, Identity, Life, SEAL_RECORD_BYTES, Seal,
    private_op, put_head, put_padding,
};
use super::scan::{EndBlock, Scanned};
use super::wire::{Put, RECORD_HEAD_BYTES};

/// Where the beginning of a buffer belongs in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct FileRange {
    /// In the file. A multiple of 4096, but for the tail of a growing file.
    pub offset: u64,
    /// How much of the buffer. A multiple of 4096, but for the tail of a growing file.
    pub bytes: usize,
}

/// A message to write.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    /// Position of the channel in the definitions.
    pub channel: u16,
    /// Counts the messages offered on the channel, lost ones included: a gap shows a loss.
    pub sequence: u32,
    /// When it was appended.
    pub log_time_ns: u64,
    /// When it was made.
    pub publish_time_ns: u64,
    /// In one or two pieces, as a ring hands it out; the second may be empty.
    pub payload: [&'a [u8]; 2],
}

impl Message<'_> {
    pub(super) fn payload_bytes(&self) -> usize {
        self.payload[0].len() + self.payload[1].len()
    }
}

/// Why a message was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    /// Flush, then push it again.
    #[error("the block is full")]
    Block,
    /// Finish, begin the next segment, then push it again. Nothing is pending.
    #[error("the segment is full")]
    Segment,
    /// It never fits.
    #[error("a message of {bytes} bytes: a block takes {bytes_max} at most")]
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
    Ended { end_offset: u64, seal_offset: u64 },
    Sealed,
}

/// Turns the messages of a recording into segments.
#[derive(Debug)]
pub struct Encoder {
    layout: Layout,
    definitions: Definitions,
    index: SegmentIndex,
    life: Life,
    step: Step,
    offset: u64,
    number: u32,
    chunk: Chunk,
    /// What the current block would need now, at worst.
    needed_bytes: usize,
    lost_written: Vec<u64>,
}

impl Encoder {
    /// Allocates all memory.
    pub fn new(layout: Layout, definitions: Definitions) -> Encoder {
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
        };
        Encoder {
            index: SegmentIndex::new(&definitions, config.index_bytes),
            chunk: Chunk::new(definitions.channel_ids(), layout.block_messages_max()),
            lost_written: vec![0; channels],
            layout,
            definitions,
            life,
            step: Step::New,
            offset: 0,
            number: 0,
            needed_bytes: 0,
        }
    }

    /// Begins the life of this head; messages that were not flushed are dropped.
    pub fn begin(&mut self, identity: Identity, created_ns: u64) {
        self.life = Life { identity, created_ns, ..self.life };
        self.index.clear();
        self.chunk.clear();
        self.lost_written.fill(0);
        self.step = Step::Begun;
        self.offset = HEAD_BYTES as u64;
        self.number = 0;
    }

    /// Continues after the blocks found of a life. Called by the recovery only.
    pub(super) fn resume(life: Life, found: Scanned) -> Encoder {
        let mut encoder = Encoder::new(found.layout, found.definitions);
        encoder.life = life;
        encoder.index = found.index;
        encoder.offset = found.offset;
        encoder.number = found.blocks;
        encoder.step = Step::Data;
        if let Some(EndBlock { offset, seal_offset }) = found.end {
            if encoder.seal_offset(offset) == seal_offset {
                encoder.step = Step::Ended { end_offset: offset, seal_offset };
            } else {
                encoder.offset = offset;
                encoder.number -= 1;
            }
        }
        encoder
    }

    /// Whether the end block exists. Called by the recovery only.
    pub(super) fn is_ended(&self) -> bool {
        matches!(self.step, Step::Ended { .. })
    }

    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Bytes of the segment so far, flushed blocks only.
    pub fn index(&self) -> &SegmentIndex {
        &self.index
    }

    /// Messages pushed and not flushed.
    pub fn pending(&self) -> usize {
        self.chunk.messages()
    }

    /// The block that the file begins with in this life. In a recycled file its gate is closed.
    pub fn head(&self, buffer: &mut [u8], identity: Identity, created_ns: u64) -> FileRange {
        let life = Life { identity, created_ns, ..self.life };
        put_head(&mut buffer[..HEAD_BYTES], &life, self.is_growing());
        FileRange { offset: 0, bytes: HEAD_BYTES }
    }

    /// What replaces the footer of the file's former life. `None` for a growing file, which has
    /// none.
    pub fn blank_tail(&self, buffer: &mut [u8]) -> Option<FileRange> {
        if self.is_growing() {
            return None;
        }
        buffer[..ALIGN_BYTES].fill(0);
        let offset = self.layout.segment_bytes() - ALIGN_BYTES as u64;
        Some(FileRange { offset, bytes: ALIGN_BYTES })
    }

    /// Whether at most an eighth of the room for data or for its index is left: time to prepare the
    /// next segment.
    pub fn is_nearly_full(&self) -> bool {
        let left_bytes = self.layout.data_end().saturating_sub(self.offset);
        let index_share = self.layout.config().index_bytes / NEARLY_FULL as usize;
        left_bytes <= self.layout.segment_bytes() / NEARLY_FULL || !self.index.has_room(index_share)
    }

    /// The block of schemas and channels, with the ledger as the segment begins.
    pub fn definitions(&mut self, buffer: &mut [u8], ledger: &[ChannelLedger]) -> FileRange {
        assert_eq!(self.step, Step::Begun, "definitions come behind the head");
        let mut put = Put::new(&mut buffer[..self.layout.definitions_bytes()]);
        put.zeros_to(BLOCK_RECORD_BYTES);
        self.life.put(&mut put);
        let metadata = put.at();
        self.life.put_metadata(&mut put);
        self.index.metadata[0] = self.metadata_place(metadata, put.at());
        for records in self.definitions.records() {
            put.bytes(records);
        }
        self.put_ledger(&mut put, ledger);
        let block_bytes = self.layout.definitions_bytes();
        put_padding(&mut put, block_bytes);
        self.step = Step::Data;
        let body_crc = crc32fast::hash(&buffer[BLOCK_RECORD_BYTES..block_bytes]);
        self.close_block(buffer, block_bytes, BlockKind::Definitions, body_crc)
    }

    /// Takes a message into the block in the making. Until [`Encoder::flush`] the buffer must be
    /// the same and stay as it is.
    pub fn push(&mut self, block: &mut [u8], message: &Message<'_>) -> Result<(), Full> {
        assert_eq!(self.step, Step::Data, "messages come behind the definitions");
        let payload_bytes = message.payload_bytes();
        let bytes_max = self.layout.payload_bytes_max();
        if payload_bytes > bytes_max {
            return Err(Full::TooLong { bytes: payload_bytes, bytes_max });
        }
        if self.pending() == 0 {
            self.open_block(payload_bytes)?;
        } else if self.needed_bytes + message_bytes(payload_bytes) > self.block_room_bytes() {
            return Err(Full::Block);
        }
        self.needed_bytes += message_bytes(payload_bytes);
        self.chunk.push(block, message);
        Ok(())
    }

    fn open_block(&mut self, payload_bytes: usize) -> Result<(), Full> {
        let channels = self.layout.channels();
        let needed_bytes = block_overhead_bytes(channels);
        if needed_bytes + message_bytes(payload_bytes) > self.block_room_bytes()
            || !self.index.has_room(chunk_index_bytes(channels))
        {
            return Err(Full::Segment);
        }
        self.needed_bytes = needed_bytes;
        Ok(())
    }

    /// What the next block may take.
    fn block_room_bytes(&self) -> usize {
        let left = self.layout.data_end() - self.offset;
        let max = self.layout.config().block_bytes_max;
        usize::try_from(left).map_or(max, |left| left.min(max))
    }

    /// Completes the block; `None` if no message is pending. The ledger goes into it if there were
    /// losses since the last one.
    pub fn flush(&mut self, block: &mut [u8], ledger: &[ChannelLedger]) -> Option<FileRange> {
        if self.pending() == 0 {
            return None;
        }
        let indexes_end = self.chunk.close(block);
        self.chunk.add_to(&mut self.index, self.offset, indexes_end);
        let mut put = Put::new(&mut block[indexes_end..]);
        if ledger.iter().zip(&self.lost_written).any(|(now, then)| now.lost != *then) {
            self.put_ledger(&mut put, ledger);
        }
        let block_bytes = align_up(indexes_end + put.at() + RECORD_HEAD_BYTES);
        put_padding(&mut put, block_bytes - indexes_end);
        let body_crc = self.chunk.body_crc(&block[..block_bytes]);
        self.chunk.clear();
        Some(self.close_block(block, block_bytes, BlockKind::Data, body_crc))
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
        let end_bytes = self.layout.end_bytes();
        let end_offset = self.offset;
        let seal_offset = self.seal_offset(end_offset);
        let mut put = Put::new(&mut buffer[..end_bytes]);
        put.zeros_to(BLOCK_RECORD_BYTES);
        self.put_ledger(&mut put, ledger);
        let metadata = put.at();
        put_ledger_metadata(&mut put, by, self.definitions.channel_ids(), ledger);
        self.index.metadata[1] = self.metadata_place(metadata, put.at());
        let padding_at = end_offset + (put.at() + RECORD_HEAD_BYTES) as u64;
        put.record(private_op::PADDING, seal_offset - padding_at);
        put.zeros_to(end_bytes);
        let body_crc = crc32fast::hash(&buffer[BLOCK_RECORD_BYTES..end_bytes]);
        let place = self.close_block(buffer, end_bytes, BlockKind::End, body_crc);
        self.step = Step::Ended { end_offset, seal_offset };
        place
    }

    /// Where the tail begins if the end block is at this place.
    fn seal_offset(&self, end_offset: u64) -> u64 {
        let tail_bytes = SEAL_RECORD_BYTES + self.index.summary_bytes(&self.definitions);
        match self.life.placement {
            Placement::Recycled => self.layout.segment_bytes() - tail_bytes as u64,
            Placement::Growing => end_offset + self.layout.end_bytes() as u64,
        }
    }

    /// Seal, summary and footer, up to the end of the file.
    pub fn tail(&mut self, buffer: &mut [u8]) -> FileRange {
        let Step::Ended { end_offset, seal_offset } = self.step else {
            unreachable!("the tail comes behind the end block, not behind {:?}", self.step)
        };
        let offset = match self.life.placement {
            Placement::Recycled => seal_offset - seal_offset % ALIGN_BYTES as u64,
            Placement::Growing => seal_offset,
        };
        let seal_at = (seal_offset - offset) as usize;
        let summary_at = seal_at + SEAL_RECORD_BYTES;
        let bytes = summary_at + self.index.summary_bytes(&self.definitions);
        let mut put = Put::new(&mut buffer[..bytes]);
        put.zeros_to(summary_at);
        self.index.put_summary(&mut put, offset + summary_at as u64, &self.definitions);
        assert_eq!(put.at(), bytes, "the summary is as long as it said");
        let tail_crc = crc32fast::hash(&buffer[summary_at..bytes]);
        let seal = Seal { identity: self.life.identity, end_offset, tail_crc };
        seal.put(&mut Put::new(&mut buffer[seal_at..summary_at]));
        self.step = Step::Sealed;
        FileRange { offset, bytes }
    }

    /// The head once more, now without hiding the rest. `None` for a growing file, which never
    /// hid anything.
    pub fn open_gate(&self, buffer: &mut [u8]) -> Option<FileRange> {
        assert_eq!(self.step, Step::Sealed, "the gate opens last");
        if self.is_growing() {
            return None;
        }
        put_head(&mut buffer[..HEAD_BYTES], &self.life, true);
        Some(FileRange { offset: 0, bytes: HEAD_BYTES })
    }

    fn is_growing(&self) -> bool {
        self.life.placement == Placement::Growing
    }

    fn metadata_place(&self, start: usize, end: usize) -> MetadataPlace {
        MetadataPlace { offset: self.offset + start as u64, record_bytes: (end - start) as u64 }
    }

    fn put_ledger(&mut self, put: &mut Put<'_>, ledger: &[ChannelLedger]) {
        assert_eq!(ledger.len(), self.layout.channels(), "the ledger has all channels");
        put_ledger(put, ledger);
        for (written, channel) in self.lost_written.iter_mut().zip(ledger) {
            *written = channel.lost;
        }
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
            body_crc,
        };
        record.put(&mut Put::new(block));
        let place = FileRange { offset: self.offset, bytes: block_bytes };
        self.offset += block_bytes as u64;
        self.number += 1;
        place
    }
}
