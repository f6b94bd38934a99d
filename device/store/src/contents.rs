// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads and replaces the contents of extents, also in pieces, because an extent may be larger than
//! memory. `steady store` and `capi` call it.

use crc32fast::Hasher;

use crate::error::{StoreError, io_error};
use crate::format::BLOCK;
use crate::format::records::Extent;
use crate::storage::{BLOCK_BYTES, Storage};
use crate::store::Store;

/// The number of bytes after which a writer checks again whether it is alone. Another program may
/// own the place by then.
const GUARDED_BYTES: u64 = 4 << 20;

/// Checks for whole blocks at a block-aligned address, because nothing is copied.
fn check_alignment(what: &'static str, value: u64) -> Result<(), StoreError> {
    if value % BLOCK_BYTES == 0 { Ok(()) } else { Err(StoreError::Alignment { what, value }) }
}

impl<S: Storage> Store<S> {
    /// Fills the buffer with an extent's contents and returns their length. The buffer must have
    /// room for them rounded up to whole blocks.
    pub fn load(&mut self, id: u64, buffer: &mut [u8]) -> Result<usize, StoreError> {
        let needed_bytes = self.extent(id)?.valid_bytes.next_multiple_of(BLOCK_BYTES);
        let buffer_bytes = buffer.len() as u64;
        let short = StoreError::Buffer { id, buffer_bytes, needed_bytes };
        let needed = usize::try_from(needed_bytes).ok();
        let Some(blocks) = needed.and_then(|needed| buffer.get_mut(..needed)) else {
            return Err(short);
        };
        Ok(self.begin_load(id)?.next(blocks)?.len())
    }

    /// Like [`Store::load`], in pieces.
    pub fn begin_load(&mut self, id: u64) -> Result<Loading<'_, S>, StoreError> {
        let extent = self.extent(id)?;
        Ok(Loading::new(self, id, extent))
    }

    /// Replaces an extent's contents, and makes them and all staged changes durable.
    pub fn unload(&mut self, id: u64, contents: &[u8]) -> Result<(), StoreError> {
        self.write(id, contents)?;
        self.flush()
    }

    /// Replaces an extent's contents. Staged.
    pub fn write(&mut self, id: u64, contents: &[u8]) -> Result<(), StoreError> {
        let (bytes, extent_bytes) = (contents.len() as u64, self.extent(id)?.bytes);
        if bytes > extent_bytes {
            return Err(StoreError::TooLong { id, bytes, extent_bytes });
        }
        if bytes > 0 {
            check_alignment("address of the contents", contents.as_ptr() as u64)?;
        }
        let mut unloading = self.begin_unload(id)?;
        unloading.append(contents)?;
        unloading.finish()
    }

    /// Like [`Store::write`], in pieces. Staged contents of this extent are discarded.
    pub fn begin_unload(&mut self, id: u64) -> Result<Unloading<'_, S>, StoreError> {
        let extent = self.make_room(id)?;
        Ok(Unloading::new(self, id, extent))
    }
}

/// New contents of an extent, which become valid when they are finished and flushed. Dropped
/// before, they have no effect, and the extent keeps its last durable contents.
#[derive(Debug)]
pub struct Unloading<'a, S: Storage> {
    store: &'a mut Store<S>,
    id: u64,
    /// The extent after the change.
    extent: Extent,
    crc: Option<Hasher>,
    /// The number of bytes written since the generation was checked.
    unguarded_bytes: u64,
}

