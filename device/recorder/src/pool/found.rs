// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prepares the existing segments at the start of a recording: completes unfinished ones, and
//! renames those that are damaged or duplicates. `files` calls it.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::pins::Begun;
use super::segment::{PoolError, Segment, at, is_gone, stem};
use crate::audit;
use crate::config::is_segment_size;
use crate::incident::Incident;
use crate::mcap::files::{
    FilesError, NO_DEFINITIONS, ReadLimit, Recovered, audited, call_unused, examine_file,
    recover_segment,
};
use crate::mcap::layout::ALIGN_BYTES;
use crate::mcap::names::{DAMAGED, is_damaged_segment, is_segment, is_unused, named};
use crate::mcap::private::Identity;
use crate::mcap::reading;
use crate::mcap::recover::{Examined, RecoverError, State};

/// The segments of a directory, before a start changes anything.
pub(super) struct Existing {
    pub(super) paths: Vec<PathBuf>,
    /// The number of segments renamed as damaged.
    pub(super) set_aside: usize,
    /// Segments that cannot be used, with the reason.
    pub(super) unusable: Vec<(PathBuf, &'static str)>,
}

const NO_FILE: &str = "is not a regular file";
const SHORTER: &str = "is shorter than a segment: its end was cut off";
const TWIN: &str = "has the number of another segment";
const LONGER: &str = "is longer than a segment: something was appended";

pub(super) fn existing(dir: &Path, segment_bytes: u64) -> Result<Existing, PoolError> {
    let (mut files, mut set_aside) = (Vec::new(), 0);
    for entry in fs::read_dir(dir).map_err(at(dir))? {
        let entry = entry.map_err(at(dir))?;
        set_aside += usize::from(is_damaged_segment(&entry.file_name()));
        if is_segment(&entry.file_name()) {
            let path = entry.path();
            let metadata = entry.metadata().map_err(at(&path))?;
            files.push((path, metadata.is_file().then_some(metadata.len())));
        }
    }
    files.sort();
    let (mut paths, mut unusable) = (Vec::new(), Vec::new());
    for (path, bytes) in &files {
        match why_unusable(path, *bytes, &files, segment_bytes)? {
            Some(why) => unusable.push((path.clone(), why)),
            None => paths.push(path.clone()),
        }
    }
    Ok(Existing { paths, set_aside, unusable })
}

/// The reason why a file with this size cannot be used. If the segments have another size than
/// requested, this is an error.
fn why_unusable(
    path: &Path,
    bytes: Option<u64>,
    files: &[(PathBuf, Option<u64>)],
    wanted: u64,
) -> Result<Option<&'static str>, PoolError> {
    let is_one_of_many = || files.iter().any(|(_, bytes)| *bytes == Some(wanted));
    let Some(found) = bytes else {
        let path = path.to_path_buf();
        return match is_one_of_many() {
            true => Ok(Some(NO_FILE)),
            false => Err(PoolError::NoSegment { path, wanted }),
        };
    };
    let has_twin = || files.iter().any(|(other, _)| *other == named(path, true));
    if is_unused(path) && has_twin() {
        return Ok(Some(TWIN));
    }
    if found == wanted {
        return Ok(None);
    }
    // Too short to say what it was: only its name and the others say that it is a segment.
    let says_nothing = is_unused(path) || found < ALIGN_BYTES as u64;
    if is_of_size(path, wanted) || (says_nothing && is_one_of_many()) {
        return Ok(Some(if found < wanted { SHORTER } else { LONGER }));
    }
    let path = path.to_path_buf();
    Err(match is_segment_size(found) {
        true => PoolError::OtherSize { path, found, wanted },
        false => PoolError::NoSegment { path, wanted },
    })
}

/// The lower limit of the number of segments: without copies, and without those whose life is
/// unknown.
pub(super) fn distinct(paths: &[PathBuf]) -> usize {
    let life = |path: &PathBuf| reading::life(&File::open(path).ok()?).ok()?;
    let lives: HashSet<Identity> =
        paths.iter().filter_map(life).map(|life| life.identity).collect();
    let is_empty = |path: &&PathBuf| is_unused(path) && life(path).is_none();
    lives.len() + paths.iter().filter(is_empty).count()
}

/// Whether a segment names this size, or names none.
fn is_of_size(path: &Path, segment_bytes: u64) -> bool {
    let recovered = examine_file(path, false);
    let life = recovered.as_ref().ok().and_then(|recovered| recovered.found.life);
    let is_unknown = || {
        use RecoverError::{UnknownLife, Unreadable, WrongSize};
        match &recovered {
            Err(FilesError::Recover { why: WrongSize { head, .. }, .. }) => *head == segment_bytes,
            Err(FilesError::Recover { why, .. }) => matches!(why, UnknownLife | Unreadable(_)),
            found => found.as_ref().is_ok_and(|found| found.wiped),
        }
    };
    life.map_or_else(is_unknown, |life| life.segment_bytes == segment_bytes)
}

