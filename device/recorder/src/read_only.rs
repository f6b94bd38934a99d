// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the file system of a recording still writes.

use std::fs::File;
use std::io;

use rustix::fs::{StatVfsMountFlags, fstatvfs};

/// To be called after each sync, before what it covers counts as durable: once a file system is
/// read-only, ext4's fdatasync() flushes nothing and returns success (6.1, after an emergency
/// remount), while writes to open files still succeed.
pub fn refuse_read_only(file: &File) -> io::Result<()> {
    if fstatvfs(file)?.f_flag.contains(StatVfsMountFlags::RDONLY) {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    } else {
        Ok(())
    }
}
