// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why one I/O or request took so long, from evidence in the trace only.
//!
//! A cause is a fact with the time that it accounts for: which other requests were in flight while this one waited,
//! how long a flush was in flight, how much slower than usual the device was. Facts overlap, so their times do not
//! add up. A fact that accounts for less than a tenth of the whole time is omitted; without any, the cause is unknown.

use serde::Serialize;

use super::words::us;

/// A fact that accounts for a part of the time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cause {
    /// How much it accounts for, in ns.
    pub ns: u64,
    #[serde(flatten)]
    pub what: Fact,
    /// In words, such as "12.0 us waiting for a tag, or throttled".
    pub text: String,
}

/// What was so in that time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum Fact {
    /// While it was in the block layer, other requests were in flight; the longest was so for most of that time.
    Behind { requests: u64, longest: Box<Other> },
    /// While it was in flight, other reads and writes were too: in the driver's or the hardware's queue.
    Shared { requests: u64, longest: Box<Other> },
    /// While it was in the block layer or in flight, a flush was in flight; its own if it is a sync.
    Flush { own: bool, requests: u64 },
    /// The same of discards.
    Discard { own: bool, requests: u64 },
    /// The driver requeued it: from then to the next issue.
    Requeued { times: u64 },
    /// It was served in pieces: between these, when it was not in flight.
    Pieces { pieces: u64 },
    /// Its bio was split into several requests: from the first completion to the last.
    Cut { requests: u64 },
    /// So many further bios were merged into it: from its first bio to its last.
    Merged { bios: u64 },
    /// The device took at least twice as long as it does for half of all requests of that operation and size: by how much
    /// longer than the median.
    DeviceSlow {
        /// What its request does.
        op: &'static str,
        /// The data of that.
        bytes: u64,
        /// Its time in the device, in ns.
        device_ns: u64,
        /// The median, in ns.
        p50_ns: u64,
        /// Over how many requests.
        of_count: u64,
        /// How many others were in flight in that time.
        others: u64,
    },
    /// Between its bio and its request: waiting for a tag, or throttled.
    TagWait,
    /// Requests of the journal were queued or in flight while none of its own was.
    Journal { requests: u64 },
    /// Requests of writeback were queued or in flight while none of its own was; not for I/Os that only read.
    Writeback { requests: u64 },
    /// None of its requests was queued or in flight, and its thread was running. `span` is `submission` or `post`.
    Running { span: &'static str },
    /// None of its requests was queued or in flight, and its thread was runnable, waiting for a CPU.
    CpuWait { span: &'static str, times: u64, longest: Box<CpuWait> },
    /// None of its requests was queued or in flight, and its thread slept.
    Asleep { span: &'static str, times: u64, longest: Box<Sleep> },
    /// Dirty throttling paused its thread.
    DirtyThrottle { times: u64 },
    /// None of its requests was queued or in flight, and its thread waited for a lock of the kernel.
    Lock { times: u64 },
}

impl Fact {
    /// Accounts for so long.
    pub fn lasting(self, ns: u64) -> Cause {
        Cause { ns, text: format!("{} us {}", us(ns), self.text()), what: self }
    }
}

/// Another request that was in flight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Other {
    pub op: &'static str,
    /// Its data.
    pub bytes: u64,
    /// Its first sector, in units of 512 bytes.
    pub sector: u64,
    /// Which thread queued it.
    pub pid: u32,
    /// That thread's name.
    pub comm: String,
    /// On whose behalf.
    pub origin: &'static str,
    /// The inode, if known.
    pub inode: Option<u64>,
    /// How long it was in flight while the one in question waited, or was in flight too.
    pub overlap_ns: u64,
    /// How long it was in flight altogether.
    pub device_ns: u64,
    /// In how many pieces; 1 if it was not split.
    pub pieces: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CpuWait {
    /// How long, within the span.
    pub ns: u64,
    /// The CPU that it got in the end; `None` if the I/O was over before.
    pub cpu: Option<u32>,
    /// How its sleep before had ended; `None` if it was preempted.
    pub woken: Option<Waker>,
    /// Which thread ran on that CPU for most of that time, or, where switches are missing, last.
    pub had_cpu: Option<HadCpu>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sleep {
    /// How long, within the span.
    pub ns: u64,
    /// How it ended; `None` if it lasted longer than the I/O.
    pub woken: Option<Waker>,
}

/// Who ended a sleep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Waker {
    /// How long the sleep had lasted in the span; `None` if it ended before the span began.
    pub slept_ns: Option<u64>,
    /// In the context of which thread; 0 is idle.
    pub pid: u32,
    /// That thread's name.
    pub comm: String,
    /// `thread`, or `softirq` or `interrupt` on top of it; `None` if the source does not show it.
    pub context: Option<&'static str>,
}

/// A thread that ran on a CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HadCpu {
    /// The thread; 0 is idle.
    pub pid: u32,
    pub comm: String,
    /// `real_time`, `deadline`, `normal` or `idle`.
    pub class: &'static str,
    /// Of `real_time` 1 to 99, 99 the highest; of `normal` the nice value.
    pub priority: Option<i32>,
    /// How long it ran while the other waited; `None` where switches are missing.
    pub ns: Option<u64>,
}
