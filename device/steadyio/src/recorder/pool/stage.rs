// SPDX-License-Identifier: MIT OR Apache-2.0
//! From records to durable segments: the encoder, the buffers, and the file in use.
//!
//! Used by the writer thread only. An error means that the segment in use has failed; what was on
//! its way is then lost, and [`Stage::next_segment`] goes on in another.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::fs::{StatVfsMountFlags, fstatvfs};

use super::direct_io::{Disk, Done, What};
use super::files::Pool;
use super::flight::Flight;
use super::meters::{Meters, count, raise};
use crate::recorder::config::WhenFull;
use crate::recorder::latency::Latencies;
use crate::recorder::ledger::Ledger;
use crate::recorder::mcap::account::{ChannelLedger, CompletedBy};
use crate::recorder::mcap::encoder::{Encoder, Full, Message, Place};
use crate::recorder::mcap::private::Identity;
use crate::recorder::ring::Header;
use crate::recorder::source::{now_ns, wall_ns};

/// Buffers: one is filled while others are written.
pub const SLOTS: usize = 4;

/// All segments are full, and none may be recorded over.
#[derive(Debug, thiserror::Error)]
#[error("all segments are full")]
pub struct AllFull;

/// What a stage is made of.
pub struct Parts {
    /// Turns records into blocks.
    pub encoder: Encoder,
    /// Writes blocks.
    pub disk: Disk,
    /// Where they go.
    pub pool: Pool,
    /// One per channel.
    pub ledgers: Vec<Arc<Ledger>>,
    /// Told to others.
    pub meters: Arc<Meters>,
    /// What may be lost.
    pub loss_window: Duration,
    /// A block is sent when its oldest record is this old.
    pub flush_after: Duration,
    /// Whether segments are recorded over.
    pub when_full: WhenFull,
    /// New for each recording.
    pub recording_id: [u8; 16],
}

/// See the module's head.
pub struct Stage {
    parts: Parts,
    flight: Flight,
    file: Option<File>,
    /// The buffer that is being filled.
    slot: usize,
    begun: usize,
    synced_ns: u64,
    accounts: Vec<ChannelLedger>,
    /// Writes and syncs so far.
    pub writes: Latencies,
    /// Syncs so far.
    pub syncs: Latencies,
    /// Changes of segment so far.
    pub rotations: Latencies,
}

impl Stage {
    /// Needs [`Stage::next_segment`] before it takes records.
    pub fn new(parts: Parts) -> Stage {
        Stage {
            flight: Flight::new(parts.ledgers.clone(), SLOTS),
            file: None,
            slot: 0,
            begun: 0,
            synced_ns: 0,
            accounts: vec![ChannelLedger::default(); parts.ledgers.len()],
            writes: Latencies::default(),
            syncs: Latencies::default(),
            rotations: Latencies::default(),
            parts,
        }
    }

    /// Name of the engine, and whether it goes past the page cache.
    pub fn engine(&self) -> (&'static str, bool) {
        (self.parts.disk.engine(), self.parts.pool.is_direct())
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
    ) -> io::Result<()> {
        let log_time_ns = header.log_time_ns;
        let message = Message {
            // At most 1,000 channels: the configuration was checked.
            channel: channel as u16,
            sequence: header.sequence,
            log_time_ns,
            publish_time_ns: log_time_ns,
            payload,
        };
        loop {
            let slot = self.slot;
            let pushed = self.parts.encoder.push(self.parts.disk.buffer(slot), &message);
            match pushed {
                Ok(()) => {
                    let bytes = header.bytes.into();
                    self.flight.add(slot, channel, bytes, log_time_ns, since_ns);
                    return Ok(());
                }
                Err(Full::Block) => self.flush()?,
                Err(Full::Segment) => self.rotate()?,
                // The configuration was checked against the layout.
                Err(error @ Full::TooLong { .. }) => return Err(io::Error::other(error)),
            }
            self.keep_time()?;
        }
    }

    /// Sends what has waited for long enough, and syncs what was written for long enough. Called
    /// between any two things that take time.
    pub fn keep_time(&mut self) -> io::Result<()> {
        self.take_done()?;
        let flush_after = self.parts.flush_after;
        if is_past(self.flight.block_since_ns(self.slot), flush_after) {
            self.flush()?;
            self.take_done()?;
        }
        let written_since_ns = self.flight.written_since_ns();
        // Behind a full ring every record is too old when it is written: a sync for each would only
        // make the others older.
        let too_late = is_past(written_since_ns, self.parts.loss_window);
        let rested = is_past(Some(self.synced_ns), flush_after);
        let worth_it = is_past(written_since_ns, flush_after) && (rested || !too_late);
        if worth_it && !self.parts.disk.is_syncing() {
            self.begin_sync()?;
            self.take_done()?;
        }
        Ok(())
    }

    /// Sleeps until the monotonic clock shows `until_ns`, or something is done.
    pub fn wait(&mut self, until_ns: u64) {
        self.parts.disk.wait(Some(Duration::from_nanos(until_ns.saturating_sub(now_ns()))));
    }

    /// Whether anything is on its way to the device.
    pub fn is_idle(&self) -> bool {
        self.parts.disk.is_idle()
    }

