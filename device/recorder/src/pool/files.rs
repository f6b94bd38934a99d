// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files of the pool: made once, written once, then overwritten, the oldest first.
//!
//! Writing them once is what makes later writes cheap: the blocks of a file that was only
//! preallocated are marked unwritten, and each first write to one would have to change metadata.
//! While a recording runs nothing here creates, extends, truncates, renames or removes a file.
//!
//! A segment that cannot be read, because head or definitions and their copy are damaged, must not
//! keep a recorder from starting, and an expert may still extract data from it: it is renamed
//! unchanged, and a new segment replaces it if there is room.
//!
//! Nothing is recorded in a segment that was just made, so it is an MCAP file without messages.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate, statvfs};
use rustix::io::Errno;
use steadyio_core::interrupt::Interrupt;

use crate::mcap::files::{
    DirectoryLock, FilesError, NO_DEFINITIONS, Recovered, lock_directory, recover_file,
};
use crate::mcap::layout::HEAD_BYTES;
use crate::mcap::private::{UNUSED_TAIL_BYTES, put_unused_head, put_unused_tail};
use crate::mcap::recover::{Examined, State};
use crate::memory::{AlignedBuffer, MemoryError};

const FILL_BYTES: usize = 1 << 20;
const PREFIX: &str = "segment-";
const SUFFIX: &str = ".mcap";
/// A segment that is not filled yet; left over if making the pool was interrupted.
const UNFINISHED: &str = ".new";
/// Suffix of a damaged segment that was renamed.
const DAMAGED: &str = ".damaged";
/// A recording needs at least this many segments.
const SEGMENTS_MIN: usize = 2;

/// The pool cannot be created or used.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// File or directory.
    #[error("{}: {why}", path.display())]
    Io { path: PathBuf, why: io::Error },
    /// Another recorder uses the directory, or an earlier segment cannot be completed.
    #[error(transparent)]
    Recover(#[from] FilesError),
    /// Made with another configuration.
    #[error(
        "{} has {found} bytes, but segments must have {wanted}: record with --segment-size \
         {found}, or into another directory, or remove the old segments", path.display()
    )]
    OtherSize { path: PathBuf, found: u64, wanted: u64 },
    /// Made with another configuration.
    #[error(
        "{} holds {found} segments, but {wanted} are configured: record with --segments {found}, \
         or into another directory, or remove the old segments", dir.display()
    )]
    TooMany {
        dir: PathBuf,
        found: usize,
        /// How many there should be.
        wanted: usize,
    },
    /// Found before anything was created.
    #[error(
        "{}: the segments need {needed} bytes more, but only {free} are free: keep fewer or \
         smaller segments", dir.display()
    )]
    NoSpace {
        dir: PathBuf,
        /// Missing segments.
        needed: u64,
        /// Free space.
        free: u64,
    },
    /// On a slow device the segments take minutes.
    #[error(
        "stopped while the segments were made; nothing was recorded, and those that are whole are \
         used next time"
    )]
    Stopped,
    /// No buffer for filling.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> PoolError {
    let path = path.to_path_buf();
    move |why| PoolError::Io { path, why }
}

#[derive(Debug)]
struct Segment {
    path: PathBuf,
    /// Of its last life; None if it never had one, or nothing was recorded in it.
    sequence: Option<u64>,
    /// It cannot be written.
    bad: bool,
}

/// Whether a file of the pool is named so.
pub fn is_segment(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with(PREFIX) && name.ends_with(SUFFIX)
}

/// Whether a segment was renamed as damaged.
pub fn is_damaged_segment(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with(PREFIX) && name.contains(DAMAGED)
}

/// The pool that is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Making<'a> {
    pub dir: &'a Path,
    /// How many segments.
    pub count: usize,
    pub segment_bytes: u64,
    /// Whether damaged ones are overwritten instead of renamed.
    pub discard_damaged: bool,
}

/// The segments of one directory, locked for one recorder.
#[derive(Debug)]
pub struct Pool {
    segments: Vec<Segment>,
    sequence: u64,
    direct: bool,
    _lock: DirectoryLock,
}

