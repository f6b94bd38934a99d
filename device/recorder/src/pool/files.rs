// SPDX-License-Identifier: MIT OR Apache-2.0
//! The segments of a pool: which is the next to be overwritten.
//!
//! A recorder must start even if a segment cannot be read: its head, or its definitions and their
//! copy, are damaged, or the device cannot read them. An expert may still extract data from such a
//! segment. It is renamed unchanged, and a new segment replaces it if there is room.
//!
//! While a recording runs nothing here creates, extends, truncates or removes a file. One is renamed
//! when it gets its first record, by `renamer`.

use std::cmp::Reverse;
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use steadyio_core::interrupt::Interrupt;

use super::found::{Discard, Existing, distinct, existing, recover_all, set_unusable_aside};
use super::in_place;
use super::making::{Making, create_missing, make_directory, sync_directory};
use super::pins::{Begun, Moment, Pins, reaching_back};
use super::segment::{PoolError, SEGMENTS_MIN, Segment, at, is_gone, open_segment, stem};
use crate::audit::manifest::{self, Gone, Listed, Manifest};
use crate::audit::{self, Loss};
use crate::incident::files as incident_files;
use crate::incident::{Incident, IncidentError, Kept, KeptSegment, SCHEMA};
use crate::mcap::files::{DirectoryLock, lock_directory};
use crate::mcap::names::{self, DAMAGED};
use crate::mcap::private::Identity;

/// The segments of one directory, locked for one recorder.
#[derive(Debug)]
pub struct Pool {
    segments: Vec<Segment>,
    pins: Pins,
    sequence: u64,
    direct: bool,
    made: usize,
    removed: usize,
    missing: u64,
    gone: Vec<Gone>,
    dir: PathBuf,
    segment_bytes: u64,
    /// Whether any segment may have compressed blocks.
    compressed: bool,
    _lock: DirectoryLock,
}

impl Pool {
    /// Opens the pool in a directory, completes truncated segments, and makes missing ones. An
    /// interrupt ends this. `note` receives messages about completed and made segments.
    pub fn open(
        wanted: &Making<'_>,
        note: &mut dyn FnMut(String),
        stop: &Interrupt,
    ) -> Result<Pool, PoolError> {
        let &Making { dir, count, segment_bytes, .. } = wanted;
        make_directory(dir).map_err(at(dir))?;
        let lock = lock_directory(dir)?;
        let Existing { paths, set_aside, unusable } = existing(dir, segment_bytes)?;
        let unusable = set_unusable_aside(unusable, note)?;
        let set_aside = set_aside + unusable.len();
        if distinct(&paths) > count && !wanted.shrink {
            let (found, wanted) = (paths.len(), count);
            let dir = dir.to_path_buf();
            return Err(PoolError::TooMany { dir, found, wanted, segment_bytes });
        }
        incident_files::remove_unfinished(dir)?;
        let incidents = incident_files::read_all(dir)?;
        let discard = Discard { damaged: wanted.discard_damaged, but: &incidents };
        let (mut segments, sequence, found) = recover_all(&paths, count, discard, note)?;
        let found: Vec<audit::Found> = found.into_iter().chain(unusable).collect();
        if let Some(path) = manifest::damaged(dir) {
            note(format!("{}: {}", path.display(), manifest::DAMAGED));
        }
        let list = manifest::read(dir);
        // A life that is gone keeps its sequence: two lives with one would look like one.
        let sequence = sequence.max(list.as_ref().map_or(0, Manifest::last_sequence));
        let losses = audit::losses(&found, list.as_ref());
        let new: Vec<&Loss> = losses.iter().filter(|loss| !loss.known).collect();
        new.iter().for_each(|loss| note(loss.describe()));
        let missing = new.iter().map(|loss| loss.messages).sum();
        let there: Vec<Identity> = segments.iter().filter_map(Segment::identity).collect();
        let gone = audit::gone(&losses, &there, sequence);
        let sequence = gone.iter().map(|gone| gone.last).fold(sequence, u64::max);
        for segment in &mut segments {
            let of = |loss: &&Loss| loss.identity.is_some() && loss.identity == segment.identity();
            if let Some(loss) = losses.iter().find(of) {
                (segment.missing, segment.missing_at_most) = (loss.messages, loss.at_most);
            }
        }
        let kept = segments.iter().filter(|segment| is_kept(segment, &incidents)).count();
        let too_few = || {
            let names: Vec<&str> = incidents.iter().map(|one| one.name.as_str()).collect();
            PoolError::Kept { dir: dir.to_path_buf(), incidents: names.join(", "), kept }
        };
        if kept > 0 && count < kept + SEGMENTS_MIN {
            return Err(too_few());
        }
        let is_new = found.is_empty() && list.is_none();
        let had_compressed = !is_new && audit::may_be_compressed(&found, list.as_ref());
        let set_aside = set_aside + paths.len() - segments.len();
        let removed = remove_oldest(&mut segments, count, &incidents, note)?;
        let mut taken: Vec<PathBuf> = segments.iter().map(|segment| segment.path.clone()).collect();
        match create_missing(wanted, &mut taken, note, stop) {
            Err(error @ PoolError::NoSpace { .. })
                if set_aside > 0 && taken.len() >= kept + SEGMENTS_MIN =>
            {
                let left = taken.len();
                note(format!("{error}; recording with {left} segments: move *{DAMAGED} elsewhere"));
            }
            made => made?,
        }
        let made = taken.split_off(segments.len());
        let made_count = made.len();
        in_place::warning(dir, segments.iter().map(|segment| &*segment.path))
            .into_iter()
            .for_each(&mut *note);
        segments.extend(made.into_iter().map(Segment::empty));
        sync_directory(dir)?;
        check_writable(&mut segments, note)?;
        let pins = pin_all(&segments, &incidents, note);
        let writable = segments.iter().find(|segment| !segment.bad);
        let direct = writable.is_some_and(|one| open_segment(&one.path, true).is_ok());
        let made = made_count;
        let dir = dir.to_path_buf();
        let pool = Pool {
            segments,
            pins,
            sequence,
            direct,
            made,
            removed,
            missing,
            gone,
            dir,
            segment_bytes,
            compressed: wanted.compressed || had_compressed,
            _lock: lock,
        };
        pool.list(false).unwrap_or_else(|error| note(error.to_string()));
        Ok(pool)
    }

