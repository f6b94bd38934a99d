// SPDX-License-Identifier: MIT OR Apache-2.0
//! The object behind `struct steadyio_store`: a store that one call uses at a time.

use std::mem::size_of;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use steadyio_direct::disk::DiskError;
use steadyio_store::AlignedBuffer;
use steadyio_store::error::StoreError;
use steadyio_store::storage::file::{Access, FileStorage, OpenError};
use steadyio_store::store::Store;

use super::structs::{CExtent, CStoreOptions, CStoreStats, FORCE, READ_ONLY, check_flags};
use crate::status::{Error, Status, with_causes};

/// The size of a read in a check.
const CHECK_BYTES: usize = 1 << 20;

/// `struct steadyio_store`.
#[derive(Debug)]
pub struct StoreHandle(Mutex<Store<FileStorage>>);

impl From<OpenError> for Error {
    fn from(error: OpenError) -> Error {
        let status = match error {
            OpenError::Kind { .. }
            | OpenError::Regions { .. }
            | OpenError::Blocks { .. }
            | OpenError::NoBlockDevice { .. }
            | OpenError::Namespace(DiskError::Region(_) | DiskError::NoParts { .. })
            | OpenError::Device(_) => Status::Invalid,
            OpenError::InUse { .. } | OpenError::Locked { .. } | OpenError::Holds { .. } => {
                Status::State
            }
            OpenError::Io { .. }
            | OpenError::ReadOnly { .. }
            | OpenError::Backing { .. }
            | OpenError::Namespace(_) => Status::Failed,
        };
        Error::new(status, with_causes(&error))
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Error {
        use StoreError as E;
        let status = match error {
            E::Missing(_) => Status::StoreMissing,
            E::Full { .. } | E::TooMany(_) => Status::StoreFull,
            E::Damaged(_) | E::Superblocks { .. } | E::Truncated { .. } | E::Contents { .. } => {
                Status::StoreDamaged
            }
            E::OnlyRecords | E::NoCopy | E::SeveralCopies(_) => Status::StoreDamaged,
            E::NoStore | E::Version { .. } => Status::StoreNone,
            E::Geometry(_) | E::Empty | E::TooLong { .. } => Status::Invalid,
            E::Buffer { .. } | E::Alignment { .. } => Status::Invalid,
            E::Exists(_) | E::TooManyStaged | E::ReadOnly | E::Failed => Status::State,
            E::Moved | E::Raced => Status::State,
            E::Io { .. } | E::Memory(_) | E::Interrupted => Status::Failed,
        };
        Error::new(status, with_causes(&error))
    }
}

impl StoreHandle {
    fn new(store: Store<FileStorage>) -> StoreHandle {
        StoreHandle(Mutex::new(store))
    }

    pub fn create(path: &Path, options: &CStoreOptions) -> Result<StoreHandle, Error> {
        let wanted = options.to_rust()?;
        let mut storage = FileStorage::open(path, Access::Change)?;
        if options.flags & FORCE == 0 {
            storage.check_empty(path)?;
        }
        Ok(StoreHandle::new(Store::create(storage, &wanted)?))
    }

    pub fn open(path: &Path, flags: u32) -> Result<StoreHandle, Error> {
        check_flags("flags", flags, READ_ONLY)?;
        Ok(StoreHandle::new(if flags & READ_ONLY != 0 {
            Store::open_to_read(FileStorage::open(path, Access::Read)?)?
        } else {
            Store::open(FileStorage::open(path, Access::Change)?)?
        }))
    }

    pub fn lock(&self) -> Result<MutexGuard<'_, Store<FileStorage>>, Error> {
        let poisoned = "an earlier call panicked: close this store";
        self.0.lock().map_err(|_| Error::fixed(Status::Panic, poisoned))
    }

    pub fn check(&self, id: u64) -> Result<Status, Error> {
        let mut store = self.lock()?;
        let buffer = AlignedBuffer::new(store.piece_bytes(CHECK_BYTES), false);
        let mut buffer = buffer.map_err(StoreError::from)?;
        let mut loading = store.begin_load(id)?;
        while !loading.next(&mut buffer)?.is_empty() {}
        Ok(Status::Ok)
    }

    pub fn extent(&self, id: u64) -> Result<CExtent, Error> {
        let store = self.lock()?;
        Ok(CExtent::new(id, &store.extent(id)?, store.load_commands(id)?))
    }

    pub fn next(&self, from_id: u64) -> Result<CExtent, Error> {
        // Under one lock: another thread may delete the extent.
        let store = self.lock()?;
        let (id, extent) = store.next_extent(from_id).ok_or(StoreError::Missing(from_id))?;
        Ok(CExtent::new(id, &extent, store.load_commands(id)?))
    }

    pub fn stats(&self) -> Result<CStoreStats, Error> {
        let store = self.lock()?;
        let (geometry, free, commands) = (store.geometry(), store.free(), store.commands());
        Ok(CStoreStats {
            struct_bytes: size_of::<CStoreStats>(),
            store_bytes: geometry.store_bytes,
            align_bytes: geometry.align_bytes,
            free_bytes: free.total_bytes,
            free_bytes_max: free.largest_bytes,
            command_bytes: store.command_bytes(),
            reads: commands.reads,
            writes: commands.writes,
            flushes: commands.flushes,
            extents: store.extents().len() as u32,
            extents_max: geometry.extents_max,
        })
    }
}