impl Pool {
    /// Opens the pool in a directory, completes truncated segments, and makes missing ones, unless
    /// it is told to stop. `note` reports both.
    pub fn open(
        wanted: &Making<'_>,
        note: &mut dyn FnMut(String),
        stop: &Interrupt,
    ) -> Result<Pool, PoolError> {
        let &Making { dir, count, segment_bytes, discard_damaged } = wanted;
        fs::create_dir_all(dir).map_err(at(dir))?;
        let lock = lock_directory(dir)?;
        let (mut paths, mut set_aside) = existing(dir, segment_bytes)?;
        if paths.len() > count {
            let (found, wanted) = (paths.len(), count);
            return Err(PoolError::TooMany { dir: dir.to_path_buf(), found, wanted });
        }
        let mut segments = Vec::with_capacity(count);
        let mut sequence = 0;
        for path in &paths {
            let recovered = recover_file(path, false);
            let identity = recovered.as_ref().ok().and_then(|recovered| recovered.found.identity());
            sequence = sequence.max(identity.map_or(0, |identity| identity.sequence));
            match segment(path, recovered, discard_damaged, note)? {
                Some(segment) => segments.push(segment),
                None => set_aside += 1,
            }
        }
        paths.retain(|path| path.exists());
        let mut make = |path: &Path, number| {
            note(format!("making segment {number} of {count}, {segment_bytes} bytes"));
            create(path, segment_bytes, stop)
        };
        match create_missing(dir, &mut paths, count, segment_bytes, &mut make) {
            Err(error @ PoolError::NoSpace { .. })
                if set_aside > 0 && paths.len() >= SEGMENTS_MIN =>
            {
                let left = paths.len();
                note(format!("{error}; recording with {left} segments: move *{DAMAGED} elsewhere"));
            }
            made => made?,
        }
        let made = paths.split_off(segments.len());
        segments.extend(made.into_iter().map(|path| Segment { path, sequence: None, bad: false }));
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(at(dir))?;
        let direct = open_segment(&segments[0].path, true).is_ok();
        Ok(Pool { segments, sequence, direct, _lock: lock })
    }

    /// Whether the file system takes direct I/O; if not, the page cache is used.
    pub fn is_direct(&self) -> bool {
        self.direct
    }

    #[cfg(test)]
    pub fn through_page_cache(self) -> Pool {
        Pool { direct: false, ..self }
    }

    /// How many segments.
    pub fn count(&self) -> usize {
        self.segments.len()
    }

    /// Whether the next life costs nothing: there is a segment without a record.
    pub fn has_empty(&self) -> bool {
        self.oldest().is_some_and(|oldest| self.segments[oldest].sequence.is_none())
    }

    fn oldest(&self) -> Option<usize> {
        let good = (0..self.segments.len()).filter(|&i| !self.segments[i].bad);
        good.min_by_key(|&i| self.segments[i].sequence)
    }

    /// Opens the segment that was recorded longest ago, or never, for its next life, and returns
    /// it with the sequence number of that life.
    pub fn open_oldest(&mut self) -> Result<(File, u64), PoolError> {
        // One is always good: see `give_up`.
        let oldest = self.oldest().unwrap_or(0);
        let segment = &mut self.segments[oldest];
        let file = open_segment(&segment.path, self.direct).map_err(at(&segment.path))?;
        self.sequence += 1;
        segment.sequence = Some(self.sequence);
        Ok((file, self.sequence))
    }

    /// Keeps the segment of this life from having another, unless it is the last good one.
    pub fn give_up(&mut self, sequence: u64) -> bool {
        let others = |segment: &&Segment| !segment.bad && segment.sequence != Some(sequence);
        let another = self.segments.iter().any(|segment| others(&segment));
        if let Some(segment) = self.of(sequence).filter(|_| another) {
            segment.bad = true;
        }
        another
    }

    /// Nothing came into the segment of this life: it is the next to be used.
    pub fn stays_empty(&mut self, sequence: u64) {
        if let Some(segment) = self.of(sequence) {
            segment.sequence = None;
        }
    }

    fn of(&mut self, sequence: u64) -> Option<&mut Segment> {
        self.segments.iter_mut().find(|segment| segment.sequence == Some(sequence))
    }

    /// Name of the segment of a life, for messages.
    pub fn name(&self, sequence: u64) -> String {
        let of = self.segments.iter().find(|segment| segment.sequence == Some(sequence));
        let name = of.and_then(|segment| segment.path.file_name());
        name.map_or_else(|| "a segment".into(), |name| name.to_string_lossy().into_owned())
    }
}

/// The segments, and how many were renamed as damaged.
fn existing(dir: &Path, segment_bytes: u64) -> Result<(Vec<PathBuf>, usize), PoolError> {
    let mut paths = Vec::new();
    let mut set_aside = 0;
    for entry in fs::read_dir(dir).map_err(at(dir))? {
        let entry = entry.map_err(at(dir))?;
        set_aside += usize::from(is_damaged_segment(&entry.file_name()));
        if !is_segment(&entry.file_name()) {
            continue;
        }
        let path = entry.path();
        let found = entry.metadata().map_err(at(&path))?.len();
        if found != segment_bytes {
            return Err(PoolError::OtherSize { path, found, wanted: segment_bytes });
        }
        paths.push(path);
    }
    paths.sort();
    Ok((paths, set_aside))
}