    /// Messages that were there once and that this start did not find.
    pub fn missing(&self) -> u64 {
        self.missing
    }

    /// Writes down what the segments hold, so that what goes missing is noticed.
    pub fn list(&self, ended: bool) -> Result<(), PoolError> {
        let of = |segment: &Segment| {
            let identity = segment.identity().filter(|_| segment.begun.is_some())?;
            let &Segment { messages, missing, missing_at_most: at_most, .. } = segment;
            Some((identity, Listed { messages: messages + missing, missing, at_most }))
        };
        let lives = self.segments.iter().filter_map(of);
        let unreadable = self.segments.iter().filter(|segment| segment.unreadable).count();
        let list = Manifest::new(self.segments.len(), self.segment_bytes, ended, lives)
            .with(unreadable, self.gone.clone())
            .with_compression(self.compressed);
        manifest::write(&self.dir, &list).map_err(at(&self.dir))
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

    /// Which may have another life.
    fn free(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.segments.len()).filter(|&at| !self.segments[at].bad && !self.pins.holds(at))
    }

    fn oldest(&self) -> Option<usize> {
        self.free().min_by_key(|&at| self.segments[at].sequence)
    }

    /// Whether another segment is free besides the one with this life, which goes on.
    pub fn has_another(&self, sequence: Option<u64>) -> bool {
        let others = |at: &usize| sequence.is_none() || self.segments[*at].sequence != sequence;
        self.free().any(|at| others(&at))
    }

    /// How many incidents there are, and how many segments they keep.
    pub fn kept(&self) -> (usize, usize) {
        let kept = (0..self.segments.len()).filter(|&at| self.pins.holds(at)).count();
        (self.pins.incidents(), kept)
    }

    /// Opens the segment that was recorded longest ago, or never, for its next life, and returns
    /// it with the sequence number of that life. One that cannot be opened is not used again, if
    /// there are others.
    pub fn open_oldest(&mut self) -> Result<(File, u64), PoolError> {
        // One is always free: see `give_up` and `keep`.
        let oldest = self.oldest().ok_or_else(|| {
            at(&self.segments[0].path)(io::Error::other(
                "no segment is left: incidents keep them, or they cannot be opened",
            ))
        })?;
        let segment = &mut self.segments[oldest];
        let file = open_segment(&segment.path, self.direct).or_else(|error| {
            // It may not be renamed yet.
            open_segment(&names::named(&segment.path, false), self.direct).map_err(|_| error)
        });
        let file = file.map_err(|error| {
            segment.bad = is_gone(&error);
            at(&segment.path)(error)
        })?;
        self.sequence += 1;
        segment.sequence = Some(self.sequence);
        segment.begun = None;
        (segment.messages, segment.missing, segment.missing_at_most) = (0, 0, false);
        Ok((file, self.sequence))
    }

    /// Those with records, the newest first.
    pub(super) fn newest_first(&self) -> Vec<PathBuf> {
        let mut recorded: Vec<&Segment> =
            self.segments.iter().filter(|segment| segment.sequence.is_some()).collect();
        recorded.sort_by_key(|segment| Reverse(segment.sequence));
        recorded.iter().map(|segment| segment.path.clone()).collect()
    }

    /// The newest segment, if it may take more records. One that an incident keeps stays as it is.
    pub fn open_newest(&self) -> Option<File> {
        let (at, newest) =
            self.segments.iter().enumerate().max_by_key(|(_, segment)| segment.sequence)?;
        let is_whole = newest.sequence.is_some() && newest.missing == 0 && !newest.bad;
        let is_usable = is_whole && !self.pins.holds(at);
        if !is_usable {
            return None;
        }
        open_segment(&newest.path, self.direct).ok()
    }

    /// Records come into the segment of this life from now on.
    pub fn begin(&mut self, identity: Identity, now_ns: u64) {
        if let Some(segment) = self.of(identity.sequence) {
            segment.recording_id = identity.recording_id;
            segment.begun = Some(Begun::Now(now_ns));
        }
    }

