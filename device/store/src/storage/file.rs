// SPDX-License-Identifier: MIT OR Apache-2.0
//! A block device, a `/dev/chardiskN`, a part of an NVMe namespace (`/dev/ngXnY`) or a plain file,
//! read and written past the page cache. `steady store` and `capi` open stores with it.
//!
//! Each call is one command, or as many as the limits require. A block device gets calls that its
//! driver takes in one request, for any layout of the buffer in physical memory.
//!
//! A namespace is opened together with its block device, or that of its partition, whose exclusive
//! open and locks keep others out whichever way they come.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, OFlags, flock};
use steadyio_core::device::Device;
use steadyio_core::device_name::path_of;
use steadyio_core::memory::AlignedBuffer;
use steadyio_core::occupied::{
    HEAD_BYTES, STORE, known_users, loops_on, partitions, signature, users,
};
use steadyio_direct::chardisk;
use steadyio_direct::disk::{Disk, DiskError, DiskKind};
use steadyio_direct::nvme::region::{self, Part};
use steadyio_direct::nvme::{self, Queue};

use super::access::retried;
use super::{BLOCK_BYTES, Commands, Limits, Storage};
use super::{aliases, loops};
use crate::error::StoreError;
use crate::examine::find_superblock;

pub use super::access::{Access, OpenError};

/// The size of a call for a plain file.
const FILE_COMMAND_BYTES: u64 = 1 << 20;

/// An open device or file.
#[derive(Debug)]
pub struct FileStorage {
    /// The device or file; of a namespace the block device.
    file: File,
    /// The way to a namespace.
    namespace: Option<Disk>,
    limits: Limits,
    /// The longest call.
    call_bytes: u64,
    commands: Commands,
    /// Open files that hold locks on other names of the same bytes.
    _aliases: Vec<File>,
}

