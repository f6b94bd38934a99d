// SPDX-License-Identifier: MIT OR Apache-2.0
//! A buffer in memory that another program has made (a memfd, huge pages, a reserved region), and
//! the kinds of I/O that the kernel allows with it. `capi` and `steady direct buffer` call it.
//!
//! No physical address is ever used: the memory is mapped, and the kernel refuses to pin memory to
//! which a device may not write. The rules differ between kinds of memory and between releases, so
//! each way is tried, with a read of one block into the memory; docs/reference/buffers.md has the
//! rules.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use io_uring::opcode;
use io_uring::types::Fd;
use serde::Serialize;
use steadyio_core::device_name::path_of;

use crate::chardisk::{self, Registered};
use crate::mapping::Mapping;
use crate::memory_kind::{MemoryKind, name_of, size_bytes};
use crate::timing::{complete, ring_with};

/// The length of a trial read: a multiple of every device's block.
const BLOCK: usize = 4096;
/// The default directory for a file to read from.
pub const SCRATCH: &str = "/var/tmp";

/// The file descriptor cannot be used for a buffer.
#[derive(Debug, thiserror::Error)]
pub enum BufferError {
    #[error("bytes = {bytes}: must be a multiple of {BLOCK}, greater than 0")]
    Length { bytes: u64 },
    #[error(
        "bytes = {bytes}: {name} has only {size} bytes (an access past its end kills the program)"
    )]
    TooLong { bytes: u64, name: String, size: u64 },
    #[error("{name}, {}, cannot be mapped: {error}: {}", kind.word(), why_not_mapped(*kind, error))]
    Map { name: String, kind: MemoryKind, error: io::Error },
    #[error("{name}: not an open file: {error}")]
    NoFile { name: String, error: io::Error },
    /// The target of the trial read failed.
    #[error("{}: {what}: {error}", path.display())]
    Target { path: PathBuf, what: &'static str, error: io::Error },
}

/// A way of doing I/O with the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Use {
    /// Reads and writes of files and block devices that are open with O_DIRECT, and of
    /// /dev/chardiskN. The kernel pins the memory for each call.
    Direct,
    /// Registered with an io_uring, pinned once; for files and block devices.
    IoUringFixed,
    /// Registered with /dev/chardiskN, pinned once.
    Chardisk,
}

/// Whether a way works, and the reason if not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    #[serde(rename = "use")]
    pub way: Use,
    pub works: bool,
    /// The kernel's error number.
    pub errno: Option<i32>,
    pub reason: String,
}

/// Mapped memory, and the kinds of I/O that the kernel allows with it.
#[derive(Debug)]
pub struct Buffer {
    pub mapping: Mapping,
    pub kind: MemoryKind,
    pub verdicts: Vec<Verdict>,
}

impl Buffer {
    /// Maps the first `bytes` of a file, and tries each way. `target` is the later source or
    /// destination of data: a directory on a file system, a block device, or /dev/chardiskN. Each
    /// way only reads one block of it. Meanwhile the first and the last block of the memory change,
    /// and are restored. No other thread may write to them then.
    pub fn from_fd(fd: BorrowedFd, bytes: u64, target: &Path) -> Result<Buffer, BufferError> {
        let name = name_of(fd);
        let kind = MemoryKind::of(fd)
            .map_err(|error| BufferError::NoFile { name: name.clone(), error })?;
        let length = usize::try_from(bytes).ok();
        let length = length.filter(|&length| length >= BLOCK && length % BLOCK == 0);
        let length = length.ok_or(BufferError::Length { bytes })?;
        if kind == MemoryKind::PhysicalAddresses {
            // Trying would write to them.
            let error = io::ErrorKind::Unsupported.into();
            return Err(BufferError::Map { name, kind, error });
        }
        if let Some(size) = size_bytes(fd, kind).filter(|&size| size < bytes) {
            return Err(BufferError::TooLong { bytes, name, size });
        }
        let target = Target::open(target)?;
        let mapping =
            Mapping::of(fd, length).map_err(|error| BufferError::Map { name, kind, error })?;
        let registered = match target.is_chardisk {
            true => verdict(Use::Chardisk, kind, target.try_chardisk(&mapping)),
            false => verdict(Use::IoUringFixed, kind, target.try_fixed(&mapping)),
        };
        let direct = verdict(Use::Direct, kind, target.try_direct(&mapping));
        Ok(Buffer { mapping, kind, verdicts: vec![direct, registered] })
    }

