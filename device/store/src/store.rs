// SPDX-License-Identifier: MIT OR Apache-2.0
//! An open store: extents are made and deleted here, and `contents` loads and changes them. `steady
//! store` and `capi` use it.
//!
//! Changes are staged: this store shows them at once, and the next [`Store::flush`] makes all of
//! them durable, or none. Durable contents are never overwritten: a place becomes free only after
//! the flush that moved its extent away.

mod commit;
mod make;

use std::collections::BTreeMap;

use steadyio_core::memory::AlignedBuffer;

use crate::error::StoreError;
use crate::examine::{Current, Examined, Problem, examine};
use crate::format::BLOCK;
use crate::format::geometry::Geometry;
use crate::format::records::{ENTRIES_MAX, Extent};
use crate::places::{Free, Places};
use crate::storage::{BLOCK_BYTES, Commands, Storage};

/// The options of a new store.
#[derive(Debug, Clone, Copy)]
pub struct StoreOptions {
    /// The alignment of extents, best a multiple of the device's erase unit; None: the device's
    /// preference, else 1 MiB.
    pub align_bytes: Option<u64>,
    pub extents_max: u32,
    /// The number of flushes between two snapshots of all records.
    pub log_blocks: u32,
}

impl Default for StoreOptions {
    fn default() -> StoreOptions {
        StoreOptions { align_bytes: None, extents_max: 1_000, log_blocks: 32 }
    }
}

/// The options of a new extent.
#[derive(Debug, Clone, Copy)]
pub struct ExtentOptions {
    /// The highest size of its contents.
    pub bytes: u64,
    /// Whether it has two places, so that there is always room for new contents.
    pub twice: bool,
    /// Whether contents have a checksum, which every load computes.
    pub checked: bool,
}

#[derive(Debug, Clone, Copy)]
enum Staged {
    /// An existing extent with new contents.
    Changed(Extent),
    /// An extent made since the last flush.
    New(Extent),
    Deleted,
}

impl Staged {
    fn extent(&self) -> Option<&Extent> {
        match self {
            Staged::Changed(extent) | Staged::New(extent) => Some(extent),
            Staged::Deleted => None,
        }
    }
}

/// An open store.
#[derive(Debug)]
pub struct Store<S: Storage> {
    pub(crate) storage: S,
    /// A buffer for partly used blocks.
    pub(crate) block: AlignedBuffer,
    geometry: Geometry,
    /// The durable extents, and their places.
    current: Current,
    epoch_max: u64,
    staged: BTreeMap<u64, Staged>,
    problems: Vec<Problem>,
    /// Whether the records that were found are durable. Their writer may have been killed before
    /// the flush.
    settled: bool,
    read_only: bool,
    failed: bool,
}

impl<S: Storage> Store<S> {
    /// Opens a store to read and change it.
    pub fn open(storage: S) -> Result<Store<S>, StoreError> {
        let store = Store::open_if(storage, Problem::allows_changes)?;
        Ok(Store { read_only: false, ..store })
    }

    /// Opens a store to read only. A damaged superblock is no error if its copy is good.
    pub fn open_to_read(storage: S) -> Result<Store<S>, StoreError> {
        Store::open_if(storage, Problem::allows_reading)
    }

    /// Opens a store in any state, for a report. Its contents may be wrong.
    pub(crate) fn open_damaged(storage: S) -> Result<Store<S>, StoreError> {
        Store::open_if(storage, |_| true)
    }

    fn open_if(mut storage: S, allowed: fn(&Problem) -> bool) -> Result<Store<S>, StoreError> {
        let Examined { geometry, current, epoch_max, problems } = examine(&mut storage)?;
        if !problems.iter().all(allowed) {
            return Err(StoreError::Damaged(problems));
        }
        // Without an area there is a problem.
        let current = current.unwrap_or_default();
        Ok(Store {
            storage,
            block: AlignedBuffer::new(BLOCK, false)?,
            geometry,
            current,
            epoch_max,
            staged: BTreeMap::new(),
            problems,
            read_only: true,
            settled: false,
            failed: false,
        })
    }

    /// The damage with which the store can still be opened.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The number of flushes since the last snapshot, and the number after which the next is
    /// written.
    pub fn changes(&self) -> (u32, u32) {
        let Current { blocks, snapshot_blocks, .. } = self.current;
        (blocks - snapshot_blocks, self.geometry.area_blocks() - snapshot_blocks)
    }

    /// The commands since it was opened.
    pub fn commands(&self) -> Commands {
        self.storage.commands()
    }

    /// The longest command that the device gets in one piece.
    pub fn command_bytes(&self) -> u64 {
        self.storage.limits().command_bytes
    }

    /// The exact number of commands for loading an extent.
    pub fn load_commands(&self, id: u64) -> Result<u64, StoreError> {
        let bytes = self.extent(id)?.valid_bytes.next_multiple_of(BLOCK_BYTES);
        Ok(bytes.div_ceil(self.command_bytes()))
    }

    /// The largest piece of at most `bytes` that needs no more commands than one large read or
    /// write; at least one command.
    pub fn piece_bytes(&self, bytes: usize) -> usize {
        let command_bytes = self.command_bytes() as usize;
        (bytes / command_bytes).max(1) * command_bytes
    }

    /// An extent, with staged changes.
    pub fn extent(&self, id: u64) -> Result<Extent, StoreError> {
        let found = match self.staged.get(&id) {
            Some(staged) => staged.extent(),
            None => self.current.extents.get(&id),
        };
        found.copied().ok_or(StoreError::Missing(id))
    }

