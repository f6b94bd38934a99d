// SPDX-License-Identifier: MIT OR Apache-2.0
//! ftrace's text and trace-cmd's, from samples that `traces/record.sh` recorded, and line by line.

use std::path::{Path, PathBuf};

use steadyio_trace::event::{
    Call, Class, Command, Dev, Driver, Event, EventKind, Extent, Op, OpKind, Priority, UringOp,
};
use steadyio_trace::source::{Position, Problem, ftrace_text};

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces")
}

fn read(text: &str) -> (Vec<Event>, Vec<Problem>) {
    let (mut events, mut problems) = (Vec::new(), Vec::new());
    for item in ftrace_text::read(text.as_bytes(), "t") {
        match item {
            Ok(event) => events.push(event),
            Err(problem) => problems.push(problem),
        }
    }
    (events, problems)
}

/// The events of a sample, which must have no problem.
fn sample(name: &str) -> Vec<Event> {
    let text = std::fs::read_to_string(samples().join(name)).expect(name);
    let (events, problems) = read(&text);
    assert_eq!(problems, [], "{name}");
    assert!(!events.is_empty(), "{name}");
    events
}

/// The one event of a line; `sh-10 [001] ..... 1.000002: ` comes before it.
fn what(event: &str) -> EventKind {
    let (events, problems) = read(&format!("sh-10 [001] ..... 1.000002: {event}\n"));
    assert_eq!(problems, [], "{event}");
    assert_eq!(events.len(), 1, "{event}");
    events[0].what
}

fn problem(line: &str) -> String {
    let (events, problems) = read(&format!("{line}\n"));
    assert_eq!(events, [], "{line}");
    assert_eq!(problems.len(), 1, "{line}");
    assert_eq!(problems[0].place, Position::Line(1));
    problems[0].what.clone()
}

fn op(kind: OpKind) -> Op {
    Op { kind, ..Op::default() }
}

const SDA: Dev = Dev { major: 8, minor: 0 };
const READ: Extent = Extent {
    dev: SDA,
    sector: 2048,
    sectors: 8,
    op: Op {
        kind: OpKind::Read,
        preflush: false,
        fua: false,
        sync: true,
        meta: false,
        ahead: false,
    },
    priority: None,
};

#[test]
fn the_samples_of_all_forms_say_the_same() {
    let trace = sample("host-trace.txt");
    assert!(trace.len() > 500, "{}", trace.len());
    let report = sample("host-report-t.txt");
    assert_eq!(trace.len(), report.len());
    for (one, other) in trace.iter().zip(&report) {
        assert_eq!(
            one.time_ns,
            (other.time_ns + 500) / 1000 * 1000,
            "ftrace rounds: {one:?} {other:?}"
        );
        assert_eq!((one.cpu, one.pid), (other.cpu, other.pid), "{one:?} {other:?}");
        match (one.what, other.what) {
            // ftrace hides addresses, trace-cmd prints them.
            (EventKind::UringSubmit { .. }, EventKind::UringSubmit { .. }) => {}
            (
                EventKind::UringComplete { result, .. },
                EventKind::UringComplete { result: other, .. },
            ) => {
                assert_eq!(result, other)
            }
            (EventKind::UringFileGet { .. }, EventKind::UringFileGet { .. }) => {}
            (one, other) => assert_eq!(one, other),
        }
    }
    for name in ["host-tgid.txt", "host-no-irq-info.txt"] {
        let beginning = sample(name);
        assert_eq!(beginning, trace[..beginning.len()], "{name}");
    }
}

#[test]
fn the_latency_format_counts_from_the_first_event() {
    let trace = sample("host-trace.txt");
    let latency = sample("host-latency.txt");
    let (first_ns, first_latency_ns) = (trace[0].time_ns, latency[0].time_ns);
    for (one, other) in trace.iter().zip(&latency) {
        assert_eq!((one.cpu, one.pid, one.what), (other.cpu, other.pid, other.what));
        let offset_ns = one.time_ns - first_ns;
        assert!(
            (other.time_ns - first_latency_ns).abs_diff(offset_ns) <= 1000,
            "{one:?} {other:?}"
        );
    }
}

