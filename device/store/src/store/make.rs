// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes an empty store over any contents. `steady store create` and `capi` call it.

use std::fs::File;
use std::io::{self, Read};

use steadyio_core::memory::AlignedBuffer;

use super::{Store, StoreOptions};
use crate::error::{StoreError, io_error};
use crate::format::geometry::{Geometry, GeometryError};
use crate::format::records::{self, Head};
use crate::format::{BLOCK, StoreId, superblock};
use crate::storage::{BLOCK_BYTES, Storage};

/// The number of bytes that [`Store::create`] first clears. They have all signatures of earlier
/// contents.
const CLEARED_BYTES: u64 = 128 << 10;
/// The alignment for a device that reports none.
const ALIGN_BYTES: u64 = 1 << 20;

impl<S: Storage> Store<S> {
    /// Makes an empty store over the present contents, which the caller must have checked.
    pub fn create(mut storage: S, options: &StoreOptions) -> Result<Store<S>, StoreError> {
        let limits = storage.limits();
        let id = new_id().map_err(io_error("/dev/urandom"))?;
        let geometry = options.geometry(id, limits.size_bytes, limits.erase_bytes);
        geometry.check()?;
        write_empty(&mut storage, &geometry).map_err(io_error("making the store"))?;
        Store::open(storage)
    }
}

impl StoreOptions {
    /// Whether a store can be made in a file of this size.
    pub fn check_file(&self, bytes: u64) -> Result<(), GeometryError> {
        self.geometry(StoreId::default(), bytes, 0).check()
    }

    fn geometry(&self, id: StoreId, size_bytes: u64, erase_bytes: u64) -> Geometry {
        let preferred = match erase_bytes {
            0 => ALIGN_BYTES,
            bytes => bytes.next_multiple_of(BLOCK_BYTES),
        };
        Geometry {
            id,
            store_bytes: size_bytes - size_bytes % BLOCK_BYTES,
            align_bytes: self.align_bytes.unwrap_or(preferred),
            extents_max: self.extents_max,
            log_blocks: self.log_blocks,
        }
    }
}

fn new_id() -> io::Result<StoreId> {
    let mut id = StoreId::default();
    File::open("/dev/urandom")?.read_exact(&mut id)?;
    Ok(id)
}

/// Writes an empty store: first it destroys the old one, then it writes records, a superblock, and
/// last its copy. A power cut leaves the earlier contents, no store, or this one.
fn write_empty<S: Storage>(storage: &mut S, geometry: &Geometry) -> io::Result<()> {
    let mut block = AlignedBuffer::new(CLEARED_BYTES as usize, false).map_err(io::Error::other)?;
    let places = [0, geometry.copy_at()];
    for at in places {
        storage.write_at(&block[..BLOCK], at)?;
    }
    storage.flush()?;
    // After the earlier store is gone, which may have had extents here.
    let cleared = CLEARED_BYTES.min(geometry.store_bytes) as usize;
    storage.write_at(&block[BLOCK..cleared], BLOCK_BYTES)?;
    storage.flush()?;
    let block = &mut block[..BLOCK];
    let store = geometry.id;
    let head = Head { is_snapshot: true, store, epoch: 1, index: 0, snapshot_blocks: 1 };
    records::encode(&head, &[], block);
    storage.write_at(block, geometry.area_at(0))?;
    storage.flush()?;
    superblock::encode(geometry, block);
    for at in places {
        storage.write_at(block, at)?;
        storage.flush()?;
    }
    Ok(())
}
