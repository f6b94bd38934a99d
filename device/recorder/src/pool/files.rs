// SPDX-License-Identifier: MIT OR Apache-2.0
//! The segments of a pool: which is the next to be overwritten.
//!
//! A segment that cannot be read, because head or definitions and their copy are damaged, or because
//! the device cannot read all that a start has to read, must not keep a recorder from starting, and
//! an expert may still extract data from it: it is renamed unchanged, and a new segment replaces it
//! if there is room.
//!
//! While a recording runs nothing here creates, extends, truncates or removes a file. One is renamed
//! when it gets its first record, by `renamer`.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use steadyio_core::interrupt::Interrupt;

use super::making::{create_missing, sync_directory};
use crate::mcap::files::{
    DirectoryLock, FilesError, NO_DEFINITIONS, Recovered, lock_directory, recover_segment,
};
use crate::mcap::names::{self, DAMAGED, is_damaged_segment, is_segment};
use crate::mcap::recover::{Examined, State};
use crate::memory::MemoryError;

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
         or give up the oldest ({} of them): steady record --prepare --segments {wanted}",
        dir.display(), found - wanted
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

pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> PoolError {
    let path = path.to_path_buf();
    move |why| PoolError::Io { path, why }
}

#[derive(Debug)]
struct Segment {
    path: PathBuf,
    /// Of its last life; None if it never had one, or nothing was recorded in it.
    sequence: Option<u64>,
    messages: u64,
    /// It cannot be written.
    bad: bool,
}

impl Segment {
    fn empty(path: PathBuf) -> Segment {
        Segment { path, sequence: None, messages: 0, bad: false }
    }
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
    /// Whether segments beyond the count are removed, the oldest first, instead of refused.
    pub shrink: bool,
}

/// The segments of one directory, locked for one recorder.
#[derive(Debug)]
pub struct Pool {
    segments: Vec<Segment>,
    sequence: u64,
    direct: bool,
    made: usize,
    removed: usize,
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
        let &Making { dir, count, segment_bytes, .. } = wanted;
        fs::create_dir_all(dir).map_err(at(dir))?;
        let lock = lock_directory(dir)?;
        let (paths, set_aside) = existing(dir, segment_bytes)?;
        if paths.len() > count && !wanted.shrink {
            let (found, wanted) = (paths.len(), count);
            return Err(PoolError::TooMany { dir: dir.to_path_buf(), found, wanted });
        }
        let (mut segments, sequence) = recover_all(&paths, wanted.discard_damaged, note)?;
        let set_aside = set_aside + paths.len() - segments.len();
        let removed = remove_oldest(&mut segments, count, note)?;
        let mut taken: Vec<PathBuf> = segments.iter().map(|segment| segment.path.clone()).collect();
        match create_missing(wanted, &mut taken, note, stop) {
            Err(error @ PoolError::NoSpace { .. })
                if set_aside > 0 && taken.len() >= SEGMENTS_MIN =>
            {
                let left = taken.len();
                note(format!("{error}; recording with {left} segments: move *{DAMAGED} elsewhere"));
            }
            made => made?,
        }
        let made = taken.split_off(segments.len());
        let made_count = made.len();
        segments.extend(made.into_iter().map(Segment::empty));
        sync_directory(dir)?;
        let direct = open_segment(&segments[0].path, true).is_ok();
        Ok(Pool { segments, sequence, direct, made: made_count, removed, _lock: lock })
    }

    /// How many segments were made now, and how many removed.
    pub fn changed(&self) -> (usize, usize) {
        (self.made, self.removed)
    }

    /// In how many segments anything is recorded.
    pub fn recorded(&self) -> usize {
        self.segments.iter().filter(|segment| segment.sequence.is_some()).count()
    }

    /// Whether any segment is called unused.
    pub fn has_unused(&self) -> bool {
        self.segments.iter().any(|segment| names::is_unused(&segment.path))
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
        let file = open_segment(&segment.path, self.direct).or_else(|error| {
            // It may not be renamed yet.
            open_segment(&names::named(&segment.path, false), self.direct).map_err(|_| error)
        });
        let file = file.map_err(at(&segment.path))?;
        self.sequence += 1;
        segment.sequence = Some(self.sequence);
        Ok((file, self.sequence))
    }

    /// The segment of this life gets its first record, or never got one. Returns its former name and
    /// its new one, if they differ: it is to be renamed.
    pub fn rename(&mut self, sequence: u64, recorded: bool) -> Option<(PathBuf, PathBuf)> {
        let segment = self.of(sequence)?;
        let named = names::named(&segment.path, recorded);
        let former = std::mem::replace(&mut segment.path, named.clone());
        (former != named).then_some((former, named))
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
        let path = entry.path();
        set_aside += usize::from(is_damaged_segment(&entry.file_name()));
        if !is_segment(&entry.file_name()) {
            continue;
        }
        let found = entry.metadata().map_err(at(&path))?.len();
        if found != segment_bytes {
            return Err(PoolError::OtherSize { path, found, wanted: segment_bytes });
        }
        paths.push(path);
    }
    paths.sort();
    Ok((paths, set_aside))
}
/// Without those that were renamed as damaged, and the newest sequence number of any.
fn recover_all(
    paths: &[PathBuf],
    discard_damaged: bool,
    note: &mut dyn FnMut(String),
) -> Result<(Vec<Segment>, u64), PoolError> {
    let mut segments = Vec::with_capacity(paths.len());
    let mut newest = 0;
    for path in paths {
        let recovered = recover_segment(path, false);
        let found = recovered.as_ref().ok().and_then(|(_, recovered)| recovered.found.identity());
        newest = newest.max(found.map_or(0, |identity| identity.sequence));
        segments.extend(segment(path, recovered, discard_damaged, note)?);
    }
    Ok((segments, newest))
}

