// SPDX-License-Identifier: MIT OR Apache-2.0
//! The places of a segment's parts, and the limits of their sizes. The configuration, the encoder
//! and the recovery use it.
//!
//! ```text
//! 0        4096                                            tail_start             segment end
//! | head   | definitions | block | block | ... | end block | (stale)   | reserved for the tail |
//! ```
//!
//! The end of a segment always has its room: the end block with the ledger, and the tail with seal,
//! summary and footer. The tail grows by an index entry with each block. A segment is full when the
//! next block with its entry might not fit before them. `index_bytes` bounds the memory of the
//! index.

use super::account::{
    GAPS_NAME, GAPS_ROOM_BYTES, LEDGER_NAME, ledger_metadata_bytes_max, ledger_record_bytes,
};
use super::compression::NAME_BYTES_MAX;
use super::definitions::{Definitions, Mark};
use super::private::{
    BLOCK_RECORD_BYTES, LIFE_NAME, LIFE_RECORD_BYTES, SEAL_RECORD_BYTES, life_metadata_bytes_max,
};
use super::wire::{
    CHUNK_HEAD_BYTES, DATA_END_BYTES, FOOTER_BYTES, MAGIC, MESSAGE_HEAD_BYTES,
    MESSAGE_INDEX_ENTRY_BYTES, MESSAGE_INDEX_HEAD_BYTES, RECORD_HEAD_BYTES,
};

pub use super::private::{ALIGN_BYTES, HEAD_BYTES, Placement};

/// The longest message: images and point clouds are shorter.
pub const PAYLOAD_BYTES_LIMIT: usize = 64 << 20;
/// A block is written at once from one buffer. A larger one makes no device faster.
pub const BLOCK_BYTES_LIMIT: usize = PAYLOAD_BYTES_LIMIT + ALIGN_BYTES;
/// The limit of any block. Definitions at their limit are shorter.
pub const ANY_BLOCK_BYTES_LIMIT: usize = 80 << 20;
/// A data block has room for the losses of at least this number of channels.
const BLOCK_LEDGER_CHANNELS: usize = 8;
/// A larger index means that the segment is too large for its blocks.
pub const INDEX_BYTES_LIMIT: usize = 64 << 20;
/// The index is sized for the smallest blocks, each with messages of this number of channels.
const INDEXED_CHANNELS: usize = 4;
/// File offsets are signed in POSIX.
pub const SEGMENT_BYTES_LIMIT: u64 = 1 << 40;

/// A segment with this fraction of its room left is nearly full.
pub const NEARLY_FULL: u64 = 8;

/// The sizes of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayoutConfig {
    /// Recycled or growing.
    pub placement: Placement,
    /// The size of the file, or its limit; a multiple of 4096.
    pub segment_bytes: u64,
    /// The largest block, with room for the longest message; a multiple of 4096.
    pub block_bytes_max: usize,
    /// The limit of a block with several messages; a multiple of 4096.
    pub unit_bytes: usize,
    /// The memory for chunk indexes.
    pub index_bytes: usize,
    /// Whether chunks may be compressed.
    pub is_compressed: bool,
}

impl LayoutConfig {
    /// Sizes for messages of up to this length. The index suffices for the smallest blocks, each
    /// with messages of a few channels, because slow topics may fill a segment with these.
    pub fn recycled(
        segment_bytes: u64,
        unit_bytes: usize,
        payload_bytes_max: usize,
        channels: usize,
    ) -> LayoutConfig {
        let blocks = usize::try_from(segment_bytes).unwrap_or(usize::MAX) / ALIGN_BYTES;
        let smallest = blocks.saturating_mul(chunk_index_bytes(channels.min(INDEXED_CHANNELS)));
        LayoutConfig {
            placement: Placement::Recycled,
            segment_bytes,
            block_bytes_max: block_bytes(payload_bytes_max, channels).max(unit_bytes),
            unit_bytes,
            index_bytes: smallest.max(chunk_index_bytes(channels)).min(INDEX_BYTES_LIMIT),
            is_compressed: false,
        }
    }

    /// The same with chunks that may be compressed, whose index entries are longer.
    pub fn compressed(self) -> LayoutConfig {
        let blocks = usize::try_from(self.segment_bytes).unwrap_or(usize::MAX) / ALIGN_BYTES;
        let index_bytes = self.index_bytes.saturating_add(blocks * NAME_BYTES_MAX);
        LayoutConfig {
            index_bytes: index_bytes.min(INDEX_BYTES_LIMIT),
            is_compressed: true,
            ..self
        }
    }
}

/// The block size for a message of this length.
pub fn block_bytes(payload_bytes: usize, channels: usize) -> usize {
    align_up(single_overhead_bytes(channels) + payload_bytes)
}

