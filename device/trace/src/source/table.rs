// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of all events that are read. Each row has an event's name, fields, text format and
//! decoder.
//!
//! Binary records (`decode`, with the kernel's `format`) and text (`text::pattern`) give the same
//! fields, so each event is declared once, here. The system calls among them are in `calls`.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::commands::{mmc_done, mmc_start, nvme, scsi};
use super::fields::{Fields, bare};
use super::text::pattern::Pattern;
use crate::calls::{CALLS, CallEvents};
use crate::event::{Context, EventKind, Extent, SchedTask, Switch, Waking};
use Need::{Files, Fine, Summary, Threads};

/// The level of detail of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Detail {
    /// The events that the spans and the causes need.
    #[default]
    Summary,
    /// Also interrupts and the page cache, which are more frequent than I/Os.
    Fine,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// [`Detail::Summary`].
    Summary,
    /// [`Detail::Fine`].
    Fine,
    /// Events about the activity of threads. Context switches are more frequent than I/Os, so this
    /// is optional.
    Threads,
    /// Calls about names and attributes of files. They are frequent, and seldom waited for.
    Metadata,
    /// Read in files, but never enabled in this kernel.
    Files,
}

pub struct Wanted {
    /// The folder of the system under `events`.
    pub system: &'static str,
    /// The event's folder in that of its system.
    pub name: String,
    /// The event's name in older kernels.
    pub old_name: Option<&'static str>,
    pub(super) need: Need,
    /// The kernel's filter expression; empty for all.
    pub filter: &'static str,
    /// The fields for `decode`, by their number in this list. A `?` precedes a field that not all
    /// kernels have.
    pub(super) fields: Vec<&'static str>,
    /// The text formats; the first match counts.
    pub(super) text: Vec<Pattern>,
    pub(super) decode: Decode,
}

/// Makes an [`EventKind`] of the fields; `None` if a field has an unexpected value.
type Decode = Box<dyn Fn(&Fields) -> Option<EventKind> + Send + Sync>;

impl std::fmt::Debug for Wanted {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}:{}", self.system, self.name)
    }
}

impl Wanted {
    /// Whether the event is about the thread in whose context it occurs, and not about a device.
    pub fn is_of_thread(&self) -> bool {
        let systems = ["syscalls", "raw_syscalls", "sched", "lock", "exceptions", "filemap"];
        systems.contains(&self.system) || self.name == "balance_dirty_pages"
    }

    /// The number of the field with the thread's name, which a line of text repeats; or else the
    /// number after the last field.
    pub(super) fn comm_slot(&self) -> usize {
        let is_comm = |field: &&str| bare(field) == bare(self.comm_field());
        self.fields.iter().position(is_comm).unwrap_or(self.fields.len())
    }

    /// The field with the name of the thread in whose context the event occurs, after `?`.
    pub(super) fn comm_field(&self) -> &'static str {
        match (self.system, self.name.as_str()) {
            ("sched", "sched_switch") => "?prev_comm",
            // `comm` is here the woken thread, or the new one.
            ("sched" | "task", _) => ABSENT,
            _ => "?comm",
        }
    }
}

/// The placeholder for a field that an event does not have.
const ABSENT: &str = "?";

/// All events that a kernel can be asked for, or that can be read. Those of calls come last.
pub fn wanted() -> &'static [Wanted] {
    static ALL: LazyLock<Vec<Wanted>> = LazyLock::new(|| {
        let all = [block(), drivers(), io_uring(), files(), threads()].into_iter().flatten();
        all.chain(CALLS.iter().flat_map(calls)).collect()
    });
    &ALL
}

/// The event with this present or former name.
pub(super) fn by_name(name: &[u8]) -> Option<&'static Wanted> {
    static NAMES: LazyLock<HashMap<&[u8], &Wanted>> = LazyLock::new(|| {
        let names = |row: &'static Wanted| [Some(row.name.as_str()), row.old_name];
        let of_row = |row| names(row).into_iter().flatten().map(move |name| (name.as_bytes(), row));
        wanted().iter().flat_map(of_row).collect()
    });
    NAMES.get(name).copied()
}