/// A segment as it was found; None if it was renamed as damaged.
fn segment(
    path: &Path,
    recovered: Result<Recovered, FilesError>,
    discard_damaged: bool,
    note: &mut dyn FnMut(String),
) -> Result<Option<Segment>, PoolError> {
    let unused = Segment { path: path.to_path_buf(), sequence: None, bad: false };
    if let Some(why) = damage(&recovered) {
        if !discard_damaged {
            note(set_segment_aside(path, &why)?);
            return Ok(None);
        }
        note(format!("{}: {why}; it will be overwritten", path.display()));
        return Ok(Some(unused));
    }
    let Recovered { completed, found, .. } = recovered?;
    if completed {
        note(format!("{}: was unfinished, and has been completed", path.display()));
    }
    if completed && found.gaps.durable_blocks > 0 {
        let (blocks, bytes) = (found.gaps.blocks, found.gaps.bytes);
        let path = path.display();
        note(format!("{path}: is damaged: {blocks} blocks, {bytes} bytes, are missing"));
    }
    let used = found.identity().filter(|_| holds_messages(&found));
    Ok(Some(Segment { sequence: used.map(|identity| identity.sequence), ..unused }))
}

/// Why a segment can be neither completed nor read, although it may hold data.
fn damage(recovered: &Result<Recovered, FilesError>) -> Option<String> {
    match recovered {
        Ok(recovered) if recovered.found.state == State::Damaged => Some(NO_DEFINITIONS.into()),
        Err(FilesError::Recover { why, .. }) if !why.is_io() => Some(why.to_string()),
        _ => None,
    }
}

/// A segment without any is used first: overwriting it loses nothing.
fn holds_messages(found: &Examined) -> bool {
    let channels = found.contents.iter().flat_map(|contents| &contents.channels);
    found.state != State::Blank && channels.map(|channel| channel.messages).sum::<u64>() > 0
}

/// Renames it and returns a note. The directory is locked, so the name stays free.
fn set_segment_aside(path: &Path, why: &str) -> Result<String, PoolError> {
    let named = |number: u32| {
        let mut name = path.as_os_str().to_os_string();
        name.push(format!("{DAMAGED}-{number}"));
        PathBuf::from(name)
    };
    let free = (1..).map(named).find(|name| !name.exists());
    let aside = free.ok_or_else(|| at(path)(io::ErrorKind::AlreadyExists.into()))?;
    fs::rename(path, &aside).map_err(at(path))?;
    Ok(format!("{}: {why}; it is kept as {}", path.display(), aside.display()))
}

fn create_missing(
    dir: &Path,
    paths: &mut Vec<PathBuf>,
    count: usize,
    segment_bytes: u64,
    make: &mut dyn FnMut(&Path, usize) -> Result<(), PoolError>,
) -> Result<(), PoolError> {
    let missing = count - paths.len();
    let needed = missing as u64 * segment_bytes;
    let stat = statvfs(dir).map_err(|error| at(dir)(error.into()))?;
    let free = stat.f_bavail * stat.f_frsize;
    if needed > free {
        return Err(PoolError::NoSpace { dir: dir.to_path_buf(), needed, free });
    }
    let mut number = 0;
    while paths.len() < count {
        let path = dir.join(format!("{PREFIX}{number:05}{SUFFIX}"));
        number += 1;
        if paths.contains(&path) {
            continue;
        }
        make(&path, paths.len() + 1)?;
        paths.push(path);
    }
    Ok(())
}

/// It gets its name last, so a file of that name is complete.
fn create(path: &Path, segment_bytes: u64, stop: &Interrupt) -> Result<(), PoolError> {
    let unfinished = path.with_extension(&UNFINISHED[1..]);
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(&unfinished)
        .map_err(at(&unfinished))?;
    let fill = || -> Result<(), PoolError> {
        match fallocate(&file, FallocateFlags::empty(), 0, segment_bytes) {
            // All of it is written anyway.
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
        }
        write_unused(&file, segment_bytes).map_err(at(path))?;
        file.sync_all().map_err(at(path))?;
        fs::rename(&unfinished, path).map_err(at(path))
    };
    // A partly filled segment is useless.
    fill().inspect_err(|_| drop(fs::remove_file(&unfinished)))
}

