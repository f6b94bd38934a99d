// SPDX-License-Identifier: MIT OR Apache-2.0
//! One trace event, in a form that does not depend on its source.
//!
//! Every source (the kernel's ring buffer, the text of ftrace and of perf) produces these events;
//! `follow` takes nothing else. A field that a source does not have is `None` or empty, never made
//! up.

pub use super::calls::Call;

/// One event. Sources give them in time order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The time on the source's clock, in ns. Text in µs gives multiples of 1,000.
    pub time_ns: u64,
    /// The CPU that recorded it.
    pub cpu: u32,
    /// The thread (`current`). 0 is idle, which means an interrupt.
    pub pid: u32,
    /// The thread's name, if the source has it.
    pub comm: Comm,
    pub what: EventKind,
}

/// The CPU of a loss whose CPU is unknown.
pub const UNKNOWN_CPU: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumDiscriminants)]
#[strum_discriminants(name(Kind))]
pub enum EventKind {
    /// `syscalls:sys_enter_*`, for the calls of [`Call`], with the file descriptor if the call has
    /// one.
    CallEnter { call: Call, fd: Option<i32> },
    /// `syscalls:sys_exit_*`: bytes, count, or a negative errno.
    CallExit { call: Call, result: i64 },
    /// `block:block_bio_queue`: a bio reaches the block layer (blktrace Q).
    BioQueue(Extent),
    /// `block:block_bio_remap` (A): a bio for a partition or a stacked device is remapped to `to`.
    BioRemap { to: Extent, from: (Dev, u64) },
    /// `block:block_split` (X): a bio is split at `new_sector`; the front part continues. `sectors`
    /// of the bio is 0, as the event has no length.
    BioSplit { bio: Extent, new_sector: u64 },
    /// `block:block_bio_backmerge` (M): appended to a request that ends where it begins.
    BackMerge(Extent),
    /// `block:block_bio_frontmerge` (F): put before a request that begins where it ends.
    FrontMerge(Extent),
    /// `block:block_rq_merge`: this request is merged into the one before it.
    RequestMerge(Extent),
    /// `block:block_getrq` (G): a request, and so a tag, is allocated for it.
    GetRequest(Extent),
    /// `block:block_rq_insert` (I): inserted into the scheduler.
    Insert(Extent),
    /// `block:block_rq_issue` (D): issued to the driver.
    Issue(Extent),
    /// `block:block_rq_requeue` (R): requeued by the driver.
    Requeue(Extent),
    /// `block:block_rq_complete` (C): `extent` of a request has completed; a request that is served
    /// in pieces has several. The error is 0 or a negative errno.
    Complete { extent: Extent, error: i32 },
    /// The driver starts a command: `mmc:mmc_request_start`, `nvme:nvme_setup_cmd`,
    /// `scsi:scsi_dispatch_cmd_start`.
    HardwareStart(Command),
    /// The command is done: `mmc:mmc_request_done`, `nvme:nvme_complete_rq`,
    /// `scsi:scsi_dispatch_cmd_done`.
    HardwareDone(Command),
    /// `irq:irq_handler_entry` or `irq_handler_exit`.
    Interrupt,
    /// `io_uring:io_uring_submit_req` (`io_uring_submit_sqe` before 6.4). It has the kernel's
    /// request as a key, whether the kernel's polling thread submits it, and the equivalent system
    /// call, if the event shows the operation and there is one.
    UringSubmit { request: u64, sq_thread: bool, operation: Option<Call> },
    /// `io_uring:io_uring_complete`: bytes, or a negative errno.
    UringComplete { request: u64, result: i32 },
    /// `io_uring:io_uring_queue_async_work`: from now on any worker of the submitter may start it.
    UringQueueWork { request: u64 },
    /// `io_uring:io_uring_link`: it starts when `after` has completed, in the same worker if
    /// `after` was in one.
    UringLink { request: u64, after: u64 },
    /// `io_uring:io_uring_file_get`: this thread looks up the file of the operation, and so starts
    /// it. A worker does so only if the file was not looked up before.
    UringFileGet { request: u64 },
    /// `writeback:writeback_single_inode_start`: the bios that this thread queues from now on
    /// belong to this inode.
    WritebackStart { inode: u64 },
    /// `writeback:writeback_single_inode`: the end of the above.
    WritebackEnd { inode: u64 },
    /// `filemap:mm_filemap_add_to_page_cache` or a `readahead` event: this thread is about to read
    /// into the page cache of that inode, on its file system's device.
    PageCacheAdd { dev: Dev, inode: u64 },
    /// `k2:k2_late`: a real-time request has completed, and took longer than the deadline of its
    /// level.
    K2Late { dev: Dev, sector: u64, level: u8, ns: u64 },
    /// `jbd2:jbd2_start_commit`: the journal's thread starts to commit a transaction of the file
    /// system on `dev`.
    JournalCommitStart { dev: Dev, transaction: u32 },
    /// `jbd2:jbd2_end_commit`.
    JournalCommitEnd { dev: Dev, transaction: u32 },
    /// `task:task_newtask`, or `sched:sched_process_fork`, which io_uring workers do not have.
    /// `same_process` is set only if the event shows it.
    Fork { child: u32, same_process: bool },
    /// `writeback:balance_dirty_pages`: dirty throttling pauses the writing thread.
    DirtyPause { pause_ns: u64 },
    /// `raw_syscalls:sys_enter`: a system call begins, of any kind.
    AnyCall,
    /// `exceptions:page_fault_user`: the program touches memory that is not mapped.
    PageFault,
    /// `lock:contention_begin`: the thread finds a lock of the kernel taken.
    LockBegin,
    /// `lock:contention_end`: the thread gets the lock.
    LockEnd,
    /// `sched:sched_switch`.
    Switch(Switch),
    /// `sched:sched_waking` or `sched_wakeup`, in the context of the event's thread.
    Waking(Waking),
    /// Events of this CPU are missing before this time.
    Lost {
        /// The number of lost events; 0 if the source does not have it.
        count: u64,
        /// The lost events are later than this; `None`: at any earlier time.
        since_ns: Option<u64>,
    },
}