impl FileStorage {
    /// Opens an existing device or file, and keeps others out.
    pub fn open(given: &Path, access: Access) -> Result<FileStorage, OpenError> {
        let (device, part) = region::split(given).map_err(DiskError::from)?;
        let path = &*path_of(&device)?;
        let at = |source| OpenError::Io { path: path.into(), source };
        let metadata = std::fs::metadata(path).map_err(at)?;
        let kind = metadata.file_type();
        if access == Access::Change && !kind.is_char_device() {
            let users = loops::users_above(path, &metadata);
            if !users.is_empty() {
                return Err(OpenError::InUse { path: path.into(), by: users.join("; ") });
            }
        }
        let is_namespace = kind.is_char_device() && nvme::is_namespace(&metadata);
        if part != Part::Whole && !is_namespace {
            return Err(DiskError::NoParts { path: path.into() }.into());
        }
        let mut opened = if kind.is_block_device() {
            let file = open_device(path, access)?;
            let device = Device::open(path)?;
            if access == Access::Change && device.is_read_only() {
                return Err(OpenError::ReadOnly { path: path.into() });
            }
            FileStorage::of(file, limits_of(&device))
        } else if is_namespace {
            open_namespace(given, access)?
        } else if kind.is_char_device() && chardisk::may_be(&metadata) {
            open_chardisk(path, access)?
        } else if kind.is_file() {
            let file = open_direct(path, access, OFlags::empty()).map_err(at)?;
            FileStorage::of(file, limits_of_file(&metadata))
        } else {
            return Err(OpenError::Kind { path: path.into() });
        };
        let block_bytes = opened.limits.block_bytes;
        if !(512..=BLOCK_BYTES).contains(&block_bytes) || BLOCK_BYTES % block_bytes != 0 {
            return Err(OpenError::Blocks { path: path.into(), block_bytes });
        }
        lock(&opened.file, access).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => OpenError::Locked { path: path.into() },
            _ => at(error),
        })?;
        if is_namespace || !kind.is_char_device() {
            opened._aliases = aliases::lock_all(path, &opened.file, access)?;
        }
        if !is_namespace {
            opened.limits.size_bytes = opened.file.seek(SeekFrom::End(0)).map_err(at)?;
        }
        Ok(opened)
    }

    /// Fails if the device has known contents, or the file any. A store whose superblock is damaged
    /// counts, too.
    pub fn check_empty(&mut self, path: &Path) -> Result<(), OpenError> {
        let held = match self.held(path)? {
            None => self.has_damaged_store().then(|| format!("{STORE} that is damaged")),
            held => held,
        };
        match held {
            Some(what) => Err(OpenError::Holds { path: path.into(), what }),
            None => Ok(()),
        }
    }

    fn has_damaged_store(&mut self) -> bool {
        !matches!(find_superblock(self), Err(StoreError::NoStore))
    }

    /// The known format at the start, other than a store.
    pub fn foreign_format(&mut self, path: &Path) -> Result<Option<String>, OpenError> {
        if let Some(partitions) = self.partitions(path) {
            return Ok(Some(partitions));
        }
        // If the start cannot be read, its contents are unknown.
        let head = self.head().unwrap_or_default();
        Ok(signature(&head).filter(|what| *what != STORE).map(str::to_string))
    }

    fn held(&mut self, path: &Path) -> Result<Option<String>, OpenError> {
        if let Some(partitions) = self.partitions(path) {
            return Ok(Some(partitions));
        }
        let at = |source| OpenError::Io { path: path.into(), source };
        let head = self.head().map_err(at)?;
        if head.is_empty() {
            return Ok((self.limits.size_bytes > 0).then(|| "other data".into()));
        }
        if let Some(what) = signature(&head) {
            return Ok(Some(what.to_string()));
        }
        // A device may contain anything, but a file with a name was made on purpose.
        let is_file = self.file.metadata().map_err(at)?.is_file();
        let has_data = is_file && self.has_data().map_err(at)?;
        Ok(has_data.then(|| "other data".into()))
    }

    /// Whether a byte of a file is not zero. Its holes are not read.
    fn has_data(&mut self) -> io::Result<bool> {
        let end = self.limits.size_bytes - self.limits.size_bytes % BLOCK_BYTES;
        let mut piece =
            AlignedBuffer::new(FILE_COMMAND_BYTES as usize, false).map_err(io::Error::other)?;
        let mut at = 0;
        while at < end {
            match rustix::fs::seek(&self.file, rustix::fs::SeekFrom::Data(at)) {
                Ok(data) => at = data - data % BLOCK_BYTES,
                Err(rustix::io::Errno::NXIO) => return Ok(false),
                // A file system that knows no holes.
                Err(_) => {}
            }
            let bytes = end.saturating_sub(at).min(FILE_COMMAND_BYTES) as usize;
            self.read_at(&mut piece[..bytes], at)?;
            if piece[..bytes].iter().any(|&byte| byte != 0) {
                return Ok(true);
            }
            at += bytes as u64;
        }
        Ok(false)
    }

    /// The range with all signatures, in whole blocks.
    fn head(&mut self) -> io::Result<Vec<u8>> {
        let looked_at = HEAD_BYTES.next_multiple_of(BLOCK_BYTES).min(self.limits.size_bytes);
        let bytes = (looked_at - looked_at % BLOCK_BYTES) as usize;
        if bytes == 0 {
            return Ok(Vec::new());
        }
        let mut head = AlignedBuffer::new(bytes, false).map_err(io::Error::other)?;
        self.read_at(&mut head, 0)?;
        Ok(head.to_vec())
    }

    fn of(file: File, limits: Limits) -> FileStorage {
        let call_bytes = limits.command_bytes;
        FileStorage {
            file,
            namespace: None,
            limits,
            call_bytes,
            commands: Commands::default(),
            _aliases: Vec::new(),
        }
    }

    fn queue(&self) -> Option<&Queue> {
        match self.namespace.as_ref()?.kind {
            DiskKind::Nvme(ref queue) => Some(queue),
            _ => None,
        }
    }

    fn partitions(&self, path: &Path) -> Option<String> {
        let of_namespace = self.queue().and_then(|queue| queue.region().device().cloned());
        let partitions = partitions(&of_namespace.or_else(|| Device::open(path).ok())?);
        (!partitions.is_empty()).then(|| format!("partitions ({})", partitions.join(", ")))
    }

    /// The number of commands for this number of bytes.
    fn count(&self, bytes: usize) -> u64 {
        (bytes as u64).div_ceil(self.limits.command_bytes)
    }
}

fn open_direct(path: &Path, access: Access, more: OFlags) -> io::Result<File> {
    let open = |flags: OFlags| {
        let mut options = OpenOptions::new();
        options.read(true).write(access == Access::Change);
        options.custom_flags((flags | more).bits() as i32).open(path)
    };
    match open(OFlags::DIRECT) {
        // tmpfs before 6.6.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => open(OFlags::empty()),
        opened => opened,
    }
}

/// Opens the device, exclusively in order to change it. That fails if it is mounted, and prevents
/// mounts.
fn open_device(path: &Path, access: Access) -> Result<File, OpenError> {
    let exclusive = if access == Access::Change { OFlags::EXCL } else { OFlags::empty() };
    let open = || open_direct(path, access, exclusive);
    let busy = |error: &io::Error| error.kind() == io::ErrorKind::ResourceBusy;
    let opened = match open() {
        // Another store's program ends soon; a mount stays.
        Err(error)
            if busy(&error) && Device::open(path).is_ok_and(|d| known_users(&d).is_empty()) =>
        {
            retried(open)
        }
        opened => opened,
    };
    opened.map_err(|source| {
        let path = path.to_path_buf();
        match Device::open(&path) {
            Ok(device) if busy(&source) => OpenError::InUse { path, by: users(&device) },
            _ => OpenError::Io { path, source },
        }
    })
}

