// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes the places of a store's parts: superblock, two areas of records, data, copy of the
//! superblock. All of the crate uses it.

use super::records::ENTRIES_MAX;
use super::{BLOCK, StoreId};

/// The limit of extents. Memory and time of opening grow with it.
pub const EXTENTS_MAX: u32 = 65_536;
/// The limit of records between two snapshots, for the same reason.
pub const LOG_BLOCKS_MAX: u32 = 4_096;
/// The format's limit. No device has an erase unit of this size.
pub const ALIGN_BYTES_MAX: u64 = 1 << 30;
/// The format's limit.
pub const STORE_BYTES_MAX: u64 = 1 << 60;

const BLOCK_BYTES: u64 = BLOCK as u64;

/// The parameters in the superblock, which determine all places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    pub id: StoreId,
    /// The used size of the device, a multiple of a block.
    pub store_bytes: u64,
    /// The alignment of areas and extents, and of their sizes.
    pub align_bytes: u64,
    /// The highest number of extents.
    pub extents_max: u32,
    /// The number of records between two snapshots.
    pub log_blocks: u32,
}

/// A geometry breaks a limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GeometryError {
    #[error("alignment {0}: must be a multiple of {BLOCK_BYTES}, at most {ALIGN_BYTES_MAX}")]
    Align(u64),
    #[error("number of extents {0}: must be 1 to {EXTENTS_MAX}")]
    Extents(u32),
    #[error("records between snapshots {0}: must be 1 to {LOG_BLOCKS_MAX}")]
    Log(u32),
    #[error("{0} bytes: must be a multiple of {BLOCK_BYTES}, at most {STORE_BYTES_MAX}")]
    Size(u64),
    #[error(
        "{store_bytes} bytes are too few: with an alignment of {align_bytes} and {extents_max} \
         extents a store needs at least {needed}"
    )]
    TooSmall { store_bytes: u64, align_bytes: u64, extents_max: u32, needed: u64 },
}

impl Geometry {
    /// Checks all limits. Afterwards, nothing below overflows.
    pub fn check(&self) -> Result<(), GeometryError> {
        let Geometry { store_bytes, align_bytes, extents_max, log_blocks, .. } = *self;
        if align_bytes == 0 || align_bytes % BLOCK_BYTES != 0 || align_bytes > ALIGN_BYTES_MAX {
            return Err(GeometryError::Align(align_bytes));
        }
        if !(1..=EXTENTS_MAX).contains(&extents_max) {
            return Err(GeometryError::Extents(extents_max));
        }
        if !(1..=LOG_BLOCKS_MAX).contains(&log_blocks) {
            return Err(GeometryError::Log(log_blocks));
        }
        let needed = self.data_start() + align_bytes + BLOCK_BYTES;
        if store_bytes % BLOCK_BYTES != 0 || store_bytes > STORE_BYTES_MAX {
            return Err(GeometryError::Size(store_bytes));
        }
        if store_bytes < needed {
            return Err(GeometryError::TooSmall { store_bytes, align_bytes, extents_max, needed });
        }
        Ok(())
    }

    /// The size of an area: the largest snapshot and the records after it.
    pub fn area_blocks(&self) -> u32 {
        snapshot_blocks(self.extents_max as usize) + self.log_blocks
    }

    fn area_bytes(&self) -> u64 {
        (u64::from(self.area_blocks()) * BLOCK_BYTES).next_multiple_of(self.align_bytes)
    }

    /// The beginning of an area (0 or 1). The superblock has a separate unit.
    pub fn area_at(&self, area: usize) -> u64 {
        self.align_bytes + area as u64 * self.area_bytes()
    }

    pub fn data_start(&self) -> u64 {
        self.area_at(2)
    }

    /// The end of the last possible extent.
    pub fn data_end(&self) -> u64 {
        let end = self.copy_at();
        end - end % self.align_bytes
    }

    /// The place of the superblock's copy.
    pub fn copy_at(&self) -> u64 {
        self.store_bytes - BLOCK_BYTES
    }
}

/// The number of blocks in a snapshot of this number of extents.
pub fn snapshot_blocks(extents: usize) -> u32 {
    extents.div_ceil(ENTRIES_MAX).max(1) as u32
}

/// The place of the superblock's copy, for a store on a whole device of this size.
pub fn copy_at(size_bytes: u64) -> Option<u64> {
    (size_bytes - size_bytes % BLOCK_BYTES).checked_sub(BLOCK_BYTES)
}