impl<'a, S: Storage> Unloading<'a, S> {
    /// `extent` has its new place, and no contents yet.
    fn new(store: &'a mut Store<S>, id: u64, extent: Extent) -> Unloading<'a, S> {
        let crc = extent.crc.map(|_| Hasher::new());
        Unloading { store, id, extent, crc, unguarded_bytes: 0 }
    }

    /// Appends a piece: whole blocks, except the last piece.
    pub fn append(&mut self, piece: &[u8]) -> Result<(), StoreError> {
        let Extent { bytes: extent_bytes, valid_bytes, .. } = self.extent;
        if piece.is_empty() {
            return Ok(());
        }
        check_alignment("address of a piece", piece.as_ptr() as u64)?;
        check_alignment("length of the pieces before the last", valid_bytes)?;
        let bytes = valid_bytes.saturating_add(piece.len() as u64);
        if bytes > extent_bytes {
            return Err(StoreError::TooLong { id: self.id, bytes, extent_bytes });
        }
        let (blocks, rest) = piece.split_at(piece.len() - piece.len() % BLOCK);
        if self.unguarded_bytes >= GUARDED_BYTES {
            self.store.check_generation()?;
            self.unguarded_bytes = 0;
        }
        self.unguarded_bytes += piece.len() as u64;
        let write_error = || io_error("writing contents");
        let at = self.extent.start + valid_bytes;
        if !blocks.is_empty() {
            self.store.storage.write_at(blocks, at).map_err(write_error())?;
        }
        if !rest.is_empty() {
            let block = &mut self.store.block;
            block.fill(0);
            block[..rest.len()].copy_from_slice(rest);
            self.store.storage.write_at(block, at + blocks.len() as u64).map_err(write_error())?;
        }
        if let Some(crc) = &mut self.crc {
            crc.update(piece);
        }
        self.extent.valid_bytes = bytes;
        Ok(())
    }

    /// Makes them the extent's contents: at once for this store, with the next flush for others.
    pub fn finish(mut self) -> Result<(), StoreError> {
        self.extent.crc = self.crc.take().map(Hasher::finalize);
        self.store.stage(self.id, self.extent)
    }
}

/// Contents in the process of being read, in order. The store cannot change meanwhile.
#[derive(Debug)]
pub struct Loading<'a, S: Storage> {
    store: &'a mut Store<S>,
    id: u64,
    extent: Extent,
    read_bytes: u64,
    crc: Option<Hasher>,
}

impl<'a, S: Storage> Loading<'a, S> {
    fn new(store: &'a mut Store<S>, id: u64, extent: Extent) -> Loading<'a, S> {
        let crc = extent.crc.map(|_| Hasher::new());
        Loading { store, id, extent, read_bytes: 0, crc }
    }

    /// Continues even if the checksum is wrong.
    pub fn unchecked(mut self) -> Loading<'a, S> {
        self.crc = None;
        self
    }

    /// The length of all contents.
    pub fn valid_bytes(&self) -> u64 {
        self.extent.valid_bytes
    }

    /// Reads the next piece into a buffer of whole blocks, and returns it; it is empty at the end.
    /// If the contents have a wrong checksum, the last piece returns the error.
    pub fn next<'b>(&mut self, buffer: &'b mut [u8]) -> Result<&'b [u8], StoreError> {
        let left = self.extent.valid_bytes - self.read_bytes;
        if left > 0 {
            check_alignment("address of the buffer", buffer.as_ptr() as u64)?;
            check_alignment("length of the buffer", buffer.len() as u64)?;
        }
        let bytes = left.min(buffer.len() as u64) as usize;
        let blocks = &mut buffer[..bytes.next_multiple_of(BLOCK)];
        if !blocks.is_empty() {
            let at = self.extent.start + self.read_bytes;
            self.store.storage.read_at(blocks, at).map_err(io_error("reading contents"))?;
        }
        if let Some(crc) = &mut self.crc {
            crc.update(&buffer[..bytes]);
        }
        self.read_bytes += bytes as u64;
        if self.read_bytes == self.extent.valid_bytes {
            self.check()?;
        }
        Ok(&buffer[..bytes])
    }

    fn check(&mut self) -> Result<(), StoreError> {
        let found = self.crc.take().map(Hasher::finalize);
        match (self.extent.crc, found) {
            (Some(stored), Some(found)) if stored != found => {
                Err(StoreError::Contents { id: self.id, stored, found })
            }
            _ => Ok(()),
        }
    }
}