#[test]
fn every_thread_of_a_sample_has_the_name_that_block_events_repeat() {
    for event in sample("host-trace.txt") {
        if let EventKind::BioQueue(_) = event.what {
            assert!(!event.comm.is_empty(), "{event:?}");
        }
    }
}

#[test]
fn block_events_before_and_since_the_priority() {
    let request = Extent { priority: Some(Priority { class: Class::Rt, level: 2 }), ..READ };
    assert_eq!(
        what("block_rq_issue: 8,0 RS 4096 () 2048 + 8 rt,0,2 [sh]"),
        EventKind::Issue(request)
    );
    assert_eq!(
        what("block_rq_issue: 8,0 RS 4096 () 2048 + 8 0x1,0,2 [sh]"),
        EventKind::Issue(request)
    );
    assert_eq!(what("block_rq_issue: 8,0 RS 4096 () 2048 + 8 [sh]"), EventKind::Issue(READ));
    assert_eq!(what("block_rq_insert: 8,0 RS 4096 () 2048 + 8 [a [b] c]"), EventKind::Insert(READ));
    assert_eq!(
        what("block_rq_complete: 8,0 RS () 2048 + 8 rt,0,2 [-5]"),
        EventKind::Complete { extent: request, error: -5 }
    );
    assert_eq!(
        what("block_rq_complete: 8,0 RS () 2048 + 8 [0]"),
        EventKind::Complete { extent: READ, error: 0 }
    );
    assert_eq!(what("block_rq_requeue: 8,0 RS () 2048 + 8 [0]"), EventKind::Requeue(READ));
    assert_eq!(what("block_bio_queue: 8,0 RS 2048 + 8 [sh]"), EventKind::BioQueue(READ));
    assert_eq!(what("block_getrq: 8,0 RS 2048 + 8 [sh]"), EventKind::GetRequest(READ));
    assert_eq!(what("block_bio_backmerge: 8,0 RS 2048 + 8 [sh]"), EventKind::BackMerge(READ));
    assert_eq!(what("block_bio_frontmerge: 8,0 RS 2048 + 8 [sh]"), EventKind::FrontMerge(READ));
    assert_eq!(what("block_rq_merge: 8,0 RS 4096 () 2048 + 8 [sh]"), EventKind::RequestMerge(READ));
    let bio = Extent { sectors: 0, ..READ };
    assert_eq!(
        what("block_split: 8,0 RS 2048 / 2304 [sh]"),
        EventKind::BioSplit { bio, new_sector: 2304 }
    );
    assert_eq!(
        what("block_bio_remap: 8,0 RS 2048 + 8 <- (8,1) 0"),
        EventKind::BioRemap { to: READ, from: (Dev { major: 8, minor: 1 }, 0) }
    );
    assert_eq!(what("block_plug: [sh]"), EventKind::Plug);
    assert_eq!(what("block_unplug: [sh] 3"), EventKind::Unplug);
    let piece = Extent { sectors: 8, op: op(OpKind::Other), ..READ };
    assert_eq!(
        what("k2_split: 8,0 2048 piece 4096 bytes rest 61440 bytes"),
        EventKind::K2Split { piece, rest_bytes: 61440 }
    );
}

