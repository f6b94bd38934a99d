// SPDX-License-Identifier: MIT OR Apache-2.0
//! Handles file systems that write a changed block to another place. A pool reserves no space
//! there, and recording ends when other files have filled the file system. `making` and the start
//! call it.
//!
//! btrfs overwrites a file in place if the file has the attribute C (NOCOW) from the beginning. The
//! other file systems have no such attribute.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{IFlags, fstatfs, ioctl_getflags, ioctl_setflags, statfs};

use super::segment::PoolError;

const BTRFS: u64 = 0x9123_683e;
const OTHERS: [(u64, &str); 3] =
    [(0xf2f5_2010, "f2fs"), (0xca45_1a4e, "bcachefs"), (0x2fc1_2fc1, "zfs")];

/// Sets the attribute on an empty file.
pub(super) fn keep_in_place(file: &File, path: &Path) -> Result<(), PoolError> {
    if !is_btrfs(file) {
        return Ok(());
    }
    let set = ioctl_getflags(file).and_then(|flags| ioctl_setflags(file, flags | IFlags::NOCOW));
    let why = match set {
        Err(error) => error.into(),
        Ok(()) if stays_in_place(file) => return Ok(()),
        Ok(()) => io::Error::other("it has no effect"),
    };
    Err(PoolError::CopyOnWrite { path: path.into(), why })
}

fn is_btrfs(file: impl AsFd) -> bool {
    fstatfs(file).is_ok_and(|stat| stat.f_type as u64 == BTRFS)
}

fn stays_in_place(file: &File) -> bool {
    ioctl_getflags(file).is_ok_and(|flags| flags.contains(IFlags::NOCOW))
}

/// The warning at the start about a pool that reserves no space.
pub(super) fn warning<'a>(
    dir: &Path,
    mut segments: impl Iterator<Item = &'a Path>,
) -> Option<String> {
    let kind = statfs(dir).ok()?.f_type as u64;
    let dir = dir.display();
    if let Some((_, name)) = OTHERS.iter().find(|(magic, _)| *magic == kind) {
        return Some(format!(
            "{dir}: {name} writes changed blocks elsewhere, so the pool reserves no space: recording \
             stops when others fill the file system"
        ));
    }
    let is_copied =
        |path: &Path| File::open(path).is_ok_and(|file| is_btrfs(&file) && !stays_in_place(&file));
    segments.find(|path| is_copied(path)).map(|path| {
        format!(
            "{}: has no attribute C, so btrfs reserves no space for it: export the recording, remove \
             the pool and make it again",
            path.display()
        )
    })
}
