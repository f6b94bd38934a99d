// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result: requests and I/Os, each with a mark per layer passed.
//!
//! A **request** is what the block layer issues to a driver. An **I/O** is one system call (or one io_uring or aio
//! operation) with the requests that it led to. Requests outside system calls (writeback, readahead, the journal)
//! have an [`Origin`] that says so, and no I/O.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use super::event::{Call, Comm, Dev, Op, Priority};
use super::intervals::Intervals;
use super::sched::Sched;

/// The points that a request passes, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, strum::VariantArray)]
#[repr(u8)]
pub enum Mark {
    /// Its first bio reaches the block layer (`block_bio_queue`).
    Queued,
    /// Request and tag are allocated (`block_getrq`).
    GotRequest,
    /// Inserted into the scheduler (`block_rq_insert`).
    Inserted,
    /// Issued to the driver, for the first time (`block_rq_issue`).
    Issued,
    /// The driver starts a command, for the first time.
    HardwareStart,
    /// A command is done, for the last time.
    HardwareDone,
    /// All of it has completed (`block_rq_complete`).
    Completed,
}

/// When each point was passed, in the order of [`Mark`] and in ns; `None` without an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks(pub [Option<u64>; 7]);

impl Marks {
    pub fn get(&self, mark: Mark) -> Option<u64> {
        self.0[mark as usize]
    }

    /// Notes that `mark` was passed, replacing an earlier note.
    pub fn set(&mut self, mark: Mark, time_ns: u64) {
        self.0[mark as usize] = Some(time_ns);
    }
}

/// A request that was seen from its first bio (or at least its issue) to its completion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The device it was issued to.
    pub dev: Dev,
    /// The partitions and stacked devices on top of that which its bios came through, as far as events show;
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
    /// Which thread queued its first bio; 0 if unknown.
    pub pid: u32,
    /// That thread's name, empty if unknown.
    pub comm: Comm,
    pub origin: Origin,
    pub marks: Marks,
    /// When each further bio that was merged into it was queued, in ns.
    pub merged_queued_ns: Vec<u64>,
    /// Its bio is a part of a larger one that the block layer split.
    pub cut_from_bio: bool,
    /// Dispatches, if more than one: pieces of a split, or after a requeue. In order, no overlap.
    pub pieces: Vec<Piece>,
    pub requeues: u32,
    /// 0, or a negative errno.
    pub error: i32,
}

impl Request {
    /// When its first event was, in ns.
    pub fn begin_ns(&self) -> u64 {
        self.marks.0.into_iter().flatten().next().unwrap_or(0)
    }

    pub fn end_ns(&self) -> u64 {
        self.marks.get(Mark::Completed).unwrap_or_else(|| self.begin_ns())
    }

    /// From its first event to its completion.
    pub fn life(&self) -> (u64, u64) {
        (self.begin_ns(), self.end_ns())
    }

    /// When it was in the device: from the start of the command where an event shows it, or else the issue, to the end
    /// of the command, or else the completion of the request.
    pub fn with_device(&self) -> Intervals {
        Intervals::new(self.dispatches().iter().map(|one| (one.start_ns(), one.done_ns())))
    }

    /// The pieces, or the whole as one.
    pub fn dispatches(&self) -> Cow<'_, [Piece]> {
        if !self.pieces.is_empty() {
            return Cow::Borrowed(&self.pieces);
        }
        Cow::Owned(vec![Piece {
            issued_ns: self.marks.get(Mark::Issued).unwrap_or_else(|| self.begin_ns()),
            ended_ns: self.end_ns(),
            sector: self.sector,
            bytes: self.bytes,
            hardware_start_ns: self.marks.get(Mark::HardwareStart),
            hardware_done_ns: self.marks.get(Mark::HardwareDone),
        }])
    }

    /// Of a request on its own: block from its first event (between two pieces, the scheduler has what is left), post up
    /// to its end.
    pub fn spans(&self) -> Spans {
        let (begin_ns, end_ns) = self.life();
        let done_ns = self.marks.get(Mark::HardwareDone).unwrap_or(end_ns);
        let present = Intervals::new([(begin_ns, done_ns)]);
        Spans::of((begin_ns, end_ns), &present, &self.with_device())
    }
}