fn open_namespace(given: &Path, access: Access) -> Result<FileStorage, OpenError> {
    let path = || given.to_path_buf();
    let disk = Disk::open(given, access == Access::Change)?;
    let DiskKind::Nvme(queue) = &disk.kind else { return Err(OpenError::Kind { path: path() }) };
    let Some(device) = queue.region().device() else {
        return Err(OpenError::NoBlockDevice { path: path() });
    };
    let file = open_device(&device.node, access)?;
    if access == Access::Change {
        let loops = loops_on(device);
        if !loops.is_empty() {
            return Err(OpenError::InUse {
                path: path(),
                by: format!("below {}", loops.join(", ")),
            });
        }
        let is_read_only = queue.region().is_read_only();
        if is_read_only.map_err(|source| OpenError::Io { path: path(), source })? {
            return Err(OpenError::ReadOnly { path: path() });
        }
    }
    let command_bytes = whole_blocks(queue.namespace().command_bytes_max);
    let limits = Limits {
        size_bytes: disk.bytes,
        block_bytes: disk.block_bytes,
        command_bytes,
        erase_bytes: 0,
    };
    let call_bytes = command_bytes * u64::from(nvme::DEPTH);
    let storage = FileStorage::of(file, limits);
    Ok(FileStorage { namespace: Some(disk), call_bytes, ..storage })
}

fn open_chardisk(path: &Path, access: Access) -> Result<FileStorage, OpenError> {
    let at = |source| OpenError::Io { path: path.into(), source };
    let file = open_alone(path, access).map_err(|error| match error.kind() {
        io::ErrorKind::ResourceBusy => OpenError::Locked { path: path.into() },
        _ => at(error),
    })?;
    let info = chardisk::info(&file).map_err(|error| match error.raw_os_error() {
        Some(libc::ENOTTY | libc::EINVAL) => OpenError::Kind { path: path.into() },
        _ => at(error),
    })?;
    if info.has_regions {
        return Err(OpenError::Regions { path: path.into() });
    }
    let shortest = info.command_bytes_max.min(info.bg_command_bytes_max);
    let command_bytes = whole_blocks(shortest.into());
    let limits = Limits {
        size_bytes: info.bytes,
        block_bytes: info.block_bytes.into(),
        command_bytes,
        erase_bytes: info.erase_bytes.into(),
    };
    let mut storage = FileStorage::of(file, limits);
    // The module splits a call into commands, and fewer calls cost less.
    storage.call_bytes = u64::from(info.chunk_bytes).max(command_bytes);
    storage.call_bytes -= storage.call_bytes % command_bytes;
    Ok(storage)
}

/// Opens a character device. The driver keeps others out, also through another node, which is a
/// different file for [`lock`].
fn open_alone(path: &Path, access: Access) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(access == Access::Change);
    // Opening another driver's device may block, for example a modem.
    let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    if access == Access::Change {
        flags |= OFlags::EXCL;
    }
    options.custom_flags(flags.bits() as i32);
    retried(|| options.open(path))
}

fn whole_blocks(bytes: u64) -> u64 {
    (bytes - bytes % BLOCK_BYTES).max(BLOCK_BYTES)
}

fn limits_of(device: &Device) -> Limits {
    Limits {
        size_bytes: device.size_bytes,
        block_bytes: device.logical_block_bytes(),
        command_bytes: whole_blocks(device.request_bytes_max()),
        erase_bytes: device.erase_bytes(),
    }
}

fn limits_of_file(metadata: &Metadata) -> Limits {
    Limits {
        size_bytes: metadata.len(),
        block_bytes: BLOCK_BYTES,
        command_bytes: FILE_COMMAND_BYTES,
        erase_bytes: 0,
    }
}

fn lock(file: &File, access: Access) -> io::Result<()> {
    let operation = match access {
        Access::Read => FlockOperation::NonBlockingLockShared,
        Access::Change => FlockOperation::NonBlockingLockExclusive,
    };
    retried(|| Ok(flock(file, operation)?))
}

impl Storage for FileStorage {
    fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let mut at = offset;
        for piece in buffer.chunks_mut(self.call_bytes as usize) {
            self.commands.reads += self.count(piece.len());
            match self.queue() {
                Some(queue) => queue.read_into(at, piece)?,
                None => self.file.read_exact_at(piece, at)?,
            }
            at += piece.len() as u64;
        }
        Ok(())
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut at = offset;
        for piece in bytes.chunks(self.call_bytes as usize) {
            self.commands.writes += self.count(piece.len());
            match self.queue() {
                Some(queue) => queue.write_from(at, piece)?,
                None => self.file.write_all_at(piece, at)?,
            }
            at += piece.len() as u64;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.commands.flushes += 1;
        match self.queue() {
            Some(queue) => queue.flush(),
            None => self.file.sync_data(),
        }
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn commands(&self) -> Commands {
        self.commands
    }
}