/// A segment as it was found; None if it was renamed as damaged.
fn segment(
    path: &Path,
    recovered: Result<(PathBuf, Recovered), FilesError>,
    discard_damaged: bool,
    note: &mut dyn FnMut(String),
) -> Result<Option<Segment>, PoolError> {
    if let Some(why) = damage(&recovered) {
        if !discard_damaged {
            note(set_segment_aside(path, &why)?);
            return Ok(None);
        }
        note(format!("{}: {why}; it will be overwritten", path.display()));
        return Ok(Some(Segment::empty(path.to_path_buf())));
    }
    let (path, Recovered { completed, found, .. }) = recovered?;
    if completed {
        note(format!("{}: was unfinished, and has been completed", path.display()));
    }
    if completed && found.gaps.durable_blocks > 0 {
        let (blocks, bytes) = (found.gaps.blocks, found.gaps.bytes);
        let path = path.display();
        note(format!("{path}: is damaged: {blocks} blocks, {bytes} bytes, are missing"));
    }
    // A segment without any is used first: overwriting it loses nothing.
    let used = found.identity().filter(|_| found.holds_data());
    let sequence = used.map(|identity| identity.sequence);
    Ok(Some(Segment { sequence, messages: found.messages(), ..Segment::empty(path) }))
}

/// Those that are too many: first without records, then the oldest. Returns how many.
fn remove_oldest(
    segments: &mut Vec<Segment>,
    count: usize,
    note: &mut dyn FnMut(String),
) -> Result<usize, PoolError> {
    let mut removed = 0;
    while segments.len() > count {
        let oldest = (0..segments.len()).min_by_key(|&at| segments[at].sequence).unwrap_or(0);
        let Segment { path, messages, .. } = &segments[oldest];
        fs::remove_file(path).map_err(at(path))?;
        note(format!("{}: removed, with {messages} messages", path.display()));
        segments.remove(oldest);
        removed += 1;
    }
    Ok(removed)
}

/// Why a segment can be neither completed nor read as a whole, although it may hold data.
fn damage(recovered: &Result<(PathBuf, Recovered), FilesError>) -> Option<String> {
    match recovered {
        Ok((_, Recovered { found: Examined { unreadable: Some(unreadable), .. }, .. })) => {
            Some(unreadable.to_string())
        }
        Ok((_, recovered)) if recovered.found.state == State::Damaged => {
            Some(NO_DEFINITIONS.into())
        }
        Err(FilesError::Recover { why, .. }) if !why.is_io() => Some(why.to_string()),
        _ => None,
    }
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

pub(super) fn open_segment(path: &Path, direct: bool) -> io::Result<File> {
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
        let wanted = Making { dir, count, segment_bytes, discard_damaged: false, shrink: false };
        Pool::open(&wanted, note, &Interrupt::default())
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
            fs::remove_file(dir.path().join("segment-00001.unused")).unwrap();
            fs::write(&path, vec![number; BYTES as usize]).unwrap();
            let mut notes = Vec::new();
            let pool = open(dir.path(), 3, BYTES, &mut |note| notes.push(note)).unwrap();
            assert_eq!(pool.count(), 3);
            let aside = dir.path().join(format!("segment-00001.mcap.damaged-{number}"));
            assert!(notes[0].ends_with(&format!("; it is kept as {}", aside.display())));
            assert_eq!(fs::read(aside).unwrap(), vec![number; BYTES as usize]);
            assert!(dir.path().join("segment-00001.unused").exists());
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
        let wanted = Making {
            dir: dir_path,
            count: 3,
            segment_bytes: BYTES,
            discard_damaged: false,
            shrink: false,
        };
        let stopped = Pool::open(&wanted, &mut second, &stop).unwrap_err();
        assert!(matches!(stopped, PoolError::Stopped));
        let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(Result::unwrap).collect();
        assert!(left.len() == 1 && left[0].file_name() == "segment-00000.unused", "{left:?}");
        assert_eq!(open(dir.path(), 3, BYTES, &mut |_| ()).unwrap().count(), 3);
    }
}
