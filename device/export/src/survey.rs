// SPDX-License-Identifier: MIT OR Apache-2.0
//! The segments of a pool, and their contents.
//!
//! The survey does not keep the blocks of a segment, since a pool may have millions. A reader of a
//! segment examines it again, and then sees whether a recorder has begun another life of it.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::mem;
use std::path::{Path, PathBuf};

use steadyio_core::interrupt::Interrupt;
use steadyio_recorder::audit::{self, Loss, manifest};
use steadyio_recorder::incident::Incident;
use steadyio_recorder::mcap::index::BlockSpan;
use steadyio_recorder::mcap::names::{is_damaged_segment, is_segment, is_unused, named};
use steadyio_recorder::mcap::private::Life;
use steadyio_recorder::mcap::reading::{Found, Readable, read};

use crate::selection::Selection;
use crate::summary::IncidentSummary;

/// A segment with messages.
#[derive(Debug, Clone)]
pub struct Segment {
    pub path: PathBuf,
    pub life: Life,
    /// Earliest and latest log time.
    pub times_ns: (u64, u64),
    /// Of its blocks.
    pub bytes: u64,
    /// The latest log time that is no outlier.
    pub last_ns: u64,
    /// Other files of the same life.
    pub copies: Vec<PathBuf>,
}

/// A log time so much later than one that was recorded after it is an outlier: of a clock that jumped,
/// or of a wrong header.
const OUTLIER_NS: u64 = 3_600 * 1_000_000_000;

/// The latest end of blocks, in their order in the file, that is no outlier.
fn last_ns(blocks: &[BlockSpan]) -> Option<u64> {
    let mut later_start_ns = u64::MAX;
    let mut last_ns = None;
    for block in blocks.iter().rev() {
        later_start_ns = later_start_ns.min(block.start_ns);
        let end_ns = if block.end_ns - later_start_ns.min(block.end_ns) > OUTLIER_NS {
            block.start_ns
        } else {
            block.end_ns
        };
        if end_ns - later_start_ns.min(end_ns) <= OUTLIER_NS {
            last_ns = last_ns.max(Some(end_ns));
        }
    }
    last_ns
}

/// A segment that nobody can read any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableSegment {
    pub path: PathBuf,
    pub why: String,
}

/// The segments that can be exported.
#[derive(Debug, Clone, Default)]
pub struct Survey {
    /// Each recording's in the order in which they were recorded.
    pub segments: Vec<Segment>,
    /// Without messages.
    pub empty: usize,
    pub unreadable: Vec<UnreadableSegment>,
    pub topics: BTreeSet<String>,
    /// Of the recordings.
    pub profiles: BTreeSet<String>,
    /// What the segments of a directory say of each other.
    pub losses: Vec<Loss>,
    /// If it was narrowed to what these keep.
    pub incidents: Vec<IncidentSummary>,
}

/// There is nothing that could be exported.
#[derive(Debug, thiserror::Error)]
pub enum SurveyError {
    #[error("{}: {why}", path.display())]
    Io { path: PathBuf, why: io::Error },
    #[error("{}: has no segment: give the directory of a recording, or a segment", .0.display())]
    NoSegments(PathBuf),
    #[error("interrupted")]
    Interrupted,
}

/// How often the directory is read again before anything counts as missing.
const LOOKS_AGAIN_MAX: usize = 2;
const NO_DEFINITIONS: &str = "holds data, but its definitions and their copy are damaged";
const WIPED: &str = "has the name of a segment with records, and holds none: it was wiped";
const NO_FILE: &str = "not a regular file";
/// Of a file that is whole, but none of ours.
const FOREIGN: &str = "was not written by a steadyio recorder; 'mcap filter' takes such files";

