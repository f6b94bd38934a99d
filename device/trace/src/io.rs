// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was found out: requests and I/Os, each with a mark per layer passed.
//!
//! A **request** is what the block layer gives to a driver. An **I/O** is what a program asked for: one system
//! call (or one io_uring or aio operation) with the requests that it led to. Requests that no program asked
//! for in that moment (writeback, readahead, the journal) have an [`Origin`] that says so, and no I/O.

use super::event::{Call, Comm, Dev, Op, Priority};
use super::sched::Sched;

/// The points that a request passes, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Mark {
    /// Its first bio reaches the block layer.
    Queued,
    /// It has a request and a tag.
    GotRequest,
    /// Given to the scheduler.
    Inserted,
    /// Given to the driver, for the first time.
    Issued,
    /// The driver starts the hardware, for the first time.
    HardwareStart,
    /// The hardware is done, for the last time.
    HardwareDone,
    /// The block layer ends it, all of it.
    Completed,
}

impl Mark {
    /// All, in order.
    pub const ALL: [Mark; 7] = [
        Mark::Queued,
        Mark::GotRequest,
        Mark::Inserted,
        Mark::Issued,
        Mark::HardwareStart,
        Mark::HardwareDone,
        Mark::Completed,
    ];
}

/// When each point was passed, in ns; `None` where no event tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks([Option<u64>; 7]);

impl Marks {
    /// When `mark` was passed.
    pub fn get(&self, mark: Mark) -> Option<u64> {
        self.0[mark as usize]
    }

    /// Notes that `mark` was passed, replacing an earlier note.
    pub fn set(&mut self, mark: Mark, time_ns: u64) {
        self.0[mark as usize] = Some(time_ns);
    }

    /// When the device got it: the start of the hardware, or else the issue to the driver.
    pub fn device_start_ns(&self) -> Option<u64> {
        self.get(Mark::HardwareStart).or(self.get(Mark::Issued))
    }

    /// When the device was done: the end of the hardware, or else the end of the request.
    pub fn device_end_ns(&self) -> Option<u64> {
        self.get(Mark::HardwareDone).or(self.get(Mark::Completed))
    }
}

/// A request that was seen from its first bio (or at least its issue) to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The device it was issued to.
    pub dev: Dev,
    /// The partitions and stacked devices on top of that which its bios came through, as far as events tell;
    /// none twice.
    pub through: Vec<Dev>,
    /// Operation and flags when issued.
    pub op: Op,
    /// First sector, in units of 512 bytes.
    pub sector: u64,
    /// Data bytes when first issued, merged bios included; 0 for a flush.
    pub bytes: u64,
    /// Its I/O priority, if events carry it.
    pub priority: Option<Priority>,
    /// Who queued its first bio; 0 if that was not seen.
    pub pid: u32,
    /// That thread's name, empty if not known.
    pub comm: Comm,
    /// On whose behalf.
    pub origin: Origin,
    /// When it passed each layer.
    pub marks: Marks,
    /// When each further bio that was merged into it was queued, in ns.
    pub merged_queued_ns: Vec<u64>,
    /// Its bio is a part of a larger one that the block layer cut.
    pub cut_from_bio: bool,
    /// Times with the device, if more than one: pieces of a split, or after a requeue. In order, no overlap.
    pub pieces: Vec<Piece>,
    /// How often the driver gave it back unserved.
    pub requeues: u32,
    /// 0, or a negative errno.
    pub error: i32,
}

/// One stay with the device, of a request that had several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Given to the driver.
    pub issued_ns: u64,
    /// Ended, or given back.
    pub ended_ns: u64,
    /// First sector.
    pub sector: u64,
    /// Bytes that ended; 0 if it was given back.
    pub bytes: u64,
    /// The driver started the hardware, if an event tells.
    pub hardware_start_ns: Option<u64>,
    /// The hardware was done, if an event tells.
    pub hardware_done_ns: Option<u64>,
}