/// One dispatch, of a request that had several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    pub issued_ns: u64,
    /// Completed, or requeued.
    pub ended_ns: u64,
    pub sector: u64,
    /// Bytes completed; 0 if it was requeued.
    pub bytes: u64,
    /// The driver started the command, if an event shows it.
    pub hardware_start_ns: Option<u64>,
    /// The command was done, if an event shows it.
    pub hardware_done_ns: Option<u64>,
}

impl Piece {
    /// When the device had it first: the start of the command, or else the issue to the driver.
    pub fn start_ns(&self) -> u64 {
        self.hardware_start_ns.unwrap_or(self.issued_ns)
    }

    /// The end of the command, or else the end of the dispatch.
    pub fn done_ns(&self) -> u64 {
        self.hardware_done_ns.unwrap_or(self.ended_ns)
    }
}

/// On whose behalf a request was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Origin {
    /// Of an I/O: an index into [`Trace::ios`].
    Io(usize),
    /// Data of the page cache, written back by the kernel; of that inode, if known.
    Writeback(Option<u64>),
    /// Readahead; of that inode, if known.
    Readahead(Option<u64>),
    Journal,
    /// A thread whose system call was not seen (it began before the trace, or those events are missing), or a
    /// kernel thread.
    #[default]
    Thread,
}

/// One call of a program, or one operation of io_uring or aio.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Io {
    /// By which call, or through which interface.
    pub call: Call,
    /// The file descriptor that the call names.
    pub fd: Option<i32>,
    /// The call that does the same, if it is an operation of io_uring, its event says which and there is one.
    pub operation: Option<Call>,
    pub pid: u32,
    pub comm: Comm,
    /// The call begins, in ns (io_uring: the submission).
    pub entered_ns: u64,
    /// The call returns (io_uring, aio: the program reaps the completion).
    pub exited_ns: u64,
    /// Bytes that it moved; 0 for a sync or if it failed.
    pub bytes: u64,
    /// Its requests, as indices into [`Trace::requests`], in the order of their first bio.
    pub requests: Vec<usize>,
    /// Where its time went; the sum is `exited_ns - entered_ns`. Of one without requests nothing.
    pub spans: Spans,
    /// A journal's commit began and ended in it, and the call is one that waits for such.
    pub has_commit: bool,
    /// It queued requests of which not all are matched or certain.
    pub incomplete: bool,
}

impl Io {
    pub fn begin(call: Call, (pid, comm): (u32, Comm), entered_ns: u64) -> Io {
        Io { call, pid, comm, entered_ns, exited_ns: entered_ns, ..Io::default() }
    }
}

/// The e.MMC analysis paper's four spans, in ns. Each moment of an I/O belongs to exactly one. It
/// is `device` while any of the I/O's requests is in the device, and `block` while any is in the
/// block layer or the driver. Otherwise it is `submission` if a request is still to come, and
/// `post` if none is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Spans {
    /// System call, VFS and file system, up to the bio.
    pub submission_ns: u64,
    /// Block layer, scheduler and driver, up to the start of the command.
    pub block_ns: u64,
    pub device_ns: u64,
    /// From the end of the command to the return to the program.
    pub post_ns: u64,
}

impl Spans {
    /// The spans of an I/O. `present` is when any of its requests was in the block layer or below; both may reach over the
    /// ends.
    pub fn of(during_ns: (u64, u64), present: &Intervals, with_device: &Intervals) -> Spans {
        let (entered_ns, exited_ns) = during_ns;
        let device = with_device.within(entered_ns, exited_ns);
        let busy = present.within(entered_ns, exited_ns).union(&device);
        let served_ns = busy.iter().next_back().map_or(entered_ns, |(_, end)| end);
        Spans {
            submission_ns: served_ns - entered_ns - busy.total_ns(),
            block_ns: busy.total_ns() - device.total_ns(),
            device_ns: device.total_ns(),
            post_ns: exited_ns - served_ns,
        }
    }

    pub fn total_ns(&self) -> u64 {
        self.submission_ns + self.block_ns + self.device_ns + self.post_ns
    }
}

