// SPDX-License-Identifier: MIT OR Apache-2.0
//! The path from records to durable segments: the encoder, the buffers, and the file in use.
//!
//! Only the writer thread uses it. When the device fails, `retry` waits until it works again,
//! within the call that met the failure; the rings fill meanwhile.

mod change;
mod earlier;
mod latched;
mod retry;
mod state;
mod window;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use steadyio_core::latency::Latencies;

use self::state::{BLOCKS, blocks_used};
pub use self::state::{Parts, Stage, Stop};
use super::direct_io::{DiskOp, Done};
use super::flight::Flight;
use super::meters::{count, raise};
use super::pins::Moment;
use super::registry::Addition;
use crate::incident::{IncidentError, Kept};
use crate::ledger::Amount;
use crate::mcap::account::ChannelLedger;
use crate::mcap::definitions::Definitions;
use crate::mcap::encoder::{ADDED_COPIES, FileRange, Full, Message};
use crate::mcap::layout::{ALIGN_BYTES, HEAD_BYTES, Layout};
use crate::ring::Header;
use crate::source::{now_ns, wall_ns};

/// The sizes of the buffers that a stage needs, with the largest possible layout, and whether to
/// lock them. Each record passes the buffers of blocks; the others are needed once per segment.
pub fn buffer_sizes(layout: &Layout) -> Vec<(usize, bool)> {
    let mut sizes = vec![(layout.block_buffer_bytes(), true); blocks_used(layout)];
    sizes.resize(BLOCKS, (ALIGN_BYTES, false));
    let others = [layout.tail_bytes_max(), HEAD_BYTES, layout.definitions_bytes(), HEAD_BYTES];
    sizes.extend(others.map(|bytes| (bytes, false)));
    sizes
}

impl Stage {
    /// Nothing is written before [`Stage::begin_early`] or the first record.
    pub fn new(parts: Parts) -> Stage {
        let mut base = vec![ChannelLedger::default(); parts.ledgers.len()];
        if let Some((resumed, _)) = &parts.resumed {
            base = resumed.base();
        }
        let own = (parts.ledgers.len(), parts.own_schemas);
        let mut stage = Stage {
            own,
            base,
            flight: Flight::new(parts.ledgers.clone(), BLOCKS),
            file: None,
            ending: None,
            next: None,
            looked_ahead: false,
            slot: 0,
            trouble: None,
            sync_worked: false,
            gave_up: false,
            finishing: false,
            repeats_due: false,
            begun_ns: None,
            synced_ns: 0,
            accounts: vec![ChannelLedger::default(); parts.ledgers.len()],
            writes: Latencies::default(),
            syncs: Latencies::default(),
            rotations: Latencies::default(),
            parts,
        };
        stage.keep_earlier();
        stage.tell_kept();
        stage
    }

    /// The name of the engine, and whether it bypasses the page cache.
    pub fn engine(&self) -> (&'static str, bool) {
        (self.parts.disk.engine(), self.parts.pool.is_direct())
    }

    /// Keeps the segments that hold this last period, with all records pushed so far.
    pub fn keep(&mut self, name: &str, last: Duration) -> Result<Kept, IncidentError> {
        let now = Moment { monotonic_ns: now_ns(), wall_ns: wall_ns() };
        self.keep_at(name, last, now)
    }

    /// Keeps the records received since this time, on the monotonic clock.
    pub fn keep_since(&mut self, name: &str, from_ns: u64) -> Result<Kept, IncidentError> {
        let now = Moment { monotonic_ns: now_ns(), wall_ns: wall_ns() };
        let last = Duration::from_nanos(now.monotonic_ns.saturating_sub(from_ns));
        self.keep_at(name, last, now)
    }

    fn keep_at(&mut self, name: &str, last: Duration, now: Moment) -> Result<Kept, IncidentError> {
        let kept = self.parts.pool.keep(name, last, now);
        self.tell_kept();
        kept
    }

    /// Releases an incident.
    pub fn release(&mut self, name: &str) {
        self.parts.pool.release(name);
        self.tell_kept();
    }

    fn tell_kept(&self) {
        let ((incidents, segments), meters) = (self.parts.pool.kept(), &self.parts.meters);
        meters.incidents.store(incidents as u64, Ordering::Relaxed);
        meters.kept_segments.store(segments as u64, Ordering::Relaxed);
    }

    /// The number of segments.
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
            // At most 10,000 channels; the configuration was checked.
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
                // The configuration was checked against the layout. If that check is wrong, only
                // this record is lost.
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

    /// Adds channels that were declared meanwhile. Records pushed before precede their definitions.
    /// The channels are added even if the segment in use fails.
    pub fn add_channels(&mut self, added: Vec<Addition>) -> Result<(), Stop> {
        let added = self.adopt(added);
        if added.is_empty() {
            return Ok(());
        }
        let left = self.leave_earlier();
        let bytes = |one: &Addition| Definitions::bytes_of(one.schema.as_ref(), &one.channel);
        let bytes = added.iter().map(bytes).sum();
        let ready = left.and_then(|()| self.make_room_for(added.len(), bytes));
        for Addition { schema, channel, ledger, latch, .. } in added {
            self.own = (self.own.0 + 1, self.own.1 + usize::from(schema.is_some()));
            // The declaring thread has checked the channel with the same definitions.
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

    /// Writes the definitions that the segment in use lacks.
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

    /// Submits blocks that are old enough, and syncs writes that are old enough. Call it between
    /// any two steps that take time.
    pub fn keep_time(&mut self) -> Result<(), Stop> {
        self.take_done()?;
        let flush_after = self.parts.flush_after;
        if is_past(self.flight.block_since_ns(self.slot), flush_after) {
            self.flush()?;
            self.take_done()?;
        }
        let written_since_ns = self.flight.written_since_ns();
        // When the ring was full, every record is too old when it is written. A sync for each would
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

    /// Sleeps until the monotonic clock shows `until_ns`, or until a completion.
    pub fn wait(&mut self, until_ns: u64) {
        self.parts.disk.wait(Some(Duration::from_nanos(until_ns.saturating_sub(now_ns()))));
    }

    /// Whether nothing is in flight.
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
            // A buffer that completed before an earlier one still holds its records.
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

    /// Submits the block in the buffer that is being filled.
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

    /// Handles completions one after the other, and stops at a failure. A sync that completed
    /// together with a failed write proves nothing.
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

    /// Handles a success.
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

    /// Copies the accounts for the segment.
    fn snapshot(&mut self) {
        let bases = self.base.iter().zip(&self.parts.ledgers);
        for (account, (base, ledger)) in self.accounts.iter_mut().zip(bases) {
            let now = ledger.snapshot();
            let lost = now.lost();
            let first_ns = if base.lost > 0 { Some(base.lost_first_ns) } else { now.first_lost_ns };
            *account = ChannelLedger {
                // Nobody misses an expired record.
                received: base.received + now.received.records - now.expired.records,
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