/// The segments of a directory, by name, none of a pool that has lost them all; or this one.
fn files(path: &Path) -> Result<Vec<PathBuf>, SurveyError> {
    if !fs::metadata(path).map_err(at(path))?.is_dir() {
        return Ok(vec![path.into()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(at(path))? {
        let entry = entry.map_err(at(path))?;
        if is_segment(&entry.file_name()) || is_damaged_segment(&entry.file_name()) {
            files.push(entry.path());
        }
    }
    files.sort();
    match files.is_empty() && manifest::read(path).is_none() {
        true => Err(SurveyError::NoSegments(path.into())),
        false => Ok(files),
    }
}

/// What a recorder has set aside is not of the pool any more.
fn in_pool(path: &Path) -> bool {
    path.file_name().is_some_and(is_segment)
}

/// Under the name that it has by now: a recorder renames a segment when it gets its first record.
fn open(path: &Path) -> io::Result<(File, PathBuf)> {
    File::open(path).map(|file| (file, path.into())).or_else(|error| {
        let other = named(path, is_unused(path));
        File::open(&other).map(|file| (file, other)).map_err(|_| error)
    })
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> SurveyError {
    let path = path.to_path_buf();
    move |why| SurveyError::Io { path, why }
}

impl Survey {
    /// Of directories of recordings, and of single segments. `progress` is called with how many
    /// files were read, and how many there are.
    pub fn of(
        paths: &[PathBuf],
        stop: &Interrupt,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Survey, SurveyError> {
        let mut survey = Survey::look(paths, stop, progress)?;
        for _ in 0..LOOKS_AGAIN_MAX {
            if survey.losses.is_empty() {
                break;
            }
            // A recorder may have gone on between one segment and the next.
            survey = Survey::look(paths, stop, progress)?;
        }
        // Of a life that is there twice, as a segment and as an earlier copy of it, the longer one.
        let life = |segment: &Segment| {
            (segment.life.identity.sequence, segment.life.identity.recording_id)
        };
        survey.segments.sort_by_key(|segment| (life(segment), Reverse(segment.bytes)));
        survey.segments.dedup_by(|copy, kept| {
            let is_copy = life(copy) == life(kept);
            kept.copies.extend(is_copy.then(|| mem::take(&mut copy.path)));
            is_copy
        });
        Ok(survey)
    }

    fn look(
        paths: &[PathBuf],
        stop: &Interrupt,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Survey, SurveyError> {
        let places: Vec<Vec<PathBuf>> =
            paths.iter().map(|path| files(path)).collect::<Result<_, _>>()?;
        let all = places.iter().map(Vec::len).sum();
        let (mut survey, mut done) = (Survey::default(), 0);
        for (place, files) in paths.iter().zip(&places) {
            let mut found = Vec::with_capacity(files.len());
            for path in files {
                progress(done, all);
                done += 1;
                if stop.requested() {
                    return Err(SurveyError::Interrupted);
                }
                found.extend(survey.add(path));
            }
            let list = if place.is_dir() { manifest::read(place) } else { None };
            survey.losses.extend(audit::losses(&found, list.as_ref()));
        }
        Ok(survey)
    }

    /// Narrows it to what these incidents keep.
    pub fn only(&mut self, incidents: &[Incident]) {
        let is_kept = |life: &Life| incidents.iter().any(|one| one.holds(&life.identity));
        self.segments.retain(|segment| is_kept(&segment.life));
        let holds = |identity| incidents.iter().any(|one| one.holds(&identity));
        self.losses.retain(|loss| loss.identity.is_some_and(holds));
        let files: BTreeSet<&str> =
            incidents.iter().flat_map(|one| &one.segments).map(|kept| kept.file.as_str()).collect();
        let name =
            |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // With all that was put behind the name.
        self.unreadable.retain(|one| {
            name(&one.path).split('.').next().is_some_and(|stem| files.contains(stem))
        });
        self.incidents = incidents.iter().map(|incident| self.incident(incident)).collect();
    }

    /// How much of an incident is there.
    pub(crate) fn incident(&self, incident: &Incident) -> IncidentSummary {
        let there = |segment: &&Segment| incident.holds(&segment.life.identity);
        let (there, segments) =
            (self.segments.iter().filter(there).count(), incident.segments.len());
        let (name, missing_segments) = (incident.name.clone(), segments - there);
        IncidentSummary { name, segments, missing_segments }
    }

    /// Returns what it is for the audit of the pool.
    fn add(&mut self, path: &Path) -> Option<audit::Found> {
        // The open of a FIFO would wait.
        if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
            self.add_unreadable(path, NO_FILE);
            return in_pool(path).then_some(audit::Found::Unreadable);
        }
        let (file, path) = match open(path) {
            // It was removed, or set aside.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                self.add_unreadable(path, &error.to_string());
                return in_pool(path).then_some(audit::Found::Unreadable);
            }
            Ok(opened) => opened,
        };
        let path = path.as_path();
        let audited = match read(&file) {
            Ok(Found::Messages(found)) => {
                self.add_segment(path, &found);
                let Readable { life, times_ns, evidence, .. } = *found;
                let times_ns = Some(times_ns);
                audit::Found::Life { path: path.into(), life, times_ns, evidence }
            }
            Ok(Found::Empty(life, evidence)) => {
                self.empty += 1;
                match life {
                    Some(life) => {
                        let times_ns = None;
                        audit::Found::Life { path: path.into(), life, times_ns, evidence }
                    }
                    None if is_unused(path) => audit::Found::Unused,
                    None => {
                        self.add_unreadable(path, WIPED);
                        audit::Found::Unreadable
                    }
                }
            }
            Ok(Found::Foreign) => {
                self.add_unreadable(path, FOREIGN);
                audit::Found::Unreadable
            }
            Ok(Found::NoDefinitions) => {
                self.add_unreadable(path, NO_DEFINITIONS);
                audit::Found::Unreadable
            }
            Err(why) => {
                self.add_unreadable(path, &why.to_string());
                audit::Found::Unreadable
            }
        };
        in_pool(path).then_some(audited)
    }

    fn add_segment(&mut self, path: &Path, found: &Readable) {
        self.profiles.insert(found.profile.clone());
        self.topics.extend(found.definitions.topics().iter().cloned());
        let bytes = found.blocks.iter().map(|block| block.bytes).sum();
        let Readable { life, times_ns, .. } = *found;
        let last_ns = last_ns(&found.blocks).unwrap_or(times_ns.1);
        let (path, copies) = (path.into(), Vec::new());
        self.segments.push(Segment { path, life, times_ns, bytes, last_ns, copies });
    }

    fn add_unreadable(&mut self, path: &Path, why: &str) {
        self.unreadable.push(UnreadableSegment { path: path.into(), why: why.into() });
    }

    /// Losses that may be of selected messages.
    pub fn losses_in<'a>(&'a self, selection: &'a Selection) -> impl Iterator<Item = &'a Loss> {
        let wanted =
            |loss: &&Loss| loss.times_ns.is_none_or(|times| selection.wants_some_of(times));
        self.losses.iter().filter(wanted)
    }

    /// What all recordings have in common, if anything.
    pub fn profile(&self) -> &str {
        match self.profiles.first() {
            Some(profile) if self.profiles.len() == 1 => profile,
            _ => "",
        }
    }

    /// The latest log time that is no outlier: what times "before the last message" count from.
    pub fn last_ns(&self) -> Option<u64> {
        self.segments.iter().map(|segment| segment.last_ns).max()
    }

    /// Earliest and latest log time of all; None without messages.
    pub fn times_ns(&self) -> Option<(u64, u64)> {
        let start_ns = self.segments.iter().map(|segment| segment.times_ns.0).min()?;
        let end_ns = self.segments.iter().map(|segment| segment.times_ns.1).max()?;
        Some((start_ns, end_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last(blocks: &[(u64, u64)]) -> Option<u64> {
        let hour = 3_600 * 1_000_000_000;
        let block = |&(start, end): &(u64, u64)| BlockSpan {
            offset: 0,
            bytes: 0,
            start_ns: start * hour,
            end_ns: end * hour,
            messages: 1,
            repeats: false,
        };
        let blocks: Vec<BlockSpan> = blocks.iter().map(block).collect();
        last_ns(&blocks).map(|ns| ns / hour)
    }

    #[test]
    fn a_wild_log_time_is_not_the_last_one() {
        assert_eq!(last(&[]), None);
        assert_eq!(last(&[(1, 1), (1, 2), (2, 2)]), Some(2));
        // After a pause.
        assert_eq!(last(&[(1, 1), (50, 50)]), Some(50));
        // Among others, in the last block, and in a block of its own.
        assert_eq!(last(&[(1, 90), (1, 2), (2, 2)]), Some(2));
        assert_eq!(last(&[(1, 1), (2, 90)]), Some(2));
        assert_eq!(last(&[(1, 1), (90, 90), (2, 2)]), Some(2));
    }
}