    /// Ends the segment in use; all its records are durable then. Its opened gate need not be: the
    /// recovery opens it if the power fails.
    fn finish_segment(&mut self) -> io::Result<()> {
        self.flush()?;
        self.wait_for_all()?;
        self.snapshot();
        let buffer = self.parts.disk.buffer(self.slot);
        let place = self.parts.encoder.end_block(buffer, &self.accounts, CompletedBy::Recorder);
        self.write_now(place)?;
        self.sync_now()?;
        let place = self.parts.encoder.tail(self.parts.disk.buffer(self.slot));
        self.write_now(place)?;
        self.sync_now()?;
        if let Some(place) = self.parts.encoder.open_gate(self.parts.disk.buffer(self.slot)) {
            self.write_now(place)?;
        }
        Ok(())
    }

    /// Ends the recording: the segment in use is whole and durable then.
    pub fn finish(&mut self) -> io::Result<()> {
        self.finish_segment()?;
        self.sync_now()?;
        self.file = None;
        Ok(())
    }

    /// Begins the next life of the oldest segment.
    pub fn next_segment(&mut self) -> io::Result<()> {
        if self.parts.when_full == WhenFull::Stop && self.begun == self.segments() {
            if self.file.is_some() {
                self.sync_now()?;
            }
            return Err(io::Error::other(AllFull));
        }
        self.begun += 1;
        self.file = None;
        let (file, sequence) = self.parts.pool.open_oldest().map_err(io::Error::other)?;
        self.file = Some(file);
        let identity = Identity { recording_id: self.parts.recording_id, sequence };
        self.parts.encoder.begin(identity, wall_ns());
        // The old summary must be gone before anything else of the old life is overwritten.
        if let Some(place) = self.parts.encoder.blank_tail(self.parts.disk.buffer(self.slot)) {
            self.write_now(place)?;
        }
        let place = self.parts.encoder.head(self.parts.disk.buffer(self.slot));
        self.write_now(place)?;
        self.sync_now()?;
        self.snapshot();
        let buffer = self.parts.disk.buffer(self.slot);
        let place = self.parts.encoder.definitions(buffer, &self.accounts);
        self.write_now(place)
    }

    fn rotate(&mut self) -> io::Result<()> {
        let start_ns = now_ns();
        self.finish_segment()?;
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
        count(&self.parts.meters.failed_segments, 1);
    }

    fn flush(&mut self) -> io::Result<()> {
        self.snapshot();
        let buffer = self.parts.disk.buffer(self.slot);
        let Some(place) = self.parts.encoder.flush(buffer, &self.accounts) else { return Ok(()) };
        self.flight.send(self.slot);
        self.send(place)?;
        loop {
            // One that landed before an earlier one still stands for its records.
            let is_free =
                |slot: &usize| self.parts.disk.is_free(*slot) && !self.flight.is_sent(*slot);
            if let Some(slot) = (0..SLOTS).find(is_free) {
                self.slot = slot;
                return Ok(());
            }
            self.parts.disk.wait(None);
            self.take_done()?;
        }
    }

    fn send(&mut self, place: Place) -> io::Result<()> {
        let file = self.file.as_ref().ok_or_else(no_segment)?;
        self.parts.disk.write(file, self.slot, place);
        count(&self.parts.meters.device_bytes, place.bytes as u64);
        self.take_done()
    }

    fn write_now(&mut self, place: Place) -> io::Result<()> {
        self.send(place)?;
        self.wait_for_all()
    }

    fn begin_sync(&mut self) -> io::Result<()> {
        let file = self.file.as_ref().ok_or_else(no_segment)?;
        self.synced_ns = now_ns();
        self.flight.begin_sync();
        self.parts.disk.sync(file);
        Ok(())
    }

    fn sync_now(&mut self) -> io::Result<()> {
        self.wait_for_all()?;
        self.begin_sync()?;
        self.wait_for_all()
    }

    fn wait_for_all(&mut self) -> io::Result<()> {
        self.take_done()?;
        while !self.parts.disk.is_idle() {
            self.parts.disk.wait(None);
            self.take_done()?;
        }
        Ok(())
    }

    fn take_done(&mut self) -> io::Result<()> {
        while let Some(Done { what, ns, result }) = self.parts.disk.next_done() {
            result?;
            match what {
                What::Write(slot) => {
                    self.writes.add(ns);
                    self.flight.landed(slot);
                }
                What::Sync => {
                    self.refuse_read_only()?;
                    self.syncs.add(ns);
                    if let Some(since_ns) = self.flight.synced() {
                        self.note_lag(now_ns() - since_ns);
                    }
                }
            }
        }
        Ok(())
    }

    /// Behind each sync: once a file system is read-only, ext4's fdatasync() flushes nothing and
    /// says yes (6.1, after an emergency remount), while writes to open files go on.
    fn refuse_read_only(&self) -> io::Result<()> {
        let file = self.file.as_ref().ok_or_else(no_segment)?;
        match fstatvfs(file)?.f_flag.contains(StatVfsMountFlags::RDONLY) {
            true => Err(io::ErrorKind::ReadOnlyFilesystem.into()),
            false => Ok(()),
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
        for (account, ledger) in self.accounts.iter_mut().zip(&self.parts.ledgers) {
            let now = ledger.snapshot();
            let lost = now.lost();
            *account = ChannelLedger {
                received: now.received.records,
                written: now.written.records,
                durable: now.durable.records,
                lost: lost.records,
                lost_bytes: lost.bytes,
                lost_first_ns: now.first_lost_ns.unwrap_or(0),
                lost_last_ns: now.last_lost_ns.unwrap_or(0),
            };
        }
    }
}

fn is_past(since_ns: Option<u64>, time: Duration) -> bool {
    since_ns.is_some_and(|ns| u128::from(now_ns().saturating_sub(ns)) >= time.as_nanos())
}

fn no_segment() -> io::Error {
    io::Error::other("no segment is in use")
}
