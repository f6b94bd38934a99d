// SPDX-License-Identifier: MIT OR Apache-2.0
//! Handles a failing device: retries until it works, and finds out which blocks are on the medium.
//!
//! [`super`] calls it as soon as a write or sync has failed. Nothing else runs meanwhile, so the
//! state of the medium cannot change before it is counted; the rings take new records.
//!
//! A failure makes all data uncertain that was written since the last successful sync. The kernel
//! may have dropped pages whose write-back failed, and a device that was reset has lost its cache.
//! A later sync of the same file can then succeed with neither on the medium. Therefore the blocks
//! are written and synced again, from their buffers or from data that is read back and has the
//! right checksum. In the page cache that makes clean pages dirty, so the sync writes them.

use std::io;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use super::state::{COPY, Ending, GATE, HEAD, InUse, Stage, Stop, TAIL, Trouble, blocks_used};
use crate::config::OnFailure;
use crate::mcap::encoder::FileRange;
use crate::mcap::private::{BlockRecord, Identity};
use crate::pool::direct_io::{DiskOp, Done};
use crate::pool::job::Job;
use crate::pool::meters::{RecordingState, count};
use crate::read_only::refuse_read_only;
use crate::source::now_ns;

/// The pauses between attempts: the first and the longest. Each is twice as long as the one before.
const PAUSE: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));
/// A place is bad if it cannot be written for this time while syncs succeed.
const BAD_AFTER: Duration = Duration::from_secs(2);
/// The longest wait for a failing device at the end of a recording.
const PATIENCE_AT_THE_END: Duration = Duration::from_secs(5);

/// The failed part of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Culprit {
    Device,
    /// The device works, but not at this place.
    Records,
    Ending,
    Next,
}

type Attempt = Result<(), (Culprit, io::Error)>;

fn device(error: io::Error) -> (Culprit, io::Error) {
    (Culprit::Device, error)
}

impl Stage {
    /// Handles a failed operation.
    pub(super) fn after_failure(&mut self) -> Result<(), Stop> {
        let mut first = None;
        for done in self.parts.disk.settle() {
            self.measure(&done);
            match (done.what, done.result) {
                (DiskOp::Write(slot), Ok(())) => self.flight.landed(slot),
                (DiskOp::Sync, Ok(())) => {}
                (what, Err(error)) => {
                    count(&self.parts.meters.failures, 1);
                    first.get_or_insert((what, error));
                }
            }
        }
        first.map_or(Ok(()), |(what, error)| self.retry(what, error))
    }

    /// Whether the result of a successful sync can be trusted.
    pub(super) fn file_system_takes(&self, done: &Done) -> io::Result<()> {
        let in_use = self.file.as_ref().map(|in_use| &in_use.file);
        let of_job = || {
            let next = self.next.as_ref().map(|next| &next.job);
            self.ending.as_ref().map(|ending| &ending.job).or(next).map(Job::file)
        };
        match (done.what, in_use.or_else(of_job)) {
            (DiskOp::Sync, Some(file)) => refuse_read_only(file),
            _ => Ok(()),
        }
    }

    /// Retries until all submitted data is durable or lost, and the device works.
    pub(super) fn retry(&mut self, what: DiskOp, error: io::Error) -> Result<(), Stop> {
        let mut why = format!("{}: {error}", self.describe(what));
        self.suspect(what == DiskOp::Sync);
        loop {
            self.suffer(&why)?;
            let Err((culprit, error)) = self.attempt() else { break };
            count(&self.parts.meters.failures, 1);
            why = error.to_string();
            self.suspect(culprit == Culprit::Device);
            if self.is_bad(culprit) && self.give_up(culprit) {
                break;
            }
        }
        let lost = self.trouble.as_ref().is_some_and(|trouble| trouble.segment_lost);
        self.recovered();
        if lost {
            self.leave();
            return Err(Stop::SegmentLost);
        }
        Ok(())
    }

    /// Marks all data and jobs as uncertain that no sync covers.
    fn suspect(&mut self, sync_failed: bool) {
        self.flight.discard_sync();
        let next = self.next.iter_mut().map(|next| &mut next.job);
        let jobs = self.ending.iter_mut().map(|ending| &mut ending.job).chain(next);
        jobs.for_each(Job::rewind);
        self.sync_worked &= !sync_failed;
    }

    fn trouble_since_now(&mut self) -> &mut Trouble {
        self.trouble.get_or_insert_with(|| Trouble {
            since_ns: now_ns(),
            pause: PAUSE.0,
            bad_since_ns: None,
            given_up: false,
            segment_lost: false,
        })
    }