    /// The segment of this life is whole, and holds so many messages.
    pub fn end(&mut self, sequence: u64, messages: u64) {
        if let Some(segment) = self.of(sequence) {
            segment.messages = messages;
        }
    }

    /// Keeps the lives that hold the last so much time.
    pub fn keep(&mut self, name: &str, last: Duration, now: Moment) -> Result<Kept, IncidentError> {
        if self.pins.has(name) {
            return Err(IncidentError::Exists(name.into()));
        }
        let mut lives: Vec<(Identity, Begun, usize)> = Vec::with_capacity(self.segments.len());
        for (at, segment) in self.segments.iter().enumerate() {
            let life = segment.identity().zip(segment.begun);
            lives.extend(life.map(|(identity, begun)| (identity, begun, at)));
        }
        lives.sort_by_key(|(identity, ..)| identity.sequence);
        let begun = lives.iter().rev().map(|(_, begun, _)| *begun);
        let (count, covered) = reaching_back(begun, last, now);
        if count == 0 {
            return Err(IncidentError::Nothing(name.into()));
        }
        let chosen = &lives[lives.len() - count..];
        let positions: Vec<usize> = chosen.iter().map(|(.., at)| *at).collect();
        let free = self.free().filter(|at| !positions.contains(at)).count();
        if free < SEGMENTS_MIN {
            let needed = positions.iter().filter(|at| !self.pins.holds(**at)).count();
            let (name, segments) = (name.into(), self.segments.len());
            return Err(IncidentError::NoRoom { name, last, needed, free, segments });
        }
        let segment = |(identity, _, at): &(Identity, Begun, usize)| {
            KeptSegment::new(stem(&self.segments[*at].path), identity)
        };
        let incident = Incident {
            schema: SCHEMA.into(),
            name: name.into(),
            asked_ns: last.as_nanos() as u64,
            from_ns: now.wall_ns.saturating_sub(covered.as_nanos() as u64),
            to_ns: now.wall_ns,
            segments: chosen.iter().map(segment).collect(),
        };
        self.pins.add(name.into(), positions);
        let kept_segments = self.kept().1 as u64;
        Ok(Kept { incident, kept_segments, free_segments: free as u64, durable: false })
    }

    /// What this incident kept may be overwritten, unless another one has it.
    pub fn release(&mut self, name: &str) {
        self.pins.remove(name);
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
        let another = self.has_another(Some(sequence));
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

/// Waiting does not bring it back.
/// What cannot be opened would be found at a rotation only. It is not used, if there are others.
fn check_writable(segments: &mut [Segment], note: &mut dyn FnMut(String)) -> Result<(), PoolError> {
    let mut errors = Vec::new();
    for segment in segments.iter_mut() {
        let Err(why) = open_segment(&segment.path, false) else { continue };
        segment.bad = is_gone(&why);
        let error = at(&segment.path)(why);
        if !segment.bad {
            return Err(error);
        }
        errors.push(error);
    }
    let good = segments.iter().filter(|segment| !segment.bad).count();
    if good < SEGMENTS_MIN {
        return errors.into_iter().next().map_or(Ok(()), Err);
    }
    errors.iter().for_each(|error| note(format!("{error}; recording goes on without it")));
    Ok(())
}

/// The name of a segment, with records or without.
fn is_kept(segment: &Segment, incidents: &[Incident]) -> bool {
    let identity = segment.identity();
    identity.is_some_and(|identity| incidents.iter().any(|incident| incident.holds(&identity)))
}

/// Says what incidents cost, and what they have lost.
fn pin_all(segments: &[Segment], incidents: &[Incident], note: &mut dyn FnMut(String)) -> Pins {
    let mut pins = Pins::default();
    for incident in incidents {
        let held =
            |at: &usize| segments[*at].identity().is_some_and(|identity| incident.holds(&identity));
        let positions: Vec<usize> = (0..segments.len()).filter(held).collect();
        let (there, all) = (positions.len(), incident.segments.len());
        if there < all {
            let name = &incident.name;
            note(format!("incident {name}: {} of {all} segments are missing", all - there));
        }
        pins.add(incident.name.clone(), positions);
    }
    pins
}

/// Those that are too many: first without records, then the oldest that no incident has. Returns
/// how many.
fn remove_oldest(
    segments: &mut Vec<Segment>,
    count: usize,
    incidents: &[Incident],
    note: &mut dyn FnMut(String),
) -> Result<usize, PoolError> {
    let mut removed = 0;
    while segments.len() > count {
        let is_free = |at: &usize| !segments[*at].bad && !is_kept(&segments[*at], incidents);
        let free = (0..segments.len()).filter(is_free);
        // There are more: the caller has counted them.
        let Some(oldest) = free.min_by_key(|&at| segments[at].sequence) else { break };
        let Segment { path, messages, .. } = &segments[oldest];
        fs::remove_file(path).map_err(at(path))?;
        note(format!("{}: removed, with {messages} messages", path.display()));
        segments.remove(oldest);
        removed += 1;
    }
    Ok(removed)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
