// SPDX-License-Identifier: MIT OR Apache-2.0
//! How staged changes become durable, in the order that docs/spec/store-1.md specifies.

use steadyio_core::memory::AlignedBuffer;

use super::Store;
use crate::error::{StoreError, io_error};
use crate::format::BLOCK;
use crate::format::geometry::snapshot_blocks;
use crate::format::records::{self, ENTRIES_MAX, Entry, Head};
use crate::storage::{BLOCK_BYTES, Storage};

impl<S: Storage> Store<S> {
    /// Makes all staged changes durable: all of them, or, if power fails, none.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        self.changeable()?;
        if self.staged.is_empty() {
            return Ok(());
        }
        self.settle()?;
        // What is on the device is not known after an error.
        self.failed = true;
        self.commit()?;
        self.failed = false;
        Ok(())
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        if self.current.blocks == self.geometry.area_blocks() {
            self.write_snapshot()?;
        }
        let flush_error = || io_error("flushing the device");
        // Contents and snapshot.
        self.storage.flush().map_err(flush_error())?;
        let entries: Vec<Entry> =
            self.staged.iter().map(|(&id, staged)| (id, staged.extent().copied())).collect();
        records::encode(&self.head(false, self.current.blocks), &entries, &mut self.block);
        let at =
            self.geometry.area_at(self.current.area) + u64::from(self.current.blocks) * BLOCK_BYTES;
        self.storage.write_at(&self.block, at).map_err(io_error("writing a record"))?;
        self.storage.flush().map_err(flush_error())?;
        self.current.blocks += 1;
        self.current.extents = self.extents();
        self.staged.clear();
        Ok(())
    }

    fn head(&self, is_snapshot: bool, index: u32) -> Head {
        let (store, epoch) = (self.geometry.id, self.current.epoch);
        let snapshot_blocks = self.current.snapshot_blocks;
        Head { is_snapshot, store, epoch, index, snapshot_blocks }
    }

    /// Begins the other area with all that is durable.
    fn write_snapshot(&mut self) -> Result<(), StoreError> {
        let entries: Vec<Entry> =
            self.current.extents.iter().map(|(&id, extent)| (id, Some(*extent))).collect();
        self.current.epoch = self.epoch_max.saturating_add(1);
        self.epoch_max = self.current.epoch;
        self.current.area = 1 - self.current.area;
        self.current.snapshot_blocks = snapshot_blocks(entries.len());
        self.current.blocks = self.current.snapshot_blocks;
        let mut bytes = AlignedBuffer::new(self.current.blocks as usize * BLOCK, false)?;
        let mut chunks = entries.chunks(ENTRIES_MAX);
        for (index, block) in (0..).zip(bytes.chunks_exact_mut(BLOCK)) {
            records::encode(&self.head(true, index), chunks.next().unwrap_or_default(), block);
        }
        let at = self.geometry.area_at(self.current.area);
        self.storage.write_at(&bytes, at).map_err(io_error("writing a snapshot"))
    }

    /// Before anything is written over places that the records do not name any more.
    pub(super) fn settle(&mut self) -> Result<(), StoreError> {
        if !self.settled {
            self.failed = true;
            self.storage.flush().map_err(io_error("flushing the device"))?;
            (self.failed, self.settled) = (false, true);
        }
        Ok(())
    }
}
