// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the segments of a pool, and their contents. `steady export`, `cat` and `info` begin with
//! it.
//!
//! The survey does not keep the blocks of a segment, since a pool may have millions. A reader
//! examines a segment again, and then detects whether a recorder has begun another life of it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::mem;
use std::path::{Path, PathBuf};

use serde::Serialize;
use steadyio_core::interrupt::Interrupt;
use steadyio_recorder::audit::{self, Loss, manifest};
use steadyio_recorder::incident::Incident;
use steadyio_recorder::mcap::files::{FilesError, WIPED, distinct, examine_file};
use steadyio_recorder::mcap::index::BlockSpan;
use steadyio_recorder::mcap::names::{is_damaged_segment, is_segment, is_unused};
use steadyio_recorder::mcap::private::Life;
use steadyio_recorder::mcap::reading::{Found, Readable, read};

use crate::copies::{open, open_again};
use crate::selection::Selection;

/// A segment with messages.
#[derive(Debug, Clone)]
pub struct Segment {
    pub path: PathBuf,
    pub life: Life,
    /// The earliest and the latest log time.
    pub times_ns: (u64, u64),
    /// The size of its blocks.
    pub bytes: u64,
    pub messages: u64,
    /// The latest log time that is not an outlier.
    pub last_ns: u64,
    /// Other files of the same life.
    pub copies: Vec<PathBuf>,
}

impl Segment {
    fn new(path: &Path, found: &Readable) -> Segment {
        let Readable { life, times_ns, .. } = *found;
        Segment {
            path: path.into(),
            life,
            times_ns,
            bytes: found.blocks.iter().map(|block| block.bytes).sum(),
            messages: found.evidence.present,
            last_ns: last_ns(&found.blocks).unwrap_or(times_ns.1),
            copies: Vec::new(),
        }
    }
}

/// A log time that is this much later than a later record's is an outlier, from a clock that jumped
/// or a wrong header.
const OUTLIER_NS: u64 = 3_600 * 1_000_000_000;

/// The latest end of the blocks, in the order of the file, that is not an outlier.
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

/// A segment that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableSegment {
    pub path: PathBuf,
    pub why: String,
}

/// The part of an incident that the pool has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IncidentSummary {
    pub name: String,
    pub segments: usize,
    /// The number of its segments that are not in the pool, or cannot be read.
    pub missing_segments: usize,
}

/// The segments that can be exported.
#[derive(Debug, Clone, Default)]
pub struct Survey {
    /// The segments; those of a recording are in the order of recording.
    pub segments: Vec<Segment>,
    /// The number of segments without messages.
    pub empty: usize,
    pub unreadable: Vec<UnreadableSegment>,
    pub topics: BTreeSet<String>,
    /// The profiles of the recordings.
    pub profiles: BTreeSet<String>,
    /// The losses found by comparing the segments of a directory.
    pub losses: Vec<Loss>,
    /// The incidents to which the survey is limited, if any.
    pub incidents: Vec<IncidentSummary>,
}

/// There is nothing to export.
#[derive(Debug, thiserror::Error)]
pub enum SurveyError {
    #[error("{}: {why}", path.display())]
    Io { path: PathBuf, why: io::Error },
    #[error("{}: has no segment: give the directory of a recording, or a segment", .0.display())]
    NoSegments(PathBuf),
    #[error("interrupted")]
    Interrupted,
}

/// The number of times that the directory is read again before anything counts as missing.
const LOOKS_AGAIN_MAX: usize = 2;
const NO_DEFINITIONS: &str = "holds data, but its definitions and their copy are damaged";
const NO_FILE: &str = "not a regular file";
/// The reason for a complete file from another program.
const FOREIGN: &str = "was not written by a steadyio recorder; 'mcap filter' takes such files";

/// The segments of a directory, by name, or this one. The list is empty for a pool that has lost
/// all of them.
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

/// Whether a file belongs to the pool. Segments that a recorder renamed as damaged do not.
fn in_pool(path: &Path) -> bool {
    path.file_name().is_some_and(is_segment)
}

