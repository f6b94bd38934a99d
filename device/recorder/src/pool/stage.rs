// SPDX-License-Identifier: MIT OR Apache-2.0
//! From records to durable segments: the encoder, the buffers, and the file in use.
//!
//! Used by the writer thread only. When the device fails, `retry` waits until it works again, within
//! whatever call met the failure; the rings fill meanwhile.

mod change;
pub mod latched;
mod retry;

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use steadyio_core::latency::Latencies;

use self::change::{Ending, InUse, Next};
use self::latched::Latch;
use self::retry::Trouble;
use super::direct_io::{Disk, DiskOp, Done};
use super::files::Pool;
use super::flight::Flight;
use super::meters::{Meters, count, raise};
use super::pins::Moment;
use super::registry::Addition;
use super::renamer::Renamer;
use crate::config::{OnFailure, WhenFull};
use crate::incident::{IncidentError, Kept};
use crate::ledger::{Amount, Ledger};
use crate::mcap::account::ChannelLedger;
use crate::mcap::definitions::Definitions;
use crate::mcap::encoder::{ADDED_COPIES, Encoder, FileRange, Full, Message};
use crate::mcap::layout::{ALIGN_BYTES, HEAD_BYTES, Layout};
use crate::mcap::resume::Resumable;
use crate::ring::Header;
use crate::sizing::{BUFFERS_MAX as BLOCKS, buffers};
use crate::source::{now_ns, wall_ns};

// These buffers follow those of the blocks: a segment needs them for its other parts.
const TAIL: usize = BLOCKS;
const GATE: usize = BLOCKS + 1;
const COPY: usize = BLOCKS + 2;
const HEAD: usize = BLOCKS + 3;

/// How many of the buffers for blocks are in use.
fn blocks_used(layout: &Layout) -> usize {
    buffers(layout.block_buffer_bytes())
}

/// Sizes of the buffers that a stage needs, with the largest layout that it will have, and whether
/// they are to be locked: each record goes through those of blocks, the others are needed once per
/// segment.
pub fn buffer_sizes(layout: &Layout) -> Vec<(usize, bool)> {
    let mut sizes = vec![(layout.block_buffer_bytes(), true); blocks_used(layout)];
    sizes.resize(BLOCKS, (ALIGN_BYTES, false));
    let others = [layout.tail_bytes_max(), HEAD_BYTES, layout.definitions_bytes(), HEAD_BYTES];
    sizes.extend(others.map(|bytes| (bytes, false)));
    sizes
}

/// Why a call of a stage did not do what it was to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The stage left the segment and lost its unfinished blocks. The next record begins another.
    SegmentLost,
    /// All segments are full, and none may be overwritten.
    AllFull,
    /// The device fails, and it is not to be waited for any longer.
    Failed,
}

/// What a stage is made of.
pub struct Parts {
    /// Turns records into blocks.
    pub encoder: Encoder,
    pub disk: Disk,
    pub pool: Pool,
    /// None if no segment is unused.
    pub renamer: Option<Renamer>,
    /// One per channel.
    pub ledgers: Vec<Arc<Ledger>>,
    /// One per channel.
    pub latches: Vec<Latch>,
    /// Statistics for other threads.
    pub meters: Arc<Meters>,
    /// The longest time whose records a power cut may lose.
    pub loss_window: Duration,
    /// A block is submitted when its oldest record is this old.
    pub flush_after: Duration,
    /// Whether segments are overwritten.
    pub when_full: WhenFull,
    /// Whether a device that fails is waited for.
    pub on_failure: OnFailure,
    /// Set when no more records come; then the thread is unparked.
    pub stop: Arc<AtomicBool>,
    /// New for each recording, unless it continues a segment.
    pub recording_id: [u8; 16],
    /// The segment that is continued, and its file.
    pub resumed: Option<(Box<Resumable>, File)>,
}

