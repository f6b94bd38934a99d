// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result of `follow`: requests and I/Os, with the time of each mark on their path. The report
//! and `perfetto` read it.
//!
//! A **request** is the block layer's unit of work for a driver. An **I/O** is one system call (or
//! one io_uring or aio operation) with the requests that it led to. Requests outside system calls
//! (writeback, readahead, the journal) belong to no I/O, and their [`Origin`] says why they were
//! made.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use super::event::{Call, Comm, Dev, Op, Priority};
use super::intervals::Intervals;
use super::open_files::File;
use super::sched::Sched;

/// The points on a request's path, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, strum::VariantArray)]
pub enum Mark {
    /// Its first bio reaches the block layer (`block_bio_queue`).
    Queued,
    /// Request and tag are allocated (`block_getrq`).
    GotRequest,
    /// Inserted into the scheduler (`block_rq_insert`).
    Inserted,
    /// Issued to the driver, for the first time (`block_rq_issue`).
    Issued,
    /// The driver starts the first command.
    HardwareStart,
    /// The last command is done.
    HardwareDone,
    /// The whole request has completed (`block_rq_complete`).
    Completed,
}

/// The time of each mark, in the order of [`Mark`], in ns; `None` without an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks(pub [Option<u64>; 7]);

impl Marks {
    pub fn get(&self, mark: Mark) -> Option<u64> {
        self.0[mark as usize]
    }

    /// Sets the time of a mark, replacing an earlier one.
    pub fn set(&mut self, mark: Mark, time_ns: u64) {
        self.0[mark as usize] = Some(time_ns);
    }
}

/// A request whose events were seen from its first bio (or at least its issue) to its completion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The device that it was issued to.
    pub dev: Dev,
    /// The partitions and stacked devices above it through which its bios came, as far as events
    /// show. Each is listed once.
    pub through: Vec<Dev>,
    /// Operation and flags when issued.
    pub op: Op,
    /// First sector, in units of 512 bytes.
    pub sector: u64,
    /// Data bytes when first issued, merged bios included; 0 for a flush.
    pub bytes: u64,
    /// Its I/O priority, if events carry it.
    pub priority: Option<Priority>,
    /// The thread that queued its first bio; 0 if unknown.
    pub pid: u32,
    /// That thread's name, empty if unknown.
    pub comm: Comm,
    pub origin: Origin,
    /// The file of the origin's inode, as an index into [`Trace::files`], if it was open.
    pub file: Option<usize>,
    pub marks: Marks,
    /// The times at which further bios that were merged into it were queued, in ns.
    pub merged_queued_ns: Vec<u64>,
    /// Whether its bio is a part of a larger one that the block layer split.
    pub cut_from_bio: bool,
    /// The dispatches, if there are several: pieces of a split request, or dispatches after a
    /// requeue. They are in order, and do not overlap.
    pub pieces: Vec<Piece>,
    pub requeues: u32,
    /// 0 or a negative errno.
    pub error: i32,
}

impl Request {
    /// The time of its first event, in ns.
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

    /// The times in the device. They begin with the command, if an event shows that, or else with
    /// the issue. They end with the command, or else with the completion of the request.
    pub fn with_device(&self) -> Intervals {
        Intervals::new(self.dispatches().iter().map(|one| (one.start_ns(), one.done_ns())))
    }

    /// The pieces, or the whole request as one.
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

    /// The spans of a request without an I/O. Block begins with its first event, and includes the
    /// times between pieces. Post lasts until its end.
    pub fn spans(&self) -> Spans {
        let (begin_ns, end_ns) = self.life();
        let done_ns = self.marks.get(Mark::HardwareDone).unwrap_or(end_ns);
        let present = Intervals::new([(begin_ns, done_ns)]);
        Spans::of((begin_ns, end_ns), &present, &self.with_device())
    }
}

