// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rotation: the change from one segment to the next.
//!
//! Records wait until the data of the full segment are durable, lest a power cut leave a hole
//! between two segments, and for nothing else: the next segment was prepared before, and the
//! summary of the full one is written behind, each by an [`Errand`] beside the records.

use std::io;

use super::{AllFull, BLANK, GATE, HEAD, Stage, TAIL, ended_well, no_segment};
use crate::config::WhenFull;
use crate::mcap::account::CompletedBy;
use crate::mcap::private::Identity;
use crate::pool::direct_io::Done;
use crate::pool::errand::{Errand, Step};
use crate::pool::meters::count;
use crate::source::{now_ns, wall_ns};

/// A segment that gets its head for its next life.
pub(super) struct Next {
    pub(super) errand: Errand,
    identity: Identity,
    created_ns: u64,
}

impl Stage {
    /// Ends the segment in use. Its records are durable then, and its end block; the rest is on its
    /// way. Its opened gate need not become durable: the recovery opens it if the power fails.
    fn end_segment(&mut self) -> io::Result<()> {
        self.flush()?;
        if self.is_last() {
            // The last account in the file then says what became of all.
            self.wait_for_all()?;
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
        let file = self.file.take().ok_or_else(no_segment)?;
        let steps = [Some(tail), Some(Step::Sync), gate, last];
        self.ending = Some(Errand::new(file, steps.into_iter().flatten()));
        self.run_errands();
        Ok(())
    }

    /// Whether the segment in use is the last one of the recording.
    fn is_last(&self) -> bool {
        self.finishing || (self.next.is_none() && self.is_used_up())
    }

    /// Whether all segments were begun, and none may be overwritten.
    fn is_used_up(&self) -> bool {
        self.parts.when_full == WhenFull::Stop && self.begun == self.segments()
    }

    /// Ends the recording: the segment in use is whole and durable then.
    pub fn finish(&mut self) -> io::Result<()> {
        self.finishing = true;
        self.end_segment()?;
        self.wait_for_all()
    }

    /// Begins the next life of the oldest segment.
    pub fn next_segment(&mut self) -> io::Result<()> {
        if self.next.is_none() {
            // With two segments it is the one that is ending.
            self.wait_for_all()?;
            if self.is_used_up() {
                return Err(io::Error::other(AllFull));
            }
            self.prepare_next()?;
        }
        while self.next.as_ref().is_some_and(|next| !next.errand.is_over()) {
            self.parts.disk.wait(None);
            self.take_done()?;
        }
        let Next { errand, identity, created_ns } = self.next.take().ok_or_else(no_segment)?;
        self.file = Some(errand.into_file());
        self.looked_ahead = false;
        self.parts.encoder.begin(identity, created_ns);
        self.snapshot();
        let buffer = self.parts.disk.buffer(self.slot);
        let place = self.parts.encoder.definitions(buffer, &self.accounts);
        self.flight.send(self.slot);
        self.send(place)?;
        self.take_free_slot()
    }

    /// From here on the oldest segment is gone.
    fn prepare_next(&mut self) -> io::Result<()> {
        self.begun += 1;
        let (file, sequence) = self.parts.pool.open_oldest().map_err(io::Error::other)?;
        let identity = Identity { recording_id: self.parts.recording_id, sequence };
        let created_ns = wall_ns();
        let (encoder, disk) = (&self.parts.encoder, &mut self.parts.disk);
        // The old summary must be gone before anything else of the old life is overwritten.
        let blank = encoder.blank_tail(disk.buffer(BLANK)).map(|blank| Step::Write(BLANK, blank));
        let head = Step::Write(HEAD, encoder.head(disk.buffer(HEAD), identity, created_ns));
        let steps = [blank, Some(head), Some(Step::Sync)];
        let errand = Errand::new(file, steps.into_iter().flatten());
        self.next = Some(Next { errand, identity, created_ns });
        self.run_errands();
        Ok(())
    }

    /// Prepares the next segment when it is time, once: if that fails, the change of segment tries
    /// again, and another one.
    pub(super) fn look_ahead(&mut self) {
        let free = self.next.is_none() && self.ending.is_none() && !self.is_last();
        if free && !self.looked_ahead && self.parts.encoder.is_nearly_full() {
            self.looked_ahead = true;
            if let Err(error) = self.prepare_next() {
                self.note_failure(&error);
            }
        }
    }

    pub(super) fn rotate(&mut self) -> io::Result<()> {
        let start_ns = now_ns();
        self.end_segment()?;
        self.next_segment()?;
        self.rotations.add(now_ns() - start_ns);
        count(&self.parts.meters.rotations, 1);
        Ok(())
    }

    /// Gives the segment up after an error: waits for what is on its way, and counts it as lost.
    pub fn abandon(&mut self) {
        while !self.parts.disk.is_idle() {
            self.parts.disk.wait(None);
            while self.parts.disk.next_done().is_some() {}
        }
        self.flight.fail(self.slot);
        self.file = None;
        self.ending = None;
        self.next = self.next.take().filter(|next| next.errand.is_over());
        count(&self.parts.meters.failed_segments, 1);
    }

    pub(super) fn run_errands(&mut self) {
        let errands =
            self.ending.iter_mut().chain(self.next.iter_mut().map(|next| &mut next.errand));
        for errand in errands {
            let bytes = errand.go_on(&mut self.parts.disk);
            count(&self.parts.meters.device_bytes, bytes as u64);
        }
    }

    /// Of a segment whose data are durable: while records go into another one, a failure costs the
    /// summary only, which the recovery makes.
    pub(super) fn ending_went_on(&mut self, done: Done) -> io::Result<()> {
        let Some(mut errand) = self.ending.take() else { return Ok(()) };
        let result = ended_well(done, errand.file());
        errand.end_step();
        if result.is_ok() && !errand.is_over() {
            self.ending = Some(errand);
        }
        self.unless_in_use(result)
    }

    pub(super) fn next_went_on(&mut self, done: Done) -> io::Result<()> {
        let Some(mut next) = self.next.take() else { return Ok(()) };
        let result = ended_well(done, next.errand.file());
        next.errand.end_step();
        self.next = result.is_ok().then_some(next);
        self.unless_in_use(result)
    }

    /// The error of an errand is the recording's only if that waits for it.
    fn unless_in_use(&self, result: io::Result<()>) -> io::Result<()> {
        match result {
            Err(error) if self.file.is_some() => {
                self.note_failure(&error);
                Ok(())
            }
            result => result,
        }
    }

    fn note_failure(&self, error: &io::Error) {
        self.parts.meters.set_trouble(error.to_string());
        count(&self.parts.meters.failed_segments, 1);
    }
}
