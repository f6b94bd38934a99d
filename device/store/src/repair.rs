// SPDX-License-Identifier: MIT OR Apache-2.0
//! Restores a damaged superblock from its copy, or the copy from it. `steady store repair` calls
//! it.
//!
//! Nothing else can be repaired, because records and contents exist once. [`plan`] writes nothing,
//! and [`Plan::carry_out`] writes only superblocks.

use std::fmt;

use steadyio_core::memory::AlignedBuffer;

use crate::error::{StoreError, io_error};
use crate::examine::{Problem, examine_areas, superblock_at};
use crate::format::BLOCK;
use crate::format::geometry::Geometry;
use crate::format::superblock::{self, NoSuperblock};
use crate::storage::{BLOCK_BYTES, Storage};

/// The size of a read in a search.
const SEARCHED_BYTES: u64 = 4 << 20;

/// The repair: the superblock to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    geometry: Geometry,
    /// The place of the good superblock; 0 is the first one's.
    pub good_at: u64,
    /// The place of the other one, and the damage there; None if it is good.
    pub damaged: Option<(u64, NoSuperblock)>,
}

impl fmt::Display for Plan {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.damaged {
            None => write!(to, "both superblocks are good"),
            Some((0, why)) => {
                write!(to, "superblock: {why}; its copy at byte {} is good", self.good_at)
            }
            Some((at, why)) => {
                write!(to, "copy of the superblock at byte {at}: {why}; the superblock is good")
            }
        }
    }
}

impl Plan {
    /// Writes the damaged superblock.
    pub fn carry_out<S: Storage>(&self, storage: &mut S) -> Result<(), StoreError> {
        let Some((at, _)) = self.damaged else { return Ok(()) };
        let mut block = AlignedBuffer::new(BLOCK, false)?;
        superblock::encode(&self.geometry, &mut block);
        let write_error = || io_error("writing a superblock");
        storage.write_at(&block, at).map_err(write_error())?;
        storage.flush().map_err(write_error())
    }
}

/// Finds the damage. It reads the whole device if neither end of it has a good superblock.
/// `progress` gets the number of bytes read and of all bytes, and returns whether to continue. If
/// records are damaged, too, this fails, because the place may be wrong.
pub fn plan<S: Storage>(
    storage: &mut S,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Plan, StoreError> {
    let size_bytes = storage.limits().size_bytes;
    let mut block = AlignedBuffer::new(BLOCK, false)?;
    if size_bytes < BLOCK_BYTES {
        return Err(StoreError::NoStore);
    }
    let first = match superblock_at(storage, &mut block, 0) {
        Ok(geometry) if geometry.store_bytes > size_bytes => {
            let store_bytes = geometry.store_bytes;
            return Err(StoreError::Truncated { store_bytes, size_bytes });
        }
        Ok(geometry) => {
            check_records(storage, geometry)?;
            let at = geometry.copy_at();
            let damaged = match superblock_at(storage, &mut block, at) {
                Ok(copy) if copy == geometry => None,
                copy => Some((at, copy.err().unwrap_or(NoSuperblock::Magic))),
            };
            return Ok(Plan { geometry, good_at: 0, damaged });
        }
        Err(NoSuperblock::Version(found)) => return Err(StoreError::Version { found }),
        Err(first) => first,
    };
    let (good_at, geometry) = find_copy(storage, progress)?;
    Ok(Plan { geometry, good_at, damaged: Some((0, first)) })
}

fn check_records<S: Storage>(storage: &mut S, geometry: Geometry) -> Result<(), StoreError> {
    let found: Vec<Problem> = examine_areas(storage, geometry, Vec::new())?.problems;
    if found.is_empty() { Ok(()) } else { Err(StoreError::Damaged(found)) }
}

/// Finds the copy of a superblock whose records are complete: at the end of the device, or
/// anywhere.
fn find_copy<S: Storage>(
    storage: &mut S,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<(u64, Geometry), StoreError> {
    let size_bytes = storage.limits().size_bytes / BLOCK_BYTES * BLOCK_BYTES;
    let mut block = AlignedBuffer::new(BLOCK, false)?;
    let last = size_bytes - BLOCK_BYTES;
    let at_end = superblock_at(storage, &mut block, last);
    if let Some(geometry) = at_end.ok().filter(|geometry| geometry.copy_at() == last) {
        check_records(storage, geometry)?;
        return Ok((last, geometry));
    }
    let mut found = search(storage, size_bytes, progress)?;
    found.retain(|(_, geometry)| check_records(storage, *geometry).is_ok());
    match found.as_slice() {
        [] => Err(StoreError::NoCopy),
        [one] => Ok(*one),
        several => Err(StoreError::SeveralCopies(several.iter().map(|(at, _)| *at).collect())),
    }
}

fn search<S: Storage>(
    storage: &mut S,
    size_bytes: u64,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Vec<(u64, Geometry)>, StoreError> {
    let mut buffer = AlignedBuffer::new(SEARCHED_BYTES as usize, false)?;
    let mut found = Vec::new();
    for start in (0..size_bytes).step_by(SEARCHED_BYTES as usize) {
        let piece = &mut buffer[..SEARCHED_BYTES.min(size_bytes - start) as usize];
        if storage.read_at(piece, start).is_err() {
            // Block by block, because an unreadable block has no copy.
            for (block, at) in piece.chunks_exact_mut(BLOCK).zip((start..).step_by(BLOCK)) {
                if storage.read_at(block, at).is_err() {
                    block.fill(0);
                }
            }
        }
        for (block, at) in piece.chunks_exact(BLOCK).zip((start..).step_by(BLOCK)) {
            let geometry = superblock::decode(block).ok();
            found.extend(geometry.filter(|copy| copy.copy_at() == at).map(|copy| (at, copy)));
        }
        if !progress(start + piece.len() as u64, size_bytes) {
            return Err(StoreError::Interrupted);
        }
    }
    Ok(found)
}