/// One dispatch of a request that had several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    pub issued_ns: u64,
    /// The time of its completion or requeue.
    pub ended_ns: u64,
    pub sector: u64,
    /// The number of bytes completed; 0 after a requeue.
    pub bytes: u64,
    /// The start of the driver's command, if an event shows it.
    pub hardware_start_ns: Option<u64>,
    /// The end of the driver's command, if an event shows it.
    pub hardware_done_ns: Option<u64>,
}

impl Piece {
    /// The earliest time in the device: the start of the command, or else the issue to the driver.
    pub fn start_ns(&self) -> u64 {
        self.hardware_start_ns.unwrap_or(self.issued_ns)
    }

    /// The end of the command, or else the end of the dispatch.
    pub fn done_ns(&self) -> u64 {
        self.hardware_done_ns.unwrap_or(self.ended_ns)
    }
}

/// The reason for which a request was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Origin {
    /// A request of an I/O: the index in [`Trace::ios`].
    Io(usize),
    /// Data of the page cache that the kernel writes back; with the inode, if known.
    Writeback(Option<u64>),
    /// Readahead, with the inode, if known.
    Readahead(Option<u64>),
    Journal,
    /// A thread without a visible system call (it began before the trace, or events are missing),
    /// or a kernel thread.
    #[default]
    Thread,
}

impl Origin {
    /// The inode, if known.
    pub fn inode(self) -> Option<u64> {
        match self {
            Origin::Writeback(inode) | Origin::Readahead(inode) => inode,
            _ => None,
        }
    }
}

/// One call of a program, or one operation of io_uring or aio.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Io {
    /// The system call, or the interface.
    pub call: Call,
    /// The file descriptor that the call names.
    pub fd: Option<i32>,
    /// The file of that descriptor, as an index into [`Trace::files`], if known.
    pub file: Option<usize>,
    /// For io_uring: the equivalent system call, if the event shows the operation and there is one.
    pub operation: Option<Call>,
    pub pid: u32,
    pub comm: Comm,
    /// The beginning of the call (io_uring: the submission), in ns.
    pub entered_ns: u64,
    /// The return of the call (io_uring, aio: the program reaps the completion), in ns.
    pub exited_ns: u64,
    /// The number of bytes moved; 0 for a sync and after a failure.
    pub bytes: u64,
    /// Its requests, as indices into [`Trace::requests`], in the order of their first bio.
    pub requests: Vec<usize>,
    /// The spans of its time. Their sum is `exited_ns - entered_ns`; all are 0 without requests.
    pub spans: Spans,
    /// Whether a journal's commit began and ended during the call, and the call is one that waits
    /// for commits.
    pub has_commit: bool,
    /// Whether some of its requests are unmatched or uncertain.
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
    /// Computes the spans of an I/O. `present` are the times at which any of its requests was in
    /// the block layer or below. Both sets may extend beyond `during_ns`.
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

/// All results of one trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// All matched requests, sorted by their end.
    pub requests: Vec<Request>,
    /// All I/Os, sorted by their end. Each has requests.
    pub ios: Vec<Io>,
    /// Calls without a request of their own, sorted by their end. Either memory or requests of
    /// other calls served them, or some of their requests are unknown.
    pub calls_without_request: Vec<Io>,
    /// The numbers of events and requests, and of those that could not be matched.
    pub account: Coverage,
    /// The kinds of event that are missing, with the consequence.
    pub missing: Vec<Missing>,
    /// The thread on each CPU; empty without sched events.
    pub sched: Sched,
    pub processes: Processes,
    /// The files of I/Os, calls and requests, each once.
    pub files: Vec<File>,
    /// The pauses of writing threads by dirty throttling (`balance_dirty_pages`), in time order.
    /// The lengths are upper limits in timer ticks of the kernel.
    pub dirty_pauses: Vec<OfThread>,
    /// The waits of threads for a kernel lock, sorted by their end.
    pub lock_waits: Vec<OfThread>,
}

impl Trace {
    /// The path of the file with this index.
    pub fn path(&self, file: Option<usize>) -> Option<&str> {
        Some(&self.files.get(file?)?.path)
    }
}

