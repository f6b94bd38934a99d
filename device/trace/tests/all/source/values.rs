// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values of each event, as ftrace, trace-cmd and perf print it.

use steadyio_trace::event::{
    Call, Class, Comm, Command, Dev, Driver, EventKind, Extent, Op, OpKind, Priority,
};
use steadyio_trace::sched::{Context, SchedTask, Switch, Waking};
use steadyio_trace::source::detect::Format;
use steadyio_trace::source::text::Text;

use crate::samples::all_events;

/// Of a line whose flags are `flags`.
fn flagged(flags: &str, event: &str) -> EventKind {
    let line = format!("sh-10 [001] {flags}1.000002: {event}\n");
    let events = all_events(Text::new(Format::Ftrace, line.as_bytes(), event));
    assert_eq!(events.len(), 1, "{event}");
    events[0].what
}

fn what(event: &str) -> EventKind {
    flagged("..... ", event)
}

fn check(expected: &[(&str, EventKind)]) {
    for (event, expected) in expected {
        assert_eq!(what(event), *expected, "{event}");
    }
}

const SDA: Dev = Dev { major: 8, minor: 0 };

fn read() -> Extent {
    let op = Op { kind: OpKind::Read, sync: true, ..Op::default() };
    Extent { dev: SDA, sector: 2048, sectors: 8, op, priority: None }
}

#[test]
fn block_events_before_and_since_the_priority() {
    let extent = read();
    let request = Extent { priority: Some(Priority { class: Class::Rt, level: 2 }), ..extent };
    let remapped = EventKind::BioRemap { to: extent, from: (Dev { major: 8, minor: 1 }, 0) };
    let bio = Extent { sectors: 0, ..extent };
    check(&[
        ("block_rq_issue: 8,0 RS 4096 () 2048 + 8 rt,0,2 [sh]", EventKind::Issue(request)),
        ("block_rq_issue: 8,0 RS 4096 () 2048 + 8 0x1,0,2 [sh]", EventKind::Issue(request)),
        ("block_rq_issue: 8,0 RS 4096 () 2048 + 8 rt,2 [sh]", EventKind::Issue(request)),
        ("block_rq_issue: 8,0 RS 4096 () 2048 + 8 0x5,0,2 [sh]", EventKind::Issue(extent)),
        ("block_rq_issue: 8,0 RS 4096 () 2048 + 8 [sh]", EventKind::Issue(extent)),
        ("block_rq_insert: 8,0 RS 4096 () 2048 + 8 [a [b] c]", EventKind::Insert(extent)),
        (
            "block_rq_complete: 8,0 RS () 2048 + 8 rt,0,2 [-5]",
            EventKind::Complete { extent: request, error: -5 },
        ),
        (
            "block_rq_complete: 8,0 RS () 2048 + 8 rt,2 [-5]",
            EventKind::Complete { extent: request, error: -5 },
        ),
        ("block_rq_complete: 8,0 RS () 2048 + 8 [0]", EventKind::Complete { extent, error: 0 }),
        ("block_rq_requeue: 8,0 RS () 2048 + 8 [0]", EventKind::Requeue(extent)),
        ("block_bio_queue: 8,0 RS 2048 + 8 [sh]", EventKind::BioQueue(extent)),
        ("block_getrq: 8,0 RS 2048 + 8 [sh]", EventKind::GetRequest(extent)),
        ("block_bio_backmerge: 8,0 RS 2048 + 8 [sh]", EventKind::BackMerge(extent)),
        ("block_bio_frontmerge: 8,0 RS 2048 + 8 [sh]", EventKind::FrontMerge(extent)),
        ("block_rq_merge: 8,0 RS 4096 () 2048 + 8 [sh]", EventKind::RequestMerge(extent)),
        ("block_split: 8,0 RS 2048 / 2304 [sh]", EventKind::BioSplit { bio, new_sector: 2304 }),
        ("block_bio_remap: 8,0 RS 2048 + 8 <- (8,1) 0", remapped),
        (
            "k2_late: 8,0 2048 level 4 took 6200000 ns deadline 5000000 ns",
            EventKind::K2Late { dev: SDA, sector: 2048, level: 4, ns: 6_200_000 },
        ),
    ]);
}