    /// Reports the failure, and waits a while, unless the configuration says not to wait.
    pub(super) fn suffer(&mut self, why: &str) -> Result<(), Stop> {
        self.parts.meters.set_trouble(why.into());
        let trouble = self.trouble_since_now();
        let (since_ns, pause) = (trouble.since_ns, trouble.pause);
        trouble.pause = (pause * 2).min(PAUSE.1);
        if self.parts.on_failure == OnFailure::Exit {
            return Err(Stop::Failed);
        }
        if self.parts.meters.state() == RecordingState::Recording {
            self.parts.meters.set_state(RecordingState::Waiting { since_ns, why: why.into() });
        }
        let patience_ns = PATIENCE_AT_THE_END.as_nanos() as u64;
        if self.parts.stop.load(Ordering::Acquire) && now_ns() - since_ns >= patience_ns {
            return Err(Stop::Failed);
        }
        thread::park_timeout(pause);
        Ok(())
    }

    pub(super) fn recovered(&mut self) {
        if self.trouble.take().is_some() {
            self.parts.meters.set_state(RecordingState::Recording);
        }
    }

    fn attempt(&mut self) -> Attempt {
        let written = self.write_sent();
        self.sync_any().map_err(device)?;
        self.sync_worked = true;
        written.map_err(|error| (Culprit::Records, error))?;
        self.secure()?;
        self.redo_ending()?;
        self.redo_next()
    }

    /// The result of the single operation in flight.
    fn outcome(&mut self) -> io::Result<()> {
        let mut outcome = Ok(());
        for done in self.parts.disk.settle() {
            self.measure(&done);
            outcome = outcome.and(self.file_system_takes(&done)).and(done.result);
        }
        outcome
    }

    /// Repeats the failed writes. The places of blocks in file and buffers are unchanged.
    fn write_sent(&mut self) -> io::Result<()> {
        for (slot, place) in self.flight.on_their_way() {
            self.write(slot, place);
            self.outcome()?;
            self.flight.landed(slot);
        }
        Ok(())
    }

    /// Whether the device can sync at all; any file of the pool shows that.
    fn sync_any(&mut self) -> io::Result<()> {
        let next = self.next.as_ref().map(|next| next.job.file());
        let job = self.ending.as_ref().map(|ending| ending.job.file()).or(next);
        let Some(file) = self.file.as_ref().map(|in_use| &in_use.file).or(job) else {
            return Ok(());
        };
        self.parts.disk.sync(file);
        self.outcome()
    }

    /// Makes all surviving data durable that was written since the last successful sync.
    fn secure(&mut self) -> Attempt {
        let written: Vec<(FileRange, usize)> = self.flight.written().collect();
        if written.is_empty() {
            return Ok(());
        }
        let there = self.write_again(&written).map_err(|error| (Culprit::Records, error))?;
        if there < written.len() {
            self.flight.lose_written(there);
            self.trouble_since_now().segment_lost = true;
        }
        self.begin_sync();
        self.outcome().map_err(device)?;
        self.synced();
        Ok(())
    }

    /// Returns the number of blocks, from the first, that are there.
    fn write_again(&mut self, written: &[(FileRange, usize)]) -> io::Result<usize> {
        let Some(InUse { identity, .. }) = self.file else { return Ok(0) };
        let (buffered, gone): (Vec<_>, Vec<_>) =
            written.iter().enumerate().partition(|(_, (place, slot))| {
                is_block(&self.parts.disk.buffer(*slot)[..place.bytes], identity, *place)
            });
        let mut there = written.len();
        for (number, &(place, slot)) in buffered {
            if number < there && !self.is_written_again(slot, place)? {
                there = number;
            }
        }
        // A buffer other than that of the block in progress. The rest are free, because all was
        // submitted.
        let spare = (self.slot + 1) % blocks_used(self.parts.encoder.largest_layout());
        for (number, &(place, _)) in gone {
            if number < there && !self.is_restored(spare, place)? {
                there = number;
            }
        }
        Ok(there)
    }

    /// Whether a block was written again. An error means that the place may recover.
    fn is_written_again(&mut self, slot: usize, place: FileRange) -> io::Result<bool> {
        self.write(slot, place);
        match self.outcome() {
            Err(error) if !self.trouble_since_now().given_up => Err(error),
            outcome => Ok(outcome.is_ok()),
        }
    }

    /// Whether a block was restored from data that was read back.
    fn is_restored(&mut self, slot: usize, place: FileRange) -> io::Result<bool> {
        let Some(InUse { file, identity, .. }) = &self.file else { return Ok(false) };
        let (read, identity) = (self.parts.disk.read_back(file, slot, place), *identity);
        match read {
            Err(error) if !self.trouble_since_now().given_up => return Err(error),
            Err(_) => return Ok(false),
            Ok(()) => {}
        }
        let is_there = is_block(&self.parts.disk.buffer(slot)[..place.bytes], identity, place);
        Ok(is_there && self.is_written_again(slot, place)?)
    }