const NS_PER_MS: u64 = 1_000_000;
/// A bit of `common_flags`.
const HARDIRQ: u8 = 0x08;
const SOFTIRQ: u8 = 0x10;
const NMI: u8 = 0x40;
/// A bit of `clone_flags`.
const CLONE_THREAD: u64 = 0x10000;

/// The fields of bios and requests: device, first sector, sectors, operation. Requests have the I/O
/// priority since 6.4.
const EXTENT: &str = "dev sector nr_sector rwbs ?ioprio";
const BIO: &[&str] = &["{dev:D} {rwbs:r} {sector:d} + {nr_sector:d} [{comm:n}]"];
const REQUEST: &[&str] =
    &["{dev:D} {rwbs:r} {:d} ({*}) {sector:d} + {nr_sector:d} {ioprio:p}[{comm:n}]"];
const ENDED: &[&str] = &["{dev:D} {rwbs:r} ({*}) {sector:d} + {nr_sector:d} {ioprio:p}[{error:s}]"];
const NVME: &str = "ctrl_id qid cid ?opcode";
/// Linux 5.10 prints no tag.
const SCSI: &str = "host_no channel id lun ?driver_tag opcode cmnd";
const SCSI_TEXT: &[&str] = &[
    "host_no={host_no:d} channel={channel:d} id={id:d} lun={lun:d}{*} driver_tag={driver_tag:s}{*} raw={opcode:x}{cmnd:t}){*}",
    "host_no={host_no:d} channel={channel:d} id={id:d} lun={lun:d}{*} raw={opcode:x}{cmnd:t}){*}",
];
const INODE: &[&str] = &["bdi {*}: ino={ino:d} state={*}"];
const COMMIT: &[&str] = &["dev {dev:D} transaction {transaction:d} sync {*}"];
const READAHEAD: &[&str] = &["dev={s_dev:D} ino={i_ino:x} {*}"];
const WAKING: &[&str] = &[
    "comm={comm:n} pid={pid:d} prio={prio:s} target_cpu={:d}",
    "comm={comm:n} pid={pid:d} prio={prio:s} success=1 target_cpu={:d}",
    "{comm:n}:{pid:d} [{prio:s}] CPU:{:d}",
    "{comm:n}:{pid:d} [{prio:s}] success=1 CPU:{:d}",
];

#[rustfmt::skip]
fn block() -> Vec<Wanted> {
    vec![
        row("block", "block_bio_queue", Summary, EXTENT, BIO, |f| Some(EventKind::BioQueue(f.extent()?))),
        row("block", "block_bio_remap", Summary, "dev sector nr_sector rwbs ?ioprio old_dev old_sector",
            &["{dev:D} {rwbs:r} {sector:d} + {nr_sector:d} <- ({old_dev:D}) {old_sector:d}"],
            |f| Some(EventKind::BioRemap { to: f.extent()?, from: (f.dev(5)?, f.u64(6)?) })),
        row("block", "block_split", Summary, "dev sector new_sector rwbs",
            &["{dev:D} {rwbs:r} {sector:d} / {new_sector:d} [{comm:n}]"], |f| {
                let (dev, sector, new_sector) = (f.dev(0)?, f.u64(1)?, f.u64(2)?);
                let bio = Extent { dev, sector, sectors: 0, op: f.op(3)?, priority: None };
                Some(EventKind::BioSplit { bio, new_sector })
            }),
        row("block", "block_bio_backmerge", Summary, EXTENT, BIO, |f| Some(EventKind::BackMerge(f.extent()?))),
        row("block", "block_bio_frontmerge", Summary, EXTENT, BIO, |f| Some(EventKind::FrontMerge(f.extent()?))),
        row("block", "block_rq_merge", Summary, EXTENT, REQUEST, |f| Some(EventKind::RequestMerge(f.extent()?))),
        row("block", "block_getrq", Summary, EXTENT, BIO, |f| Some(EventKind::GetRequest(f.extent()?))),
        row("block", "block_rq_insert", Summary, EXTENT, REQUEST, |f| Some(EventKind::Insert(f.extent()?))),
        row("block", "block_rq_issue", Summary, EXTENT, REQUEST, |f| Some(EventKind::Issue(f.extent()?))),
        row("block", "block_rq_requeue", Summary, EXTENT, ENDED, |f| Some(EventKind::Requeue(f.extent()?))),
        row("block", "block_rq_complete", Summary, "dev sector nr_sector rwbs ?ioprio error", ENDED,
            |f| Some(EventKind::Complete { extent: f.extent()?, error: f.number(5)? })),
        row("k2", "k2_late", Summary, "dev sector level ns", &["{dev:D} {sector:d} level {level:d} took {ns:d} ns {*}"],
            |f| Some(EventKind::K2Late { dev: f.dev(0)?, sector: f.u64(1)?, level: f.number(2)?, ns: f.u64(3)? })),
    ]
}

