// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rotation: the change from one segment to the next, as a part of the stage. [`super`] calls it.
//!
//! Records wait only until the data of the full segment is durable. Otherwise a power cut could
//! leave a hole between two segments. A [`Job`] has prepared the next segment before; another job
//! writes the summary of the full one while records are written.

use std::fs::File;

use rustix::fs::fstat;
use steadyio_core::diagnostic;

use super::state::{COPY, Ending, GATE, HEAD, InUse, Next, Stage, Stop, TAIL};
use crate::config::WhenFull;
use crate::mcap::account::CompletedBy;
use crate::mcap::names::rename;
use crate::mcap::private::Identity;
use crate::mcap::resume::Resumable;
use crate::pool::job::{Job, Step};
use crate::pool::meters::count;
use crate::pool::segment::PoolError;
use crate::source::{now_ns, wall_ns};

impl Stage {
    /// Ends the segment in use. Its records and its end block are durable afterwards; the rest is
    /// in flight. Its opened gate need not become durable, because the recovery opens it after a
    /// power cut.
    pub(super) fn end_segment(&mut self) -> Result<(), Stop> {
        self.flush()?;
        if self.is_last() {
            // Then the last account in the file has the fate of all records.
            self.sync_now()?;
        }
        self.snapshot();
        let encoder = &mut self.parts.encoder;
        let end = self.parts.disk.buffer(self.slot);
        let end = encoder.end_block(end, &self.accounts, CompletedBy::Recorder);
        self.send(end)?;
        self.sync_now()?;
        let (encoder, disk) = (&mut self.parts.encoder, &mut self.parts.disk);
        let tail = Step::Write(TAIL, encoder.tail(disk.buffer(TAIL)));
        let gate = encoder.open_gate(disk.buffer(GATE)).map(|gate| Step::Write(GATE, gate));
        let last = self.is_last().then_some(Step::Sync);
        let steps = [Some(tail), Some(Step::Sync), gate, last];
        if let Some(in_use) = &self.file {
            let messages = self.parts.encoder.index().messages();
            self.parts.pool.end(in_use.identity.sequence, messages);
        }
        self.check_is_there();
        self.ending = self.file.take().map(|InUse { file, identity, .. }| Ending {
            job: Job::new(file, steps.into_iter().flatten()),
            sequence: identity.sequence,
        });
        self.run_jobs();
        Ok(())
    }

    /// Whether the segment in use is the last one of the recording.
    fn is_last(&self) -> bool {
        self.finishing || (self.next.is_none() && self.is_used_up())
    }

    /// Whether all segments have records, of this recording or an earlier one, and none may be
    /// overwritten.
    fn is_used_up(&self) -> bool {
        let has_room = self.parts.resumed.is_some() || self.parts.pool.has_empty();
        self.parts.when_full == WhenFull::Stop && !has_room
    }

    /// Ends the recording. The segment in use, if any, is complete and durable afterwards.
    pub fn finish(&mut self) -> Result<(), Stop> {
        self.finishing = true;
        if self.file.is_some() {
            self.end_segment()?;
        }
        self.wait_for_all()?;
        self.settle_names();
        if let Err(error) = self.parts.pool.list(true) {
            diagnostic!("steady: {error}; missing messages may not be counted");
            self.parts.meters.set_trouble(error.to_string());
        }
        Ok(())
    }

    /// Renames a segment that was prepared and not needed, because it has lost its records.
    fn settle_names(&mut self) {
        if let Some(renamer) = self.parts.renamer.take() {
            renamer.finish();
        }
        let Some(Next { identity, resumed: None, .. }) = self.next.take() else { return };
        if let Some((from, to)) = self.parts.pool.rename(identity.sequence, false) {
            if let Err(error) = rename(&from, &to) {
                self.parts.meters.set_trouble(format!("renaming {}: {error}", from.display()));
            }
        }
    }

    /// Prepares a segment for the first record, if this destroys no other record. Otherwise,
    /// starting recorders that receive nothing would destroy all kept records.
    pub fn begin_early(&mut self) {
        if self.parts.pool.has_empty() && self.parts.resumed.is_none() {
            self.look_ahead_now();
        }
    }

    /// Begins the next life of the oldest segment.
    pub(super) fn next_segment(&mut self) -> Result<(), Stop> {
        if self.next.is_none() {
            // With two segments, the next one is still ending.
            self.wait_for_all()?;
        }
        loop {
            let used_up = self.is_used_up();
            match &mut self.next {
                Some(next) if next.job.is_over() => break,
                Some(next) => {
                    next.rests = false;
                    self.run_jobs();
                    self.parts.disk.wait(None);
                    self.take_done()?;
                }
                None if used_up => return Err(Stop::AllFull),
                None => match self.prepare_next() {
                    Ok(()) => self.recovered(),
                    Err(error) => self.suffer(&error.to_string())?,
                },
            }
        }
        let Some(Next { job, identity, created_ns, begun, resumed, .. }) = self.next.take() else {
            return Ok(());
        };
        if let Some(resumed) = resumed {
            self.file = Some(InUse { file: job.into_file(), identity, holds_records: true });
            self.looked_ahead = false;
            self.parts.encoder.resume_life(*resumed, &self.base);
            self.flight.resume_segment(self.parts.encoder.next_block());
            return self.send_added();
        }
        self.file = Some(InUse { file: job.into_file(), identity, holds_records: false });
        self.parts.pool.begin(identity, self.begun_ns.unwrap_or_else(now_ns));
        let names = self.parts.pool.rename(identity.sequence, true);
        if let Some((renamer, names)) = self.parts.renamer.as_ref().zip(names) {
            renamer.rename(names);
        }
        self.looked_ahead = false;
        self.repeats_due = true;
        self.parts.encoder.begin_with(identity, created_ns, begun);
        self.snapshot();
        let buffer = self.parts.disk.buffer(self.slot);
        let place = self.parts.encoder.definitions(buffer, &self.accounts);
        self.flight.begin_segment();
        self.send(place)?;
        self.take_free_slot()?;
        // Definitions that were declared after the segment was prepared.
        self.send_added()
    }

