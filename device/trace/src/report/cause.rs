// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why one I/O or request took so long, from evidence in the trace only.
//!
//! A cause is a fact with the time that it accounts for: who else was with the device while this one waited,
//! how long a flush was under way, how much longer than usual the device took. Facts overlap, so their times
//! do not add up. What accounts for less than a tenth of the whole time is not told; if nothing does, the
//! cause is not known.

use serde::Serialize;

/// A fact that accounts for `ns` of the time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum Cause {
    /// While it was in the block layer, other requests were with the device.
    Behind {
        /// How long both was so.
        ns: u64,
        /// How many others.
        requests: u64,
        /// The one that was with the device for most of that time.
        longest: Box<Other>,
    },
    /// While it was with the device, other reads and writes were too: in the driver's or the hardware's queue.
    Shared {
        /// How long both was so.
        ns: u64,
        /// How many others.
        requests: u64,
        /// The one that was there for most of that time.
        longest: Box<Other>,
    },
    /// While it was in the block layer or with the device, a flush was with the device.
    Flush {
        ns: u64,
        /// It is its own (a sync).
        own: bool,
        requests: u64,
    },
    /// The same of discards.
    Discard { ns: u64, own: bool, requests: u64 },
    /// The driver gave it back unserved.
    Requeued {
        /// From there to the next issue.
        ns: u64,
        times: u64,
    },
    /// It was handed out in pieces.
    Pieces {
        /// Between pieces, when it was not with the device.
        ns: u64,
        pieces: u64,
    },
    /// Its bio was cut into several requests.
    Cut {
        /// From the end of the first to the end of the last.
        ns: u64,
        requests: u64,
    },
    /// Further bios were merged into it.
    Merged {
        /// From its first bio to its last.
        ns: u64,
        /// How many further bios.
        bios: u64,
    },
    /// The device took at least twice as long as it does for half of all requests of that operation and size.
    DeviceSlow {
        /// What its request does.
        op: &'static str,
        /// The data of that.
        bytes: u64,
        /// By how much longer than the median.
        ns: u64,
        /// Its time with the device, in ns.
        device_ns: u64,
        /// The median, in ns.
        p50_ns: u64,
        /// Over how many requests.
        of_count: u64,
        /// How many others were with the device in that time.
        others: u64,
    },
    /// Between its bio and its request: for a tag, or throttled.
    TagWait { ns: u64 },
    /// The journal wrote while none of its own requests was under way.
    Journal {
        /// How long both was so.
        ns: u64,
        /// How many requests of the journal.
        requests: u64,
    },
    /// The kernel wrote dirty pages back while none of its own requests was under way; not told of reads.
    Writeback {
        /// How long both was so.
        ns: u64,
        /// How many requests of writeback.
        requests: u64,
    },
    /// None of its requests was under way, and its thread had a CPU.
    Running {
        ns: u64,
        /// `submission` or `post`.
        span: &'static str,
    },
    /// None of its requests was under way; its thread could have run, and had no CPU.
    CpuWait {
        /// How long altogether.
        ns: u64,
        /// `submission` or `post`.
        span: &'static str,
        times: u64,
        longest: Box<CpuWait>,
    },
    /// None of its requests was under way, and its thread slept.
    Asleep {
        /// How long altogether.
        ns: u64,
        /// `submission` or `post`.
        span: &'static str,
        times: u64,
        longest: Box<Sleep>,
    },
    /// Its thread was made to sleep because too much was dirty.
    DirtyThrottle { ns: u64, times: u64 },
}

impl Cause {
    /// The time that it accounts for, in ns.
    pub fn ns(&self) -> u64 {
        match *self {
            Cause::Behind { ns, .. }
            | Cause::Shared { ns, .. }
            | Cause::Flush { ns, .. }
            | Cause::Discard { ns, .. }
            | Cause::Requeued { ns, .. }
            | Cause::Pieces { ns, .. }
            | Cause::Cut { ns, .. }
            | Cause::Merged { ns, .. }
            | Cause::DeviceSlow { ns, .. }
            | Cause::TagWait { ns }
            | Cause::Journal { ns, .. }
            | Cause::Writeback { ns, .. }
            | Cause::Running { ns, .. }
            | Cause::CpuWait { ns, .. }
            | Cause::Asleep { ns, .. }
            | Cause::DirtyThrottle { ns, .. } => ns,
        }
    }
}

/// Another request that was in the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Other {
    pub op: &'static str,
    /// Its data.
    pub bytes: u64,
    /// Its first sector, in units of 512 bytes.
    pub sector: u64,
    /// Who queued it.
    pub pid: u32,
    /// That thread's name.
    pub comm: String,
    /// On whose behalf.
    pub origin: &'static str,
    /// The inode, if known.
    pub inode: Option<u64>,
    /// How long it was with the device while the one in question waited, or was there too.
    pub overlap_ns: u64,
    /// How long it was with the device altogether.
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
    /// How its sleep before had ended; `None` if it had lost a CPU.
    pub woken: Option<Waker>,
    /// Who had that CPU for most of that time, or, where switches are missing, last.
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
    /// `thread`, or `softirq` or `interrupt` over it; `None` if the source does not tell.
    pub context: Option<&'static str>,
}

/// A thread that had a CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HadCpu {
    /// The thread; 0 is idle.
    pub pid: u32,
    pub comm: String,
    /// `real_time`, `deadline`, `normal` or `idle`.
    pub class: &'static str,
    /// Of `real_time` 1 to 99, 99 the first; of `normal` the nice value.
    pub priority: Option<i32>,
    /// How long it had it while the other waited; `None` where switches are missing.
    pub ns: Option<u64>,
}