/// Everything found in one trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// In the order of their end.
    pub requests: Vec<Request>,
    /// In the order of their end; each has requests.
    pub ios: Vec<Io>,
    /// Calls without a request of their own, in the order of their end: memory or requests of other
    /// calls served them, or their requests are not all known.
    pub calls_without_request: Vec<Io>,
    /// Counts of events and requests, and of those that could not be matched.
    pub account: Coverage,
    /// Missing kinds of event, with the consequence.
    pub missing: Vec<Missing>,
    /// Which thread ran on which CPU; empty without sched events.
    pub sched: Sched,
    pub processes: Processes,
    /// When dirty throttling paused a writing thread (`balance_dirty_pages`), in time order. For so long at most: it
    /// counts in timer ticks of the kernel.
    pub dirty_pauses: Vec<OfThread>,
    /// When a thread found a lock of the kernel taken, until it had it, in the order of their end.
    pub lock_waits: Vec<OfThread>,
}

/// Of which process each thread is, if it is not that of its own number. Of a number that is used again, the last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Processes {
    of_threads: HashMap<u32, u32>,
    parents: HashMap<u32, u32>,
    cgroups: BTreeMap<u32, String>,
}

impl Processes {
    /// `cgroups`: of processes.
    pub fn new(mut of_threads: HashMap<u32, u32>, cgroups: BTreeMap<u32, String>) -> Processes {
        of_threads.retain(|thread, process| thread != process);
        Processes { of_threads, cgroups, ..Processes::default() }
    }

    pub fn of(&self, thread: u32) -> u32 {
        self.of_threads.get(&thread).copied().unwrap_or(thread)
    }

    /// The thread's cgroup. If its process ended too soon to be looked up, that of its nearest
    /// known ancestor.
    pub fn cgroup(&self, thread: u32) -> Option<&str> {
        let mut process = self.of(thread);
        // A number that was used again could be its own ancestor.
        for _ in 0..=self.parents.len() {
            if let Some(cgroup) = self.cgroups.get(&process) {
                return Some(cgroup);
            }
            process = *self.parents.get(&process)?;
        }
        None
    }

    /// Whether its cgroup is this one or below it.
    pub fn is_in(&self, thread: u32, cgroup: &str) -> bool {
        self.cgroup(thread).is_some_and(|own| is_within(own, cgroup))
    }

    /// All that are known.
    pub fn cgroups(&self) -> BTreeSet<&str> {
        self.cgroups.values().map(String::as_str).collect()
    }

    pub fn start(&mut self, by: u32, thread: u32, same_process: bool) {
        if same_process {
            self.of_threads.insert(thread, self.of(by));
        } else {
            self.of_threads.remove(&thread);
            self.parents.insert(thread, self.of(by));
        }
    }
}

/// Whether a cgroup is this other one or below it.
pub fn is_within(own: &str, cgroup: &str) -> bool {
    let below = own.strip_prefix(cgroup.trim_end_matches('/'));
    below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
}

/// A time of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfThread {
    pub pid: u32,
    pub begin_ns: u64,
    pub end_ns: u64,
}

/// An event that the trace lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// As `system:name`.
    pub event: &'static str,
    /// The unknown without it.
    pub consequence: &'static str,
}

/// Every event and every request is counted in one of these.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Coverage {
    pub events: u64,
    /// Events that the kernel or the tracer says it lost.
    pub events_lost: u64,
    /// Requests followed from issue to completion: the length of [`Trace::requests`].
    pub matched: u64,
    /// Those of them that ended with an error.
    pub failed: u64,
    /// Requests whose beginning lies before the trace or whose end lies after it.
    pub at_the_edges: u64,
    /// Requests that lack an event where events were lost.
    pub hit_by_loss: u64,
    /// Requests that lack an event without a loss to explain it; the first of them, at most 1,000.
    #[serde(skip)]
    pub unmatched: Vec<Unmatched>,
    /// How many of those in all.
    #[serde(rename = "unmatched")]
    pub unmatched_count: u64,
    /// I/Os whose calls led to no request: served from memory, or by a request of another call.
    pub calls_without_request: u64,
    /// I/Os that are not in [`Trace::ios`]: a request of theirs is not matched or ambiguous, or they began before the
    /// trace or ended after it.
    pub ios_incomplete: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unmatched {
    /// When its last event was.
    pub at_ns: u64,
    #[serde(skip)]
    pub dev: Dev,
    /// Major:minor, or in a record its name if that is known.
    pub device: String,
    /// First sector, in units of 512 bytes.
    pub sector: u64,
    pub op: &'static str,
    pub why: &'static str,
}