/// See the module's head.
pub struct Stage {
    parts: Parts,
    flight: Flight,
    /// None before the first record, and during a rotation.
    file: Option<InUse>,
    /// Full: its data are durable, its summary is being written.
    ending: Option<Ending>,
    next: Option<Next>,
    /// Whether the preparation of the next one was tried while this one is in use.
    looked_ahead: bool,
    /// The buffer that is being filled.
    slot: usize,
    begun: usize,
    trouble: Option<Trouble>,
    /// Whether the last sync of any segment worked; not before there was one.
    sync_worked: bool,
    /// Whether a segment was given up since a record became durable.
    gave_up: bool,
    /// No more records come.
    finishing: bool,
    /// The segment in use is new: latched messages are to be repeated in it.
    repeats_due: bool,
    synced_ns: u64,
    accounts: Vec<ChannelLedger>,
    /// Of the recording that is continued.
    base: Vec<ChannelLedger>,
    /// Writes and syncs so far.
    pub writes: Latencies,
    /// Syncs so far.
    pub syncs: Latencies,
    /// Rotations so far.
    pub rotations: Latencies,
}

impl Stage {
    /// Nothing is written before [`Stage::begin_early`] or the first record.
    pub fn new(parts: Parts) -> Stage {
        let mut base = vec![ChannelLedger::default(); parts.ledgers.len()];
        if let Some((resumed, _)) = &parts.resumed {
            base = resumed.base();
        }
        let stage = Stage {
            base,
            flight: Flight::new(parts.ledgers.clone(), BLOCKS),
            file: None,
            ending: None,
            next: None,
            looked_ahead: false,
            slot: 0,
            begun: 0,
            trouble: None,
            sync_worked: false,
            gave_up: false,
            finishing: false,
            repeats_due: false,
            synced_ns: 0,
            accounts: vec![ChannelLedger::default(); parts.ledgers.len()],
            writes: Latencies::default(),
            syncs: Latencies::default(),
            rotations: Latencies::default(),
            parts,
        };
        stage.tell_kept();
        stage
    }

    /// Name of the engine, and whether it bypasses the page cache.
    pub fn engine(&self) -> (&'static str, bool) {
        (self.parts.disk.engine(), self.parts.pool.is_direct())
    }

    /// Keeps what holds the last so much time, with all that was pushed.
    pub fn keep(&mut self, name: &str, last: Duration) -> Result<Kept, IncidentError> {
        let now = Moment { monotonic_ns: now_ns(), wall_ns: wall_ns() };
        let kept = self.parts.pool.keep(name, last, now);
        self.tell_kept();
        kept
    }

    /// Lets go of it.
    pub fn release(&mut self, name: &str) {
        self.parts.pool.release(name);
        self.tell_kept();
    }

    fn tell_kept(&self) {
        let ((incidents, segments), meters) = (self.parts.pool.kept(), &self.parts.meters);
        meters.incidents.store(incidents as u64, Ordering::Relaxed);
        meters.kept_segments.store(segments as u64, Ordering::Relaxed);
    }

    /// How many segments there are.
    pub fn segments(&self) -> usize {
        self.parts.pool.count()
    }

    /// Takes a record that was appended after `since_ns`.
    pub fn push(
        &mut self,
        channel: usize,
        header: Header,
        payload: [&[u8]; 2],
        since_ns: u64,
    ) -> Result<(), Stop> {
        let log_time_ns = header.log_time_ns;
        let message = Message {
            // At most 10,000 channels: the configuration was checked.
            channel: channel as u16,
            sequence: header.sequence.wrapping_add(self.base[channel].received as u32),
            log_time_ns,
            publish_time_ns: header.publish_time_ns,
            payload,
        };
        loop {
            if self.file.is_none() {
                self.next_segment()?;
            }
            if self.repeats_due {
                self.repeat_latched(log_time_ns)?;
            }
            let slot = self.slot;
            let pushed = self.parts.encoder.push(self.parts.disk.buffer(slot), &message);
            match pushed {
                Ok(()) => {
                    let bytes = header.bytes.into();
                    self.flight.add(slot, channel, bytes, log_time_ns, since_ns);
                    self.parts.latches[channel].note(&message);
                    return Ok(());
                }
                Err(Full::Block) => self.flush()?,
                Err(Full::Segment) => self.rotate()?,
                // The configuration was checked against the layout; should it be wrong, it costs
                // this record only.
                Err(error @ Full::TooLong { .. }) => {
                    self.parts.meters.set_trouble(error.to_string());
                    let bytes = header.bytes.into();
                    self.parts.ledgers[channel].lost_in_writing(Amount { records: 1, bytes });
                    return Ok(());
                }
            }
            self.keep_time()?;
        }
    }

