// SPDX-License-Identifier: MIT OR Apache-2.0
//! The writer thread's statistics, during the recording and at its end. The status and the report
//! contain them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use steadyio_core::latency::Latencies;

use crate::task::Counters;

/// Statistics that the writer thread writes, and any thread may read.
#[derive(Debug, Default)]
pub struct Meters {
    /// The longest time between two polls of the rings.
    pub poll_gap_ns_max: AtomicU64,
    /// The longest time from an append (at the earliest) until its record is durable.
    pub durable_lag_ns_max: AtomicU64,
    /// The same for the latest sync.
    pub durable_lag_ns: AtomicU64,
    /// The number of syncs that made records durable later than the loss window allows.
    pub window_exceeded: AtomicU64,
    /// The number of rotations.
    pub rotations: AtomicU64,
    /// The number of bytes written, including format and padding.
    pub device_bytes: AtomicU64,
    /// The number of failed writes and syncs.
    pub failures: AtomicU64,
    /// The number of segments left before they were full, because a part of them cannot be written
    /// or is gone.
    pub failed_segments: AtomicU64,
    /// The number of messages that were durable and are gone: of earlier recordings, as found at
    /// the start, and of segments that were removed while they were in use.
    pub missing_messages: AtomicU64,
    /// The number of incidents of the pool.
    pub incidents: AtomicU64,
    /// The number of segments that incidents keep.
    pub kept_segments: AtomicU64,
    /// The last failure, or the reason why recording ended.
    pub trouble: Mutex<Option<String>>,
    state: Mutex<RecordingState>,
    ended: AtomicBool,
    listener: Mutex<Option<Listener>>,
}

/// The state of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum RecordingState {
    #[default]
    Recording,
    /// The device fails. Records wait in the rings, and are lost when these are full.
    Waiting {
        /// The beginning, on the monotonic clock.
        since_ns: u64,
        /// The first failure.
        why: String,
    },
    /// The recording has ended. Further records are lost.
    Ended(Ended),
}

/// A function that the writer thread calls with each new state. It must not wait.
pub struct Listener(pub Box<dyn Fn(&RecordingState) + Send>);

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Listener")
    }
}

/// A lock is poisoned only if a reader panicked while cloning a string.
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

    /// The last failure, or the reason why recording ended.
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

    /// Whether the recording has ended, so that new records are lost. It takes no lock.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// The present state.
    pub fn state(&self) -> RecordingState {
        lock(&self.state).clone()
    }

    /// Sets the listener for further changes. It is called at once if the state has changed
    /// already. There is one listener.
    pub fn on_change(&self, listener: Listener) {
        let state = self.state();
        if state != RecordingState::Recording {
            (listener.0)(&state);
        }
        *lock(&self.listener) = Some(listener);
    }
}

/// The writer thread's final report.
#[derive(Debug, Clone)]
pub struct WriterReport {
    /// The engine: io_uring or pwrite.
    pub engine: &'static str,
    /// Whether the writes bypassed the page cache.
    pub direct: bool,
    /// The times of writes, from submission to completion.
    pub writes: Latencies,
    pub syncs: Latencies,
    /// The times of rotations: ending a segment and beginning the next.
    pub rotations: Latencies,
    pub kernel: Counters,
    pub ended: Ended,
    /// The number of received records that are not durable, and so are lost.
    pub not_durable: u64,
}

/// The end of the writer thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// A caller ended it, and each record is durable or counted as lost.
    Finished,
    /// All segments were full, and none may be overwritten.
    Full,
    /// The device failed, and the recorder did not wait for it any longer.
    Failed,
}
