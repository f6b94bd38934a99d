// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows a recording while it is written, for a live view.
//!
//! It starts behind what is there, and takes each block once it is written. The view must not cost
//! the recorder anything, so two rules hold. It leaves no page of a segment in the page cache,
//! because a direct write would have to drop that page first. Nor does it try to catch up: when it
//! is more than a segment behind, it goes on in the newest one, and counts the others.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{Advice, fadvise};
use steadyio_recorder::mcap::cursor::{Cursor, Step};
use steadyio_recorder::mcap::definitions::Definitions;
use steadyio_recorder::mcap::files::{FilesError, recordings};
use steadyio_recorder::mcap::names::is_unused;
use steadyio_recorder::mcap::private::{Identity, Life};
use steadyio_recorder::mcap::reading::{MessageInBlock, life, messages};

/// The interval between two searches for a newer segment.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long a write may take from the change of the file's time until its block is there. Later,
/// nothing is read until the time changes again.
const WRITE_TIME: Duration = Duration::from_secs(1);

/// The segment in use.
struct Open {
    path: PathBuf,
    file: File,
    cursor: Cursor,
    modified: Option<SystemTime>,
    modified_at: Instant,
    /// The time of the last look at its life, and whether that was another one.
    checked_at: Instant,
    is_left: bool,
    /// Whether the recorder has ended it. Another recording may continue it nevertheless.
    is_ended: bool,
}

/// The next thing in a segment.
#[derive(Debug)]
pub enum Next {
    /// The definitions have changed: another segment, or added channels.
    Definitions,
    /// A block, for [`messages`]; empty if it was passed unread.
    Block(Vec<u8>),
}

/// A place behind the recorder of a directory.
pub struct Behind {
    dir: PathBuf,
    open: Option<Open>,
    looked_at: Option<Instant>,
    /// The lives of segments, read when their files had these times.
    known: HashMap<PathBuf, (SystemTime, Option<Life>)>,
    /// Segments that were passed, completely or from some block on.
    pub skipped_segments: u64,
}

impl Behind {
    /// The directory may be empty or missing so far.
    pub fn new(dir: &Path) -> Behind {
        Behind {
            dir: dir.into(),
            open: None,
            looked_at: None,
            known: HashMap::new(),
            skipped_segments: 0,
        }
    }

    /// The schemas and channels of the segment in use.
    pub fn definitions(&self) -> Option<&Definitions> {
        self.open.as_ref().map(|open| open.cursor.definitions())
    }

    /// The life of the segment in use.
    pub fn identity(&self) -> Option<Identity> {
        self.open.as_ref().map(|open| open.cursor.life().identity)
    }

    /// Takes what comes next; None if it is not there yet. Without `reads`, it passes blocks
    /// unread.
    pub fn step(&mut self, reads: bool) -> io::Result<Option<Next>> {
        if let Some(next) = self.open.as_mut().map(|open| open.step(reads)).transpose()?.flatten() {
            return Ok(Some(next));
        }
        let is_in_use = self.open.as_mut().map(Open::is_in_use).transpose()?.unwrap_or(false);
        if is_in_use || self.looked_at.is_some_and(|at| at.elapsed() < LOOK_EVERY) {
            return Ok(None);
        }
        self.looked_at = Some(Instant::now());
        self.go_on(reads)
    }

    /// Looks for a newer segment, and goes on there.
    fn go_on(&mut self, reads: bool) -> io::Result<Option<Next>> {
        let newer = self.newer()?;
        let Some((path, life)) = newer.last() else { return Ok(None) };
        let Some(open) = &mut self.open else {
            self.open = Some(Open::at_end(path, *life)?);
            return Ok(Some(Next::Definitions));
        };
        // A segment is complete before the next one begins, so its last blocks are there now.
        open.modified_at = Instant::now();
        if let Some(next) = open.step(reads)? {
            return Ok(Some(next));
        }
        self.skipped_segments += newer.len() as u64 - u64::from(open.is_ended);
        self.open = Some(Open::at_start(path, *life)?);
        self.step(reads)
    }