    /// Takes channels that were declared meanwhile; what is pushed before is in front of their
    /// definitions. The channels are there whatever becomes of the segment in use.
    pub fn add_channels(&mut self, added: Vec<Addition>) -> Result<(), Stop> {
        let bytes = |one: &Addition| Definitions::bytes_of(one.schema.as_ref(), &one.channel);
        let bytes = added.iter().map(bytes).sum();
        let ready = self.make_room_for(added.len(), bytes);
        for Addition { schema, channel, ledger, latch, .. } in added {
            // The thread that declared the channel has checked it with the same definitions.
            if let Err(error) = self.parts.encoder.add(schema.as_ref(), &channel) {
                self.parts.meters.set_trouble(error.to_string());
            }
            self.parts.ledgers.push(Arc::clone(&ledger));
            self.flight.add_channel(ledger);
            self.parts.latches.push(latch);
            self.accounts.push(ChannelLedger::default());
            self.base.push(ChannelLedger::default());
        }
        ready?;
        self.send_added()
    }

    /// Submits the pending block. If the segment in use has no room for these definitions, rotates.
    fn make_room_for(&mut self, channels: usize, bytes: usize) -> Result<(), Stop> {
        if self.file.is_none() {
            return Ok(());
        }
        self.flush()?;
        if self.parts.encoder.has_room_for(channels, bytes) { Ok(()) } else { self.rotate() }
    }

    /// Definitions that the segment in use lacks.
    fn send_added(&mut self) -> Result<(), Stop> {
        if self.file.is_none() {
            return Ok(());
        }
        for _ in 0..ADDED_COPIES {
            let buffer = self.parts.disk.buffer(self.slot);
            let Some(place) = self.parts.encoder.added(buffer) else { break };
            self.send(place)?;
            self.take_free_slot()?;
        }
        self.parts.encoder.end_added();
        Ok(())
    }

    /// Submits blocks that are old enough, and syncs writes that are old enough. Called between any
    /// two steps that take time.
    pub fn keep_time(&mut self) -> Result<(), Stop> {
        self.take_done()?;
        let flush_after = self.parts.flush_after;
        if is_past(self.flight.block_since_ns(self.slot), flush_after) {
            self.flush()?;
            self.take_done()?;
        }
        let written_since_ns = self.flight.written_since_ns();
        // When the ring was full every record is too old when it is written: a sync for each would
        // only make the others older.
        let too_late = is_past(written_since_ns, self.parts.loss_window);
        let rested = is_past(Some(self.synced_ns), flush_after);
        let worth_it = is_past(written_since_ns, flush_after) && (rested || !too_late);
        if worth_it && !self.parts.disk.is_syncing() {
            self.begin_sync();
            self.take_done()?;
        }
        Ok(())
    }

    /// Sleeps until the monotonic clock shows `until_ns`, or something is done.
    pub fn wait(&mut self, until_ns: u64) {
        self.parts.disk.wait(Some(Duration::from_nanos(until_ns.saturating_sub(now_ns()))));
    }

    /// Whether any write or sync is in flight.
    pub fn is_idle(&self) -> bool {
        self.parts.disk.is_idle()
    }

    fn flush(&mut self) -> Result<(), Stop> {
        self.snapshot();
        let buffer = self.parts.disk.buffer(self.slot);
        let Some(place) = self.parts.encoder.flush(buffer, &self.accounts) else { return Ok(()) };
        self.send(place)?;
        self.look_ahead();
        self.take_free_slot()
    }

    fn take_free_slot(&mut self) -> Result<(), Stop> {
        loop {
            // One that completed before an earlier one still holds its records.
            let is_free =
                |slot: &usize| self.parts.disk.is_free(*slot) && !self.flight.is_sent(*slot);
            let blocks = blocks_used(self.parts.encoder.largest_layout());
            if let Some(slot) = (0..blocks).find(is_free) {
                self.slot = slot;
                return Ok(());
            }
            self.parts.disk.wait(None);
            self.take_done()?;
        }
    }

