// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which segments there are, and what they hold.
//!
//! The blocks of a segment are not remembered, since a pool may have millions: who reads a segment
//! looks again, and then sees whether a recorder has begun another life of it.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use steadyio_core::interrupt::Interrupt;
use steadyio_recorder::incident::Incident;
use steadyio_recorder::mcap::names::{is_damaged_segment, is_segment};
use steadyio_recorder::mcap::private::Life;
use steadyio_recorder::mcap::reading::{Found, Readable, read};

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
}

/// A segment that nobody can read any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableSegment {
    pub path: PathBuf,
    pub why: String,
}

/// What is there.
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
    #[error("interrupted; no file was made")]
    Interrupted,
}

/// Of a file that is whole, but none of ours.
const FOREIGN: &str = "was not written by a steadyio recorder; 'mcap filter' takes such files";

/// The segments of a directory, by name; or this one.
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
    if files.is_empty() { Err(SurveyError::NoSegments(path.into())) } else { Ok(files) }
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
        let files: Vec<PathBuf> =
            paths.iter().map(|path| files(path)).collect::<Result<Vec<_>, _>>()?.concat();
        let mut survey = Survey::default();
        for (done, path) in files.iter().enumerate() {
            progress(done, files.len());
            if stop.requested() {
                return Err(SurveyError::Interrupted);
            }
            survey.add(path)?;
        }
        // Of a life that is there twice, as a segment and as an earlier copy of it, the longer one.
        let life = |segment: &Segment| {
            (segment.life.identity.sequence, segment.life.identity.recording_id)
        };
        survey.segments.sort_by_key(|segment| (life(segment), Reverse(segment.bytes)));
        survey.segments.dedup_by_key(|segment| life(segment));
        Ok(survey)
    }

    /// Narrows it to what these incidents keep.
    pub fn only(&mut self, incidents: &[Incident]) {
        let is_kept = |life: &Life| incidents.iter().any(|one| one.holds(&life.identity));
        self.segments.retain(|segment| is_kept(&segment.life));
        let files: BTreeSet<&str> =
            incidents.iter().flat_map(|one| &one.segments).map(|kept| kept.file.as_str()).collect();
        let name =
            |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // With all that was put behind the name.
        self.unreadable.retain(|one| {
            name(&one.path).split('.').next().is_some_and(|stem| files.contains(stem))
        });
        for incident in incidents {
            let there = |segment: &&Segment| incident.holds(&segment.life.identity);
            let (there, segments) =
                (self.segments.iter().filter(there).count(), incident.segments.len());
            let (name, missing_segments) = (incident.name.clone(), segments - there);
            self.incidents.push(IncidentSummary { name, segments, missing_segments });
        }
    }

    fn add(&mut self, path: &Path) -> Result<(), SurveyError> {
        let file = match File::open(path) {
            // A recorder has renamed it since the directory was read.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened.map_err(at(path))?,
        };
        match read(&file) {
            Ok(Found::Messages(found)) => self.add_segment(path, &found),
            Ok(Found::Empty) => self.empty += 1,
            Ok(Found::Foreign) => self.add_unreadable(path, FOREIGN),
            Ok(Found::NoDefinitions) => self
                .add_unreadable(path, "holds data, but its definitions and their copy are damaged"),
            Err(why) => self.add_unreadable(path, &why.to_string()),
        }
        Ok(())
    }

    fn add_segment(&mut self, path: &Path, found: &Readable) {
        self.profiles.insert(found.profile.clone());
        self.topics.extend(found.definitions.topics().iter().cloned());
        let bytes = found.blocks.iter().map(|block| block.bytes).sum();
        let Readable { life, times_ns, .. } = *found;
        self.segments.push(Segment { path: path.into(), life, times_ns, bytes });
    }

    fn add_unreadable(&mut self, path: &Path, why: &str) {
        self.unreadable.push(UnreadableSegment { path: path.into(), why: why.into() });
    }

    /// What all recordings have in common, if anything.
    pub fn profile(&self) -> &str {
        match self.profiles.first() {
            Some(profile) if self.profiles.len() == 1 => profile,
            _ => "",
        }
    }

    /// Earliest and latest log time of all; None without messages.
    pub fn times_ns(&self) -> Option<(u64, u64)> {
        let start_ns = self.segments.iter().map(|segment| segment.times_ns.0).min()?;
        let end_ns = self.segments.iter().map(|segment| segment.times_ns.1).max()?;
        Some((start_ns, end_ns))
    }
}