#[rustfmt::skip]
fn drivers() -> Vec<Wanted> {
    vec![
        row("mmc", "mmc_request_start", Summary, "mrq cmd_opcode blocks blksz blk_addr",
            &["{*}: start struct mmc_request[{mrq:x}]: cmd_opcode={cmd_opcode:d} {*} blocks={blocks:d} block_size={blksz:d} blk_addr={blk_addr:d} {*}"],
            |f| mmc_start(f).map(EventKind::HardwareStart)),
        row("mmc", "mmc_request_done", Summary, "mrq cmd_opcode bytes_xfered",
            &["{*}: end struct mmc_request[{mrq:x}]: cmd_opcode={cmd_opcode:d} {*} bytes_xfered={bytes_xfered:d} {*}"],
            |f| mmc_done(f).map(EventKind::HardwareDone)),
        // A command without a disk is an administrative one.
        row("nvme", "nvme_setup_cmd", Summary, NVME,
            &["nvme{ctrl_id:d}: disk={*}, qid={qid:d}, cmdid={cid:d}, nsid={*}, cmd=({opcode:w} {*})",
              "nvme{ctrl_id:d}: qid={qid:d}, cmdid={cid:d}, nsid={*}, cmd=({opcode:w} {*})"],
            |f| nvme(f).map(EventKind::HardwareStart)),
        row("nvme", "nvme_complete_rq", Summary, NVME,
            &["nvme{ctrl_id:d}: disk={*}, qid={qid:d}, cmdid={cid:d}, res={*}, status={:x}",
              "nvme{ctrl_id:d}: qid={qid:d}, cmdid={cid:d}, res={*}, status={:x}"],
            |f| nvme(f).map(EventKind::HardwareDone)),
        row("scsi", "scsi_dispatch_cmd_start", Summary, SCSI, SCSI_TEXT, |f| scsi(f).map(EventKind::HardwareStart)),
        row("scsi", "scsi_dispatch_cmd_done", Summary, SCSI, SCSI_TEXT, |f| scsi(f).map(EventKind::HardwareDone)),
        row("irq", "irq_handler_entry", Fine, "", &["irq={:d} name={*}"], |_| Some(EventKind::Interrupt)),
        row("irq", "irq_handler_exit", Fine, "", &["irq={:d} ret={*}"], |_| Some(EventKind::Interrupt)),
    ]
}

#[rustfmt::skip]
fn io_uring() -> Vec<Wanted> {
    vec![
        Wanted { old_name: Some("io_uring_submit_sqe"), ..row("io_uring", "io_uring_submit_req", Summary, "req ?sq_thread ?opcode",
            &["ring {*}, req {req:x}, {*}, opcode {opcode:t}, {*}, sq_thread {sq_thread:d}",
              "ring {*}, req {req:x}, {*}, sq_thread {sq_thread:d}"],
            |f| {
                let sq_thread = f.u64(1).unwrap_or(0) != 0;
                Some(EventKind::UringSubmit { request: f.hex(0)?, sq_thread, operation: f.uring_call(2) })
            }) },
        row("io_uring", "io_uring_complete", Summary, "req res",
            &["ring {*}, req {req:x}, {*} result {res:s}, cflags 0x{*}"],
            |f| Some(EventKind::UringComplete { request: f.hex(0)?, result: f.number(1)? })),
        row("io_uring", "io_uring_queue_async_work", Summary, "req", &["ring {*}, request {req:x}, user_data 0x{*}"],
            |f| Some(EventKind::UringQueueWork { request: f.hex(0)? })),
        row("io_uring", "io_uring_link", Summary, "req target_req",
            &["ring {*}, request {req:x} linked after {target_req:x}"],
            |f| Some(EventKind::UringLink { request: f.hex(0)?, after: f.hex(1)? })),
        // Only workers: other threads cause this event for each operation.
        Wanted { filter: "comm ~ \"iou-wrk-*\"", ..row("io_uring", "io_uring_file_get", Summary, "req",
            &["ring {*}, req {req:x}, {*}, fd {:s}"],
            |f| Some(EventKind::UringFileGet { request: f.hex(0)? })) },
    ]
}