/// On whose behalf a request was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Of an I/O: an index into [`Trace::ios`].
    Io(usize),
    /// Data of the page cache, written back by the kernel; of that inode, if known.
    Writeback(Option<u64>),
    /// Read before somebody asked; of that inode, if known.
    Readahead(Option<u64>),
    /// A file system's journal.
    Journal,
    /// A thread whose system call was not seen (it began before the trace, or those events are missing), or
    /// of the kernel's.
    Thread,
}

/// One thing that a program asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Io {
    /// By which call, or through which interface.
    pub call: Call,
    pub pid: u32,
    pub comm: Comm,
    /// The call begins, in ns (io_uring: the submission).
    pub entered_ns: u64,
    /// The call returns (io_uring, aio: the completion is handed to the program).
    pub exited_ns: u64,
    /// Bytes that it moved; 0 for a sync or if it failed.
    pub bytes: u64,
    /// Its requests, as indices into [`Trace::requests`], in the order of their first bio; never empty.
    pub requests: Vec<usize>,
    /// Where its time went; the sum is `exited_ns - entered_ns`.
    pub spans: Spans,
}

/// The e.MMC analysis paper's four spans, in ns. Each moment of an I/O belongs to exactly one: `device` while any of
/// its requests is
/// with the device; else `block` while any is in the block layer or the driver; else `submission` if a
/// request is still to come, and `post` if none is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    /// System call, VFS and file system, up to the bio.
    pub submission_ns: u64,
    /// Block layer, scheduler and driver, up to the start of the hardware.
    pub block_ns: u64,
    /// The hardware.
    pub device_ns: u64,
    /// From the hardware's end to the return to the program.
    pub post_ns: u64,
}

impl Spans {
    pub fn total_ns(&self) -> u64 {
        self.submission_ns + self.block_ns + self.device_ns + self.post_ns
    }
}

/// Everything found in one trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// In the order of their end.
    pub requests: Vec<Request>,
    /// In the order of their end.
    pub ios: Vec<Io>,
    /// What was seen, and what could not be matched.
    pub account: Coverage,
    /// Which kinds of event were never seen, as `system:name`, with what follows from it; for people.
    pub missing: Vec<Missing>,
    /// Which thread had which CPU; nothing where such events are not traced.
    pub sched: Sched,
    /// When writers were made to sleep because too much was dirty, in the order of time.
    pub dirty_pauses: Vec<DirtyPause>,
}

/// A thread that writes is made to sleep, so that it does not fill the memory with dirty pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirtyPause {
    pub pid: u32,
    /// From when on.
    pub begin_ns: u64,
    /// For how long at most; the kernel counts it in ticks of its timer.
    pub pause_ns: u64,
}

/// An event that would tell more, and what it would tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// As `system:name`.
    pub event: &'static str,
    /// What is not known without it.
    pub consequence: &'static str,
}

/// Nothing is dropped in silence: every event and every request is in one of these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Events read.
    pub events: u64,
    /// Events that the kernel or the tracer says it lost.
    pub events_lost: u64,
    /// Requests followed from issue to end: the length of [`Trace::requests`].
    pub matched: u64,
    /// Requests whose beginning lies before the trace or whose end lies after it.
    pub at_the_edges: u64,
    /// Requests that miss an event where the trace says that events were lost.
    pub hit_by_loss: u64,
    /// Requests that miss an event with no loss to explain it; the first of them, at most 1,000.
    pub unmatched: Vec<Unmatched>,
    /// How many of those in all.
    pub unmatched_count: u64,
    /// I/Os whose calls led to no request: what they asked for was in memory, or somebody else had asked for it.
    pub calls_without_request: u64,
    /// I/Os left out of [`Trace::ios`] because a request of theirs is not matched, or they began before the
    /// trace or ended after it.
    pub ios_incomplete: u64,
}

/// A request that does not add up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmatched {
    /// When its last event was.
    pub time_ns: u64,
    /// Its device.
    pub dev: Dev,
    /// First sector.
    pub sector: u64,
    pub op: Op,
    pub why: &'static str,
}
