// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes staged changes durable, in the order that docs/spec/store-1.md specifies. [`Store`] calls
//! it.

use steadyio_core::memory::AlignedBuffer;

use super::Store;
use crate::error::{StoreError, io_error};
use crate::examine::{Current, Problem};
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
        // The state of the device is unknown after an error.
        self.failed = true;
        self.commit()?;
        self.failed = false;
        Ok(())
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        self.check_generation()?;
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
        self.check_record(at)?;
        self.current.blocks += 1;
        self.current.extents = self.extents();
        self.staged.clear();
        Ok(())
    }

    /// Fails if another program has made changes durable since the records were read, by a path
    /// that no lock covers. Its changes are at the place of the next change or, if the area is
    /// full, in the other area. Epoch and index of the last record are the generation.
    pub(crate) fn check_generation(&mut self) -> Result<(), StoreError> {
        let Current { area, blocks, epoch, .. } = self.current;
        let is_full = blocks == self.geometry.area_blocks();
        let (area, index, later) = match is_full {
            true => (1 - area, 0, self.epoch_max.saturating_add(1)),
            false => (area, blocks, epoch),
        };
        let at = self.geometry.area_at(area) + u64::from(index) * BLOCK_BYTES;
        let read = self.storage.read_at(&mut self.block, at);
        read.map_err(io_error("reading where the next record goes"))?;
        let Some(record) = records::decode(&self.block) else { return Ok(()) };
        let Head { store, epoch, index: found, .. } = record.head;
        if store == self.geometry.id && found == index && epoch >= later {
            self.failed = true;
            return Err(StoreError::Moved);
        }
        Ok(())
    }

    /// Fails if the last record, which is still in the block buffer, has been overwritten.
    fn check_record(&mut self, at: u64) -> Result<(), StoreError> {
        let written = self.block.to_vec();
        let read = self.storage.read_at(&mut self.block, at);
        read.map_err(io_error("reading the record that was written"))?;
        if self.block[..] == written[..] { Ok(()) } else { Err(StoreError::Raced) }
    }

    fn head(&self, is_snapshot: bool, index: u32) -> Head {
        let (store, epoch) = (self.geometry.id, self.current.epoch);
        let snapshot_blocks = self.current.snapshot_blocks;
        Head { is_snapshot, store, epoch, index, snapshot_blocks }
    }

    /// Begins the other area with a snapshot of everything durable.
    fn write_snapshot(&mut self) -> Result<(), StoreError> {
        let entries: Vec<Entry> =
            self.current.extents.iter().map(|(&id, extent)| (id, Some(*extent))).collect();
        let next = self.epoch_max.checked_add(1);
        self.epoch_max = next.ok_or_else(|| StoreError::Damaged(vec![Problem::LastEpoch]))?;
        self.current.epoch = self.epoch_max;
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

    /// Prepares to write contents. It does not read the records again if they were read a moment
    /// ago.
    pub(super) fn before_contents(&mut self) -> Result<(), StoreError> {
        if self.settled { self.check_generation() } else { self.settle() }
    }

    /// Makes the records durable, before anything is written over places that they do not name any
    /// more.
    pub(super) fn settle(&mut self) -> Result<(), StoreError> {
        if !self.settled {
            self.failed = true;
            self.storage.flush().map_err(io_error("flushing the device"))?;
            (self.failed, self.settled) = (false, true);
        }
        Ok(())
    }
}