#[test]
fn system_calls_as_ftrace_and_as_trace_cmd_print_them() {
    let enter = |fd| EventKind::CallEnter { call: Call::Pread64, fd: Some(fd) };
    assert_eq!(what("sys_pread64(fd: 3, buf: 0x7ffc, count: 0x1000, pos: 0)"), enter(3));
    assert_eq!(what("sys_pread64(fd: 1f, buf: 7ffc, count: 1000, pos: 0)"), enter(31));
    assert_eq!(
        what("sys_enter_pread64: fd: 0x00000003, buf: 0x7ffc, count: 0x00001000, pos: 0x00000000"),
        enter(3)
    );
    assert_eq!(
        what("sys_enter_pread64: fd: 0xffffffff, buf: 0x7ffc, count: 0x00001000, pos: 0x00000000"),
        enter(-1)
    );
    let exit = |result| EventKind::CallExit { call: Call::Pread64, result };
    assert_eq!(what("sys_pread64 -> 0x1000"), exit(4096));
    assert_eq!(what("sys_exit_pread64:     0xfffffffffffffff5"), exit(-11));
    assert_eq!(what("sys_sync()"), EventKind::CallEnter { call: Call::Sync, fd: None });
    let splice = EventKind::CallEnter { call: Call::Splice, fd: Some(4) };
    assert_eq!(
        what("sys_splice(fd_in: 4, off_in: 0, fd_out: 5, off_out: 0, len: 10000, flags: 0)"),
        splice
    );
}

#[test]
fn what_a_buffer_holds_is_not_taken_for_arguments() {
    assert_eq!(
        what("sys_write(fd: 1, buf: 0x7ffc \", count: 0x7, fd: 9\", count: 0x1000)"),
        EventKind::CallEnter { call: Call::Write, fd: Some(1) }
    );
}

#[test]
fn commands_of_drivers() {
    let command =
        |driver, key, sector, bytes, opcode| Command { driver, key, sector, bytes, opcode };
    assert_eq!(
        what(
            "mmc_request_start: mmc0: start struct mmc_request[00000000c0ffee00]: cmd_opcode=18 \
             cmd_arg=0x800 cmd_flags=0xb5 cmd_retries=0 stop_opcode=12 stop_arg=0x0 stop_flags=0x49d \
             stop_retries=0 sbc_opcode=23 sbc_arg=0x8 sbc_flags=0x15 sbc_retires=0 blocks=8 \
             block_size=512 blk_addr=2048 data_flags=0x200 tag=3 can_retune=0 doing_retune=0 \
             retune_now=0 need_retune=0 hold_retune=1 retune_period=0"
        ),
        EventKind::HardwareStart(command(
            Driver::Mmc,
            0xc0ff_ee00,
            Some(2048),
            Some(4096),
            Some(18)
        ))
    );
    assert_eq!(
        what(
            "mmc_request_done: mmc0: end struct mmc_request[00000000c0ffee00]: cmd_opcode=18 cmd_err=0 \
             cmd_resp=0x900 0x0 0x0 0x0 cmd_retries=0 stop_opcode=12 stop_err=0 stop_resp=0x0 0x0 0x0 \
             0x0 stop_retries=0 sbc_opcode=23 sbc_err=0 sbc_resp=0x900 0x0 0x0 0x0 sbc_retries=0 \
             bytes_xfered=4096 data_err=0 tag=3 can_retune=0 doing_retune=0 retune_now=0 need_retune=0 \
             hold_retune=1 retune_period=0"
        ),
        EventKind::HardwareDone(command(Driver::Mmc, 0xc0ff_ee00, None, Some(4096), Some(18)))
    );
    let key = 1 << 32 | 2 << 16 | 77;
    assert_eq!(
        what(
            "nvme_setup_cmd: nvme1: disk=nvme1n1, qid=2, cmdid=77, nsid=1, flags=0x0, meta=0x0, \
             cmd=(nvme_cmd_read slba=2048, len=7, ctrl=0x0, dsmgmt=0, reftag=0)"
        ),
        EventKind::HardwareStart(command(Driver::Nvme, key, None, None, Some(2)))
    );
    assert_eq!(
        what(
            "nvme_complete_rq: nvme1: disk=nvme1n1, qid=2, cmdid=77, res=0x0, retries=0, flags=0x0, \
             status=0x0"
        ),
        EventKind::HardwareDone(command(Driver::Nvme, key, None, None, None))
    );
}

