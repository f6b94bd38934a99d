// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recovers the files of a directory: lists them, locks the directory, and recovers each.
//!
//! `steady recover` calls it, and a recorder that starts in a directory with earlier segments.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::follow::holds_our_blocks;
use super::names::{is_damaged_segment, is_segment, is_unused, named, rename, settle};
use super::recover::{Examined, RecoverError, State, examine};
use super::sectors::Sectors;
use crate::audit::{self, manifest};

/// A file or directory that cannot be used or locked.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// Opening or reading failed.
    #[error("{}: {why}", path.display())]
    Io { path: PathBuf, why: io::Error },
    /// A recorder holds this lock.
    #[error("{}: in use by a recorder or another recovery: stop it first", .0.display())]
    Busy(PathBuf),
    /// The directory has no recordings. It is probably the wrong one.
    #[error("{}: has no *.mcap file and no segment: give the directory of a recording", .0.display())]
    NoFiles(PathBuf),
    /// This file was not completed.
    #[error("{}: {why}", path.display())]
    Recover { path: PathBuf, why: RecoverError },
    /// A completed file does not read as finished.
    #[error("{}: is {state} after completion: this is a bug", path.display())]
    NotFinished { path: PathBuf, state: &'static str },
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> FilesError {
    let path = path.to_path_buf();
    move |why| FilesError::Io { path, why }
}

/// The `*.mcap` files of a directory and its unused segments, sorted by name. The result is empty
/// for a pool that has lost all of them.
pub fn recordings(directory: &Path) -> Result<Vec<PathBuf>, FilesError> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(at(directory))? {
        let path = entry.map_err(at(directory))?.path();
        let is_mcap = path.extension().is_some_and(|extension| extension == "mcap");
        if (is_mcap || path.file_name().is_some_and(is_segment)) && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    match files.is_empty() && manifest::read(directory).is_none() {
        true => Err(FilesError::NoFiles(directory.into())),
        false => Ok(files),
    }
}

/// The paths without those that name an earlier one's file or directory again.
pub fn distinct(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut known = HashSet::new();
    let is_new = |path: &&PathBuf| {
        let found = fs::metadata(path);
        found.map_or(true, |found| known.insert((found.dev(), found.ino())))
    };
    paths.iter().filter(is_new).cloned().collect()
}

/// Locks a directory against recorders and other recoveries until dropped.
#[derive(Debug)]
pub struct DirectoryLock(#[allow(dead_code, reason = "held for its lock")] File);

/// Takes the lock that a recorder holds while it records into the directory.
pub fn lock_directory(directory: &Path) -> Result<DirectoryLock, FilesError> {
    let file = File::open(directory).map_err(at(directory))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(DirectoryLock(file)),
        Err(Errno::WOULDBLOCK) => Err(FilesError::Busy(directory.into())),
        Err(error) => Err(at(directory)(error.into())),
    }
}

/// Limits the reading of finished segments that need not be read completely. Without reading,
/// damage before a summary stays unnoticed, but reading all takes too long for a start.
#[derive(Debug, Default)]
pub struct ReadLimit {
    began: Option<Instant>,
    bytes: u64,
}

impl ReadLimit {
    /// The limit of size.
    const BYTES: u64 = 64 << 20;
    /// The limit of time after which no other file is begun.
    const TIME: Duration = Duration::from_secs(1);

    /// Whether to read this file completely.
    pub fn takes(&mut self, path: &Path) -> bool {
        let began = *self.began.get_or_insert_with(Instant::now);
        self.bytes += fs::metadata(path).map_or(0, |metadata| metadata.len());
        is_unused(path) || self.bytes <= ReadLimit::BYTES || began.elapsed() < ReadLimit::TIME
    }
}

/// The state of a file before and after the recovery.
#[derive(Debug)]
pub struct Recovered {
    /// The state before.
    pub before: State,
    /// Whether it was completed.
    pub completed: bool,
    /// Whether it is empty under the name of a segment with records.
    pub wiped: bool,
    /// The contents now, except that `stop` is the previous end of the data.
    pub found: Examined,
}

/// Examines a file without changing it. With `verify`, finished files are read completely, too.
pub fn examine_file(path: &Path, verify: bool) -> Result<Recovered, FilesError> {
    let file = File::open(path).map_err(at(path))?;
    let found = examine(&file, verify).map_err(recover_error(path))?;
    let wiped = is_wiped(path, found.state)?;
    Ok(Recovered { before: found.state, completed: false, wiped, found })
}

/// The message for a segment with [`Recovered::wiped`].
pub const WIPED: &str = "has the name of a segment with records, and holds none: it was wiped";
/// The message for a segment in [`State::Damaged`].
pub const NO_DEFINITIONS: &str =
    "holds data, but its definitions and their copy are damaged: it was not changed";

/// Completes a file if something is missing. The directory must be locked. A finished file may be
/// on read-only storage.
pub fn recover_file(path: &Path, verify: bool) -> Result<Recovered, FilesError> {
    let recovered = examine_file(path, verify)?;
    if !recovered.found.can_be_completed() {
        return Ok(recovered);
    }
    let mut file = OpenOptions::new().read(true).write(true).open(path).map_err(at(path))?;
    // Another directory may name it, too, and a recorder there may record into it.
    if flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
        return Err(FilesError::Busy(path.into()));
    }
    // Until it was locked, the recorder may have gone on.
    let found = examine(&file, verify).map_err(recover_error(path))?;
    let (before, stop, completed) = (found.state, found.stop, found.can_be_completed());
    found.complete(&mut file).map_err(at(path))?;
    // The report describes the present file.
    let mut found = examine(&file, true).map_err(recover_error(path))?;
    found.stop = stop;
    match found.state {
        State::Finished => Ok(Recovered { before, completed, wiped: false, found }),
        state => Err(FilesError::NotFinished { path: path.into(), state: state.describe() }),
    }
}