/// Whether this is the list of segments.
pub(crate) fn is_list(path: &Path) -> bool {
    path.file_name().is_some_and(manifest::is_list)
}

/// Whether a loss may be of segments that incidents keep. If it may be of others, too, it is an
/// upper limit.
fn concerns(loss: &mut Loss, incidents: &[Incident], is_any_gone: bool) -> bool {
    let Some((first, last)) = loss.lives else { return is_any_gone };
    let kept = incidents.iter().flat_map(|incident| &incident.segments);
    let lives: BTreeSet<u64> = kept.map(|segment| segment.sequence).collect();
    let count = lives.range(first..=last).count() as u64;
    loss.at_most |= count <= last - first;
    count > 0
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> SurveyError {
    let path = path.to_path_buf();
    move |why| SurveyError::Io { path, why }
}

impl Survey {
    /// Surveys directories of recordings, and single segments, each once. `progress` gets the number of files
    /// read, and of all files.
    pub fn of(
        paths: &[PathBuf],
        stop: &Interrupt,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Survey, SurveyError> {
        let paths = &distinct(paths);
        let mut survey = Survey::look(paths, stop, progress)?;
        for _ in 0..LOOKS_AGAIN_MAX {
            if survey.losses.is_empty() {
                break;
            }
            // A recorder may have continued between reading two segments.
            survey = Survey::look(paths, stop, progress)?;
        }
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
        let (mut survey, mut done, mut found) = (Survey::default(), 0, Vec::new());
        for files in &places {
            let mut of_place = Vec::with_capacity(files.len());
            for path in files {
                progress(done, all);
                done += 1;
                if stop.requested() {
                    return Err(SurveyError::Interrupted);
                }
                of_place.extend(survey.add(path));
            }
            found.push(of_place);
        }
        survey.join_copies(&mut found);
        for (at, place) in paths.iter().enumerate() {
            survey.audit(place, &found[at], found[..at].iter().chain(&found[at + 1..]));
        }
        Ok(survey)
    }

    /// If a life is there twice, as a segment and as an earlier copy, the one with more messages
    /// counts, with the blocks that only the other one has.
    fn join_copies(&mut self, found: &mut [Vec<audit::Found>]) {
        let life = |segment: &Segment| {
            (segment.life.identity.sequence, segment.life.identity.recording_id)
        };
        self.segments.sort_by_key(|segment| (life(segment), Reverse(segment.messages)));
        self.segments.dedup_by(|copy, kept| {
            let is_copy = life(copy) == life(kept);
            kept.copies.extend(is_copy.then(|| mem::take(&mut copy.path)));
            is_copy
        });
        for segment in self.segments.iter_mut().filter(|segment| !segment.copies.is_empty()) {
            let Segment { path, life, copies, .. } = &*segment;
            let Ok(Some((_, joined))) = open_again(path, life, copies) else { continue };
            let copies = mem::take(&mut segment.copies);
            *segment = Segment { copies, ..Segment::new(&segment.path, &joined) };
            for file in found.iter_mut().flatten() {
                match file {
                    audit::Found::Life { path, evidence, .. } if *path == segment.path => {
                        *evidence = joined.evidence;
                    }
                    audit::Found::Aside { life, evidence }
                        if life.identity == segment.life.identity
                            && evidence.present < segment.messages =>
                    {
                        *evidence = joined.evidence;
                    }
                    _ => {}
                }
            }
        }
    }

    /// Counts the losses of a place. Messages that another place has are not lost.
    fn audit<'a>(
        &mut self,
        place: &Path,
        found: &[audit::Found],
        elsewhere: impl Iterator<Item = &'a Vec<audit::Found>>,
    ) {
        let list = if place.is_dir() { manifest::read(place) } else { None };
        if let Some(path) = manifest::damaged(place) {
            self.add_unreadable(&path, manifest::DAMAGED);
        }
        let mut found = found.to_vec();
        found.extend(elsewhere.flatten().filter_map(audit::Found::aside));
        for loss in audit::losses(&found, list.as_ref()) {
            let is_same =
                |known: &&mut Loss| loss.identity.is_some() && known.identity == loss.identity;
            match self.losses.iter_mut().find(is_same) {
                Some(known) if known.messages < loss.messages => *known = loss,
                Some(_) => {}
                None => self.losses.push(loss),
            }
        }
    }

    /// Limits the survey to the segments that these incidents keep.
    pub fn only(&mut self, incidents: &[Incident]) {
        let is_kept = |life: &Life| incidents.iter().any(|one| one.holds(&life.identity));
        self.segments.retain(|segment| is_kept(&segment.life));
        self.incidents = incidents.iter().map(|incident| self.incident(incident)).collect();
        let is_any_gone = self.incidents.iter().any(|incident| incident.missing_segments > 0);
        self.losses.retain_mut(|loss| concerns(loss, incidents, is_any_gone));
        let files: BTreeSet<&str> =
            incidents.iter().flat_map(|one| &one.segments).map(|kept| kept.file.as_str()).collect();
        let name =
            |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // The name may have a suffix.
        self.unreadable.retain(|one| {
            is_list(&one.path)
                || name(&one.path).split('.').next().is_some_and(|stem| files.contains(stem))
        });
    }

    /// The part of an incident that is there.
    pub(crate) fn incident(&self, incident: &Incident) -> IncidentSummary {
        let there = |segment: &&Segment| incident.holds(&segment.life.identity);
        let (there, segments) =
            (self.segments.iter().filter(there).count(), incident.segments.len());
        let (name, missing_segments) = (incident.name.clone(), segments - there);
        IncidentSummary { name, segments, missing_segments }
    }

    /// Adds a segment, and returns it for the audit of the pool.
    fn add(&mut self, path: &Path) -> Option<audit::Found> {
        // Opening a FIFO would block.
        if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
            self.add_unreadable(path, NO_FILE);
            return in_pool(path).then_some(audit::Found::Unreadable);
        }
        let (file, path) = match open(path) {
            // The segment was removed or renamed.
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
                        let why = match examine_file(path, false) {
                            Err(FilesError::Recover { why, .. }) => why.to_string(),
                            _ => WIPED.into(),
                        };
                        self.add_unreadable(path, &why);
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
        if in_pool(path) { Some(audited) } else { audited.aside() }
    }

    fn add_segment(&mut self, path: &Path, found: &Readable) {
        self.profiles.insert(found.profile.clone());
        self.topics.extend(found.definitions.topics().iter().cloned());
        self.segments.push(Segment::new(path, found));
    }

    fn add_unreadable(&mut self, path: &Path, why: &str) {
        self.unreadable.push(UnreadableSegment { path: path.into(), why: why.into() });
    }

    /// The losses that may concern selected messages.
    pub fn losses_in<'a>(&'a self, selection: &'a Selection) -> impl Iterator<Item = &'a Loss> {
        let wanted =
            |loss: &&Loss| loss.times_ns.is_none_or(|times| selection.wants_some_of(times));
        self.losses.iter().filter(wanted)
    }

    /// The common profile of all recordings; empty if they differ.
    pub fn profile(&self) -> &str {
        match self.profiles.first() {
            Some(profile) if self.profiles.len() == 1 => profile,
            _ => "",
        }
    }

    /// The latest log time that is not an outlier, among the segments of each directory. Times
    /// "before the last message" count from it.
    pub fn last_ns(&self) -> Option<u64> {
        let mut earliest_later = BTreeMap::new();
        let mut last_ns = None;
        // The newest ones come last.
        for segment in self.segments.iter().rev() {
            let later_ns = earliest_later.entry(segment.path.parent()).or_insert(u64::MAX);
            *later_ns = segment.last_ns.min(*later_ns);
            if segment.last_ns - *later_ns <= OUTLIER_NS {
                last_ns = last_ns.max(Some(segment.last_ns));
            }
        }
        last_ns
    }

    /// The earliest and the latest log time of all; None without messages.
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
        // Among others, in the last block, and in a separate block.
        assert_eq!(last(&[(1, 90), (1, 2), (2, 2)]), Some(2));
        assert_eq!(last(&[(1, 1), (2, 90)]), Some(2));
        assert_eq!(last(&[(1, 1), (90, 90), (2, 2)]), Some(2));
    }
}