#[test]
fn commands_of_one_scsi_device_are_told_apart() {
    let command = |tag, raw| {
        format!(
            "host_no=2 channel=0 id=1 lun=3 data_sgl=1 prot_sgl=0 prot_op=SCSI_PROT_NORMAL \
             driver_tag={tag} scheduler_tag=9 cmnd=(READ_10 lba=2048 txlen=8 protect=0 raw={raw})"
        )
    };
    let start = |tag, raw| match what(&format!("scsi_dispatch_cmd_start: {}", command(tag, raw))) {
        EventKind::HardwareStart(command) => command,
        what => panic!("{what:?}"),
    };
    let read = "28 00 00 00 08 00 00 00 08 00";
    let result =
        "result=(driver=DRIVER_OK host=DID_OK message=COMMAND_COMPLETE status=SAM_STAT_GOOD)";
    let started = start(5, read);
    assert_eq!((started.driver, started.opcode, started.sector), (Driver::Scsi, Some(0x28), None));
    let done = what(&format!("scsi_dispatch_cmd_done: {} {result}", command(5, read)));
    assert_eq!(done, EventKind::HardwareDone(started));
    assert_ne!(start(6, read).key, started.key);
    assert_ne!(start(5, "28 00 00 00 08 08 00 00 08 00").key, started.key);
}

#[test]
fn events_of_the_rest_of_the_kernel() {
    assert_eq!(what("irq_handler_entry: irq=36 name=nvme0q1"), EventKind::IrqEnter { irq: 36 });
    assert_eq!(what("irq_handler_exit: irq=36 ret=handled"), EventKind::IrqExit { irq: 36 });
    let submit =
        EventKind::UringSubmit { request: 0xabc, sq_thread: true, operation: Some(UringOp::Read) };
    assert_eq!(
        what(
            "io_uring_submit_req: ring 01, req 0abc, user_data 0x0, opcode READ, flags 0x200, sq_thread 1"
        ),
        submit
    );
    assert_eq!(
        what(
            "io_uring_submit_sqe: ring 01, req 0abc, user_data 0x0, opcode READ, flags 0x0, non block 1, \
             sq_thread 1"
        ),
        submit
    );
    assert_eq!(
        what(
            "io_uring_complete: ring 01, req 0abc, user_data 0x0, result -5, cflags 0x0 extra1 0 extra2 0 "
        ),
        EventKind::UringComplete { request: 0xabc, result: -5 }
    );
    assert_eq!(
        what(
            "io_uring_queue_async_work: ring 01, request 0abc, user_data 0x0, opcode FSYNC, flags 0x10, \
             normal queue, work 000000004cdfd67d"
        ),
        EventKind::UringQueueWork { request: 0xabc }
    );
    assert_eq!(
        what("io_uring_link: ring 01, request 0abc linked after 0def"),
        EventKind::UringLink { request: 0xabc, after: 0xdef }
    );
    assert_eq!(
        what("io_uring_file_get: ring 01, req 0abc, user_data 0x0, fd 7"),
        EventKind::UringFileGet { request: 0xabc }
    );
    let writeback = "bdi 8:0: ino=12 state=I_SYNC dirtied_when=4 age=0 index=0 to_write=9 wrote=0";
    assert_eq!(
        what(&format!("writeback_single_inode_start: {writeback}")),
        EventKind::WritebackStart { inode: 12 }
    );
    assert_eq!(
        what(&format!("writeback_single_inode: {writeback}")),
        EventKind::WritebackEnd { inode: 12 }
    );
    let add = EventKind::PageCacheAdd { dev: SDA, inode: 0x1c };
    assert_eq!(
        what("mm_filemap_add_to_page_cache: dev 8:0 ino 1c pfn=0x1b9ea7 ofs=0 order=0"),
        add
    );
    assert_eq!(what("page_cache_ra_unbounded: dev=8:0 ino=1c index=0 nr_to_read=24"), add);
    assert_eq!(
        what("jbd2_start_commit: dev 8,0 transaction 7 sync 0"),
        EventKind::JournalCommitStart { dev: SDA, transaction: 7 }
    );
    assert_eq!(
        what("jbd2_end_commit: dev 8,0 transaction 7 sync 0 head 3"),
        EventKind::JournalCommitEnd { dev: SDA, transaction: 7 }
    );
    assert_eq!(
        what("sched_process_fork: comm=a child_pid=3 pid=10 child_comm=b child_pid=11"),
        EventKind::Fork { child: 11, same_process: false }
    );
    assert_eq!(
        what("task_newtask: pid=11 comm=a clone_flags=3 clone_flags=1200011 oom_score_adj=0"),
        EventKind::Fork { child: 11, same_process: false }
    );
    assert_eq!(
        what("task_newtask: pid=12 comm=a clone_flags=3d0f00 oom_score_adj=0"),
        EventKind::Fork { child: 12, same_process: true }
    );
}