/// Completes a segment, gives it the name that fits its contents, and returns its path. A wiped
/// segment keeps its name, which is the only trace of its messages.
pub fn recover_segment(path: &Path, verify: bool) -> Result<(PathBuf, Recovered), FilesError> {
    let recovered = recover_file(path, verify)?;
    let named = match recovered.wiped {
        true => path.to_path_buf(),
        false => settle(path, &recovered.found).map_err(at(path))?,
    };
    Ok((named, recovered))
}

/// Renames a wiped segment as unused, after it has been reported.
pub fn call_unused(path: &Path) -> Result<PathBuf, FilesError> {
    let unused = named(path, false);
    rename(path, &unused).map_err(at(path))?;
    Ok(unused)
}

/// Whether all of a segment was wiped. It may look unused because only its head was wiped. A
/// segment gets its name when its head is durable.
fn is_wiped(path: &Path, state: State) -> Result<bool, FilesError> {
    if state != State::Unused || !path.file_name().is_some_and(is_segment) || is_unused(path) {
        return Ok(false);
    }
    let file = File::open(path).map_err(at(path))?;
    let sectors = Sectors::new(&file);
    let holds_blocks = holds_our_blocks(&sectors).map_err(at(path))?;
    let error = recover_error(path);
    match (holds_blocks, sectors.unreadable()) {
        (_, Some(unreadable)) => Err(error(RecoverError::Unreadable(unreadable))),
        (true, None) => Err(error(RecoverError::UnknownLife)),
        (false, None) => Ok(true),
    }
}

/// Converts a file for [`crate::audit`]; None if it does not belong to the pool.
pub fn audited(path: &Path, recovered: Result<&Recovered, &FilesError>) -> Option<audit::Found> {
    if !path.file_name().is_some_and(is_segment) {
        return None;
    }
    let Ok(Recovered { found, wiped: false, .. }) = recovered else {
        return Some(audit::Found::Unreadable);
    };
    Some(match found.life {
        Some(life) => {
            let times_ns = found.contents.as_ref().map(|contents| contents.times_ns);
            audit::Found::Life { path: path.into(), life, times_ns, evidence: found.evidence }
        }
        None if found.state == State::Unused => audit::Found::Unused,
        None => return None,
    })
}

/// The segments of a directory that were renamed as damaged, completely read, for [`crate::audit`].
pub fn set_aside(directory: &Path) -> Vec<audit::Found> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let damaged = entries.filter(|entry| is_damaged_segment(&entry.file_name()));
    let found = |path: PathBuf| {
        // Opening a FIFO would block.
        let recovered = path.is_file().then(|| examine_file(&path, true))?;
        let Examined { life, evidence, .. } = recovered.ok()?.found;
        Some(audit::Found::Aside { life: life?, evidence })
    };
    damaged.filter_map(|entry| found(entry.path())).collect()
}

fn recover_error(path: &Path) -> impl FnOnce(RecoverError) -> FilesError {
    let path = path.to_path_buf();
    move |why| FilesError::Recover { path, why }
}
