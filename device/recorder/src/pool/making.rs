// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes segments: each is written once with zeroes. `files` calls it.
//!
//! This makes later writes cheap. The blocks of a file that was only preallocated are marked
//! unwritten, and each first write to one would have to change metadata.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FallocateFlags, fallocate, statvfs};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use steadyio_core::interrupt::Interrupt;

use super::in_place;
use super::segment::{PoolError, SEGMENTS_MIN, at, open_segment};
use crate::mcap::names::{named, unused_segment};
use steadyio_core::memory::AlignedBuffer;

const FILL_BYTES: usize = 1 << 20;
/// The interval between progress messages.
const TELL_EVERY: Duration = Duration::from_secs(2);
/// The suffix of a segment that is not filled yet. It stays if making the pool is interrupted.
const UNFINISHED: &str = "new";

/// The pool that is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Making<'a> {
    pub dir: &'a Path,
    /// How many segments.
    pub count: usize,
    pub segment_bytes: u64,
    /// Whether the recording compresses blocks.
    pub compressed: bool,
    /// Whether damaged ones are overwritten instead of renamed.
    pub discard_damaged: bool,
    /// Bytes of the file system that stay free: fewer segments are made if others take space.
    pub keep_free_bytes: u64,
    /// Whether segments beyond the count are removed, the oldest first, instead of refused.
    pub shrink: bool,
}

/// Makes a directory and its missing parents.
pub fn make_directory(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir).map_err(|error| match error.kind() {
        // The path is another kind of file.
        io::ErrorKind::AlreadyExists => io::ErrorKind::NotADirectory.into(),
        _ => error,
    })
}

/// Makes segments until there are enough, and adds them to the existing ones.
pub(super) fn create_missing(
    wanted: &Making<'_>,
    paths: &mut Vec<PathBuf>,
    note: &mut dyn FnMut(String),
    stop: &Interrupt,
) -> Result<(), PoolError> {
    let &Making { dir, count, segment_bytes, .. } = wanted;
    let needed = (count - paths.len()) as u64 * segment_bytes;
    // Writing beyond the limit would kill the process by a signal.
    let allowed = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
    if needed > 0 && segment_bytes > allowed {
        return Err(PoolError::FileLimit { segment_bytes, allowed });
    }
    let free = free_bytes(dir)?;
    if needed > free && wanted.keep_free_bytes == 0 {
        return Err(PoolError::NoSpace { dir: dir.to_path_buf(), needed, free });
    }
    let mut number = 0;
    while paths.len() < count {
        let path = unused_segment(dir, number);
        number += 1;
        if paths.contains(&path) || paths.contains(&named(&path, true)) {
            continue;
        }
        if wanted.lacks_space(paths.len(), segment_bytes)? {
            note(wanted.shortage(paths.len()));
            break;
        }
        let which = format!("segment {} of {count}", paths.len() + 1);
        note(format!("making {which}, {segment_bytes} bytes"));
        let mut told = Instant::now();
        let mut progress = |percent: u64| {
            if told.elapsed() >= TELL_EVERY {
                told = Instant::now();
                note(format!("{which}: {percent} %"));
            }
        };
        create(&path, segment_bytes, &mut progress, stop)?;
        if wanted.lacks_space(paths.len(), 0)? {
            // Other files took the space while it was filled.
            fs::remove_file(&path).map_err(at(&path))?;
            note(wanted.shortage(paths.len()));
            break;
        }
        paths.push(path);
    }
    Ok(())
}

fn free_bytes(dir: &Path) -> Result<u64, PoolError> {
    let stat = statvfs(dir).map_err(|error| at(dir)(error.into()))?;
    Ok(stat.f_bavail * stat.f_frsize)
}

impl Making<'_> {
    /// Whether one more segment would leave less space free than requested. Recording needs some in
    /// any case.
    fn lacks_space(&self, segments: usize, bytes: u64) -> Result<bool, PoolError> {
        if self.keep_free_bytes == 0 || segments < SEGMENTS_MIN {
            return Ok(false);
        }
        Ok(free_bytes(self.dir)? < self.keep_free_bytes.saturating_add(bytes))
    }

    fn shortage(&self, segments: usize) -> String {
        let &Making { dir, count, keep_free_bytes, .. } = self;
        format!(
            "{}: others have taken space: recording with {segments} segments, not {count}, so that \
             {keep_free_bytes} bytes stay free",
            dir.display()
        )
    }
}

/// Makes a segment. It gets its name last, so a file with that name is complete.
fn create(
    path: &Path,
    segment_bytes: u64,
    progress: &mut dyn FnMut(u64),
    stop: &Interrupt,
) -> Result<(), PoolError> {
    let unfinished = path.with_extension(UNFINISHED);
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(&unfinished)
        .map_err(at(&unfinished))?;
    let mut fill = || -> Result<(), PoolError> {
        in_place::keep_in_place(&file, path)?;
        match fallocate(&file, FallocateFlags::empty(), 0, segment_bytes) {
            // Preallocation is optional, because all of it is written anyway.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            done => done.map_err(|error| at(path)(error.into()))?,
        }
        let direct = open_segment(&unfinished, true);
        let zeroes = AlignedBuffer::new(FILL_BYTES, false)?;
        let mut offset = 0;
        while offset < segment_bytes {
            if stop.requested() {
                return Err(PoolError::Stopped);
            }
            let bytes = usize::try_from(segment_bytes - offset).unwrap_or(FILL_BYTES);
            let zeroes = &zeroes[..bytes.min(FILL_BYTES)];
            direct.as_ref().unwrap_or(&file).write_all_at(zeroes, offset).map_err(at(path))?;
            offset += zeroes.len() as u64;
            progress(100 * offset / segment_bytes);
        }
        file.sync_all().map_err(at(path))?;
        fs::rename(&unfinished, path).map_err(at(path))
    };
    // A partly filled segment is useless.
    fill().inspect_err(|_| drop(fs::remove_file(&unfinished)))
}

/// Makes changes of the directory durable.
pub(super) fn sync_directory(dir: &Path) -> Result<(), PoolError> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(at(dir))
}