    /// All extents by id, with staged changes.
    pub fn extents(&self) -> BTreeMap<u64, Extent> {
        let mut extents = self.current.extents.clone();
        for (&id, staged) in &self.staged {
            match staged.extent() {
                Some(extent) => extents.insert(id, *extent),
                None => extents.remove(&id),
            };
        }
        extents
    }

    /// The extent with the lowest id from `from_id` on, with staged changes.
    pub fn next_extent(&self, from_id: u64) -> Option<(u64, Extent)> {
        let mut durable = self.current.extents.range(from_id..);
        let unchanged = durable.find(|(id, _)| !self.staged.contains_key(id));
        let unchanged = unchanged.map(|(id, extent)| (*id, *extent));
        let mut staged = self.staged.range(from_id..);
        let staged = staged.find_map(|(id, staged)| Some((*id, *staged.extent()?)));
        unchanged.into_iter().chain(staged).min_by_key(|(id, _)| *id)
    }

    pub fn free(&self) -> Free {
        self.places().free()
    }

    /// The places of all durable and staged extents.
    fn places(&self) -> Places {
        let mut places = Places::new(&self.geometry);
        self.current.extents.values().for_each(|extent| places.take(extent));
        for (id, staged) in &self.staged {
            let has = |new: &Extent| {
                let old = self.current.extents.get(id);
                old.is_some_and(|old| old.start == new.start || old.spare == Some(new.start))
            };
            match staged {
                Staged::New(extent) => places.take(extent),
                Staged::Changed(extent) if !has(extent) => places.take(extent),
                _ => {}
            }
        }
        places
    }

    fn find_place(&self, places: &mut Places, bytes: u64) -> Result<u64, StoreError> {
        let align_bytes = self.geometry.align_bytes;
        places.find(bytes).ok_or_else(|| StoreError::Full {
            needed_bytes: bytes.checked_next_multiple_of(align_bytes).unwrap_or(bytes),
            free: self.free(),
        })
    }

    fn changeable(&self) -> Result<(), StoreError> {
        match (self.read_only, self.failed) {
            (true, _) => Err(StoreError::ReadOnly),
            (_, true) => Err(StoreError::Failed),
            _ => Ok(()),
        }
    }

    /// Checks that one more change fits into the next record.
    fn room_for(&self, id: u64) -> Result<(), StoreError> {
        self.changeable()?;
        if self.staged.len() == ENTRIES_MAX && !self.staged.contains_key(&id) {
            return Err(StoreError::TooManyStaged);
        }
        Ok(())
    }

    /// Makes an extent, without contents. Staged.
    pub fn create_extent(&mut self, id: u64, options: &ExtentOptions) -> Result<(), StoreError> {
        self.room_for(id)?;
        if self.extent(id).is_ok() {
            return Err(StoreError::Exists(id));
        }
        if options.bytes == 0 {
            return Err(StoreError::Empty);
        }
        if self.extents().len() >= self.geometry.extents_max as usize {
            return Err(StoreError::TooMany(self.geometry.extents_max));
        }
        let mut places = self.places();
        let start = self.find_place(&mut places, options.bytes)?;
        let spare =
            options.twice.then(|| self.find_place(&mut places, options.bytes)).transpose()?;
        let crc = options.checked.then_some(0);
        let extent = Extent { start, spare, bytes: options.bytes, valid_bytes: 0, crc };
        self.staged.insert(id, Staged::New(extent));
        Ok(())
    }

    /// Deletes an extent. Staged: its place is free after the flush.
    pub fn delete(&mut self, id: u64) -> Result<(), StoreError> {
        self.room_for(id)?;
        self.extent(id)?;
        if self.current.extents.contains_key(&id) {
            self.staged.insert(id, Staged::Deleted);
        } else {
            self.staged.remove(&id);
        }
        Ok(())
    }

    /// Makes room for new contents of an extent, and discards its staged ones. Returns the extent
    /// with its new place, and no contents yet.
    pub(crate) fn make_room(&mut self, id: u64) -> Result<Extent, StoreError> {
        self.room_for(id)?;
        self.extent(id)?;
        let empty =
            |extent: &Extent| Extent { valid_bytes: 0, crc: extent.crc.map(|_| 0), ..*extent };
        let extent = match self.staged.get(&id) {
            Some(Staged::New(extent)) => {
                let extent = empty(extent);
                self.staged.insert(id, Staged::New(extent));
                extent
            }
            _ => {
                self.staged.remove(&id);
                empty(&self.moved(id)?)
            }
        };
        self.before_contents()?;
        Ok(extent)
    }

    /// A durable extent, with a place for new contents.
    fn moved(&self, id: u64) -> Result<Extent, StoreError> {
        let extent = self.extent(id)?;
        if extent.valid_bytes == 0 {
            return Ok(extent);
        }
        Ok(match extent.spare {
            Some(spare) => Extent { start: spare, spare: Some(extent.start), ..extent },
            None => {
                let start = self.find_place(&mut self.places(), extent.bytes)?;
                Extent { start, ..extent }
            }
        })
    }

    /// Stages new contents after they are written.
    pub(crate) fn stage(&mut self, id: u64, extent: Extent) -> Result<(), StoreError> {
        let staged = match self.staged.get(&id) {
            Some(Staged::New(_)) => Staged::New(extent),
            _ => Staged::Changed(extent),
        };
        self.staged.insert(id, staged);
        Ok(())
    }
}
