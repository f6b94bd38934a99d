// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recovery of the files of a directory: lists them, locks the directory, recovers each.
//!
//! Called by `steady recover`, and by a recorder that starts in a directory with earlier segments.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use super::follow::holds_our_blocks;
use super::names::{is_segment, is_unused, named, rename, settle};
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
    /// Probably a wrong directory.
    #[error("{}: has no *.mcap file and no segment: give the directory of a recording", .0.display())]
    NoFiles(PathBuf),
    /// This file was not completed.
    #[error("{}: {why}", path.display())]
    Recover { path: PathBuf, why: RecoverError },
    /// A completed file must read as finished.
    #[error("{}: is {state} after completion: this is a bug", path.display())]
    NotFinished { path: PathBuf, state: &'static str },
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> FilesError {
    let path = path.to_path_buf();
    move |why| FilesError::Io { path, why }
}

/// The `*.mcap` files of a directory and its unused segments, by name; none of a pool that has lost
/// them all.
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

/// Locks a directory against recorders and other recoveries until dropped.
#[derive(Debug)]
pub struct DirectoryLock(#[allow(dead_code, reason = "held for its lock")] File);

/// Takes the lock that a recorder holds while it records into the directory.
pub fn lock_directory(directory: &Path) -> Result<DirectoryLock, FilesError> {
    let file = File::open(directory).map_err(at(directory))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(DirectoryLock(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(FilesError::Busy(directory.into())),
        Err(error) => Err(at(directory)(error.into())),
    }
}

/// How much of finished segments is read where not all has to be: without that, damage in front of
/// a summary is not seen. The others take more time than a start has.
#[derive(Debug, Default)]
pub struct ReadLimit {
    began: Option<Instant>,
    bytes: u64,
}

impl ReadLimit {
    /// However long it takes.
    const BYTES: u64 = 64 << 20;
    /// No other file is begun after this.
    const TIME: Duration = Duration::from_secs(1);

    /// Whether this file is to be read completely.
    pub fn takes(&mut self, path: &Path) -> bool {
        let began = *self.began.get_or_insert_with(Instant::now);
        self.bytes += fs::metadata(path).map_or(0, |metadata| metadata.len());
        is_unused(path) || self.bytes <= ReadLimit::BYTES || began.elapsed() < ReadLimit::TIME
    }
}

/// The state of a file before and after the recovery.
#[derive(Debug)]
pub struct Recovered {
    /// As it was found.
    pub before: State,
    /// Whether it was completed.
    pub completed: bool,
    /// Whether it is empty under the name of a segment with records.
    pub wiped: bool,
    /// As it is now, except that the stop is where the data ended before.
    pub found: Examined,
}

/// The state of a file; changes nothing. With `verify`, finished files are read completely, too.
pub fn examine_file(path: &Path, verify: bool) -> Result<Recovered, FilesError> {
    let file = File::open(path).map_err(at(path))?;
    let found = examine(&file, verify).map_err(recover_error(path))?;
    let wiped = is_wiped(path, found.state)?;
    Ok(Recovered { before: found.state, completed: false, wiped, found })
}

/// Message for a segment in [`State::Damaged`].
pub const NO_DEFINITIONS: &str =
    "holds data, but its definitions and their copy are damaged: it was not changed";

/// Completes a file if something is missing. The directory must be locked. A finished one may lie
/// where nothing can be written.
pub fn recover_file(path: &Path, verify: bool) -> Result<Recovered, FilesError> {
    let recovered = examine_file(path, verify)?;
    if !recovered.found.can_be_completed() {
        return Ok(recovered);
    }
    let Recovered { before, found, .. } = recovered;
    let stop = found.stop;
    let mut file = OpenOptions::new().read(true).write(true).open(path).map_err(at(path))?;
    found.complete(&mut file).map_err(at(path))?;
    // The report describes the file as it is now.
    let mut found = examine(&file, true).map_err(recover_error(path))?;
    found.stop = stop;
    match found.state {
        State::Finished => Ok(Recovered { before, completed: true, wiped: false, found }),
        state => Err(FilesError::NotFinished { path: path.into(), state: state.describe() }),
    }
}

/// The same, and a segment gets the name that fits what is in it. Returns that. The name of one that
/// was wiped is all that tells of its messages.
pub fn recover_segment(path: &Path, verify: bool) -> Result<(PathBuf, Recovered), FilesError> {
    let recovered = recover_file(path, verify)?;
    let named = match recovered.wiped {
        true => path.to_path_buf(),
        false => settle(path, &recovered.found).map_err(at(path))?,
    };
    Ok((named, recovered))
}

/// One that was wiped, and has been reported, is used again.
pub fn call_unused(path: &Path) -> Result<PathBuf, FilesError> {
    let unused = named(path, false);
    rename(path, &unused).map_err(at(path))?;
    Ok(unused)
}

/// An unused segment may only look like one: its head was wiped. Returns whether all of it was: a
/// segment is called recorded when its head is durable.
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

/// What a file is for [`crate::audit`]; none if it is not of the pool.
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

fn recover_error(path: &Path) -> impl FnOnce(RecoverError) -> FilesError {
    let path = path.to_path_buf();
    move |why| FilesError::Recover { path, why }
}
