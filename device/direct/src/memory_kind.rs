// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the kind of memory behind a file descriptor, from sysfs and /proc. `buffer` uses it to
//! explain errors.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::fs::{FileType, SeekFrom, fstat, fstatfs, major, minor, seek};

/// linux/magic.h
const HUGETLBFS_MAGIC: u64 = 0x9584_58f6;
const DMA_BUF_MAGIC: u64 = 0x444d_4142;
/// `/dev/mem`
const DEV_MEM: (u32, u32) = (1, 1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryKind {
    /// A memfd, or a file on tmpfs.
    SharedMemory,
    /// A memfd with MFD_HUGETLB, or a file on hugetlbfs.
    HugePages,
    /// A reserved region of physical memory: `/dev/daxN.M`.
    DeviceDax,
    /// A dma-buf itself, from udmabuf, a heap or a camera.
    DmaBuf,
    /// `/dev/mem`: any address.
    PhysicalAddresses,
    /// A file of a file system on a device.
    File,
    /// Another driver's device.
    OtherDevice,
}

impl MemoryKind {
    pub fn of(fd: BorrowedFd) -> io::Result<MemoryKind> {
        let stat = fstat(fd)?;
        let magic = fstatfs(fd)?.f_type as u64 & 0xffff_ffff;
        Ok(match FileType::from_raw_mode(stat.st_mode) {
            _ if magic == DMA_BUF_MAGIC => MemoryKind::DmaBuf,
            FileType::CharacterDevice => of_device(major(stat.st_rdev), minor(stat.st_rdev)),
            FileType::RegularFile if magic == HUGETLBFS_MAGIC => MemoryKind::HugePages,
            FileType::RegularFile if magic == libc::TMPFS_MAGIC as u64 => MemoryKind::SharedMemory,
            FileType::RegularFile => MemoryKind::File,
            _ => MemoryKind::OtherDevice,
        })
    }

    pub fn word(self) -> &'static str {
        match self {
            MemoryKind::SharedMemory => "shared memory (memfd, tmpfs)",
            MemoryKind::HugePages => "huge pages (hugetlb)",
            MemoryKind::DeviceDax => "a reserved region (device-dax)",
            MemoryKind::DmaBuf => "a dma-buf",
            MemoryKind::PhysicalAddresses => "physical addresses (/dev/mem)",
            MemoryKind::File => "a file on a device",
            MemoryKind::OtherDevice => "a driver's own memory",
        }
    }
}

fn of_device(major: u32, minor: u32) -> MemoryKind {
    let subsystem = fs::read_link(format!("/sys/dev/char/{major}:{minor}/subsystem"));
    let is_dax = subsystem.is_ok_and(|path| path.file_name().is_some_and(|name| name == "dax"));
    match (major, minor) {
        DEV_MEM => MemoryKind::PhysicalAddresses,
        _ if is_dax => MemoryKind::DeviceDax,
        _ => MemoryKind::OtherDevice,
    }
}

/// The size of the memory; None if the kernel does not show it.
pub fn size_bytes(fd: BorrowedFd, kind: MemoryKind) -> Option<u64> {
    let stat = fstat(fd).ok()?;
    match kind {
        MemoryKind::SharedMemory | MemoryKind::HugePages | MemoryKind::File => {
            u64::try_from(stat.st_size).ok()
        }
        MemoryKind::DmaBuf => seek(fd.as_fd(), SeekFrom::End(0)).ok(),
        MemoryKind::DeviceDax => {
            let (major, minor) = (major(stat.st_rdev), minor(stat.st_rdev));
            let size = fs::read_to_string(format!("/sys/dev/char/{major}:{minor}/size")).ok()?;
            size.trim().parse().ok()
        }
        MemoryKind::PhysicalAddresses | MemoryKind::OtherDevice => None,
    }
}

/// The name in `/proc`, for messages.
pub fn name_of(fd: BorrowedFd) -> String {
    let link = fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()));
    link.map_or_else(|_| "the file descriptor".into(), |path| path.display().to_string())
}