#[test]
fn names_of_threads_may_look_like_anything() {
    for (thread, comm, pid) in [
        ("kworker/1:2-ev-77", "kworker/1:2-ev", 77),
        ("jbd2/sda1-8-301", "jbd2/sda1-8", 301),
        ("a-1 [000] b-12", "a-1 [000] b", 12),
        ("<...>-12", "", 12),
        ("<idle>-0", "<idle>", 0),
        ("my [0] app-12    (   11)", "my [0] app", 12),
        ("sh-12    (-------)", "sh", 12),
        (" -12", "", 12),
        ("buffer:               dd-12", "dd", 12),
        ("buffer:            <...>-12", "", 12),
        ("buffer:  a-name-of-15-by-12", "a-name-of-15-by", 12),
    ] {
        let line =
            format!("  {thread}  [003] d.h1. 5.000001: irq_handler_exit: irq=1 ret=handled\n");
        let (events, problems) = read(&line);
        assert_eq!(problems, [], "{line}");
        assert_eq!((events[0].comm.to_string().as_str(), events[0].pid), (comm, pid), "{line}");
        assert_eq!((events[0].cpu, events[0].time_ns), (3, 5_000_001_000), "{line}");
    }
}

#[test]
fn a_thread_without_a_name_takes_it_from_the_event() {
    let (events, _) = read("<...>-12 [003] ..... 5.000001: block_plug: [dd]\n");
    assert_eq!(events[0].comm.to_string(), "dd");
}

#[test]
fn losses_come_with_the_event_behind_them() {
    let text = "# entries-in-buffer/entries-written: 10/30   #P:2\n\
                sh-10 [001] ..... 1.000001: block_plug: [sh]\n\
                ##### CPU 0 buffer started ####\n\
                sh-11 [000] ..... 1.000002: block_plug: [sh]\n\
                CPU:1 [LOST 12 EVENTS]\n\
                sh-10 [001] ..... 1.000003: unknown: 1\n\
                CPU:0 [EVENTS DROPPED]\n\
                sh-10 [000] ..... 1.000004: block_plug: [sh]\n\
                CPU:0 [LOST EVENTS]\n";
    let (events, problems) = read(text);
    assert_eq!(problems, []);
    let losses: Vec<_> = events
        .iter()
        .filter_map(|event| match event.what {
            EventKind::Lost { count, .. } => Some((event.time_ns, event.cpu, count)),
            _ => None,
        })
        .collect();
    assert_eq!(
        losses,
        [
            (1_000_001_000, 1, 20),
            (1_000_002_000, 0, 0),
            (1_000_003_000, 1, 12),
            (1_000_004_000, 0, 0),
            (1_000_004_000, 0, 0)
        ]
    );
}

#[test]
fn events_that_nobody_needs_are_counted() {
    let text = "# tracer: nop\n\ncpus=2\nCPU 1 is empty\nversion = 7\n\
                sh-10 [001] 1.000001: sched_move_numa: a ==> b\n\
                sh-10 [001] 1.000001: sched_move_numa: a ==> b\n\
                sh-10 [001] 1.000002: sys_getpid()\n\
                sh-10 [001] 1.000003: sys_getpid -> 0x1\n\
                sh-10 [001] 1.000004: vfs_read <-ksys_read\n \
                => vfs_read\n";
    let mut source = ftrace_text::read(text.as_bytes(), "t");
    assert_eq!(source.by_ref().collect::<Vec<_>>(), []);
    assert_eq!(source.skipped(), 6);
}

