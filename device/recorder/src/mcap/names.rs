// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of the segments of a pool: `segment-NNNNN.mcap` if the segment has records, else
//! `segment-NNNNN.unused`. A program that opens all `*.mcap` files of a directory therefore finds
//! no segment without records, which no MCAP reader could read. The pool and the recovery call it.
//!
//! A segment gets its name when a recording begins or ends, and its contents decide. After a power
//! cut either name is possible; the next start or recovery corrects it.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::recover::Examined;

const PREFIX: &str = "segment-";
const RECORDED: &str = "mcap";
const UNUSED: &str = "unused";
/// Suffix of an unreadable segment's name, followed by a number.
pub const DAMAGED: &str = ".damaged";

/// The path of the segment with this number, without records.
pub fn unused_segment(dir: &Path, number: usize) -> PathBuf {
    dir.join(format!("{PREFIX}{number:05}.{UNUSED}"))
}

/// Whether this is the name of a segment of the pool.
pub fn is_segment(name: &OsStr) -> bool {
    let path = Path::new(name);
    let extension = path.extension().and_then(OsStr::to_str);
    name.to_string_lossy().starts_with(PREFIX) && matches!(extension, Some(RECORDED | UNUSED))
}

/// Whether this is the name of a segment that was renamed as damaged.
pub fn is_damaged_segment(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with(PREFIX) && name.contains(DAMAGED)
}

/// Whether the name says that the segment is unused.
pub fn is_unused(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == UNUSED)
}

/// The name of the same segment with or without records.
pub fn named(path: &Path, recorded: bool) -> PathBuf {
    path.with_extension(if recorded { RECORDED } else { UNUSED })
}

/// Renames. It fails if the new name exists.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // The file system does not support the flag; the directory is locked.
        Err(Errno::INVAL | Errno::NOSYS) if !to.exists() => fs::rename(from, to),
        done => Ok(done?),
    }
}

/// Renames a segment to fit its contents, and returns the path. Other files keep their names. So
/// does a segment whose new name is taken, and an unused one on read-only storage.
pub(super) fn settle(path: &Path, found: &Examined) -> io::Result<PathBuf> {
    let recorded = found.holds_data();
    if !path.file_name().is_some_and(is_segment) || recorded != is_unused(path) {
        return Ok(path.to_path_buf());
    }
    let to = named(path, recorded);
    match rename(path, &to) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(path.to_path_buf()),
        Err(error) if !recorded && error.kind() == io::ErrorKind::ReadOnlyFilesystem => {
            Ok(path.to_path_buf())
        }
        renamed => renamed.map(|()| to),
    }
}