    /// The result of a way; None if it was not tried, because there was no such target.
    pub fn verdict(&self, way: Use) -> Option<&Verdict> {
        self.verdicts.iter().find(|verdict| verdict.way == way)
    }
}

/// The target of the trial reads.
struct Target {
    /// A file on a device, with O_DIRECT; or /dev/chardiskN.
    file: File,
    /// The offset of a readable block.
    offset: u64,
    is_chardisk: bool,
}

impl Target {
    fn open(path: &Path) -> Result<Target, BufferError> {
        let failed = |what| move |error| BufferError::Target { path: path.into(), what, error };
        let node = path_of(path).map_err(io::Error::other).map_err(failed("not a target"))?;
        let meta = std::fs::metadata(&node).map_err(failed("not a target"))?;
        let kind = meta.file_type();
        if kind.is_char_device() {
            let no_card = failed("not a /dev/chardiskN");
            if !chardisk::may_be(&meta) {
                return Err(no_card(chardisk::not_one()));
            }
            let file = File::open(&node).map_err(failed("cannot be opened"))?;
            let info = chardisk::info(&file).map_err(no_card)?;
            let offset = info.regions.first().map_or(0, |region| region.offset);
            return Ok(Target { file, offset, is_chardisk: true });
        }
        let file = if kind.is_dir() {
            scratch(&node).map_err(failed("no file with O_DIRECT can be made there"))?
        } else {
            let mut options = OpenOptions::new();
            let opened = options.read(true).custom_flags(libc::O_DIRECT).open(&node);
            opened.map_err(failed("cannot be read with O_DIRECT"))?
        };
        Ok(Target { file, offset: 0, is_chardisk: false })
    }

    fn try_direct(&self, mapping: &Mapping) -> io::Result<()> {
        each_end(mapping, |offset| {
            let at = mapping.as_ptr().wrapping_add(offset).cast();
            // SAFETY: a block of the mapping, from `each_end`.
            match unsafe { libc::pread64(self.file.as_raw_fd(), at, BLOCK, self.offset as i64) } {
                0.. => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        })
    }

    fn try_fixed(&self, mapping: &Mapping) -> io::Result<()> {
        let mut ring = ring_with(mapping)?;
        each_end(mapping, |offset| {
            let at = mapping.as_ptr().wrapping_add(offset);
            let fd = Fd(self.file.as_raw_fd());
            let entry = opcode::ReadFixed::new(fd, at, BLOCK as u32, 0).build();
            complete(&mut ring, entry).map(drop)
        })
    }

    fn try_chardisk(&self, mapping: &Mapping) -> io::Result<()> {
        let registered = Registered::new(&self.file, mapping)?;
        let mut kept = [0; BLOCK];
        mapping.copy_out(0, &mut kept);
        let read = registered.transfer(false, self.offset, BLOCK);
        mapping.copy_in(0, &kept);
        read.map(drop)
    }
}

/// Calls a function for the first and the last block, and restores their contents.
fn each_end(mapping: &Mapping, call: impl FnMut(usize) -> io::Result<()>) -> io::Result<()> {
    let last = mapping.bytes() - BLOCK;
    let ends = if last == 0 { vec![0] } else { vec![0, last] };
    let mut kept = vec![[0; BLOCK]; ends.len()];
    for (offset, kept) in ends.iter().zip(&mut kept) {
        mapping.copy_out(*offset, kept);
    }
    let outcome = ends.iter().copied().try_for_each(call);
    for (offset, kept) in ends.iter().zip(&kept) {
        mapping.copy_in(*offset, kept);
    }
    outcome
}

/// An unnamed file with one block that is on the device.
fn scratch(dir: &Path) -> io::Result<File> {
    let flags = libc::O_DIRECT | libc::O_TMPFILE;
    let mut file =
        OpenOptions::new().read(true).write(true).custom_flags(flags).mode(0o600).open(dir)?;
    if rustix::fs::fstatfs(&file)?.f_type as u64 == libc::TMPFS_MAGIC as u64 {
        // tmpfs accepts O_DIRECT since Linux 6.6, but copies all the same, so the trial would prove
        // nothing.
        return Err(io::Error::other("tmpfs has no device; name a directory on one"));
    }
    let block = Mapping::anonymous(BLOCK)?;
    // SAFETY: the block is mapped, and only this function uses it.
    file.write_all(unsafe { std::slice::from_raw_parts(block.as_ptr(), BLOCK) })?;
    file.sync_all()?;
    Ok(file)
}

fn verdict(way: Use, kind: MemoryKind, tried: io::Result<()>) -> Verdict {
    match tried {
        Ok(()) => Verdict { way, works: true, errno: None, reason: String::new() },
        Err(error) => Verdict {
            way,
            works: false,
            errno: error.raw_os_error(),
            reason: format!("{error}: {}", rule(way, kind, error.raw_os_error())),
        },
    }
}

/// The kernel's rule behind an error; see docs/reference/buffers.md.
fn rule(way: Use, kind: MemoryKind, errno: Option<i32>) -> &'static str {
    match (errno, way, kind) {
        (Some(libc::EFAULT), _, MemoryKind::DmaBuf) => {
            "the exporter maps it without pages that can be pinned (VM_PFNMAP): map the memfd below a \
             udmabuf instead, or copy"
        }
        (Some(libc::EFAULT), Use::IoUringFixed | Use::Chardisk, MemoryKind::File) => {
            "a file's pages are not pinned for long, because its file system must be able to write \
             them back"
        }
        (Some(libc::EFAULT), ..) => {
            "the memory has no pages that can be pinned (VM_IO, VM_PFNMAP), or is not mapped there"
        }
        (Some(libc::EOPNOTSUPP), Use::IoUringFixed, _) => {
            "this kernel's io_uring registers anonymous memory, shared memory and huge pages only \
             (before Linux 6.5); O_DIRECT without registration may work"
        }
        (Some(libc::EOPNOTSUPP), Use::Chardisk, _) => "memory that a device may not write to",
        (Some(libc::ENOMEM), Use::IoUringFixed | Use::Chardisk, _) => {
            "registered memory counts as locked: raise the limit (ulimit -l, LimitMEMLOCK= of \
             systemd), or give CAP_IPC_LOCK"
        }
        (Some(libc::EPERM | libc::ENOSYS), Use::IoUringFixed, _) => {
            "io_uring is not allowed here (kernel.io_uring_disabled, seccomp), or not built"
        }
        (Some(libc::EINVAL), Use::Chardisk, _) => {
            "longer than one registered buffer may be, or not aligned (steady direct info)"
        }
        _ => "the reason is unknown",
    }
}