    /// The segments with records that began after the one in use, in this order.
    fn newer(&mut self) -> io::Result<Vec<(PathBuf, Life)>> {
        let paths = match recordings(&self.dir) {
            Ok(paths) => paths,
            // The recorder has not made them yet.
            Err(FilesError::NoFiles(_)) => return Ok(Vec::new()),
            Err(FilesError::Io { why, .. }) if why.kind() == io::ErrorKind::NotFound => {
                return Ok(Vec::new());
            }
            Err(error) => return Err(io::Error::other(error)),
        };
        let mut known = HashMap::new();
        for path in paths.into_iter().filter(|path| !is_unused(path)) {
            let found = match self.life_of(&path) {
                // A recorder has renamed it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                found => found?,
            };
            known.insert(path, found);
        }
        self.known = known;
        let than = self.identity().map(|identity| identity.sequence);
        let lives =
            self.known.iter().filter_map(|(path, (_, life))| Some((path.clone(), (*life)?)));
        let mut newer: Vec<_> =
            lives.filter(|(_, life)| than < Some(life.identity.sequence)).collect();
        newer.sort_by_key(|(_, life)| life.identity.sequence);
        Ok(newer)
    }

    fn life_of(&self, path: &Path) -> io::Result<(SystemTime, Option<Life>)> {
        let modified = path.metadata()?.modified()?;
        match self.known.get(path) {
            Some(known) if known.0 == modified => Ok(*known),
            _ => {
                let file = open_for_reading(path)?;
                let life = life(&file);
                fadvise(&file, 0, None, Advice::DontNeed)?;
                Ok((modified, life?))
            }
        }
    }

    /// The last message of a topic in the segment in use: its position in the definitions, the
    /// message and its payload. It reads the segment from its start.
    pub fn last_of(&self, topic: &str) -> io::Result<Option<(MessageInBlock, Vec<u8>)>> {
        let Some(open) = &self.open else { return Ok(None) };
        let (mut cursor, mut last) = (Cursor::new(*open.cursor.life()), None);
        while cursor.offset() < open.cursor.offset() {
            match cursor.step(&open.file, true)? {
                Step::Nothing | Step::End => break,
                Step::Definitions => {}
                Step::Messages(block) => {
                    let definitions = cursor.definitions();
                    let found = messages(&block, definitions).into_iter().flatten();
                    let found = found.filter(|found| definitions.topics()[found.slot] == topic);
                    if let Some(found) = found.last() {
                        let payload = block[found.payload.clone()].to_vec();
                        last = Some((found, payload));
                    }
                }
            }
        }
        fadvise(&open.file, 0, None, Advice::DontNeed)?;
        Ok(last)
    }
}

impl Open {
    fn at_start(path: &Path, life: Life) -> io::Result<Open> {
        Ok(Open {
            path: path.into(),
            file: open_for_reading(path)?,
            cursor: Cursor::new(life),
            modified: None,
            modified_at: Instant::now(),
            checked_at: Instant::now(),
            is_left: false,
            is_ended: false,
        })
    }

    fn at_end(path: &Path, life: Life) -> io::Result<Open> {
        let mut open = Open::at_start(path, life)?;
        while open.step(false)?.is_some() {}
        Ok(open)
    }

    /// Whether the recorder may be writing this life of it. A later life changes the file, too.
    fn is_in_use(&mut self) -> io::Result<bool> {
        if self.is_ended || self.modified_at.elapsed() > WRITE_TIME {
            return Ok(false);
        }
        if self.checked_at.elapsed() >= LOOK_EVERY {
            self.checked_at = Instant::now();
            let now = life(&self.file);
            fadvise(&self.file, 0, None, Advice::DontNeed)?;
            // Between two heads there may be none that can be read.
            self.is_left = now?.is_some_and(|now| now.identity != self.cursor.life().identity);
        }
        Ok(!self.is_left)
    }

    fn step(&mut self, reads: bool) -> io::Result<Option<Next>> {
        let modified = self.file.metadata()?.modified()?;
        if self.modified != Some(modified) {
            (self.modified, self.modified_at) = (Some(modified), Instant::now());
        } else if self.modified_at.elapsed() > WRITE_TIME {
            return Ok(None);
        }
        let offset = self.cursor.offset();
        let step = self.cursor.step(&self.file, reads);
        fadvise(&self.file, offset, None, Advice::DontNeed)?;
        let step = step.map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", self.path.display()))
        })?;
        self.is_ended = step == Step::End;
        Ok(match step {
            Step::Definitions => Some(Next::Definitions),
            Step::Messages(block) => Some(Next::Block(block)),
            Step::Nothing | Step::End => None,
        })
    }
}

/// Opens a segment. Pages that were read ahead would be in the way of the recorder.
fn open_for_reading(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    fadvise(&file, 0, None, Advice::Random)?;
    Ok(file)
}