    /// Sends the block in the buffer that is being filled.
    fn send(&mut self, place: FileRange) -> Result<(), Stop> {
        self.flight.send(self.slot, place);
        self.write(self.slot, place);
        self.take_done()
    }

    fn write(&mut self, slot: usize, place: FileRange) {
        let Some(in_use) = &self.file else { return };
        self.parts.disk.write(&in_use.file, slot, place);
        count(&self.parts.meters.device_bytes, place.bytes as u64);
    }

    fn begin_sync(&mut self) {
        let Some(in_use) = &self.file else { return };
        self.synced_ns = now_ns();
        self.flight.begin_sync();
        self.parts.disk.sync(&in_use.file);
    }

    fn sync_now(&mut self) -> Result<(), Stop> {
        self.wait_for_all()?;
        self.begin_sync();
        self.wait_for_all()
    }

    fn wait_for_all(&mut self) -> Result<(), Stop> {
        self.take_done()?;
        while !self.parts.disk.is_idle() {
            self.parts.disk.wait(None);
            self.take_done()?;
        }
        Ok(())
    }

    /// Handles one completed operation after the other, and stops at a failure. A sync that
    /// completed together with a failed write proves nothing.
    fn take_done(&mut self) -> Result<(), Stop> {
        while !self.parts.disk.has_failed() {
            let Some(done) = self.parts.disk.next_done() else { return Ok(()) };
            if let Err(error) = self.file_system_takes(&done) {
                return self.retry(done.what, error);
            }
            self.went_on(&done);
            self.run_jobs();
        }
        self.after_failure()
    }

    /// Of what ended well.
    fn went_on(&mut self, done: &Done) {
        self.measure(done);
        self.sync_worked |= done.what == DiskOp::Sync;
        let what = done.what;
        if self.ending.as_ref().is_some_and(|ending| ending.job.awaits(what)) {
            self.ending_went_on();
        } else if let Some(next) = self.next.as_mut().filter(|next| next.job.awaits(what)) {
            next.job.end_step();
        } else {
            match what {
                DiskOp::Write(slot) => self.flight.landed(slot),
                DiskOp::Sync => self.synced(),
            }
        }
    }

    fn measure(&mut self, done: &Done) {
        match done.what {
            DiskOp::Write(_) => self.writes.add(done.ns),
            DiskOp::Sync => self.syncs.add(done.ns),
        }
    }

    fn synced(&mut self) {
        let synced = self.flight.synced();
        self.parts.encoder.note_durable(self.flight.durable_blocks());
        if let Some(since_ns) = synced {
            self.note_lag(now_ns() - since_ns);
            self.gave_up &= self.trouble.is_some();
            if let Some(in_use) = &mut self.file {
                in_use.holds_records = true;
            }
        }
    }

    fn note_lag(&self, lag_ns: u64) {
        let meters = &self.parts.meters;
        meters.durable_lag_ns.store(lag_ns, Ordering::Relaxed);
        raise(&meters.durable_lag_ns_max, lag_ns);
        let exceeded = u128::from(lag_ns) > self.parts.loss_window.as_nanos();
        count(&meters.window_exceeded, exceeded.into());
    }

    /// The accounts as they go into the segment.
    fn snapshot(&mut self) {
        let bases = self.base.iter().zip(&self.parts.ledgers);
        for (account, (base, ledger)) in self.accounts.iter_mut().zip(bases) {
            let now = ledger.snapshot();
            let lost = now.lost();
            let first_ns = if base.lost > 0 { Some(base.lost_first_ns) } else { now.first_lost_ns };
            *account = ChannelLedger {
                received: base.received + now.received.records,
                written: base.written + now.written.records,
                durable: base.durable + now.durable.records,
                lost: base.lost + lost.records,
                lost_bytes: base.lost_bytes + lost.bytes,
                lost_first_ns: first_ns.unwrap_or(0),
                lost_last_ns: now.last_lost_ns.unwrap_or(base.lost_last_ns),
            };
        }
    }
}

fn is_past(since_ns: Option<u64>, time: Duration) -> bool {
    since_ns.is_some_and(|ns| u128::from(now_ns().saturating_sub(ns)) >= time.as_nanos())
}
