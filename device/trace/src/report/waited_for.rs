// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a call can wait for.

use serde::Serialize;

/// What a call waited for, or did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum WaitedFor {
    /// A request that its own thread had queued.
    OwnRequest,
    /// A request that somebody else had queued.
    OtherRequest,
    Journal,
    /// Its thread was paused, as one that writes too fast.
    DirtyThrottling,
    /// A request that its own thread had queued before, to read ahead.
    Readahead,
    /// Pages that the kernel was writing back.
    Writeback,
    /// A worker of io_uring, or its thread that polls.
    Worker,
    Lock,
    /// It was runnable, and had no CPU.
    Cpu,
    /// Nothing: it was running.
    Running,
    /// It slept, or no event shows its state.
    Unknown,
}

impl WaitedFor {
    /// In sentences.
    pub fn title(self) -> &'static str {
        use WaitedFor::*;
        match self {
            OwnRequest => "waiting for a request of its own thread",
            OtherRequest => "waiting for a request of others",
            Journal => "waiting for the journal",
            DirtyThrottling => "throttled in balance_dirty_pages",
            Readahead => "waiting for readahead that it had begun",
            Writeback => "waiting for writeback",
            Worker => "waiting for a worker of io_uring",
            Lock => "waiting for a lock of the kernel",
            Cpu => "waiting for a CPU",
            Running => "running on a CPU",
            Unknown => "waiting for an unknown reason",
        }
    }
}
