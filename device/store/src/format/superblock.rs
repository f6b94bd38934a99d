// SPDX-License-Identifier: MIT OR Apache-2.0
//! Encodes and decodes the superblock, which is written when a store is made, and never again.
//! `examine`, `repair` and `store` call it.

use super::geometry::{Geometry, GeometryError};
use super::{BLOCK, VERSION, array_at, is_sealed, put, seal, u32_at, u64_at};

const MAGIC: &[u8; 8] = b"STDYSTOR";

/// The reason why a block is not a superblock.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoSuperblock {
    #[error("no superblock of a store")]
    Magic,
    #[error("cannot be read")]
    Unreadable,
    #[error("a store of format {0}")]
    Version(u32),
    #[error("a damaged superblock: its checksum is wrong")]
    Checksum,
    #[error("a superblock with invalid values: {0}")]
    Geometry(#[from] GeometryError),
}

pub fn encode(geometry: &Geometry, block: &mut [u8]) {
    let block = &mut block[..BLOCK];
    block.fill(0);
    put(block, 0, MAGIC);
    put(block, 8, &VERSION.to_le_bytes());
    put(block, 16, &geometry.id);
    put(block, 32, &geometry.store_bytes.to_le_bytes());
    put(block, 40, &geometry.align_bytes.to_le_bytes());
    put(block, 48, &geometry.extents_max.to_le_bytes());
    put(block, 52, &geometry.log_blocks.to_le_bytes());
    seal(block);
}

pub fn decode(block: &[u8]) -> Result<Geometry, NoSuperblock> {
    let block = &block[..BLOCK];
    if !block.starts_with(MAGIC) {
        return Err(NoSuperblock::Magic);
    }
    // Before the checksum, which another version may have elsewhere.
    let version = u32_at(block, 8);
    if version != VERSION {
        let mut restored = block.to_vec();
        put(&mut restored, 8, &VERSION.to_le_bytes());
        // Only the version is damaged.
        let damaged = is_sealed(&restored);
        return Err(if damaged { NoSuperblock::Checksum } else { NoSuperblock::Version(version) });
    }
    if !is_sealed(block) {
        return Err(NoSuperblock::Checksum);
    }
    let geometry = Geometry {
        id: array_at(block, 16),
        store_bytes: u64_at(block, 32),
        align_bytes: u64_at(block, 40),
        extents_max: u32_at(block, 48),
        log_blocks: u32_at(block, 52),
    };
    geometry.check()?;
    Ok(geometry)
}
