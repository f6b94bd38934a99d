// SPDX-License-Identifier: MIT OR Apache-2.0
//! The counters of each channel's records: received, buffered, written, durable, lost and expired.
//! The caller's thread and the writer thread update them; any thread may read them.
//!
//! Only one of the two threads writes each counter, so counting is a load and a store, never a
//! lock. A snapshot reads the counters in the opposite order of the records' path, durable first
//! and received last. Therefore durable <= written and written + lost <= received in every
//! snapshot. Counters only grow: a written record that is lost later is counted again, as taken
//! back.

use serde::{Deserialize, Serialize};

// Not std's: `tests/ledger_model.rs` compiles this file with the model checker's atomics.
use super::atomic::{AtomicU64, Ordering};

/// A number of records and their payload bytes, as counters.
#[derive(Debug, Default)]
struct Count {
    records: AtomicU64,
    bytes: AtomicU64,
}

/// A number of records and their payload bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amount {
    /// The number of records.
    pub records: u64,
    /// The size of their payloads.
    pub bytes: u64,
}

impl Amount {
    /// The sum of both.
    pub fn plus(self, other: Amount) -> Amount {
        Amount { records: self.records + other.records, bytes: self.bytes + other.bytes }
    }

    fn is_zero(&self) -> bool {
        *self == Amount::default()
    }

    fn minus(self, other: Amount) -> Amount {
        Amount {
            records: self.records.saturating_sub(other.records),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }
}

/// Adds to a counter that only the calling thread writes.
fn add(counter: &AtomicU64, more: u64) -> u64 {
    let sum = counter.load(Ordering::Relaxed) + more;
    counter.store(sum, Ordering::Release);
    sum
}

fn raise(counter: &AtomicU64, value: u64) {
    if value > counter.load(Ordering::Relaxed) {
        counter.store(value, Ordering::Release);
    }
}

impl Count {
    fn add(&self, amount: Amount) {
        add(&self.bytes, amount.bytes);
        // Last: a reader that sees the record also sees its bytes.
        add(&self.records, amount.records);
    }

    fn get(&self) -> Amount {
        let records = self.records.load(Ordering::Acquire);
        Amount { records, bytes: self.bytes.load(Ordering::Acquire) }
    }
}

/// The counters of the caller, on cache lines that the writer thread does not write.
#[derive(Debug, Default)]
#[repr(align(128))]
struct CallerSide {
    received: Count,
    lost: Count,
    last_received_ns: AtomicU64,
    first_lost_ns: AtomicU64,
    last_lost_ns: AtomicU64,
}

/// The counters of the writer thread.
#[derive(Debug, Default)]
#[repr(align(128))]
struct WriterSide {
    written: Count,
    durable: Count,
    lost: Count,
    /// Records that were written, and lost before they were durable.
    taken_back: Count,
    lost_ram_full: Count,
    expired: Count,
    last_durable_ns: AtomicU64,
    ring_used_bytes: AtomicU64,
    ring_used_bytes_max: AtomicU64,
}

/// The counters of one channel.
#[derive(Debug, Default)]
pub struct Ledger {
    caller: CallerSide,
    writer: WriterSide,
}

impl Ledger {
    /// Counts a record of the caller, before anything else. Returns its number, from 1.
    pub fn received(&self, log_time_ns: u64, bytes: u64) -> u64 {
        self.caller.last_received_ns.store(log_time_ns, Ordering::Relaxed);
        add(&self.caller.received.bytes, bytes);
        add(&self.caller.received.records, 1)
    }

    /// Counts a record that did not fit into the ring. Only the caller's thread may call it.
    pub fn lost(&self, log_time_ns: u64, bytes: u64) {
        if self.caller.lost.records.load(Ordering::Relaxed) == 0 {
            self.caller.first_lost_ns.store(log_time_ns, Ordering::Relaxed);
        }
        self.caller.last_lost_ns.store(log_time_ns, Ordering::Relaxed);
        self.caller.lost.add(Amount { records: 1, bytes });
    }

    /// Counts records whose write has completed. Only the writer thread may call it.
    pub fn written(&self, amount: Amount) {
        self.writer.written.add(amount);
    }

    /// Counts records that are durable; `last_ns` is the time of the newest. Only the writer thread
    /// may call it.
    pub fn durable(&self, amount: Amount, last_ns: u64) {
        if amount.records > 0 {
            self.writer.last_durable_ns.store(last_ns, Ordering::Relaxed);
            self.writer.durable.add(amount);
        }
    }

    /// Counts records that were taken from the ring and not written, because the device failed.
    /// Only the writer thread may call it.
    pub fn lost_in_writing(&self, amount: Amount) {
        self.writer.lost.add(amount);
    }

    /// Counts written records that are gone, or may be. Only the writer thread may call it.
    pub fn lost_after_writing(&self, amount: Amount) {
        self.writer.taken_back.add(amount);
    }

    /// Counts records that an incident asked for after they had left the memory. Only the writer
    /// thread may call it.
    pub fn lost_ram_full(&self, amount: Amount) {
        self.writer.lost_ram_full.add(amount);
    }

