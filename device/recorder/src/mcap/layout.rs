// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where things are in a segment, and how much room and memory they may take.
//!
//! ```text
//! 0        4096                                            tail_start             segment end
//! | head   | definitions | block | block | ... | end block | (stale)   | reserved for the tail |
//! ```
//!
//! Everything that is written when a segment ends has its room reserved from the start: the end
//! block with the ledger, and the tail with seal, summary and footer. What bounds the tail is
//! `index_bytes`, the room for chunk indexes. A segment is full when the next block, or its entry
//! in the index, might not fit.

use super::account::{LEDGER_NAME, ledger_metadata_bytes_max, ledger_record_bytes};
use super::definitions::Definitions;
use super::private::{
    BLOCK_RECORD_BYTES, LIFE_NAME, LIFE_RECORD_BYTES, SEAL_RECORD_BYTES, life_metadata_bytes_max,
};
use super::wire::{
    CHUNK_HEAD_BYTES, DATA_END_BYTES, FOOTER_BYTES, MAGIC, MESSAGE_HEAD_BYTES,
    MESSAGE_INDEX_ENTRY_BYTES, MESSAGE_INDEX_HEAD_BYTES, RECORD_HEAD_BYTES,
};

/// Blocks begin and end at multiples of it: direct I/O needs at most this on common devices.
pub const ALIGN_BYTES: usize = 4_096;
/// The first block of a file; fixed, because recycling rewrites it.
pub const HEAD_BYTES: usize = ALIGN_BYTES;
/// A block is written at once from one buffer; a larger one makes no device faster.
pub const BLOCK_BYTES_LIMIT: usize = 64 << 20;
/// More room for chunk indexes means that the block size or loss window is wrong.
pub const INDEX_BYTES_LIMIT: usize = 64 << 20;
/// Offsets in a file are signed in POSIX.
pub const SEGMENT_BYTES_LIMIT: u64 = 1 << 40;

/// A segment with this part of its room left is nearly full.
pub const NEARLY_FULL: u64 = 8;

/// Whether the file has a fixed size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// It has its full size from the start and may hold an earlier recording.
    Recycled,
    /// It is empty at first and grows to at most this size.
    Growing,
}

/// The sizes to choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayoutConfig {
    /// Recycled or growing.
    pub placement: Placement,
    /// Size of the file, or the most it grows to; a multiple of 4096.
    pub segment_bytes: u64,
    /// Most that is written at once; a multiple of 4096.
    pub block_bytes_max: usize,
    /// Room for chunk indexes.
    pub index_bytes: usize,
}

impl LayoutConfig {
    /// With room in the index for blocks of an eighth of their largest size.
    pub fn recycled(segment_bytes: u64, block_bytes_max: usize, channels: usize) -> LayoutConfig {
        let block_bytes = (block_bytes_max / 8).max(ALIGN_BYTES) as u64;
        let blocks = usize::try_from(segment_bytes / block_bytes).unwrap_or(usize::MAX);
        let index_bytes = blocks.saturating_mul(chunk_index_bytes(channels)).min(INDEX_BYTES_LIMIT);
        let placement = Placement::Recycled;
        LayoutConfig { placement, segment_bytes, block_bytes_max, index_bytes }
    }
}

/// What is wrong with the sizes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// Not a multiple, or out of range.
    #[error("{key} = {value}: must be a multiple of {ALIGN_BYTES} from {min} to {max}")]
    Size { key: &'static str, value: u64, min: u64, max: u64 },
    /// Out of range.
    #[error("index_bytes = {value}: must be from {min} (one block of all channels) to {max}")]
    Index { value: usize, min: usize, max: usize },
}

/// Checked sizes of the segments of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    config: LayoutConfig,
    channels: usize,
    definitions_bytes: usize,
    end_bytes: usize,
    tail_bytes: usize,
}

impl Layout {
    /// Checks the sizes against what the channels need.
    pub fn new(config: LayoutConfig, definitions: &Definitions) -> Result<Layout, LayoutError> {
        let channels = definitions.channel_ids().len();
        let block_min = block_overhead_bytes(channels) + message_bytes(0);
        check_size(
            "block_bytes_max",
            config.block_bytes_max as u64,
            align_up(block_min) as u64,
            BLOCK_BYTES_LIMIT as u64,
        )?;
        let index_min = chunk_index_bytes(channels);
        if config.index_bytes < index_min || config.index_bytes > INDEX_BYTES_LIMIT {
            let value = config.index_bytes;
            return Err(LayoutError::Index { value, min: index_min, max: INDEX_BYTES_LIMIT });
        }
        let layout = Layout {
            config,
            channels,
            definitions_bytes: definitions_block_bytes(definitions),
            end_bytes: end_block_bytes(channels),
            tail_bytes: tail_bytes(definitions, config.index_bytes),
        };
        let segment_min = HEAD_BYTES
            + layout.definitions_bytes
            + config.block_bytes_max
            + layout.end_bytes
            + layout.tail_bytes;
        check_size("segment_bytes", config.segment_bytes, segment_min as u64, SEGMENT_BYTES_LIMIT)?;
        Ok(layout)
    }