/// Past the page cache only whole blocks could be written.
fn write_unused(file: &File, segment_bytes: u64) -> io::Result<()> {
    let (mut head, mut tail) = ([0; HEAD_BYTES], [0; UNUSED_TAIL_BYTES]);
    put_unused_head(&mut head, segment_bytes);
    put_unused_tail(&mut tail);
    file.write_all_at(&head, 0)?;
    file.write_all_at(&tail, segment_bytes - UNUSED_TAIL_BYTES as u64)
}

fn open_segment(path: &Path, direct: bool) -> io::Result<File> {
    let flags = if direct { libc::O_DIRECT } else { 0 };
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const BYTES: u64 = 64 << 10;

    fn open(
        dir: &Path,
        count: usize,
        segment_bytes: u64,
        note: &mut dyn FnMut(String),
    ) -> Result<Pool, PoolError> {
        let wanted = Making { dir, count, segment_bytes, discard_damaged: false };
        Pool::open(&wanted, note, &Interrupt::default())
    }

    fn is_unused(path: &Path) -> bool {
        recover_file(path, false).unwrap().before == State::Unused
    }

    #[test]
    fn a_pool_is_made_once_and_used_oldest_first() {
        let dir = tempfile::tempdir().unwrap();
        let mut notes = Vec::new();
        let mut pool = open(dir.path(), 3, BYTES, &mut |note| notes.push(note)).unwrap();
        assert_eq!(notes.len(), 3);
        let sequences = [1, 2, 3, 4].map(|_| pool.open_oldest().unwrap().1);
        assert_eq!(sequences, [1, 2, 3, 4]);
        assert!(matches!(
            open(dir.path(), 3, BYTES, &mut |_| ()),
            Err(PoolError::Recover(FilesError::Busy(_)))
        ));
        drop(pool);
        open(dir.path(), 3, BYTES, &mut |_| unreachable!("all are there")).unwrap();
    }

    #[test]
    fn a_segment_that_cannot_be_read_is_kept_under_another_name_and_replaced() {
        let dir = tempfile::tempdir().unwrap();
        drop(open(dir.path(), 3, BYTES, &mut |_| ()).unwrap());
        let path = dir.path().join("segment-00001.mcap");
        for number in 1..3 {
            fs::write(&path, vec![number; BYTES as usize]).unwrap();
            let mut notes = Vec::new();
            let pool = open(dir.path(), 3, BYTES, &mut |note| notes.push(note)).unwrap();
            assert_eq!(pool.count(), 3);
            let aside = dir.path().join(format!("segment-00001.mcap.damaged-{number}"));
            assert!(notes[0].ends_with(&format!("; it is kept as {}", aside.display())));
            assert_eq!(fs::read(aside).unwrap(), vec![number; BYTES as usize]);
            assert!(is_unused(&path));
        }
    }

    #[test]
    fn an_error_names_the_file_and_the_cause_once() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let error = open(&file, 2, BYTES, &mut |_| ()).unwrap_err();
        let said = format!("{}: File exists (os error 17)", file.display());
        assert_eq!(error.to_string(), said);
        // What prints the chain of causes must not say it twice.
        assert!(std::error::Error::source(&error).is_none());
    }

    #[test]
    fn a_pool_of_other_sizes_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        drop(open(dir.path(), 3, BYTES, &mut |_| ()).unwrap());
        let smaller = open(dir.path(), 2, BYTES, &mut |_| ()).unwrap_err().to_string();
        assert!(smaller.contains("holds 3 segments, but 2 are configured"), "{smaller}");
        let other = open(dir.path(), 3, 2 * BYTES, &mut |_| ()).unwrap_err().to_string();
        assert!(other.contains("has 65536 bytes, but segments must have 131072"), "{other}");
        let huge = open(dir.path(), 4_000, 1 << 60, &mut |_| ());
        assert!(huge.is_err());
    }

    #[test]
    fn making_segments_stops_when_it_is_told_to() {
        let dir = tempfile::tempdir().unwrap();
        let stop = Interrupt::default();
        let mut second = |note: String| {
            if note.starts_with("making segment 2") {
                stop.request();
            }
        };
        let dir_path = dir.path();
        let wanted =
            Making { dir: dir_path, count: 3, segment_bytes: BYTES, discard_damaged: false };
        let stopped = Pool::open(&wanted, &mut second, &stop).unwrap_err();
        assert!(matches!(stopped, PoolError::Stopped));
        let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(Result::unwrap).collect();
        assert!(left.len() == 1 && left[0].file_name() == "segment-00000.mcap", "{left:?}");
        assert_eq!(open(dir.path(), 3, BYTES, &mut |_| ()).unwrap().count(), 3);
    }
}
