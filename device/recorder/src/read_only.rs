// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that the file system of a recording still accepts writes. The writer thread calls it
//! after each sync.

use std::fs::File;
use std::io;

use rustix::fs::{StatVfsMountFlags, fstatvfs};

/// Fails if the file system is read-only. Call it after each sync, before records count as durable.
/// On a read-only file system, ext4's fdatasync() flushes nothing and returns success (6.1, after
/// an emergency remount), while writes to open files still succeed.
pub fn refuse_read_only(file: &File) -> io::Result<()> {
    if fstatvfs(file)?.f_flag.contains(StatVfsMountFlags::RDONLY) {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    } else {
        Ok(())
    }
}