#[test]
fn calls_that_ask_to_read_ahead_are_read() {
    let enter = |call| EventKind::CallEnter { call, fd: Some(3) };
    check(&[
        ("sys_readahead(fd: 3, offset: 0, count: 1000)", enter(Call::Readahead)),
        ("sys_fadvise64(fd: 3, offset: 0, len: 0, advice: 3)", enter(Call::Fadvise64)),
    ]);
}

#[test]
fn system_calls_as_ftrace_and_as_trace_cmd_print_them() {
    let enter = |call, fd| EventKind::CallEnter { call, fd };
    let pread = |fd| enter(Call::Pread64, Some(fd));
    let exit = |result| EventKind::CallExit { call: Call::Pread64, result };
    check(&[
        ("sys_pread64(fd: 3, buf: 0x7ffc, count: 0x1000, pos: 0)", pread(3)),
        ("sys_pread64(fd: 1f, buf: 7ffc, count: 1000, pos: 0)", pread(31)),
        ("sys_enter_pread64: fd: 0x00000003, buf: 0x7ffc, count: 0x00001000, pos: 0x0", pread(3)),
        ("sys_enter_pread64: fd: 0xffffffff, buf: 0x7ffc, count: 0x00001000, pos: 0x0", pread(-1)),
        ("sys_pread64 -> 0x1000", exit(4096)),
        ("sys_exit_pread64:     0xfffffffffffffff5", exit(-11)),
        ("sys_sync()", enter(Call::Sync, None)),
        ("sys_close(fd: 5)", enter(Call::Close, Some(5))),
        ("sys_enter_close: fd: 0x00000005", enter(Call::Close, Some(5))),
        ("sys_dup2(oldfd: 5, newfd: 1)", enter(Call::Dup2, Some(1))),
        ("sys_enter_execve: filename: 0x7ffe0, argv: 0x1, envp: 0x2", enter(Call::Execve, None)),
        (
            "sys_splice(fd_in: 4, off_in: 0, fd_out: 5, off_out: 0, len: 10000, flags: 0)",
            enter(Call::Splice, Some(4)),
        ),
        (
            "sys_sendfile64(out_fd: 3, in_fd: 4, offset: 0, count: 10)",
            enter(Call::Sendfile64, Some(4)),
        ),
        // What a buffer holds is not taken for arguments.
        (
            "sys_write(fd: 1, buf: 0x7ffc \", count: 0x7, fd: 9\", count: 0x1000)",
            enter(Call::Write, Some(1)),
        ),
    ]);
}