fn why_not_mapped(kind: MemoryKind, error: &io::Error) -> &'static str {
    match (error.raw_os_error(), kind) {
        (Some(libc::EACCES), _) => "open it for reading and writing",
        (_, MemoryKind::PhysicalAddresses) => {
            "physical addresses are not accepted: declare a reserved region, and map it as \
             device-dax (docs/reference/buffers.md)"
        }
        (Some(libc::EINVAL), MemoryKind::DeviceDax | MemoryKind::HugePages) => {
            "its length must be a multiple of the region's alignment, or of the huge page"
        }
        (Some(libc::ENOMEM), MemoryKind::HugePages) => {
            "too few free huge pages (raise vm.nr_hugepages)"
        }
        (Some(libc::EPERM), _) => "it is sealed against writing (F_SEAL_WRITE), or needs privilege",
        (Some(libc::ENODEV), _) => "such a file cannot be mapped",
        _ => "the kernel gives no more reason",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command prints an error and then its sources, so the cause would be there twice.
    #[test]
    fn an_error_that_tells_its_cause_has_no_source() {
        let error =
            BufferError::NoFile { name: "fd 7".into(), error: io::ErrorKind::NotFound.into() };
        assert!(std::error::Error::source(&error).is_none(), "{error}");
    }

    #[test]
    fn errors_are_told_by_the_rule_behind_them() {
        let says = |way, kind, errno, word: &str| {
            let told = rule(way, kind, Some(errno));
            assert!(told.contains(word), "{told}");
        };
        says(Use::Direct, MemoryKind::DmaBuf, libc::EFAULT, "memfd below a udmabuf");
        says(Use::IoUringFixed, MemoryKind::DeviceDax, libc::EOPNOTSUPP, "before Linux 6.5");
        says(Use::IoUringFixed, MemoryKind::File, libc::EFAULT, "write");
        says(Use::IoUringFixed, MemoryKind::SharedMemory, libc::ENOMEM, "ulimit -l");
        says(Use::IoUringFixed, MemoryKind::SharedMemory, libc::EPERM, "io_uring_disabled");
        says(Use::Direct, MemoryKind::OtherDevice, libc::EFAULT, "VM_IO");
    }
}