#[rustfmt::skip]
fn files() -> Vec<Wanted> {
    let cached = |f: &Fields| Some(EventKind::PageCacheAdd { dev: f.dev(0)?, inode: f.hex(1)? });
    vec![
        row("writeback", "writeback_single_inode_start", Summary, "ino", INODE,
            |f| Some(EventKind::WritebackStart { inode: f.u64(0)? })),
        row("writeback", "writeback_single_inode", Summary, "ino", INODE,
            |f| Some(EventKind::WritebackEnd { inode: f.u64(0)? })),
        // One event per pause, from a thread that is about to sleep; in ms, negative if it does not
        // pause.
        row("writeback", "balance_dirty_pages", Summary, "pause", &["bdi {*} pause={pause:s} period={*}"], |f| {
            let pause_ms = u64::try_from(f.int(0)?).unwrap_or(0);
            Some(EventKind::DirtyPause { pause_ns: pause_ms.saturating_mul(NS_PER_MS) })
        }),
        row("filemap", "mm_filemap_add_to_page_cache", Fine, "s_dev i_ino", &["dev {s_dev:D} ino {i_ino:x} {*}"], cached),
        row("readahead", "page_cache_ra_unbounded", Files, "s_dev i_ino", READAHEAD, cached),
        row("readahead", "page_cache_ra_order", Files, "s_dev i_ino", READAHEAD, cached),
        row("readahead", "page_cache_sync_ra", Files, "s_dev i_ino", READAHEAD, cached),
        row("readahead", "page_cache_async_ra", Files, "s_dev i_ino", READAHEAD, cached),
        row("jbd2", "jbd2_start_commit", Summary, "dev transaction", COMMIT,
            |f| Some(EventKind::JournalCommitStart { dev: f.dev(0)?, transaction: f.number(1)? })),
        row("jbd2", "jbd2_end_commit", Summary, "dev transaction", COMMIT,
            |f| Some(EventKind::JournalCommitEnd { dev: f.dev(0)?, transaction: f.number(1)? })),
    ]
}

#[rustfmt::skip]
fn threads() -> Vec<Wanted> {
    vec![
        row("sched", "sched_switch", Threads, "prev_pid prev_comm prev_prio prev_state next_pid next_comm next_prio",
            &["prev_comm={prev_comm:n} prev_pid={prev_pid:d} prev_prio={prev_prio:s} prev_state={prev_state:w} ==> \
               next_comm={next_comm:n} next_pid={next_pid:d} next_prio={next_prio:s}",
              "{prev_comm:n}:{prev_pid:d} [{prev_prio:s}] {prev_state:w} ==> {next_comm:n}:{next_pid:d} [{next_prio:s}]"],
            |f| {
                let runnable = f.is_runnable(3)?;
                Some(EventKind::Switch(Switch { prev: task(f, 0)?, runnable, next: task(f, 4)? }))
            }),
        row("sched", "sched_waking", Threads, "pid comm prio ?common_flags", WAKING, waking),
        row("sched", "sched_wakeup", Files, "pid comm prio ?common_flags", WAKING, waking),
        row("lock", "contention_begin", Threads, "", &["{:x} (flags={*}"], |_| Some(EventKind::LockBegin)),
        row("lock", "contention_end", Threads, "", &["{:x} (ret={:s})"], |_| Some(EventKind::LockEnd)),
        // Any call ends a page fault that has no end event.
        row("raw_syscalls", "sys_enter", Threads, "", &["NR {:s} ({*}"], |_| Some(EventKind::AnyCall)),
        row("exceptions", "page_fault_user", Threads, "", &["address={*} error_code={*}"], |_| Some(EventKind::PageFault)),
        // Not sched_process_fork: workers of io_uring start without it.
        row("task", "task_newtask", Summary, "pid clone_flags", &["pid={pid:d} comm={:n} clone_flags={clone_flags:x} {*}"],
            |f| Some(EventKind::Fork { child: f.number(0)?, same_process: f.hex(1)? & CLONE_THREAD != 0 })),
        row("sched", "sched_process_fork", Files, "child_pid", &["comm={*} child_pid={child_pid:d}"],
            |f| Some(EventKind::Fork { child: f.number(0)?, same_process: false })),
        // perf's own record, which it prints on request.
        row("perf", "PERF_RECORD_LOST", Files, "lost", &["lost {lost:d}"],
            |f| Some(EventKind::Lost { count: f.u64(0)?, since_ns: None })),
    ]
}

