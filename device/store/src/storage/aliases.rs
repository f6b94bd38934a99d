// SPDX-License-Identifier: MIT OR Apache-2.0
//! Locks the same bytes under other names: another node of a block device, and the file below a
//! loop device. `file` calls it.
//!
//! `flock` holds for one inode, so it does not see other names. These locks belong to an open file
//! and have a range (`F_OFD_SETLK`), so that two partitions in one file do not lock each other out.
//! They do not cover device mapper, which shares the device below, and another machine. There the
//! store detects other writers before it writes a record ([`crate::store::Store::flush`]).

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{OFlags, major, minor};

use super::access::{Access, OpenError, retried};

/// `linux/loop.h`
const LOOP_GET_STATUS64: libc::c_ulong = 0x4C05;
const SECTOR_BYTES: u64 = 512;
/// The kernel's limit for stacking loop devices.
pub(super) const DEPTH_MAX: usize = 8;

/// `struct loop_info64`
#[repr(C)]
struct LoopInfo {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    numbers: [u32; 4],
    names: [u8; 64 + 64 + 32],
    init: [u64; 2],
}

const _: () = assert!(size_of::<LoopInfo>() == 232);

/// A range from `start`; to the end of the file if `bytes` is 0.
#[derive(Debug, Clone, Copy)]
struct Range {
    start: u64,
    bytes: u64,
}

/// Locks the file, and other known names of the same bytes. The returned files hold the locks.
pub(super) fn lock_all(path: &Path, file: &File, access: Access) -> Result<Vec<File>, OpenError> {
    let locked = |result: io::Result<()>| {
        result.map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::ResourceBusy => {
                OpenError::Locked { path: path.into() }
            }
            _ => OpenError::Io { path: path.into(), source: error },
        })
    };
    let mut range = Range { start: 0, bytes: 0 };
    locked(lock_range(file, range, access))?;
    let mut held: Vec<File> = Vec::new();
    for _ in 0..DEPTH_MAX {
        let top = held.last().unwrap_or(file);
        let Some(disk) = BlockDisk::of(top) else { break };
        let other_node = disk.other_node(top, access);
        let below = disk.below(top, access);
        if let Some(node) = other_node {
            locked(lock_range(&node, range, access))?;
            held.push(node);
        }
        let Some((backing, opened)) = below else { break };
        let (backing_file, offset) = match (opened, access) {
            (Ok(opened), _) => opened,
            // A reader detects changes by the checksum.
            (Err(_), Access::Read) => break,
            (Err(error), _) if error.kind() == io::ErrorKind::ResourceBusy => {
                return Err(OpenError::Locked { path: path.into() });
            }
            (Err(source), _) => {
                return Err(OpenError::Backing { path: path.into(), backing, error: source });
            }
        };
        range = disk.moved(range, offset);
        locked(lock_range(&backing_file, range, access))?;
        held.push(backing_file);
    }
    Ok(held)
}

fn lock_range(file: &File, range: Range, access: Access) -> io::Result<()> {
    let kind = match access {
        Access::Read => libc::F_RDLCK,
        Access::Change => libc::F_WRLCK,
    };
    // SAFETY: all zeros are valid for this struct of numbers.
    let mut lock: libc::flock64 = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = range.start as i64;
    lock.l_len = range.bytes as i64;
    retried(|| {
        // SAFETY: the kernel reads the struct during the call.
        match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    })
}

/// A block device in sysfs.
struct BlockDisk {
    number: u64,
    /// The folder of the device or partition itself.
    sysfs: PathBuf,
}

impl BlockDisk {
    /// None if it is not a block device, or sysfs is missing.
    fn of(file: &File) -> Option<BlockDisk> {
        let metadata = file.metadata().ok().filter(|found| found.file_type().is_block_device())?;
        let number = metadata.rdev();
        let link = format!("/sys/dev/block/{}:{}", major(number), minor(number));
        Some(BlockDisk { number, sysfs: fs::canonicalize(link).ok()? })
    }

    fn number_in(&self, name: &str) -> u64 {
        let text = fs::read_to_string(self.sysfs.join(name)).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    }

    /// The node in `/dev`, if the file was opened through another.
    fn other_node(&self, file: &File, access: Access) -> Option<File> {
        let name = self.sysfs.file_name()?;
        let node = open(&Path::new("/dev").join(name), access, OFlags::empty()).ok()?;
        let (own, other) = (file.metadata().ok()?, node.metadata().ok()?);
        let is_same_device = other.file_type().is_block_device() && other.rdev() == self.number;
        (is_same_device && (own.dev(), own.ino()) != (other.dev(), other.ino())).then_some(node)
    }

    /// The file below a loop device, its name, and the offset of the device in it.
    fn below(&self, file: &File, access: Access) -> Option<(PathBuf, io::Result<(File, u64)>)> {
        let whole = match self.sysfs.join("partition").exists() {
            true => self.sysfs.parent()?,
            false => &self.sysfs,
        };
        let text = fs::read_to_string(whole.join("loop/backing_file")).ok()?;
        let backing = PathBuf::from(text.trim_end_matches('\n'));
        let opened = open_backing(file, &backing, access);
        // A deleted file cannot be opened by name any more.
        let is_deleted = text.trim_end().ends_with(" (deleted)");
        if is_deleted && opened.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::NotFound) {
            return None;
        }
        Some((backing, opened))
    }

    /// The range in the file below, where the loop device begins at `offset`.
    fn moved(&self, range: Range, offset: u64) -> Range {
        let (start, size) = (self.number_in("start"), self.number_in("size"));
        let bytes = if range.bytes > 0 { range.bytes } else { size * SECTOR_BYTES };
        Range { start: offset + start * SECTOR_BYTES + range.start, bytes }
    }
}

fn open_backing(file: &File, backing: &Path, access: Access) -> io::Result<(File, u64)> {
    // SAFETY: as in `lock_range`.
    let mut info: LoopInfo = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes as many bytes as the struct has.
    if unsafe { libc::ioctl(file.as_raw_fd(), LOOP_GET_STATUS64 as _, &raw mut info) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let is_block = fs::metadata(backing)?.file_type().is_block_device();
    // A claim holds for all nodes of a block device.
    let claim = is_block && access == Access::Change;
    let opened = open(backing, access, if claim { OFlags::EXCL } else { OFlags::empty() })?;
    let found = opened.metadata()?;
    if found.ino() != info.inode {
        return Err(io::Error::other("another file has its name"));
    }
    Ok((opened, info.offset))
}

fn open(path: &Path, access: Access, more: OFlags) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(access == Access::Change);
    options.custom_flags((OFlags::NONBLOCK | more).bits() as i32).open(path)
}
