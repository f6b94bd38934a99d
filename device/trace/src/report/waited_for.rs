// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reasons for which a call can wait. `waiting` finds them.

use serde::Serialize;

/// The reason for a wait, or the thread's activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum WaitedFor {
    /// A request that its own thread had queued for this call.
    OwnRequest,
    /// A request that another thread had queued.
    OtherRequest,
    Journal,
    /// A pause by dirty throttling, because the thread writes too fast.
    DirtyThrottling,
    /// A readahead request that its own thread had queued before.
    Readahead,
    /// Pages that the kernel was writing back.
    Writeback,
    /// A worker of io_uring, or io_uring's polling thread.
    Worker,
    Lock,
    /// The thread was runnable, and had no CPU.
    Cpu,
    /// No wait: the thread was running.
    Running,
    /// The thread slept for an unknown reason, or no event shows its state.
    Unknown,
}

impl WaitedFor {
    /// The reason, for use in a sentence.
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
