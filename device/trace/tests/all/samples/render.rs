// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints events as tools do: the inverse of the sources.

use steadyio_trace::calls::CALLS;
use steadyio_trace::event::{
    Class, Command, Driver, Event, EventKind, Extent, Op, OpKind, Priority,
};
use steadyio_trace::sched::{SchedTask, Switch, Waking};

/// Whose way of printing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// ftrace's file `trace`, with µs.
    Ftrace,
    /// `trace-cmd report -t`.
    TraceCmd,
    /// `perf script --ns -F comm,pid,tid,cpu,time,event,trace`.
    Perf,
}

/// The event's line, with its end.
pub fn line(form: Form, event: &Event) -> String {
    let (seconds, ns) = (event.time_ns / 1_000_000_000, event.time_ns % 1_000_000_000);
    let Event { cpu, pid, comm, .. } = event;
    let (system, name, values) = body(form, event);
    match form {
        Form::Ftrace => {
            let us = ns / 1000;
            let text = match system {
                "syscalls" => call(name.trim_start_matches("sys_enter_"), &values),
                _ => format!("{name}: {values}"),
            };
            // What came over the thread is not printed where it is not known.
            let flags = if matches!(event.what, EventKind::Waking(_)) { "" } else { "d.h1. " };
            format!(
                "{:>16}-{pid:<7} [{cpu:03}] {flags}{seconds:5}.{us:06}: {text}\n",
                comm.to_string()
            )
        }
        Form::TraceCmd => {
            let name = format!("{name}:");
            format!(
                "{:>16}-{pid:<5} [{cpu:03}] {seconds:5}.{ns:09}: {name:<21} {values}\n",
                comm.to_string()
            )
        }
        Form::Perf => {
            let name = format!("{system}:{name}");
            format!(
                "{:>16} {pid:5}/{pid:<5} [{cpu:03}] {seconds:5}.{ns:09}: {name:>40}: {values}\n",
                comm.to_string()
            )
        }
    }
}

/// `sys_read(fd: 3)` or `sys_read -> 0x0`, for `read` or `sys_exit_read`.
fn call(name: &str, values: &str) -> String {
    match name.strip_prefix("sys_exit_") {
        Some(name) => format!("sys_{name} -> {values}"),
        None => format!("sys_{name}({})", values.replace("0x0000000", "")),
    }
}

/// System, name and values.
fn body(form: Form, event: &Event) -> (&'static str, String, String) {
    let comm = event.comm;
    let block = |name: &str, values: String| ("block", format!("block_{name}"), values);
    let bio = |name, extent: &Extent| block(name, format!("{} [{comm}]", bio(extent)));
    let request = |name, extent: &Extent| {
        let bytes = u64::from(extent.sectors) * 512;
        block(name, format!("{} [{comm}]", self::request(form, extent, Some(bytes))))
    };
    match &event.what {
        EventKind::BioQueue(extent) => bio("bio_queue", extent),
        EventKind::BackMerge(extent) => bio("bio_backmerge", extent),
        EventKind::FrontMerge(extent) => bio("bio_frontmerge", extent),
        EventKind::GetRequest(extent) => bio("getrq", extent),
        EventKind::BioRemap { to, from: (dev, sector) } => {
            let from = format!("({},{}) {sector}", dev.major, dev.minor);
            block("bio_remap", format!("{} <- {from}", self::bio(to)))
        }
        EventKind::BioSplit { bio, new_sector } => {
            let Extent { dev, op, sector, .. } = bio;
            let target = format!("{},{} {}", dev.major, dev.minor, letters(*op));
            block("split", format!("{target} {sector} / {new_sector} [{comm}]"))
        }
        EventKind::RequestMerge(extent) => request("rq_merge", extent),
        EventKind::Insert(extent) => request("rq_insert", extent),
        EventKind::Issue(extent) => request("rq_issue", extent),
        EventKind::Requeue(extent) => {
            block("rq_requeue", format!("{} [0]", self::request(form, extent, None)))
        }
        EventKind::Complete { extent, error } => {
            block("rq_complete", format!("{} [{error}]", self::request(form, extent, None)))
        }
        EventKind::Switch(switch) => ("sched", "sched_switch".into(), switched(form, switch)),
        EventKind::Waking(Waking { woken, .. }) if form == Form::TraceCmd => {
            ("sched", "sched_wakeup".into(), format!("{} CPU:003", short(woken)))
        }
        EventKind::Waking(Waking { woken: SchedTask { pid, comm, prio }, .. }) => {
            let values = format!("comm={comm} pid={pid} prio={prio} target_cpu=003");
            ("sched", "sched_waking".into(), values)
        }
        other => elsewhere(event, other),
    }
}