#[test]
fn neighbours_in_the_wrong_order_are_put_right() {
    let (events, problems) =
        read("sh-10 [001] 1.000005: block_plug: [sh]\nsh-11 [000] 1.000004: block_plug: [sh]\n");
    assert_eq!(problems, []);
    assert_eq!([events[0].time_ns, events[1].time_ns], [1_000_004_000, 1_000_005_000]);
}

#[test]
fn a_second_trace_in_the_file_is_a_problem() {
    let mut text: String =
        (0..2000).map(|place| format!("sh-10 [001] 9.{place:06}: block_plug: [sh]\n")).collect();
    text.push_str("sh-10 [001] 1.000001: block_plug: [sh]\n");
    let (events, problems) = read(&text);
    assert_eq!(events.len(), 2000);
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].place, Position::Line(2001));
    assert!(problems[0].what.contains("goes back in time"), "{}", problems[0].what);
}

#[test]
fn line_ends_and_a_byte_order_mark_do_not_matter() {
    let text = "\u{feff}sh-10 [001] 1.000001: block_plug: [sh]\r\nsh-10 [001] 1.000002: block_plug: [sh]\r\n";
    let (events, problems) = read(text);
    assert_eq!(problems, []);
    assert_eq!(events.len(), 2);
}

#[test]
fn a_line_that_is_understood_in_part_is_no_event() {
    for (line, expected) in [
        (
            "sh-10 [001] 1.000001: block_rq_issue: 8,0 R 4096 () 20x8 + 8 [sh]",
            "expected ` + ` at `x8",
        ),
        ("sh-10 [001] 1.000001: block_rq_issue: 8,0 R 4096 () 2048 + 8 [sh", "expected `]`"),
        ("sh-10 [001] 1.000001: block_rq_issue: 8,0 r 4096 () 2048 + 8 [sh]", "an operation"),
        (
            "sh-10 [001] 1.000001: block_rq_issue: 8,0 R 4096 () 2048 + 4294967296 [sh]",
            "values within their limits",
        ),
        ("sh-10 [001] 1.000001: block_rq_complete: 8,0 R () 2048 + 8 [0] x", "the end of the line"),
        ("sh-10 [001] 1.000001: sys_read(fd: 3, buf: 0, count: 0x10", "arguments and )"),
        ("sh-10 [001] 1.000001: sys_read -> 4k", "the end of the line"),
        ("sh-10 [001] 1,000001: block_plug: [sh]", "SECONDS.DECIMALS"),
        ("sh-10 [001] 1.0001: block_plug: [sh]", "SECONDS.DECIMALS"),
        ("sh-10 [001] 99999999999.000001: block_plug: [sh]", "SECONDS.DECIMALS"),
        ("sh-10 [001] 1.000001: ", "the name of an event"),
        ("sh-10 [001] 1.000001: block plug", "EVENT: VALUES"),
        ("hello", "COMM-PID [CPU]"),
        ("a-name-that-is-too-long-10 [001] 1.000001: block_plug: [sh]", "COMM-PID [CPU]"),
        ("sh-10 [001] ..... 77: block_plug: [sh]", "trace clock mono"),
        ("# tracer: function_graph", "tracer nop"),
    ] {
        let what = problem(line);
        assert!(what.contains(expected), "{line}: {what}");
    }
}

#[test]
fn what_is_not_text_is_a_problem_of_its_line() {
    let good = "sh-10 [001] 1.000001: block_plug: [sh]\n";
    let long = "x".repeat(3 << 20);
    let (events, problems) = read(&format!("{good}a\0b\n{good}{long}\n{good}{}", good.trim_end()));
    assert_eq!(events.len(), 3);
    let found: Vec<_> =
        problems.iter().map(|problem| (problem.place, problem.what.as_str())).collect();
    let expected = [
        (Position::Line(2), "has a NUL byte: not text"),
        (Position::Line(4), "longer than 64 KiB: no line of a trace is"),
        (Position::Line(6), "the last line has no end: it may be cut"),
    ];
    assert_eq!(found, expected);
}
