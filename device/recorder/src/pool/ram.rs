// SPDX-License-Identifier: MIT OR Apache-2.0
//! Holds records in locked memory until an incident asks for them. [`super::writer`] uses it.
//!
//! The writer thread moves all records from the rings to this memory. The oldest leave it when it
//! is full. An incident opens a window, which begins before it and ends after it. Records of a
//! window are written in order, each once, so two windows that overlap have no gap. The others are
//! never written: they expire.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use crate::config::RamConfig;
use crate::incident::{IncidentError, Kept};
use crate::ledger::{Amount, Ledger};
use crate::ring::{Header, RingReader, RingWriter, ring};
use crate::source::now_ns;
use steadyio_core::memory::MemoryError;

/// The time at which a record was taken from its ring precedes its payload.
const STAMP_BYTES: usize = 8;
/// The number of counts that cover the time before an incident. A record that left the memory up
/// to this fraction of the time too early still counts as lost.
const TALLIES: u32 = 64;

/// The destination of records that leave the memory. The channel in a header is that of the
/// recording.
pub trait Destination {
    type Error;

    /// Writes a record. All wanted records that were received at `begun_ns` or later come now or
    /// later.
    fn write(
        &mut self,
        header: Header,
        payload: [&[u8]; 2],
        begun_ns: u64,
    ) -> Result<(), Self::Error>;

    /// Sees a record that is not written.
    fn pass_over(&mut self, header: Header, payload: [&[u8]; 2]);
}

/// The time of an incident, on the monotonic clock.
#[derive(Debug)]
pub struct Window {
    pub name: String,
    pub answer: SyncSender<Result<Kept, IncidentError>>,
    /// The requested beginning.
    pub from_ns: u64,
    /// The time since which no record has left the memory.
    pub there_from_ns: u64,
    pub has_records: bool,
    until_ns: u64,
    /// Whether all of its records are in the memory, or were.
    is_over: bool,
}

impl Window {
    fn wants(&self, seen_ns: u64) -> bool {
        self.from_ns <= seen_ns && (!self.is_over || seen_ns <= self.until_ns)
    }
}

/// Records that have left the memory in a short time, and may still be asked for.
#[derive(Debug)]
struct Tally {
    oldest_ns: u64,
    newest_ns: u64,
    by_channel: Vec<Amount>,
}

/// The memory, which belongs to the writer thread.
#[derive(Debug)]
pub struct Ram {
    config: RamConfig,
    writer: RingWriter,
    reader: RingReader,
    ledgers: Vec<Arc<Ledger>>,
    windows: Vec<Window>,
    /// The latest records that left the memory unwritten.
    left: VecDeque<Tally>,
    /// The time of the newest of them, at first that of the start.
    left_ns: u64,
    /// The time of the newest written record.
    written_ns: u64,
    /// The time of the latest look at the rings. No record of it was received later.
    seen_ns: u64,
    /// Whether a record had to stay in its ring in this look.
    is_full: bool,
}

/// Separates the time at which a record was seen from its payload.
fn unstamped(header: Header, [first, second]: [&[u8]; 2]) -> (u64, Header, [&[u8]; 2]) {
    let mut stamp = [0; STAMP_BYTES];
    let (start, first) = first.split_at(first.len().min(STAMP_BYTES));
    let (end, second) = second.split_at(STAMP_BYTES - start.len());
    stamp[..start.len()].copy_from_slice(start);
    stamp[start.len()..].copy_from_slice(end);
    let header = Header { bytes: header.bytes - STAMP_BYTES as u32, ..header };
    (u64::from_le_bytes(stamp), header, [first, second])
}