    /// Prepares the oldest segment, whose records are gone from here on. It does so only after a
    /// sync has succeeded.
    fn prepare_next(&mut self) -> Result<(), PoolError> {
        if let Some((resumed, file)) = self.parts.resumed.take() {
            let (identity, created_ns) = (resumed.life.identity, resumed.life.created_ns);
            self.prepare(file, identity, created_ns, Some(resumed));
            return Ok(());
        }
        let (file, sequence) = self.open_oldest()?;
        let identity = Identity { recording_id: self.parts.recording_id, sequence };
        self.prepare(file, identity, wall_ns(), None);
        Ok(())
    }

    /// Opens the oldest usable segment. It skips one that cannot be opened, and that in use.
    fn open_oldest(&mut self) -> Result<(File, u64), PoolError> {
        loop {
            let in_use = self.file.as_ref().map(|in_use| in_use.identity.sequence);
            match self.parts.pool.open_oldest() {
                Err(error) if error.is_gone() && self.parts.pool.has_another(in_use) => {
                    self.lacks(&format!("{error}; recording goes on without this segment"));
                }
                opened => return opened,
            }
        }
    }

    /// Reports that a segment can no longer be used.
    fn lacks(&self, text: &str) {
        count(&self.parts.meters.failed_segments, 1);
        diagnostic!("steady: {text}");
        self.parts.meters.set_trouble(text.into());
    }

    /// Checks whether the file of the segment in use was removed. Its records are gone when it is
    /// closed.
    fn check_is_there(&mut self) {
        let Some(InUse { file, identity, .. }) = &self.file else { return };
        let sequence = identity.sequence;
        if fstat(file).is_ok_and(|stat| stat.st_nlink == 0) {
            let messages = self.parts.encoder.index().messages();
            let name = self.parts.pool.name(sequence);
            count(&self.parts.meters.missing_messages, messages);
            self.lacks(&format!("{name} was removed, with its {messages} messages"));
            self.parts.pool.give_up(sequence);
        }
    }

    fn prepare(
        &mut self,
        file: File,
        identity: Identity,
        created_ns: u64,
        resumed: Option<Box<Resumable>>,
    ) {
        let (encoder, disk) = (&self.parts.encoder, &mut self.parts.disk);
        let probe = (!self.sync_worked).then_some(Step::Sync);
        // The old summary must be gone before any other part of the old life is overwritten.
        let begun = resumed.as_ref().map_or(encoder.mark(), |resumed| resumed.begun());
        let copy = encoder.definitions_copy_of(begun, disk.buffer(COPY), identity, created_ns);
        let copy = copy.map(|copy| Step::Write(COPY, copy));
        let head = Step::Write(HEAD, encoder.head(disk.buffer(HEAD), identity, created_ns));
        // Otherwise its end block would look like a block that a device failure has lost.
        let end = resumed.as_ref().map(|resumed| {
            let place = resumed.end_block();
            disk.buffer(TAIL)[..place.bytes].fill(0);
            Step::Write(TAIL, place)
        });
        let last = end.as_ref().map(|_| Step::Sync);
        let steps = [probe, copy, Some(head), Some(Step::Sync), end, last];
        let job = Job::new(file, steps.into_iter().flatten());
        self.next = Some(Next { job, identity, created_ns, begun, resumed, rests: false });
        self.run_jobs();
    }

    /// Prepares the next segment when it is time, once. If that fails, the change of segment tries
    /// again.
    pub(super) fn look_ahead(&mut self) {
        let free = self.next.is_none() && self.ending.is_none() && !self.is_last();
        if free && !self.looked_ahead && self.parts.encoder.is_nearly_full() {
            self.looked_ahead = true;
            let in_use = self.file.as_ref().map(|in_use| in_use.identity.sequence);
            if !self.parts.pool.has_another(in_use) {
                return;
            }
            self.look_ahead_now();
        }
    }

    fn look_ahead_now(&mut self) {
        if let Err(error) = self.prepare_next() {
            self.parts.meters.set_trouble(error.to_string());
        }
    }

    pub(super) fn rotate(&mut self) -> Result<(), Stop> {
        let start_ns = now_ns();
        self.end_segment()?;
        self.next_segment()?;
        self.rotations.add(now_ns() - start_ns);
        count(&self.parts.meters.rotations, 1);
        Ok(())
    }

    pub(super) fn run_jobs(&mut self) {
        let next = self.next.iter_mut().filter(|next| !next.rests).map(|next| &mut next.job);
        for job in self.ending.iter_mut().map(|ending| &mut ending.job).chain(next) {
            let bytes = job.go_on(&mut self.parts.disk);
            count(&self.parts.meters.device_bytes, bytes as u64);
        }
    }

    pub(super) fn ending_went_on(&mut self) {
        if let Some(ending) = &mut self.ending {
            ending.job.end_step();
        }
        self.ending = self.ending.take().filter(|ending| !ending.job.is_over());
    }
}