/// The size of a block with one message, without its payload.
pub fn single_overhead_bytes(channels: usize) -> usize {
    block_overhead_bytes(channels) + MESSAGE_INDEX_HEAD_BYTES + message_bytes(0)
}

/// A size is not allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// A size is not a multiple, or out of range.
    #[error("{key} = {value}: must be a multiple of {ALIGN_BYTES} from {min} to {max}")]
    Size { key: &'static str, value: u64, min: u64, max: u64 },
    /// The index is out of range.
    #[error("index_bytes = {value}: must be from {min} (one block of all channels) to {max}")]
    Index { value: usize, min: usize, max: usize },
}

/// The checked sizes of a recording's segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    config: LayoutConfig,
    channels: usize,
    definitions_bytes: usize,
    end_bytes: usize,
    /// The size without chunk indexes.
    tail_base_bytes: usize,
}

impl Layout {
    /// Checks the sizes against the needs of the channels.
    pub fn new(config: LayoutConfig, definitions: &Definitions) -> Result<Layout, LayoutError> {
        Layout::checked(config, definitions.mark())
    }

    /// Checks the sizes for definitions up to this mark.
    pub fn checked(config: LayoutConfig, definitions: Mark) -> Result<Layout, LayoutError> {
        let channels = definitions.channels;
        let (block_min, block_max) = (block_bytes(0, channels) as u64, BLOCK_BYTES_LIMIT as u64);
        check_size("block_bytes_max", config.block_bytes_max as u64, block_min, block_max)?;
        let unit_max = config.block_bytes_max as u64;
        check_size("unit_bytes", config.unit_bytes as u64, block_min, unit_max)?;
        let layout = Layout::of(config, definitions);
        let index_min = layout.entry_bytes(channels);
        if config.index_bytes < index_min || config.index_bytes > INDEX_BYTES_LIMIT {
            let value = config.index_bytes;
            return Err(LayoutError::Index { value, min: index_min, max: INDEX_BYTES_LIMIT });
        }
        let segment_min = HEAD_BYTES
            + layout.definitions_bytes
            + config.block_bytes_max
            + layout.end_bytes
            + align_up(layout.tail_base_bytes + index_min);
        check_size("segment_bytes", config.segment_bytes, segment_min as u64, SEGMENT_BYTES_LIMIT)?;
        Ok(layout)
    }

    /// The layout of a segment that begins with these definitions. The sizes must have been
    /// checked.
    pub(super) fn of(config: LayoutConfig, definitions: Mark) -> Layout {
        Layout {
            config,
            channels: definitions.channels,
            definitions_bytes: definitions_block_bytes(definitions),
            end_bytes: end_block_bytes(definitions.channels),
            tail_base_bytes: tail_base_bytes(definitions),
        }
    }

    /// The layout of the same segment after definitions were added: its end is larger.
    pub(super) fn grown(&self, definitions: Mark) -> Layout {
        let definitions_bytes = self.definitions_bytes;
        Layout { definitions_bytes, ..Layout::of(self.config, definitions) }
    }

    /// Whether this layout has room for these definitions.
    pub(super) fn has_room_for(&self, definitions: Mark) -> bool {
        let needed = Layout::of(self.config, definitions);
        needed.channels <= self.channels
            && needed.definitions_bytes <= self.definitions_bytes
            && needed.tail_base_bytes <= self.tail_base_bytes
    }

    pub fn config(&self) -> &LayoutConfig {
        &self.config
    }

    pub fn channels(&self) -> usize {
        self.channels
    }

    /// The size of the file, or its limit.
    pub fn segment_bytes(&self) -> u64 {
        self.config.segment_bytes
    }

    /// The buffer size that holds any block.
    pub fn block_buffer_bytes(&self) -> usize {
        self.config.block_bytes_max.max(self.definitions_bytes).max(self.end_bytes)
    }

    /// The buffer size that holds any single write.
    pub fn buffer_bytes(&self) -> usize {
        self.block_buffer_bytes().max(self.tail_bytes_max())
    }

    /// The size of the block of schemas and channels.
    pub fn definitions_bytes(&self) -> usize {
        self.definitions_bytes
    }

    /// The size of the end block.
    pub fn end_bytes(&self) -> usize {
        self.end_bytes
    }

    /// The room for seal, summary and footer with a full index.
    pub fn tail_bytes_max(&self) -> usize {
        align_up(self.tail_base_bytes + self.config.index_bytes)
    }

    /// The latest end of data blocks, if all chunk indexes take this number of bytes.
    pub fn data_end(&self, index_bytes: usize) -> u64 {
        let behind = self.end_bytes + align_up(self.tail_base_bytes + index_bytes);
        self.config.segment_bytes.saturating_sub(behind as u64)
    }

    /// The longest message that fits; longer ones are rejected.
    pub fn payload_bytes_max(&self) -> usize {
        let overhead = single_overhead_bytes(self.channels);
        (self.config.block_bytes_max - overhead).min(PAYLOAD_BYTES_LIMIT)
    }