#[test]
fn commands_of_drivers() {
    let command =
        |driver, key, sector, bytes, opcode| Command { driver, key, sector, bytes, opcode };
    let start = command(Driver::Mmc, 0xc0ff_ee00, Some(2048), Some(4096), Some(18));
    let done = command(Driver::Mmc, 0xc0ff_ee00, None, Some(4096), Some(18));
    let nvme = |opcode| command(Driver::Nvme, 1 << 32 | 2 << 16 | 77, None, None, opcode);
    check(&[
        (
            "mmc_request_start: mmc0: start struct mmc_request[00000000c0ffee00]: cmd_opcode=18 \
             cmd_arg=0x800 cmd_flags=0xb5 cmd_retries=0 stop_opcode=12 stop_arg=0x0 stop_flags=0x49d \
             stop_retries=0 sbc_opcode=23 sbc_arg=0x8 sbc_flags=0x15 sbc_retires=0 blocks=8 \
             block_size=512 blk_addr=2048 data_flags=0x200 tag=3 can_retune=0 doing_retune=0 \
             retune_now=0 need_retune=0 hold_retune=1 retune_period=0",
            EventKind::HardwareStart(start),
        ),
        (
            "mmc_request_done: mmc0: end struct mmc_request[00000000c0ffee00]: cmd_opcode=18 cmd_err=0 \
             cmd_resp=0x900 0x0 0x0 0x0 cmd_retries=0 stop_opcode=12 stop_err=0 stop_resp=0x0 0x0 0x0 \
             0x0 stop_retries=0 sbc_opcode=23 sbc_err=0 sbc_resp=0x900 0x0 0x0 0x0 sbc_retries=0 \
             bytes_xfered=4096 data_err=0 tag=3 can_retune=0 doing_retune=0 retune_now=0 need_retune=0 \
             hold_retune=1 retune_period=0",
            EventKind::HardwareDone(done),
        ),
        (
            "nvme_setup_cmd: nvme1: disk=nvme1n1, qid=2, cmdid=77, nsid=1, flags=0x0, meta=0x0, \
             cmd=(nvme_cmd_read slba=2048, len=7, ctrl=0x0, dsmgmt=0, reftag=0)",
            EventKind::HardwareStart(nvme(Some(2))),
        ),
        (
            "nvme_complete_rq: nvme1: disk=nvme1n1, qid=2, cmdid=77, res=0x0, retries=0, flags=0x0, \
             status=0x0",
            EventKind::HardwareDone(nvme(None)),
        ),
    ]);
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
    // Linux 5.10 prints no tag.
    let older = command(5, read).replace("driver_tag=5 scheduler_tag=9 ", "");
    let older = what(&format!("scsi_dispatch_cmd_start: {older}"));
    let EventKind::HardwareStart(older) = older else { panic!("{older:?}") };
    assert_eq!((older.driver, older.opcode), (Driver::Scsi, Some(0x28)));
}

#[test]
fn events_of_the_rest_of_the_kernel() {
    let (request, sq_thread) = (0xabc, true);
    let submit = EventKind::UringSubmit { request, sq_thread, operation: Some(Call::Read) };
    let add = EventKind::PageCacheAdd { dev: SDA, inode: 0x1c };
    let fork = |child, same_process| EventKind::Fork { child, same_process };
    let transaction = 7;
    check(&[
        ("irq_handler_entry: irq=36 name=nvme0q1", EventKind::Interrupt),
        ("irq_handler_exit: irq=36 ret=handled", EventKind::Interrupt),
        (
            "io_uring_submit_req: ring 01, req 0abc, user_data 0x0, opcode READ, flags 0x200, sq_thread 1",
            submit,
        ),
        (
            "io_uring_submit_sqe: ring 01, req 0abc, user_data 0x0, opcode READ, flags 0x0, non block 1, \
             sq_thread 1",
            submit,
        ),
        (
            "io_uring_complete: ring 01, req 0abc, user_data 0x0, result -5, cflags 0x0 extra1 0 extra2 0 ",
            EventKind::UringComplete { request, result: -5 },
        ),
        (
            "io_uring_queue_async_work: ring 01, request 0abc, user_data 0x0, opcode FSYNC, flags 0x10, \
             normal queue, work 000000004cdfd67d",
            EventKind::UringQueueWork { request },
        ),
        (
            "io_uring_link: ring 01, request 0abc linked after 0def",
            EventKind::UringLink { request, after: 0xdef },
        ),
        (
            "io_uring_link: ring 01, request 0abc linked after (nil)",
            EventKind::UringLink { request, after: 0 },
        ),
        (
            "io_uring_file_get: ring 01, req 0abc, user_data 0x0, fd 7",
            EventKind::UringFileGet { request },
        ),
        (
            "writeback_single_inode_start: bdi 8:0: ino=12 state=I_SYNC dirtied_when=4 age=0 wrote=0",
            EventKind::WritebackStart { inode: 12 },
        ),
        (
            "writeback_single_inode: bdi 8:0: ino=12 state=I_SYNC dirtied_when=4 age=0 wrote=0",
            EventKind::WritebackEnd { inode: 12 },
        ),
        ("mm_filemap_add_to_page_cache: dev 8:0 ino 1c pfn=0x1b9ea7 ofs=0 order=0", add),
        ("page_cache_ra_unbounded: dev=8:0 ino=1c index=0 nr_to_read=24", add),
        (
            "jbd2_start_commit: dev 8,0 transaction 7 sync 0",
            EventKind::JournalCommitStart { dev: SDA, transaction },
        ),
        (
            "jbd2_end_commit: dev 8,0 transaction 7 sync 0 head 3",
            EventKind::JournalCommitEnd { dev: SDA, transaction },
        ),
        (
            "sched_process_fork: comm=a child_pid=3 pid=10 child_comm=b child_pid=11",
            fork(11, false),
        ),
        (
            "task_newtask: pid=11 comm=a clone_flags=3 clone_flags=1200011 oom_score_adj=0",
            fork(11, false),
        ),
        ("task_newtask: pid=12 comm=a clone_flags=3d0f00 oom_score_adj=0", fork(12, true)),
    ]);
}

