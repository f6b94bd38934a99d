// SPDX-License-Identifier: MIT OR Apache-2.0
//! Direct reads and writes of a card's character device, an NVMe namespace's, or a block device
//! with O_DIRECT, with one interface. `steady direct` uses it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use steadyio_core::device::{Device, DeviceError, access_hint};
use steadyio_core::device_name;

use crate::chardisk::{self, Info, Region};
use crate::mapping::Mapping;
use crate::nvme::order::{Level, Order};
use crate::nvme::region::{self, Part, Region as NvmeRegion, RegionError};
use crate::nvme::{self, Queue};

/// The device cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    #[error("{}{}", path.display(), access_hint(source))]
    Open { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Block(#[from] DeviceError),
    #[error("{}: no NVMe namespace that can be used: {error}{}", path.display(), nvme::hint(error))]
    NoNamespace { path: PathBuf, error: io::Error },
    #[error(transparent)]
    Region(#[from] RegionError),
    #[error("{}: @ names a part of an NVMe namespace (/dev/ngXnY) only", path.display())]
    NoParts { path: PathBuf },
    /// A character device of another driver.
    #[error(
        "{}: is a character device, but not a chario card (/dev/chardiskN) or an NVMe namespace \
         (/dev/ngXnY): {error}",
        path.display()
    )]
    NoChardisk { path: PathBuf, error: io::Error },
}

/// A device, open for direct I/O.
#[derive(Debug)]
pub struct Disk {
    pub file: File,
    pub bytes: u64,
    /// The unit of offsets and lengths.
    pub block_bytes: u64,
    pub kind: DiskKind,
}

#[derive(Debug)]
pub enum DiskKind {
    Block(Device),
    Char(Info),
    Nvme(Box<Queue>),
}

impl Disk {
    /// Opens a device by its name or node, see [`device_name`], or a part of a namespace, see
    /// [`region`].
    pub fn open(given: &Path, writes: bool) -> Result<Disk, DiskError> {
        let (given, part) = &region::split(given)?;
        let path = &*device_name::path_of(given)?;
        let failed = |source| DiskError::Open { path: path.into(), source };
        let meta = match std::fs::metadata(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            found => found.ok(),
        };
        let mut options = OpenOptions::new();
        options.read(true).write(writes);
        if let Some(meta) = meta.filter(|meta| meta.file_type().is_char_device()) {
            if !nvme::is_namespace(&meta) && !chardisk::may_be(&meta) {
                let error = chardisk::not_one();
                return Err(DiskError::NoChardisk { path: path.into(), error });
            }
            let file = options.open(path).map_err(|source| match nvme::is_namespace(&meta) {
                true => DiskError::NoNamespace { path: path.into(), error: source },
                false => failed(source),
            })?;
            return Disk::of_character(file, path, *part, writes);
        }
        if *part != Part::Whole {
            return Err(DiskError::NoParts { path: path.into() });
        }
        let device = Device::open(given)?;
        let file = options.custom_flags(libc::O_DIRECT).open(path).map_err(failed)?;
        let (bytes, block_bytes) = (device.size_bytes, device.logical_block_bytes());
        Ok(Disk { file, bytes, block_bytes, kind: DiskKind::Block(device) })
    }

    fn of_character(file: File, path: &Path, part: Part, writes: bool) -> Result<Disk, DiskError> {
        let failed = |source| DiskError::Open { path: path.into(), source };
        if nvme::is_namespace(&file.metadata().map_err(failed)?) {
            return Disk::of_namespace(file, path, part, writes);
        }
        let info = chardisk::info(&file);
        let info = info.map_err(|error| DiskError::NoChardisk { path: path.into(), error })?;
        if part != Part::Whole {
            return Err(DiskError::NoParts { path: path.into() });
        }
        let (bytes, block_bytes) = (info.bytes, info.block_bytes.into());
        Ok(Disk { file, bytes, block_bytes, kind: DiskKind::Char(info) })
    }