/// A place on a device, with the operation there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub dev: Dev,
    /// The first sector, in units of 512 bytes.
    pub sector: u64,
    /// The length in units of 512 bytes; 0 for a flush.
    pub sectors: u32,
    pub op: Op,
    /// The I/O priority, if the event has it (on kernels since 6.4).
    pub priority: Option<Priority>,
}

/// A driver's command, with the facts in its event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    pub driver: Driver,
    /// The key, equal in the start and done events of one command, and unique among commands in
    /// flight (a pointer, or host and tag).
    pub key: u64,
    /// The first sector in units of 512 bytes, if the event has it.
    pub sector: Option<u64>,
    pub bytes: Option<u32>,
    /// The driver's command number (eMMC CMD index, NVMe or SCSI opcode), if the event has it.
    pub opcode: Option<u8>,
}

/// A driver with events for its commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Driver {
    Mmc,
    Nvme,
    Scsi,
}

/// A thread as sched events describe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedTask {
    /// The thread's number; 0 is idle.
    pub pid: u32,
    pub comm: Comm,
    /// The kernel's priority. Negative: deadline. 0 to 99: real-time, 99 the lowest. From 100 on:
    /// nice + 120.
    pub prio: i32,
}

/// `sched:sched_switch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    pub prev: SchedTask,
    /// Whether the previous thread is still runnable: it was preempted, or yielded. Otherwise it
    /// sleeps.
    pub runnable: bool,
    pub next: SchedTask,
}