fn switched(form: Form, Switch { prev, runnable, next }: &Switch) -> String {
    if form == Form::TraceCmd {
        let state = if *runnable { "R" } else { "D" };
        return format!("{} {state} ==> {}", short(prev), short(next));
    }
    let state = if *runnable { "R+" } else { "S" };
    let named = |side: &str, SchedTask { pid, comm, prio }: &SchedTask| {
        format!("{side}_comm={comm} {side}_pid={pid} {side}_prio={prio}")
    };
    format!("{} prev_state={state} ==> {}", named("prev", prev), named("next", next))
}

/// As trace-cmd's plugin prints a thread.
fn short(SchedTask { pid, comm, prio }: &SchedTask) -> String {
    format!("{comm}:{pid} [{prio}]")
}

fn elsewhere(event: &Event, what: &EventKind) -> (&'static str, String, String) {
    let named = |system, name: &str, values: String| (system, name.to_owned(), values);
    match what {
        EventKind::CallEnter { call, fd } => {
            let events = CALLS.iter().find(|events| events.call == *call).expect("in the table");
            let before = match events.fd {
                Some("in_fd") => "out_fd: 0x00000001, ",
                Some("newfd") => "oldfd: 0x00000001, ",
                _ => "",
            };
            let fd = fd.map(|fd| format!("{before}{}: 0x{fd:08x}", events.fd.expect("a name")));
            let fd = fd.unwrap_or_else(|| "start: 0x00000000".to_owned());
            let values = format!("{fd}, buf: 0x7ffe9, flags: 0x00000000");
            named("syscalls", &format!("sys_enter_{}", events.name), values)
        }
        EventKind::CallExit { call, result } => {
            let events = CALLS.iter().find(|events| events.call == *call).expect("in the table");
            named("syscalls", &format!("sys_exit_{}", events.name), format!("0x{result:x}"))
        }
        EventKind::HardwareStart(command) => command_start(command),
        EventKind::HardwareDone(command) => command_done(command),
        EventKind::Interrupt => named("irq", "irq_handler_exit", "irq=36 ret=handled".into()),
        EventKind::UringSubmit { request, sq_thread, .. } => named(
            "io_uring",
            "io_uring_submit_req",
            format!(
                "ring 0x1, req 0x{request:x}, user_data 0x2, opcode READ, flags 0x0, sq_thread {}",
                u8::from(*sq_thread)
            ),
        ),
        EventKind::UringComplete { request, result } => named(
            "io_uring",
            "io_uring_complete",
            format!(
                "ring 0x1, req 0x{request:x}, user_data 0x2, result {result}, cflags 0x0 extra1 0 extra2 0 "
            ),
        ),
        EventKind::UringQueueWork { request } => named(
            "io_uring",
            "io_uring_queue_async_work",
            format!(
                "ring 0x1, request 0x{request:x}, user_data 0x2, opcode FSYNC, flags 0x10, normal queue, work 0x3"
            ),
        ),
        EventKind::UringLink { request, after } => named(
            "io_uring",
            "io_uring_link",
            format!("ring 0x1, request 0x{request:x} linked after 0x{after:x}"),
        ),
        EventKind::UringFileGet { request } => named(
            "io_uring",
            "io_uring_file_get",
            format!("ring 0x1, req 0x{request:x}, user_data 0x2, fd 7"),
        ),
        EventKind::WritebackStart { inode } => {
            named("writeback", "writeback_single_inode_start", writeback(*inode))
        }
        EventKind::WritebackEnd { inode } => {
            named("writeback", "writeback_single_inode", writeback(*inode))
        }
        EventKind::PageCacheAdd { dev, inode } => named(
            "filemap",
            "mm_filemap_add_to_page_cache",
            format!("dev {dev} ino {inode:x} pfn=0x1 ofs=0 order=0"),
        ),
        EventKind::K2Late { dev, sector, level, ns } => {
            let dev = format!("{},{}", dev.major, dev.minor);
            named(
                "k2",
                "k2_late",
                format!("{dev} {sector} level {level} took {ns} ns deadline 1 ns"),
            )
        }
        EventKind::JournalCommitStart { dev, transaction } => named(
            "jbd2",
            "jbd2_start_commit",
            format!("dev {},{} transaction {transaction} sync 0", dev.major, dev.minor),
        ),
        EventKind::JournalCommitEnd { dev, transaction } => named(
            "jbd2",
            "jbd2_end_commit",
            format!("dev {},{} transaction {transaction} sync 0 head 1", dev.major, dev.minor),
        ),
        EventKind::DirtyPause { pause_ns } => {
            let ms = pause_ns / 1_000_000;
            let values = format!(
                "bdi 8:0: limit=9 setpoint=8 dirty=7 wb_setpoint=6 wb_dirty=5 dirty_ratelimit=4 \
                 task_ratelimit=3 dirtied=2 dirtied_pause=1 paused=0 pause={ms} period=9 think=0 cgroup_ino=1"
            );
            named("writeback", "balance_dirty_pages", values)
        }
        EventKind::Fork { child, .. } => {
            let (comm, pid) = (event.comm, event.pid);
            let values = format!("comm={comm} pid={pid} child_comm={comm} child_pid={child}");
            named("sched", "sched_process_fork", values)
        }
        _ => unreachable!("{what:?} is of the block layer, or a loss"),
    }
}