    /// Repeats the write of a summary. While records go into another segment, it does not wait: the
    /// recovery can write the summary.
    fn redo_ending(&mut self) -> Attempt {
        let Some(Ending { mut job, sequence }) = self.ending.take() else { return Ok(()) };
        let ended = self.redo(&mut job, Culprit::Ending);
        if matches!(ended, Err((Culprit::Device, _))) || (ended.is_err() && self.file.is_none()) {
            self.ending = Some(Ending { job, sequence });
            return ended;
        }
        Ok(())
    }

    /// Repeats the preparation of the next segment. While records go into another segment, this can
    /// wait.
    fn redo_next(&mut self) -> Attempt {
        let Some(mut next) = self.next.take_if(|next| !next.rests) else { return Ok(()) };
        let ended = self.redo(&mut next.job, Culprit::Next);
        next.rests = self.file.is_some() && matches!(ended, Err((Culprit::Next, _)));
        let ended = if next.rests { Ok(()) } else { ended };
        self.next = Some(next);
        ended
    }

    fn redo(&mut self, job: &mut Job, culprit: Culprit) -> Attempt {
        job.rewind();
        while !job.is_over() {
            job.go_on(&mut self.parts.disk);
            let culprit = if job.awaits(DiskOp::Sync) { Culprit::Device } else { culprit };
            if let Err(error) = self.outcome() {
                job.rewind();
                return Err((culprit, error));
            }
            job.end_step();
        }
        Ok(())
    }

    /// Whether the place has failed for long enough, while the device worked.
    fn is_bad(&mut self, culprit: Culprit) -> bool {
        let now_ns = now_ns();
        let trouble = self.trouble_since_now();
        if culprit == Culprit::Device {
            trouble.bad_since_ns = None;
            return false;
        }
        let since_ns = *trouble.bad_since_ns.get_or_insert(now_ns);
        u128::from(now_ns - since_ns) >= BAD_AFTER.as_nanos()
    }

    /// Gives up the bad place, if that costs at most one segment. Returns true if nothing is left
    /// to wait for. Otherwise the next attempt makes the data before the place durable.
    fn give_up(&mut self, culprit: Culprit) -> bool {
        let sequence = match culprit {
            Culprit::Device => return false,
            Culprit::Ending => {
                self.ending = None;
                return false;
            }
            Culprit::Records => self.file.as_ref().map(|in_use| in_use.identity.sequence),
            Culprit::Next => self.next.as_ref().map(|next| next.identity.sequence),
        };
        if self.gave_up || !sequence.is_some_and(|sequence| self.parts.pool.give_up(sequence)) {
            return false;
        }
        self.gave_up = true;
        if culprit == Culprit::Next {
            self.next = None;
            count(&self.parts.meters.failed_segments, 1);
            return true;
        }
        self.flight.lose_sent();
        let trouble = self.trouble_since_now();
        (trouble.given_up, trouble.segment_lost) = (true, true);
        false
    }

    /// Leaves the segment in use. Its data that is not durable is lost.
    fn leave(&mut self) {
        self.flight.fail(self.slot);
        count(&self.parts.meters.failed_segments, 1);
        if let Some(InUse { identity, holds_records: false, .. }) = self.file.take() {
            self.parts.pool.stays_empty(identity.sequence);
        }
    }

    /// Ends a recording whose device failed.
    pub fn abandon(&mut self) {
        self.parts.disk.settle();
        self.flight.fail(self.slot);
        (self.file, self.ending, self.next) = (None, None, None);
    }

    fn describe(&self, what: DiskOp) -> String {
        let in_use = self.file.as_ref().map(|in_use| in_use.identity.sequence);
        let ending = self.ending.as_ref().map(|ending| ending.sequence);
        let next = self.next.as_ref().map(|next| next.identity.sequence);
        let (doing, of) = match what {
            DiskOp::Write(TAIL | GATE) => ("writing the summary of", ending),
            DiskOp::Write(COPY | HEAD) => ("beginning", next),
            DiskOp::Write(_) => ("writing", in_use),
            DiskOp::Sync => ("syncing", in_use.or(ending).or(next)),
        };
        let name = of.map_or_else(String::new, |sequence| self.parts.pool.name(sequence));
        format!("{doing} {name}")
    }
}

/// Whether these bytes are the block that was submitted for this place.
fn is_block(bytes: &[u8], identity: Identity, place: FileRange) -> bool {
    BlockRecord::get(bytes).is_some_and(|record| {
        record.identity == identity && record.offset == place.offset && record.fits(bytes)
    })
}