    pub fn config(&self) -> &LayoutConfig {
        &self.config
    }

    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Size of the file, or the most it grows to.
    pub fn segment_bytes(&self) -> u64 {
        self.config.segment_bytes
    }

    /// A buffer of this size holds anything that is written at once.
    pub fn buffer_bytes(&self) -> usize {
        self.config
            .block_bytes_max
            .max(self.definitions_bytes)
            .max(self.end_bytes)
            .max(self.tail_bytes)
    }

    /// Size of the block of schemas and channels.
    pub fn definitions_bytes(&self) -> usize {
        self.definitions_bytes
    }

    /// Size of the end block.
    pub fn end_bytes(&self) -> usize {
        self.end_bytes
    }

    /// Room reserved behind the data for seal, summary and footer.
    pub fn tail_bytes(&self) -> usize {
        self.tail_bytes
    }

    /// Blocks of data end here at the latest.
    pub fn data_end(&self) -> u64 {
        self.config.segment_bytes - (self.tail_bytes + self.end_bytes) as u64
    }

    /// The longest message that fits; longer ones are rejected.
    pub fn payload_bytes_max(&self) -> usize {
        self.config.block_bytes_max - block_overhead_bytes(self.channels) - message_bytes(0)
    }

    /// Number of blocks that always fit into the index.
    pub fn blocks_min(&self) -> usize {
        self.config.index_bytes / chunk_index_bytes(self.channels)
    }

    /// No block can hold more messages than this.
    pub fn block_messages_max(&self) -> usize {
        let room = self.config.block_bytes_max - block_overhead_bytes(self.channels);
        room / message_bytes(0)
    }
}

fn check_size(key: &'static str, value: u64, min: u64, max: u64) -> Result<(), LayoutError> {
    if (value % ALIGN_BYTES as u64 == 0) && (min..=max).contains(&value) {
        Ok(())
    } else {
        Err(LayoutError::Size { key, value, min: min.next_multiple_of(ALIGN_BYTES as u64), max })
    }
}

/// To the next boundary.
pub fn align_up(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGN_BYTES)
}

/// What a message takes: in the chunk, and in the message index behind it.
pub fn message_bytes(payload_bytes: usize) -> usize {
    RECORD_HEAD_BYTES + MESSAGE_HEAD_BYTES + payload_bytes + MESSAGE_INDEX_ENTRY_BYTES
}

/// What a block needs besides its messages, at worst: all channels in it, and a ledger.
pub fn block_overhead_bytes(channels: usize) -> usize {
    BLOCK_RECORD_BYTES
        + RECORD_HEAD_BYTES
        + CHUNK_HEAD_BYTES
        + channels * MESSAGE_INDEX_HEAD_BYTES
        + ledger_record_bytes(channels)
        + RECORD_HEAD_BYTES
}

/// Index entry of a block that holds messages of so many channels.
pub fn chunk_index_bytes(channels: usize) -> usize {
    RECORD_HEAD_BYTES + 4 * 8 + 4 + channels * (2 + 8) + 8 + 4 + 2 * 8
}

fn definitions_block_bytes(definitions: &Definitions) -> usize {
    let channels = definitions.channel_ids().len();
    align_up(
        BLOCK_RECORD_BYTES
            + LIFE_RECORD_BYTES
            + life_metadata_bytes_max()
            + definitions.bytes()
            + ledger_record_bytes(channels)
            + RECORD_HEAD_BYTES,
    )
}

fn end_block_bytes(channels: usize) -> usize {
    align_up(
        BLOCK_RECORD_BYTES
            + ledger_record_bytes(channels)
            + ledger_metadata_bytes_max(channels)
            + RECORD_HEAD_BYTES,
    )
}

/// Statistics record of so many channels.
pub fn statistics_bytes(channels: usize) -> usize {
    RECORD_HEAD_BYTES + 8 + 2 + 4 * 4 + 2 * 8 + 4 + channels * (2 + 8)
}

pub fn metadata_index_bytes(name: &str) -> usize {
    RECORD_HEAD_BYTES + 8 + 8 + 4 + name.len()
}

/// One group in the summary offset section.
pub const SUMMARY_OFFSET_BYTES: usize = RECORD_HEAD_BYTES + 1 + 8 + 8;
/// Schemas, channels, statistics, chunk indexes, metadata indexes.
pub const SUMMARY_GROUPS: usize = 5;

fn tail_bytes(definitions: &Definitions, index_bytes: usize) -> usize {
    align_up(
        SEAL_RECORD_BYTES
            + RECORD_HEAD_BYTES
            + DATA_END_BYTES
            + definitions.bytes()
            + statistics_bytes(definitions.channel_ids().len())
            + index_bytes
            + metadata_index_bytes(LIFE_NAME)
            + metadata_index_bytes(LEDGER_NAME)
            + SUMMARY_GROUPS * SUMMARY_OFFSET_BYTES
            + RECORD_HEAD_BYTES
            + FOOTER_BYTES
            + MAGIC.len(),
    )
}