fn amount(header: Header) -> Amount {
    Amount { records: 1, bytes: header.bytes.into() }
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Ram {
    /// Makes the memory for these channels.
    pub fn new(
        config: RamConfig,
        ledgers: Vec<Arc<Ledger>>,
        locked: bool,
    ) -> Result<Ram, MemoryError> {
        let bytes = usize::try_from(config.bytes).unwrap_or(usize::MAX);
        let (writer, reader) = ring(bytes, locked)?;
        Ok(Ram {
            config,
            writer,
            reader,
            ledgers,
            windows: Vec::new(),
            left: VecDeque::new(),
            left_ns: now_ns(),
            written_ns: 0,
            seen_ns: 0,
            is_full: false,
        })
    }

    /// Adds a channel.
    pub fn add_channel(&mut self, ledger: Arc<Ledger>) {
        self.ledgers.push(ledger);
    }

    /// Begins to take what a ring holds at this time.
    pub fn look(&mut self, now_ns: u64) {
        self.seen_ns = now_ns;
    }

    /// Takes a record. False if there is no room, because a window wants the oldest record.
    pub fn put<D: Destination>(&mut self, header: Header, payload: [&[u8]; 2], to: &mut D) -> bool {
        let stamp = self.seen_ns.to_le_bytes();
        // The configuration limits the length of a record.
        let stamped = Header { bytes: header.bytes + STAMP_BYTES as u32, ..header };
        while !self.writer.push_parts(stamped, [&stamp, payload[0], payload[1]]) {
            if !self.drop_oldest(to) {
                self.is_full = true;
                return false;
            }
        }
        true
    }

    /// Ends a look at all rings: windows whose time has passed are over.
    pub fn looked(&mut self) {
        if !std::mem::take(&mut self.is_full) {
            let seen_ns = self.seen_ns;
            let passed = |window: &&mut Window| !window.is_over && seen_ns >= window.until_ns;
            for window in self.windows.iter_mut().filter(passed) {
                (window.until_ns, window.is_over) = (seen_ns, true);
            }
        }
        self.expire();
    }

    /// Opens the window of an incident at this time.
    pub fn open(
        &mut self,
        name: String,
        last: Duration,
        answer: SyncSender<Result<Kept, IncidentError>>,
        now_ns: u64,
    ) {
        let from_ns = now_ns.saturating_sub(ns(last));
        // The earlier ones may be in the window of another incident.
        let first = self.left.partition_point(|tally| tally.newest_ns < from_ns);
        for tally in self.left.drain(first..) {
            count(&self.ledgers, &tally, true);
        }
        self.windows.push(Window {
            name,
            answer,
            from_ns,
            there_from_ns: from_ns.max(self.left_ns),
            has_records: self.written_ns >= from_ns,
            until_ns: now_ns.saturating_add(ns(self.config.after)),
            is_over: false,
        });
    }

    /// Closes the window of an incident for which nobody waits any more.
    pub fn cancel(&mut self, name: &str) {
        self.windows.retain(|window| window.name != name);
    }

    /// Ends all windows with the newest record. The recording ends.
    pub fn close(&mut self) {
        for window in self.windows.iter_mut().filter(|window| !window.is_over) {
            (window.until_ns, window.is_over) = (u64::MAX, true);
        }
    }

    /// Writes the records of windows, but little more than `bytes` of them. Returns the number of
    /// bytes written.
    pub fn write<D: Destination>(&mut self, bytes: usize, to: &mut D) -> Result<usize, D::Error> {
        let mut written_bytes = 0;
        while written_bytes < bytes && !self.windows.is_empty() {
            let Some(oldest_ns) = self.oldest_ns() else { break };
            if self.is_wanted(oldest_ns) {
                written_bytes += self.write_oldest(to)?;
            } else if self.windows.iter().any(|window| window.from_ns > oldest_ns) {
                self.drop_oldest(to);
            } else {
                break;
            }
        }
        Ok(written_bytes)
    }

    /// Whether all records of some window are written.
    pub fn has_done(&mut self) -> bool {
        self.done().is_some()
    }

    /// Returns a window whose records are all written.
    pub fn take_done(&mut self) -> Option<Window> {
        self.done().map(|at| self.windows.remove(at))
    }

    fn done(&mut self) -> Option<usize> {
        let oldest_ns = self.oldest_ns();
        let is_done = |window: &Window| {
            window.is_over && oldest_ns.is_none_or(|oldest_ns| oldest_ns > window.until_ns)
        };
        self.windows.iter().position(is_done)
    }

    /// Counts all records at the end of the recording. Those of open windows are lost.
    pub fn end(&mut self) {
        let (windows, ledgers) = (&self.windows, &self.ledgers);
        let count_record = |header: Header, payload: [&[u8]; 2]| {
            let (seen_ns, header, _) = unstamped(header, payload);
            let ledger = &ledgers[usize::from(header.channel)];
            if windows.iter().any(|window| window.wants(seen_ns)) {
                ledger.lost_in_writing(amount(header));
            } else {
                ledger.expired(amount(header));
            }
            true
        };
        while self.reader.next(count_record).is_some() {}
        self.left.drain(..).for_each(|tally| count(&self.ledgers, &tally, false));
    }

    fn is_wanted(&self, seen_ns: u64) -> bool {
        self.windows.iter().any(|window| window.wants(seen_ns))
    }

    /// The time at which the oldest record was seen.
    fn oldest_ns(&mut self) -> Option<u64> {
        let mut oldest_ns = None;
        self.reader.next(|header, payload| {
            oldest_ns = Some(unstamped(header, payload).0);
            false
        });
        oldest_ns
    }

    fn write_oldest<D: Destination>(&mut self, to: &mut D) -> Result<usize, D::Error> {
        let (windows, written_ns) = (&mut self.windows, &mut self.written_ns);
        let mut outcome = Ok(0);
        self.reader.next(|header, payload| {
            let (seen_ns, header, payload) = unstamped(header, payload);
            let mut begun_ns = u64::MAX;
            for window in windows.iter_mut().filter(|window| window.wants(seen_ns)) {
                begun_ns = begun_ns.min(window.there_from_ns);
                window.has_records = true;
            }
            // Those of one look have the same time, and some may be written.
            let written = to.write(header, payload, begun_ns.max(*written_ns + 1));
            let is_written = written.is_ok();
            if is_written {
                *written_ns = seen_ns;
            }
            outcome = written.map(|()| header.bytes as usize);
            is_written
        });
        outcome
    }

    /// Drops the oldest record unless a window wants it. Returns whether it did.
    fn drop_oldest<D: Destination>(&mut self, to: &mut D) -> bool {
        let windows = &self.windows;
        let mut dropped = None;
        self.reader.next(|header, payload| {
            let (seen_ns, header, payload) = unstamped(header, payload);
            let is_wanted = windows.iter().any(|window| window.wants(seen_ns));
            if !is_wanted {
                to.pass_over(header, payload);
                dropped = Some((seen_ns, header));
            }
            !is_wanted
        });
        let Some((seen_ns, header)) = dropped else { return false };
        self.left_ns = seen_ns;
        self.tally(seen_ns, header);
        true
    }

    /// Counts a record that left the memory unwritten. The next incident decides whether it is
    /// lost.
    fn tally(&mut self, seen_ns: u64, header: Header) {
        if self.is_past(seen_ns) {
            self.ledgers[usize::from(header.channel)].expired(amount(header));
            return;
        }
        let span_ns = ns(self.config.before / TALLIES);
        let goes_on = self.left.back().is_some_and(|tally| seen_ns - tally.oldest_ns < span_ns);
        if !goes_on {
            let by_channel = Vec::new();
            self.left.push_back(Tally { oldest_ns: seen_ns, newest_ns: seen_ns, by_channel });
        }
        let Some(tally) = self.left.back_mut() else { return };
        tally.newest_ns = seen_ns;
        tally.by_channel.resize(self.ledgers.len(), Amount::default());
        let sum = &mut tally.by_channel[usize::from(header.channel)];
        *sum = sum.plus(amount(header));
    }

    /// Whether a signal would not ask for a record of this time any more.
    fn is_past(&self, seen_ns: u64) -> bool {
        seen_ns.saturating_add(ns(self.config.before)) < self.seen_ns
    }

    fn expire(&mut self) {
        while self.left.front().is_some_and(|tally| self.is_past(tally.newest_ns)) {
            let Some(tally) = self.left.pop_front() else { return };
            count(&self.ledgers, &tally, false);
        }
    }
}

fn count(ledgers: &[Arc<Ledger>], tally: &Tally, is_lost: bool) {
    for (ledger, amount) in ledgers.iter().zip(&tally.by_channel) {
        if is_lost {
            ledger.lost_ram_full(*amount);
        } else {
            ledger.expired(*amount);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
