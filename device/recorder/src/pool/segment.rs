// SPDX-License-Identifier: MIT OR Apache-2.0
//! A segment of a pool, and the errors of a pool. The modules that make, find and use segments call
//! it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::pins::Begun;
use crate::incident::IncidentError;
use crate::mcap::files::FilesError;
use crate::mcap::private::Identity;
use steadyio_core::memory::MemoryError;

/// A recording needs at least this many segments.
pub(super) const SEGMENTS_MIN: usize = 2;

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
    /// Named like a segment.
    #[error(
        "{}: not a regular file of {wanted} bytes, as segments are (move it elsewhere, or record \
         into another directory)", path.display()
    )]
    NoSegment { path: PathBuf, wanted: u64 },
    /// Made with another configuration.
    #[error(
        "{} holds {found} segments, but {wanted} are configured: record with --segments {found}, \
         or give up the oldest ({} of them): steady record --prepare --dir {0} --segments {wanted} \
         --segment-size {segment_bytes}",
        dir.display(), found - wanted
    )]
    TooMany {
        dir: PathBuf,
        found: usize,
        /// How many there should be.
        wanted: usize,
        segment_bytes: u64,
    },
    /// Found before anything was created.
    #[error(
        "a segment has {segment_bytes} bytes, but this process may write files of {allowed} only \
         (ulimit -f): raise the limit, or choose a smaller --segment-size"
    )]
    FileLimit { segment_bytes: u64, allowed: u64 },
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
    /// Incidents hold the others.
    #[error(
        "{}: incidents ({incidents}) keep {kept} segments, and recording needs 2 others: record \
         with {} segments or more, or release one: steady incidents release", dir.display(),
        kept + SEGMENTS_MIN
    )]
    Kept {
        dir: PathBuf,
        /// Their names.
        incidents: String,
        /// Segments.
        kept: usize,
    },
    #[error(transparent)]
    Incident(#[from] IncidentError),
    /// On a slow device the segments take minutes.
    #[error(
        "stopped while the segments were made; nothing was recorded, and complete ones are used \
         next time"
    )]
    Stopped,
    /// An overwrite would take new space, which may not be there.
    #[error(
        "{}: this file system writes changed blocks elsewhere, so a pool reserves no space; btrfs \
         keeps a new file in place with the attribute C, which could not be set ({why}): record to \
         another file system", path.display()
    )]
    CopyOnWrite { path: PathBuf, why: io::Error },
    /// No buffer for filling.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

impl PoolError {
    /// Whether a segment is not there any more, or may not be opened.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self, PoolError::Io { why, .. } if is_gone(why))
    }
}

pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> PoolError {
    let path = path.to_path_buf();
    move |why| PoolError::Io { path, why }
}

#[derive(Debug)]
pub(super) struct Segment {
    pub(super) path: PathBuf,
    /// Of its last life; None if it never had one, or nothing was recorded in it.
    pub(super) sequence: Option<u64>,
    /// Of that life.
    pub(super) recording_id: [u8; 16],
    /// None if no record came yet.
    pub(super) begun: Option<Begun>,
    pub(super) messages: u64,
    /// That are missing in it.
    pub(super) missing: u64,
    pub(super) missing_at_most: bool,
    /// It cannot be written.
    pub(super) bad: bool,
    /// Nor read: what it holds is unknown.
    pub(super) unreadable: bool,
}

impl Segment {
    pub(super) fn empty(path: PathBuf) -> Segment {
        let (recording_id, begun) = ([0; 16], None);
        Segment {
            path,
            sequence: None,
            recording_id,
            begun,
            messages: 0,
            missing: 0,
            missing_at_most: false,
            bad: false,
            unreadable: false,
        }
    }

    pub(super) fn identity(&self) -> Option<Identity> {
        let recording_id = self.recording_id;
        self.sequence.map(|sequence| Identity { recording_id, sequence })
    }
}

/// Whether the file is missing, or may not be opened.
pub(super) fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{IsADirectory, NotADirectory, NotFound, PermissionDenied};
    matches!(error.kind(), NotFound | NotADirectory | IsADirectory | PermissionDenied)
}

/// The name of a file without its suffix.
pub(super) fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Opens a segment, and locks it against a recovery under another name, unless that has a lock.
pub(super) fn open_segment(path: &Path, direct: bool) -> io::Result<File> {
    let flags = if direct { libc::O_DIRECT } else { 0 };
    let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)?;
    let _ = flock(&file, FlockOperation::NonBlockingLockShared);
    Ok(file)
}
