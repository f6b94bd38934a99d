// SPDX-License-Identifier: MIT OR Apache-2.0
//! Statistics of the writer thread, while it runs and at its end.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use steadyio_core::latency::Latencies;

use crate::task::Counters;

/// Written by the writer thread, read by any thread.
#[derive(Debug, Default)]
pub struct Meters {
    /// Longest time between two polls of the rings.
    pub poll_gap_ns_max: AtomicU64,
    /// Longest time from an append (at the earliest) to its record being durable.
    pub durable_lag_ns_max: AtomicU64,
    /// The same for the latest sync.
    pub durable_lag_ns: AtomicU64,
    /// Syncs that made records durable later than the loss window allows.
    pub window_exceeded: AtomicU64,
    /// Rotations.
    pub rotations: AtomicU64,
    /// Bytes handed to the device, with format and padding.
    pub device_bytes: AtomicU64,
    /// Segments abandoned because a write or sync failed.
    pub failed_segments: AtomicU64,
    /// Why the latest of them failed, or why recording ended.
    pub trouble: Mutex<Option<String>>,
}

pub(super) fn raise(meter: &AtomicU64, value: u64) {
    meter.fetch_max(value, Ordering::Relaxed);
}

pub(super) fn count(meter: &AtomicU64, more: u64) {
    meter.fetch_add(more, Ordering::Relaxed);
}

impl Meters {
    pub(super) fn set_trouble(&self, text: String) {
        // Poisoned only if a reader panicked while cloning a string.
        *self.trouble.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(text);
    }

    /// Why the latest segment failed, or why recording ended.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }
}

/// What the writer thread did.
#[derive(Debug, Clone)]
pub struct WriterReport {
    /// io_uring or pwrite.
    pub engine: &'static str,
    /// Whether the writes bypassed the page cache.
    pub direct: bool,
    /// Writes, from submission to completion.
    pub writes: Latencies,
    pub syncs: Latencies,
    /// Ending a segment and beginning the next.
    pub rotations: Latencies,
    pub kernel: Counters,
    pub ended: Ended,
}

/// How the writer thread ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// It was told to, and everything it had is durable.
    Finished,
    /// All segments were full, and none was to be overwritten.
    Full,
    /// Every segment failed.
    Failed,
}