    /// Counts records that left the memory, and that no incident asks for any more. Only the writer
    /// thread may call it.
    pub fn expired(&self, amount: Amount) {
        self.writer.expired.add(amount);
    }

    /// Records the use of the ring at each poll. Only the writer thread may call it.
    pub fn ring_used(&self, bytes: u64) {
        self.writer.ring_used_bytes.store(bytes, Ordering::Relaxed);
        raise(&self.writer.ring_used_bytes_max, bytes);
    }

    /// Reads the counters. Any thread may call it.
    pub fn snapshot(&self) -> Account {
        let durable = self.writer.durable.get();
        let last_durable_ns = self.writer.last_durable_ns.load(Ordering::Relaxed);
        let taken_back = self.writer.taken_back.get();
        let written = self.writer.written.get().minus(taken_back);
        let lost_in_writing = self.writer.lost.get().plus(taken_back);
        let (lost_ram_full, expired) = (self.writer.lost_ram_full.get(), self.writer.expired.get());
        let lost_ring_full = self.caller.lost.get();
        let received = self.caller.received.get();
        let lost = lost_in_writing.plus(lost_ring_full).plus(lost_ram_full);
        let time = |have: u64, at: &AtomicU64| (have > 0).then(|| at.load(Ordering::Relaxed));
        Account {
            received,
            buffered: received.minus(lost).minus(written).minus(expired),
            written,
            durable,
            lost_ring_full,
            lost_in_writing,
            lost_ram_full,
            expired,
            last_received_ns: time(received.records, &self.caller.last_received_ns),
            last_durable_ns: (durable.records > 0).then_some(last_durable_ns),
            first_lost_ns: time(lost_ring_full.records, &self.caller.first_lost_ns),
            last_lost_ns: time(lost_ring_full.records, &self.caller.last_lost_ns),
            ring_used_bytes: self.writer.ring_used_bytes.load(Ordering::Relaxed),
            ring_used_bytes_max: self.writer.ring_used_bytes_max.load(Ordering::Relaxed),
        }
    }
}

/// A snapshot of a ledger. Times are the caller's log times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// All records that the caller appended.
    pub received: Amount,
    /// Records in the ring, or on their way to the device.
    pub buffered: Amount,
    /// Written records, durable or not.
    pub written: Amount,
    /// Records that are on the medium.
    pub durable: Amount,
    /// Records lost because the ring was full.
    pub lost_ring_full: Amount,
    /// Records lost because the device or the file system failed, before or after the write.
    pub lost_in_writing: Amount,
    /// Records of an incident that the memory of `--ram` was too small for.
    #[serde(default, skip_serializing_if = "Amount::is_zero")]
    pub lost_ram_full: Amount,
    /// Records that left the memory of `--ram`, and that no incident asked for.
    #[serde(default, skip_serializing_if = "Amount::is_zero")]
    pub expired: Amount,
    /// The time of the newest received record.
    pub last_received_ns: Option<u64>,
    /// The time of the newest durable record.
    pub last_durable_ns: Option<u64>,
    /// The time of the first record that met a full ring.
    pub first_lost_ns: Option<u64>,
    /// The time of the last record that met a full ring.
    pub last_lost_ns: Option<u64>,
    /// The use of the ring at the writer thread's last poll.
    pub ring_used_bytes: u64,
    /// The highest use of the ring at any poll.
    pub ring_used_bytes_max: u64,
}

impl Account {
    /// The sum of two channels.
    pub fn plus(&self, other: &Account) -> Account {
        let earliest = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
        Account {
            received: self.received.plus(other.received),
            buffered: self.buffered.plus(other.buffered),
            written: self.written.plus(other.written),
            durable: self.durable.plus(other.durable),
            lost_ring_full: self.lost_ring_full.plus(other.lost_ring_full),
            lost_in_writing: self.lost_in_writing.plus(other.lost_in_writing),
            lost_ram_full: self.lost_ram_full.plus(other.lost_ram_full),
            expired: self.expired.plus(other.expired),
            last_received_ns: self.last_received_ns.max(other.last_received_ns),
            last_durable_ns: self.last_durable_ns.max(other.last_durable_ns),
            first_lost_ns: earliest(self.first_lost_ns, other.first_lost_ns),
            last_lost_ns: self.last_lost_ns.max(other.last_lost_ns),
            ring_used_bytes: self.ring_used_bytes + other.ring_used_bytes,
            ring_used_bytes_max: self.ring_used_bytes_max + other.ring_used_bytes_max,
        }
    }

    /// The number of records that entered the ring.
    pub fn taken(&self) -> u64 {
        self.received.records.saturating_sub(self.lost_ring_full.records)
    }

    /// All lost records, for any reason.
    pub fn lost(&self) -> Amount {
        self.lost_ring_full.plus(self.lost_in_writing).plus(self.lost_ram_full)
    }

    /// The number of records that are not durable, except expired ones.
    pub fn not_durable(&self) -> u64 {
        let asked = self.received.records.saturating_sub(self.expired.records);
        asked.saturating_sub(self.durable.records)
    }
}