#[test]
fn a_writer_that_goes_on_has_a_pause_of_nothing() {
    for (pause, pause_ns) in [("200", 200_000_000), ("-12", 0)] {
        let event = format!(
            "balance_dirty_pages: bdi 8:0: limit=1 setpoint=1 dirty=1 dirtied_pause=32 paused=4 pause={pause} \
             period=8 think=0 cgroup_ino=1"
        );
        assert_eq!(what(&event), EventKind::DirtyPause { pause_ns });
    }
}

fn task(comm: &str, pid: u32, prio: i32) -> SchedTask {
    SchedTask { pid, comm: Comm::new(comm.as_bytes()), prio }
}

#[test]
fn switches_with_names_that_look_like_anything_and_as_trace_cmd_shortens_them() {
    let prev = task("kworker/0:1H", 58, 100);
    let next = task("my ==> dd", 60, 49);
    let switch = |runnable| EventKind::Switch(Switch { prev, runnable, next });
    check(&[(
        "sched_switch:         kworker/0:1H:58 [100] S ==> my ==> dd:60 [49]",
        switch(false),
    )]);
    // A preempted thread is runnable.
    for (state, runnable) in [("R", true), ("R+", true), ("S", false), ("D", false), ("D|W", false)]
    {
        let event = format!(
            "sched_switch: prev_comm=kworker/0:1H prev_pid=58 prev_prio=100 prev_state={state} ==> \
             next_comm=my ==> dd next_pid=60 next_prio=49"
        );
        assert_eq!(what(&event), switch(runnable), "{event}");
    }
}

#[test]
fn a_waking_says_what_came_over_the_waker_where_it_is_printed() {
    let (woken, completed_ns) = (task("dd", 60, 120), None);
    let waking = |context| EventKind::Waking(Waking { woken, context, completed_ns });
    for (flags, context) in [
        ("d..3. ", Some(Context::Thread)),
        ("d.s3. ", Some(Context::Softirq)),
        ("dNh3. ", Some(Context::Interrupt)),
        ("dNH3. ", Some(Context::Interrupt)),
        ("", None),
    ] {
        let found = flagged(flags, "sched_waking: comm=dd pid=60 prio=120 target_cpu=001");
        assert_eq!(found, waking(context), "{flags}");
    }
    for event in [
        "sched_wakeup:        dd:60 [120] CPU:001",
        "sched_wakeup:        dd:60 [120] success=1 CPU:001",
        "sched_wakeup: comm=dd pid=60 prio=120 success=1 target_cpu=001",
    ] {
        assert_eq!(flagged("", event), waking(None), "{event}");
    }
}

#[test]
fn perf_prints_the_system_before_an_event() {
    let text = "dd 7 [000] 1.000000001: syscalls:sys_enter_read: fd: 0x00000003, buf: 0x1, count: 0x00001000\n\
                dd 7 [000] 1.000000002: syscalls:sys_exit_read: 0xfffffffffffffffb\n";
    let events = all_events(Text::new(Format::Perf, text.as_bytes(), "p"));
    let call = Call::Read;
    assert_eq!(events[0].what, EventKind::CallEnter { call, fd: Some(3) });
    assert_eq!(events[1].what, EventKind::CallExit { call, result: -5 });
}