/// `sched:sched_waking`, or `sched_wakeup`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waking {
    pub woken: SchedTask,
    /// The waker's context; `None` if the source does not show it.
    pub context: Option<Context>,
    /// The end of the request whose completion woke the thread. No source shows this; `follow`
    /// finds it.
    pub completed_ns: Option<u64>,
}

/// The context that a CPU is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Context {
    Thread,
    /// A softirq, on top of that thread or in it (ksoftirqd).
    Softirq,
    /// An interrupt, on top of that thread.
    Interrupt,
}

/// The major number of MMC cards.
pub const MMC_MAJOR: u32 = 179;

/// A block device's number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Dev {
    pub major: u32,
    pub minor: u32,
}

impl Dev {
    /// Decodes the kernel's own encoding, which trace events use, with 20 bits of minor number.
    pub fn from_kernel(dev: u32) -> Dev {
        Dev { major: dev >> 20, minor: dev & ((1 << 20) - 1) }
    }

    /// Parses `8:0` or `8,0`.
    pub fn parse(text: &str) -> Option<Dev> {
        let (major, minor) = text.split_once([',', ':'])?;
        Some(Dev { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }

    /// Encodes as the kernel does.
    pub fn to_kernel(self) -> u32 {
        self.major << 20 | self.minor
    }
}

impl std::fmt::Display for Dev {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}:{}", self.major, self.minor)
    }
}

/// Operation and flags: the `rwbs` field of block events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Op {
    pub kind: OpKind,
    /// A flush of the device's cache precedes it.
    pub preflush: bool,
    /// It goes to the medium, past the cache.
    pub fua: bool,
    /// A thread waits for it.
    pub sync: bool,
    /// Metadata of a file system.
    pub meta: bool,
    /// Readahead.
    pub ahead: bool,
}

/// The operation of a request.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, strum::IntoStaticStr,
)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum OpKind {
    /// R
    Read,
    /// W
    Write,
    /// F: nothing but a flush.
    Flush,
    /// D, DE: discard and secure erase.
    Discard,
    /// N and everything else: passthrough, zone commands.
    #[default]
    Other,
}

/// An I/O priority: class and level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    pub class: Class,
    /// 0 (first) to 7.
    pub level: u8,
}

/// An I/O priority class, in the order of the kernel's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::FromRepr, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
#[repr(u16)]
pub enum Class {
    /// Not set.
    None,
    /// Real-time.
    Rt,
    /// Best effort.
    Be,
    Idle,
}

impl Priority {
    /// Decodes the kernel's own encoding, which trace events use; `None` for a class outside
    /// [`Class`].
    pub fn from_kernel(ioprio: u16) -> Option<Priority> {
        let class = Class::from_repr(ioprio >> 13)?;
        Some(Priority { class, level: (ioprio & 7) as u8 })
    }
}

/// A thread's name: up to 15 bytes, as the kernel keeps it.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Comm([u8; 16]);

impl Comm {
    /// The first 15 bytes of `name`.
    pub fn new(name: &[u8]) -> Comm {
        let mut bytes = [0; 16];
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        let end = name.len().min(15);
        bytes[..end].copy_from_slice(&name[..end]);
        Comm(bytes)
    }

    /// The name, without the padding.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.split(|byte| *byte == 0).next().unwrap_or_default()
    }

    /// Whether the thread commits a journal.
    pub fn is_journal(&self) -> bool {
        self.as_bytes().starts_with(b"jbd2/")
    }

    /// For a worker of io_uring: the thread that it works for.
    pub fn uring_submitter(&self) -> Option<u32> {
        std::str::from_utf8(self.as_bytes().strip_prefix(b"iou-wrk-")?).ok()?.parse().ok()
    }

    /// Whether the name is unknown.
    pub fn is_empty(&self) -> bool {
        self.0[0] == 0
    }
}

impl std::fmt::Display for Comm {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.pad(&String::from_utf8_lossy(self.as_bytes()))
    }
}

impl std::fmt::Debug for Comm {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{:?}", self.to_string())
    }
}