    /// The highest size of the index entry of a block with messages of this number of channels.
    pub(super) fn entry_bytes(&self, channels: usize) -> usize {
        chunk_index_bytes(channels) + if self.config.is_compressed { NAME_BYTES_MAX } else { 0 }
    }

    /// The number of blocks that always fit into the index.
    pub fn blocks_min(&self) -> usize {
        self.config.index_bytes / self.entry_bytes(self.channels)
    }

    /// The highest number of messages in any block.
    pub fn block_messages_max(&self) -> usize {
        (self.config.unit_bytes - block_overhead_bytes(self.channels)) / message_bytes(0)
    }
}

fn check_size(key: &'static str, value: u64, min: u64, max: u64) -> Result<(), LayoutError> {
    if (value % ALIGN_BYTES as u64 == 0) && (min..=max).contains(&value) {
        Ok(())
    } else {
        Err(LayoutError::Size { key, value, min: min.next_multiple_of(ALIGN_BYTES as u64), max })
    }
}

/// Rounds up to the next boundary.
pub fn align_up(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGN_BYTES)
}

/// The size of a message: in the chunk, and in the message index after it.
pub fn message_bytes(payload_bytes: usize) -> usize {
    RECORD_HEAD_BYTES + MESSAGE_HEAD_BYTES + payload_bytes + MESSAGE_INDEX_ENTRY_BYTES
}

/// The size of a block without its messages, the heads of their indexes, and a ledger.
pub const BLOCK_FRAMING_BYTES: usize =
    BLOCK_RECORD_BYTES + RECORD_HEAD_BYTES + CHUNK_HEAD_BYTES + RECORD_HEAD_BYTES;

/// The size of a block without its messages, with a ledger of the channels that always fit.
pub fn block_overhead_bytes(channels: usize) -> usize {
    BLOCK_FRAMING_BYTES + ledger_record_bytes(block_ledger_channels(channels))
}

/// The number of channels for whose losses a data block has room.
pub fn block_ledger_channels(channels: usize) -> usize {
    channels.min(BLOCK_LEDGER_CHANNELS)
}

/// The size of the index entry of an uncompressed block with messages of this number of channels.
pub fn chunk_index_bytes(channels: usize) -> usize {
    RECORD_HEAD_BYTES + 4 * 8 + 4 + channels * (2 + 8) + 8 + 4 + 2 * 8
}

/// The definitions end with their length, which locates the copy at the end of a file.
pub const LENGTH_AT_END_BYTES: usize = 8;

/// The size of a block that begins a segment with these definitions.
pub(super) fn definitions_block_bytes(definitions: Mark) -> usize {
    align_up(
        BLOCK_RECORD_BYTES
            + LIFE_RECORD_BYTES
            + life_metadata_bytes_max()
            + definitions.bytes()
            + ledger_record_bytes(definitions.channels)
            + RECORD_HEAD_BYTES
            + LENGTH_AT_END_BYTES,
    )
}

/// The size of a block of definitions that are added while a segment is in use.
pub(super) fn added_block_bytes(bytes: usize) -> usize {
    align_up(BLOCK_RECORD_BYTES + bytes + RECORD_HEAD_BYTES)
}

fn end_block_bytes(channels: usize) -> usize {
    align_up(
        BLOCK_RECORD_BYTES
            + ledger_record_bytes(channels)
            + ledger_metadata_bytes_max(channels)
            + RECORD_HEAD_BYTES,
    )
}

/// The size of the statistics record for this number of channels.
pub fn statistics_bytes(channels: usize) -> usize {
    RECORD_HEAD_BYTES + 8 + 2 + 4 * 4 + 2 * 8 + 4 + channels * (2 + 8)
}

pub fn metadata_index_bytes(name: &str) -> usize {
    RECORD_HEAD_BYTES + 8 + 8 + 4 + name.len()
}

/// The size of one group in the summary offset section.
pub const SUMMARY_OFFSET_BYTES: usize = RECORD_HEAD_BYTES + 1 + 8 + 8;
/// The groups: schemas, channels, statistics, chunk indexes, metadata indexes.
pub const SUMMARY_GROUPS: usize = 5;

fn tail_base_bytes(definitions: Mark) -> usize {
    SEAL_RECORD_BYTES
        + GAPS_ROOM_BYTES
        + RECORD_HEAD_BYTES
        + DATA_END_BYTES
        + definitions.bytes()
        + statistics_bytes(definitions.channels)
        + metadata_index_bytes(LIFE_NAME)
        + metadata_index_bytes(LEDGER_NAME)
        + metadata_index_bytes(GAPS_NAME)
        + SUMMARY_GROUPS * SUMMARY_OFFSET_BYTES
        + RECORD_HEAD_BYTES
        + FOOTER_BYTES
        + MAGIC.len()
}
