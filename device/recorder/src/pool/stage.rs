// SPDX-License-Identifier: MIT OR Apache-2.0
//! From records to durable segments: the encoder, the buffers, and the file in use.
//!
//! Used by the writer thread only. An error means that the segment in use has failed; what was in
//! flight is then lost, and [`Stage::next_segment`] continues in another.

mod change;

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use steadyio_core::latency::Latencies;

use self::change::Next;
use super::direct_io::{Disk, DiskOp, Done};
use super::errand::Errand;
use super::files::Pool;
use super::flight::Flight;
use super::meters::{Meters, count, raise};
use crate::config::WhenFull;
use crate::ledger::Ledger;
use crate::mcap::account::ChannelLedger;
use crate::mcap::encoder::{Encoder, FileRange, Full, Message};
use crate::mcap::layout::{ALIGN_BYTES, HEAD_BYTES, Layout};
use crate::read_only::refuse_read_only;
use crate::ring::Header;
use crate::source::now_ns;

/// Buffers for blocks: one is filled while others are written.
const BLOCKS: usize = 4;
// Behind those of the blocks: what segments need beside them.
const TAIL: usize = BLOCKS;
const GATE: usize = BLOCKS + 1;
const BLANK: usize = BLOCKS + 2;
const HEAD: usize = BLOCKS + 3;

/// Sizes of the buffers that a stage needs.
pub fn buffer_sizes(layout: &Layout) -> Vec<usize> {
    let mut sizes = vec![layout.buffer_bytes(); BLOCKS];
    sizes.extend([layout.tail_bytes(), HEAD_BYTES, ALIGN_BYTES, HEAD_BYTES]);
    sizes
}

/// All segments are full, and none may be overwritten.
#[derive(Debug, thiserror::Error)]
#[error("all segments are full")]
pub struct AllFull;

/// What a stage is made of.
pub struct Parts {
    /// Turns records into blocks.
    pub encoder: Encoder,
    pub disk: Disk,
    pub pool: Pool,
    /// One per channel.
    pub ledgers: Vec<Arc<Ledger>>,
    /// Statistics for other threads.
    pub meters: Arc<Meters>,
    /// What may be lost.
    pub loss_window: Duration,
    /// A block is submitted when its oldest record is this old.
    pub flush_after: Duration,
    /// Whether segments are overwritten.
    pub when_full: WhenFull,
    /// New for each recording.
    pub recording_id: [u8; 16],
}

/// See the module's head.
pub struct Stage {
    parts: Parts,
    flight: Flight,
    /// In use; None during a rotation.
    file: Option<File>,
    /// Full: its data are durable, its summary is being written.
    ending: Option<Errand>,
    next: Option<Next>,
    /// Whether the preparation of the next one was tried while this one is in use.
    looked_ahead: bool,
    /// The buffer that is being filled.
    slot: usize,
    begun: usize,
    /// No more records come.
    finishing: bool,
    synced_ns: u64,
    accounts: Vec<ChannelLedger>,
    /// Writes and syncs so far.
    pub writes: Latencies,
    /// Syncs so far.
    pub syncs: Latencies,
    /// Rotations so far.
    pub rotations: Latencies,
}

impl Stage {
    /// Needs [`Stage::next_segment`] before it takes records.
    pub fn new(parts: Parts) -> Stage {
        Stage {
            flight: Flight::new(parts.ledgers.clone(), BLOCKS),
            file: None,
            ending: None,
            next: None,
            looked_ahead: false,
            slot: 0,
            begun: 0,
            finishing: false,
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

    /// Submits blocks that are old enough, and syncs writes that are old enough. Called between any
    /// two steps that take time.
    pub fn keep_time(&mut self) -> io::Result<()> {
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
            self.begin_sync()?;
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

    fn flush(&mut self) -> io::Result<()> {
        self.snapshot();
        let buffer = self.parts.disk.buffer(self.slot);
        let Some(place) = self.parts.encoder.flush(buffer, &self.accounts) else { return Ok(()) };
        self.flight.send(self.slot);
        self.send(place)?;
        self.look_ahead();
        self.take_free_slot()
    }

    fn take_free_slot(&mut self) -> io::Result<()> {
        loop {
            // One that completed before an earlier one still holds its records.
            let is_free =
                |slot: &usize| self.parts.disk.is_free(*slot) && !self.flight.is_sent(*slot);
            if let Some(slot) = (0..BLOCKS).find(is_free) {
                self.slot = slot;
                return Ok(());
            }
            self.parts.disk.wait(None);
            self.take_done()?;
        }
    }

    fn send(&mut self, place: FileRange) -> io::Result<()> {
        let file = self.file.as_ref().ok_or_else(no_segment)?;
        self.parts.disk.write(file, self.slot, place);
        count(&self.parts.meters.device_bytes, place.bytes as u64);
        self.take_done()
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
        while let Some(done) = self.parts.disk.next_done() {
            match done.what {
                DiskOp::Write(_) => self.writes.add(done.ns),
                DiskOp::Sync => self.syncs.add(done.ns),
            }
            if self.ending.as_ref().is_some_and(|errand| errand.awaits(done.what)) {
                self.ending_went_on(done)?;
            } else if self.next.as_ref().is_some_and(|next| next.errand.awaits(done.what)) {
                self.next_went_on(done)?;
            } else {
                self.records_went_on(done)?;
            }
            self.run_errands();
        }
        Ok(())
    }

    fn records_went_on(&mut self, done: Done) -> io::Result<()> {
        let what = done.what;
        ended_well(done, self.file.as_ref().ok_or_else(no_segment)?)?;
        match what {
            DiskOp::Write(slot) => self.flight.landed(slot),
            DiskOp::Sync => {
                if let Some(since_ns) = self.flight.synced() {
                    self.note_lag(now_ns() - since_ns);
                }
            }
        }
        Ok(())
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

fn ended_well(done: Done, file: &File) -> io::Result<()> {
    done.result?;
    match done.what {
        DiskOp::Write(_) => Ok(()),
        DiskOp::Sync => refuse_read_only(file),
    }
}

fn is_past(since_ns: Option<u64>, time: Duration) -> bool {
    since_ns.is_some_and(|ns| u128::from(now_ns().saturating_sub(ns)) >= time.as_nanos())
}

fn no_segment() -> io::Error {
    io::Error::other("no segment is in use")
}