/// Renames unusable segments. No recording uses them, but their readable parts can be exported.
pub(super) fn set_unusable_aside(
    unusable: Vec<(PathBuf, &'static str)>,
    note: &mut dyn FnMut(String),
) -> Result<Vec<audit::Found>, PoolError> {
    let mut found = Vec::with_capacity(unusable.len());
    for (path, why) in unusable {
        found.extend(match why {
            // Opening a FIFO would block.
            NO_FILE => Some(audit::Found::Unreadable),
            _ => audited(&path, examine_file(&path, false).as_ref()),
        });
        note(set_segment_aside(&path, why)?);
    }
    Ok(found)
}

/// Recovers all segments. Returns those that were not renamed as damaged, and the highest sequence
/// number. If there are more segments than requested, it also renames the surplus ones that were
/// wiped.
pub(super) fn recover_all(
    paths: &[PathBuf],
    count: usize,
    discard: Discard<'_>,
    note: &mut dyn FnMut(String),
) -> Result<(Vec<Segment>, u64, Vec<audit::Found>), PoolError> {
    let mut segments: Vec<Segment> = Vec::with_capacity(paths.len());
    let mut audits = Vec::with_capacity(paths.len());
    let (mut newest, mut limit, mut unread) = (0, ReadLimit::default(), 0);
    let mut spare = paths.len().saturating_sub(count);
    for path in paths {
        let recovered = recovered(path, limit.takes(path)).and_then(|(path, recovered)| {
            let path = if recovered.wiped { call_unused(&path)? } else { path };
            Ok((path, recovered))
        });
        if let Ok((_, Recovered { found, .. })) = &recovered {
            newest = newest.max(found.identity().map_or(0, |identity| identity.sequence));
            unread += usize::from(found.is_unread());
        }
        let named = recovered.as_ref().map(|(named, recovered)| (named.as_path(), recovered));
        audits.extend(match named {
            Ok((named, recovered)) => audited(named, Ok(recovered)),
            Err(error) => audited(path, Err(error)),
        });
        let wiped = recovered.as_ref().is_ok_and(|(_, recovered)| recovered.wiped);
        let Some(segment) = segment(path, recovered, discard, note)? else {
            spare = spare.saturating_sub(1);
            continue;
        };
        if wiped && spare > 0 {
            note(set_segment_aside(&segment.path, "was wiped, and there are others")?);
            spare -= 1;
            continue;
        }
        let life = segment.identity();
        let earlier = segments.iter().position(|one| life.is_some() && one.identity() == life);
        let Some(earlier) = earlier else {
            segments.push(segment);
            continue;
        };
        let (fewer, more) = match segments[earlier].messages < segment.messages {
            true => (std::mem::replace(&mut segments[earlier], segment), &segments[earlier]),
            false => (segment, &segments[earlier]),
        };
        let why = format!("is a copy of {}", more.path.display());
        note(set_segment_aside(&fewer.path, &why)?);
        spare = spare.saturating_sub(1);
    }
    if unread > 0 {
        note(format!(
            "{unread} of {} segments were not checked for damage, for lack of time; steady recover \
             --verify checks all",
            paths.len()
        ));
    }
    Ok((segments, newest, audits))
}

/// Recovers a segment if it may be written.
fn recovered(path: &Path, verify: bool) -> Result<(PathBuf, Recovered), FilesError> {
    match recover_segment(path, verify) {
        Err(error) if is_out_of_reach(&error) => {
            Ok((path.to_path_buf(), examine_file(path, verify)?))
        }
        recovered => recovered,
    }
}

/// Whether the file is not accessible, for example because it has another owner.
fn is_out_of_reach(error: &FilesError) -> bool {
    matches!(error, FilesError::Io { why, .. } if is_gone(why))
}

/// Recovers a segment; None if it was renamed as damaged.
fn segment(
    path: &Path,
    recovered: Result<(PathBuf, Recovered), FilesError>,
    discard: Discard<'_>,
    note: &mut dyn FnMut(String),
) -> Result<Option<Segment>, PoolError> {
    let path = recovered.as_ref().map_or(path, |(named, _)| named).to_path_buf();
    let path = path.as_path();
    if let Some(why) = damage(&recovered) {
        if !discard.takes(path) {
            note(set_segment_aside(path, &why)?);
            return Ok(None);
        }
        note(format!("{}: {why}; it will be overwritten", path.display()));
        return Ok(Some(Segment::empty(path.to_path_buf())));
    }
    if recovered.as_ref().is_err_and(is_out_of_reach) {
        let unused = Segment::empty(path.to_path_buf());
        return Ok(Some(Segment { bad: true, unreadable: true, ..unused }));
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
    // A segment without messages is used first, because overwriting it loses nothing.
    let unused = Segment { messages: found.messages(), ..Segment::empty(path) };
    let Some(life) = found.life.filter(|_| found.holds_data()) else { return Ok(Some(unused)) };
    let Identity { recording_id, sequence } = life.identity;
    let (sequence, begun) = (Some(sequence), Some(Begun::Before(life.created_ns)));
    Ok(Some(Segment { sequence, recording_id, begun, ..unused }))
}

/// Selects the damaged segments that may be overwritten.
#[derive(Clone, Copy)]
pub(super) struct Discard<'a> {
    pub(super) damaged: bool,
    /// The incidents to keep. The lives of their damaged segments may be unknown.
    pub(super) but: &'a [Incident],
}

impl Discard<'_> {
    fn takes(&self, path: &Path) -> bool {
        let file = stem(path);
        let mut kept = self.but.iter().flat_map(|incident| &incident.segments);
        self.damaged && !kept.any(|segment| segment.file == file)
    }
}

/// The reason why a segment can be neither completed nor read completely, although it may hold
/// data.
fn damage(recovered: &Result<(PathBuf, Recovered), FilesError>) -> Option<String> {
    match recovered {
        // A finished segment names its losses, and the rest is readable.
        Ok((_, Recovered { found: Examined { unreadable: Some(unreadable), state, .. }, .. }))
            if *state != State::Finished =>
        {
            Some(unreadable.to_string())
        }
        Ok((_, recovered)) if recovered.found.state == State::Damaged => {
            Some(NO_DEFINITIONS.into())
        }
        Err(FilesError::Recover { why, .. }) if !why.is_io() => Some(why.to_string()),
        _ => None,
    }
}

/// Renames a damaged segment and returns a note. The directory is locked, so the name stays free.
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