/// Fields: `pid comm prio common_flags`; text has the flags in the head of its line.
fn waking(fields: &Fields) -> Option<EventKind> {
    let context = fields.number::<u8>(3).map(|flags| match flags {
        _ if flags & (HARDIRQ | NMI) != 0 => Context::Interrupt,
        _ if flags & SOFTIRQ != 0 => Context::Softirq,
        _ => Context::Thread,
    });
    let (woken, completed_ns) = (task(fields, 0)?, None);
    Some(EventKind::Waking(Waking { woken, context, completed_ns }))
}

/// The number, name and priority of a thread, from field `first` on.
fn task(fields: &Fields, first: usize) -> Option<SchedTask> {
    let (pid, comm) = (fields.number(first)?, fields.comm(first + 1)?);
    Some(SchedTask { pid, comm, prio: fields.number(first + 2)? })
}

fn row(
    system: &'static str,
    name: impl Into<String>,
    need: Need,
    fields: &'static str,
    text: &[impl AsRef<str>],
    decode: impl Fn(&Fields) -> Option<EventKind> + Send + Sync + 'static,
) -> Wanted {
    let fields = fields.split_whitespace().collect();
    let (name, decode) = (name.into(), Box::new(decode));
    let row =
        Wanted { system, name, old_name: None, need, filter: "", fields, text: Vec::new(), decode };
    let fields = row.fields.iter().copied();
    let names: Vec<&str> = fields.chain([row.comm_field()]).map(bare).collect();
    let text = text.iter().map(|text| Pattern::new(text.as_ref(), &names)).collect();
    Wanted { text, ..row }
}

/// The rows of a call. perf and trace-cmd print the arguments in the event's format (all in
/// hexadecimal with `0x`). ftrace prints them in parentheses (also in hexadecimal, in many kernels
/// without `0x`). The contents of a buffer may be printed and look like arguments, so the pattern
/// skips only the text before the file descriptor. The kernel prints it with 64 bits; the lower 32
/// count.
fn calls(events: &'static CallEvents) -> [Wanted; 2] {
    let CallEvents { call, name, fd, metadata } = *events;
    // Without those that close files, the file of a descriptor is unknown.
    let is_asked_for = metadata && !call.closes_files();
    let need = if is_asked_for { Need::Metadata } else { Need::Summary };
    let before = match fd {
        Some("in_fd") => "out_fd: {:x}, ",
        Some("newfd") => "oldfd: {:x}, ",
        _ => "",
    };
    let arguments = match fd {
        None => vec!["({*})".to_owned(), "{:a}".to_owned()],
        Some(fd) => ["", ", {*}"]
            .map(|behind| format!("{before}{fd}: {{{fd}:x}}{behind}"))
            .into_iter()
            .flat_map(|arguments| [format!("({arguments})"), arguments])
            .collect(),
    };
    let entered =
        move |f: &Fields| Some(EventKind::CallEnter { call, fd: f.hex(0).map(|fd| fd as i32) });
    let exited = move |f: &Fields| Some(EventKind::CallExit { call, result: f.hex(0)? as i64 });
    let (enter, exit) = (format!("sys_enter_{name}"), format!("sys_exit_{name}"));
    [
        row("syscalls", enter, need, fd.unwrap_or(ABSENT), &arguments, entered),
        row("syscalls", exit, need, "ret", &["{ret:x}", "-> {ret:x}"], exited),
    ]
}
