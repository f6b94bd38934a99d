// SPDX-License-Identifier: MIT OR Apache-2.0
//! Statistics of the writer thread, while it runs and at its end.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

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
    /// Writes and syncs that failed.
    pub failures: AtomicU64,
    /// Segments left before they were full, because a part of them cannot be written or is gone.
    pub failed_segments: AtomicU64,
    /// Messages that were durable and are gone: of earlier recordings, as the start found them, and
    /// of segments that were removed while they were recorded into.
    pub missing_messages: AtomicU64,
    /// That the pool has,
    pub incidents: AtomicU64,
    /// and how many segments they keep.
    pub kept_segments: AtomicU64,
    /// What failed last, or why recording ended.
    pub trouble: Mutex<Option<String>>,
    state: Mutex<RecordingState>,
    ended: AtomicBool,
    listener: Mutex<Option<Listener>>,
}

/// How a recording goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum RecordingState {
    #[default]
    Recording,
    /// The device fails: records wait in the rings, and are lost when those are full.
    Waiting {
        /// On the monotonic clock.
        since_ns: u64,
        /// What failed first.
        why: String,
    },
    /// The recording has ended: further records are lost.
    Ended(Ended),
}

/// Called by the writer thread with each new state. Must not wait.
pub struct Listener(pub Box<dyn Fn(&RecordingState) + Send>);

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Listener")
    }
}

/// Poisoned only if a reader panicked while cloning a string.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn raise(meter: &AtomicU64, value: u64) {
    meter.fetch_max(value, Ordering::Relaxed);
}

pub(super) fn count(meter: &AtomicU64, more: u64) {
    meter.fetch_add(more, Ordering::Relaxed);
}

impl Meters {
    pub(super) fn set_trouble(&self, text: String) {
        *lock(&self.trouble) = Some(text);
    }

    /// What failed last, or why recording ended.
    pub fn trouble(&self) -> Option<String> {
        lock(&self.trouble).clone()
    }

    pub(super) fn set_state(&self, state: RecordingState) {
        self.ended.store(matches!(state, RecordingState::Ended(_)), Ordering::Release);
        *lock(&self.state) = state.clone();
        if let Some(Listener(tell)) = &*lock(&self.listener) {
            tell(&state);
        }
    }

    /// Whether what comes now is lost, without asking for a lock.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// How it goes now.
    pub fn state(&self) -> RecordingState {
        lock(&self.state).clone()
    }

    /// Calls the listener at each further change, and at once if the state has changed already.
    /// There is one listener.
    pub fn on_change(&self, listener: Listener) {
        let state = self.state();
        if state != RecordingState::Recording {
            (listener.0)(&state);
        }
        *lock(&self.listener) = Some(listener);
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
    /// Records that were received and are not durable; they are lost.
    pub not_durable: u64,
}

/// How the writer thread ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// A caller ended it, and each record is durable or counted as lost.
    Finished,
    /// All segments were full, and none was to be overwritten.
    Full,
    /// The device failed, and it was not to be waited for, or not any longer.
    Failed,
}