    fn of_namespace(file: File, path: &Path, part: Part, writes: bool) -> Result<Disk, DiskError> {
        let failed = |error| DiskError::NoNamespace { path: path.into(), error };
        let namespace = nvme::identify(&file).map_err(failed)?;
        let block_bytes = namespace.block_bytes;
        let block = nvme::block_device(&file);
        let size = (namespace.bytes, block_bytes);
        let region = NvmeRegion::open((&namespace.name, part), block, size, writes)?;
        let bytes = region.bytes().map_err(failed)?;
        let queue = Queue::new(&file, &namespace, Arc::new(region)).map_err(failed)?;
        Ok(Disk { file, bytes, block_bytes, kind: DiskKind::Nvme(Box::new(queue)) })
    }

    /// Gives NVMe commands of a level their place in an order. For other devices the kernel has
    /// one.
    pub fn set_order(&mut self, order: &Arc<Order>, level: Level) {
        if let DiskKind::Nvme(queue) = &mut self.kind {
            queue.set_order(order.clone(), level);
        }
    }

    /// Lets the kernel pin memory once for all NVMe transfers to and from its start. Without the
    /// right to lock so much, it pins it for each.
    pub fn fix(&mut self, memory: &Arc<Mapping>) {
        if let DiskKind::Nvme(queue) = &mut self.kind {
            if let Ok(fixed) = queue.with_fixed(&self.file, memory) {
                **queue = fixed;
            }
        }
    }

    /// Makes all earlier writes durable.
    pub fn flush(&self) -> io::Result<()> {
        match &self.kind {
            DiskKind::Nvme(queue) => queue.flush(),
            _ => self.file.sync_all(),
        }
    }

    /// The only accessible regions; None if the whole device is.
    pub fn regions(&self) -> Option<&[Region]> {
        match &self.kind {
            DiskKind::Char(info) if info.has_regions => Some(&info.regions),
            _ => None,
        }
    }

    /// The region that contains an offset.
    pub fn region_of(&self, offset: u64) -> Option<&Region> {
        let has = |region: &&Region| (region.offset..region.end()).contains(&offset);
        self.regions()?.iter().find(has)
    }

    /// Reads from the device to the start of the memory. It reads everything, or fails.
    pub fn read(&self, offset: u64, memory: &Mapping, bytes: usize) -> io::Result<()> {
        if let DiskKind::Nvme(queue) = &self.kind {
            return queue.transfer(false, offset, memory, bytes);
        }
        self.move_all(offset, memory, bytes, |fd, at, left, offset| {
            // SAFETY: `at` has `left` bytes within the mapping.
            unsafe { libc::pread64(fd, at.cast(), left, offset) }
        })
    }

    /// Writes from the start of the memory to the device. It writes everything, or fails.
    pub fn write(&self, offset: u64, memory: &Mapping, bytes: usize) -> io::Result<()> {
        if let DiskKind::Nvme(queue) = &self.kind {
            return queue.transfer(true, offset, memory, bytes);
        }
        self.move_all(offset, memory, bytes, |fd, at, left, offset| {
            // SAFETY: as above.
            unsafe { libc::pwrite64(fd, at.cast(), left, offset) }
        })
    }

    fn move_all(
        &self,
        offset: u64,
        memory: &Mapping,
        bytes: usize,
        call: impl Fn(i32, *mut u8, usize, i64) -> isize,
    ) -> io::Result<()> {
        assert!(memory.holds(0, bytes));
        let mut done = 0;
        while done < bytes {
            let place = i64::try_from(offset + done as u64).map_err(io::Error::other)?;
            let at = memory.as_ptr().wrapping_add(done);
            match call(self.file.as_raw_fd(), at, bytes - done, place) {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                moved @ 1.. => done += moved.unsigned_abs(),
                _ => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
            }
        }
        Ok(())
    }
}