/// The process of each thread whose number is not that of its process. For a reused number, the
/// last process counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Processes {
    of_threads: HashMap<u32, u32>,
    /// The nearest ancestor with a known cgroup of each process that began in the trace.
    ancestors: HashMap<u32, u32>,
    cgroups: BTreeMap<u32, String>,
}

impl Processes {
    /// `cgroups`: the cgroup of each process.
    pub fn new(mut of_threads: HashMap<u32, u32>, cgroups: BTreeMap<u32, String>) -> Processes {
        of_threads.retain(|thread, process| thread != process);
        Processes { of_threads, cgroups, ..Processes::default() }
    }

    pub fn of(&self, thread: u32) -> u32 {
        self.of_threads.get(&thread).copied().unwrap_or(thread)
    }

    /// The thread's cgroup. If its process ended before the lookup, that of its nearest known
    /// ancestor.
    pub fn cgroup(&self, thread: u32) -> Option<&str> {
        let process = self.of(thread);
        let known = |process: &u32| self.cgroups.get(process).map(String::as_str);
        known(&process).or_else(|| known(self.ancestors.get(&process)?))
    }

    /// Whether the thread's cgroup is this one or lies below it.
    pub fn is_in(&self, thread: u32, cgroup: &str) -> bool {
        self.cgroup(thread).is_some_and(|own| is_within(own, cgroup))
    }

    /// All known cgroups.
    pub fn cgroups(&self) -> BTreeSet<&str> {
        self.cgroups.values().map(String::as_str).collect()
    }

    pub fn start(&mut self, by: u32, thread: u32, same_process: bool) {
        let parent = self.of(by);
        if same_process {
            self.of_threads.insert(thread, parent);
            return;
        }
        self.of_threads.remove(&thread);
        let of_parent = self.ancestors.get(&parent).copied();
        let known = Some(parent).filter(|parent| self.cgroups.contains_key(parent)).or(of_parent);
        self.ancestors.remove(&thread);
        self.ancestors.extend(known.map(|known| (thread, known)));
    }
}

/// Whether the cgroup `own` is `cgroup` or lies below it.
pub fn is_within(own: &str, cgroup: &str) -> bool {
    let below = own.strip_prefix(cgroup.trim_end_matches('/'));
    below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
}

/// A period of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfThread {
    pub pid: u32,
    pub begin_ns: u64,
    pub end_ns: u64,
}

/// A kind of event that the trace lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// As `system:name`.
    pub event: &'static str,
    /// The knowledge that is missing without it.
    pub consequence: &'static str,
}

/// The counts of events and requests. Each request is in exactly one of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Coverage {
    pub events: u64,
    /// The number of events that the kernel or the tracer reports as lost.
    pub events_lost: u64,
    /// The number of requests followed from issue to completion: the length of [`Trace::requests`].
    pub matched: u64,
    /// The matched requests that ended with an error.
    pub failed: u64,
    /// The requests that began before the trace or ended after it.
    pub at_the_edges: u64,
    /// The requests that lack an event where events were lost.
    pub hit_by_loss: u64,
    /// The requests that lack an event although none was lost; the first 1,000 of them.
    #[serde(skip)]
    pub unmatched: Vec<Unmatched>,
    /// The number of all unmatched requests.
    #[serde(rename = "unmatched")]
    pub unmatched_count: u64,
    /// The number of I/O calls that led to no request: memory or a request of another call served
    /// them.
    pub calls_without_request: u64,
    /// The number of I/Os that are not in [`Trace::ios`]. A request of theirs is unmatched or
    /// ambiguous, or they began before the trace or ended after it.
    pub ios_incomplete: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unmatched {
    /// The time of its last event.
    pub at_ns: u64,
    #[serde(skip)]
    pub dev: Dev,
    /// The device as major:minor; in a record its name, if known.
    pub device: String,
    /// First sector, in units of 512 bytes.
    pub sector: u64,
    pub op: &'static str,
    pub why: &'static str,
}