fn writeback(inode: u64) -> String {
    format!(
        "bdi 8:0: ino={inode} state=I_SYNC dirtied_when=1 age=2 index=0 to_write=3 wrote=0 cgroup_ino=1"
    )
}

fn command_start(command: &Command) -> (&'static str, String, String) {
    let Command { driver, key, sector, bytes, opcode } = command;
    let opcode = opcode.unwrap_or_default();
    match driver {
        Driver::Mmc => {
            let (blocks, address) = (bytes.unwrap_or_default() / 512, sector.unwrap_or_default());
            let values = format!(
                "mmc0: start struct mmc_request[{key:016x}]: cmd_opcode={opcode} cmd_arg=0x0 sbc_retires=0 \
                 blocks={blocks} block_size=512 blk_addr={address} data_flags=0x200 tag=0"
            );
            ("mmc", "mmc_request_start".to_owned(), values)
        }
        Driver::Nvme => {
            let name = ["flush", "write", "read"][usize::from(opcode)];
            let values = format!(
                "nvme{}: disk=nvme0n1, qid={}, cmdid={}, nsid=1, flags=0x0, meta=0x0, cmd=(nvme_cmd_{name} slba=0)",
                key >> 32,
                key >> 16 & 0xffff,
                key & 0xffff
            );
            ("nvme", "nvme_setup_cmd".to_owned(), values)
        }
        Driver::Scsi => unreachable!("its key cannot be turned back"),
    }
}

fn command_done(command: &Command) -> (&'static str, String, String) {
    let Command { driver, key, bytes, opcode, .. } = command;
    match driver {
        Driver::Mmc => {
            let (opcode, bytes) = (opcode.unwrap_or_default(), bytes.unwrap_or_default());
            let values = format!(
                "mmc0: end struct mmc_request[{key:016x}]: cmd_opcode={opcode} cmd_err=0 sbc_retries=0 \
                 bytes_xfered={bytes} data_err=0 tag=0"
            );
            ("mmc", "mmc_request_done".to_owned(), values)
        }
        Driver::Nvme => {
            let values = format!(
                "nvme{}: qid={}, cmdid={}, res=0x0, retries=0, flags=0x0, status=0x0",
                key >> 32,
                key >> 16 & 0xffff,
                key & 0xffff
            );
            ("nvme", "nvme_complete_rq".to_owned(), values)
        }
        Driver::Scsi => unreachable!("its key cannot be turned back"),
    }
}

fn bio(extent: &Extent) -> String {
    let Extent { dev, op, sector, sectors, .. } = extent;
    format!("{},{} {} {sector} + {sectors}", dev.major, dev.minor, letters(*op))
}

fn request(form: Form, extent: &Extent, bytes: Option<u64>) -> String {
    let Extent { dev, op, sector, sectors, priority } = extent;
    let bytes = bytes.map(|bytes| format!("{bytes} ")).unwrap_or_default();
    let priority = priority.map(|priority| priority_text(form, priority)).unwrap_or_default();
    format!("{},{} {} {bytes}() {sector} + {sectors}{priority}", dev.major, dev.minor, letters(*op))
}

fn priority_text(form: Form, Priority { class, level }: Priority) -> String {
    let class = match (class, form) {
        (Class::None, Form::Ftrace) => "none",
        (Class::Rt, Form::Ftrace) => "rt",
        (Class::Be, Form::Ftrace) => "be",
        (Class::Idle, Form::Ftrace) => "idle",
        (Class::None, _) => "0x0",
        (Class::Rt, _) => "0x1",
        (Class::Be, _) => "0x2",
        (Class::Idle, _) => "0x3",
    };
    format!(" {class},0,{level}")
}

fn letters(op: Op) -> String {
    let kind = match op.kind {
        OpKind::Read => "R",
        OpKind::Write => "W",
        OpKind::Flush => "F",
        OpKind::Discard => "D",
        OpKind::Other => "N",
    };
    let flags = [(op.fua, "F"), (op.ahead, "A"), (op.sync, "S"), (op.meta, "M")];
    let flags: String = flags.iter().filter(|flag| flag.0).map(|flag| flag.1).collect();
    format!("{}{kind}{flags}", if op.preflush { "F" } else { "" })
}
