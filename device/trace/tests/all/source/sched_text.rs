// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scheduler's events as ftrace, trace-cmd and perf print them.

use steadyio_trace::event::{Comm, EventKind};
use steadyio_trace::sched::{Context, SchedTask, Switch, Waking};
use steadyio_trace::source::{ftrace_text, perf_script};

use crate::samples::{all_events, split};

fn ftrace(line: &str) -> EventKind {
    all_events(ftrace_text::read(line.as_bytes(), "t"))[0].what
}

fn task(comm: &str, pid: u32, prio: i32) -> SchedTask {
    SchedTask { pid, comm: Comm::new(comm.as_bytes()), prio }
}

#[test]
fn all_tools_say_the_same_of_a_switch() {
    let values = "prev_comm=kworker/0:1H prev_pid=58 prev_prio=100 prev_state=I ==> next_comm=my ==> dd \
                  next_pid=60 next_prio=49";
    let expected = EventKind::Switch(Switch {
        prev: task("kworker/0:1H", 58, 100),
        runnable: false,
        next: task("my ==> dd", 60, 49),
    });
    assert_eq!(
        ftrace(&format!("kworker/0:1H-58 [000] d..2. 12514.219454: sched_switch: {values}\n")),
        expected
    );
    let line =
        format!("kworker/0:1H    58/58    [000] 12514.219454000: sched:sched_switch: {values}\n");
    assert_eq!(all_events(perf_script::read(line.as_bytes(), "p"))[0].what, expected);
    let short = "kworker/0:1H:58 [100] S ==> dd:60 [49]";
    let line = format!("kworker/0:1H-58    [000] 12514.219454000: sched_switch:         {short}\n");
    let EventKind::Switch(found) = ftrace(&line) else { panic!("{line}") };
    assert_eq!((found.prev.pid, found.runnable, found.next), (58, false, task("dd", 60, 49)));
}

#[test]
fn what_was_preempted_could_have_gone_on() {
    for (state, runnable) in [("R", true), ("R+", true), ("S", false), ("D", false), ("D|W", false)]
    {
        let line = format!(
            "a-5 [000] d..2. 1.000001: sched_switch: prev_comm=a prev_pid=5 prev_prio=120 \
             prev_state={state} ==> next_comm=b next_pid=6 next_prio=-1\n"
        );
        let EventKind::Switch(found) = ftrace(&line) else { panic!("{line}") };
        assert_eq!((found.runnable, found.next.prio), (runnable, -1), "{line}");
    }
}

#[test]
fn a_waking_says_what_came_over_the_waker_where_it_is_printed() {
    let woken = task("dd", 60, 120);
    let values = "comm=dd pid=60 prio=120 target_cpu=001";
    for (flags, context) in [
        ("d..3. ", Some(Context::Thread)),
        ("d.s3. ", Some(Context::Softirq)),
        ("dNh3. ", Some(Context::Interrupt)),
        ("dNH3. ", Some(Context::Interrupt)),
        ("", None),
    ] {
        let line = format!("cc1-99  [000] {flags}12514.219705: sched_waking: {values}\n");
        assert_eq!(ftrace(&line), EventKind::Waking(Waking { woken, context }), "{line}");
    }
    for line in [
        "cc1-99  [000] 12514.219705000: sched_wakeup:        dd:60 [120] CPU:001\n",
        "cc1-99  [000] 12514.219705000: sched_wakeup:        dd:60 [120] success=1 CPU:001\n",
        "cc1-99  [000] 12514.219705: sched_wakeup: comm=dd pid=60 prio=120 success=1 target_cpu=001\n",
    ] {
        assert_eq!(ftrace(line), EventKind::Waking(Waking { woken, context: None }), "{line}");
    }
}

#[test]
fn a_writer_that_goes_on_has_a_pause_of_nothing() {
    let line = |pause| {
        format!(
            "dd-9 [001] ..... 1.000001: balance_dirty_pages: bdi 8:0: limit=1 setpoint=1 dirty=1 wb_setpoint=1 \
             wb_dirty=1 dirty_ratelimit=1 task_ratelimit=1 dirtied=32 dirtied_pause=32 paused=4 pause={pause} \
             period=8 think=0 cgroup_ino=1\n"
        )
    };
    assert_eq!(ftrace(&line("200")), EventKind::DirtyPause { pause_ns: 200_000_000 });
    assert_eq!(ftrace(&line("-12")), EventKind::DirtyPause { pause_ns: 0 });
}

#[test]
fn a_cut_line_is_a_problem() {
    for line in [
        "a-5 [000] 1.000001: sched_switch: prev_comm=a prev_pid=5 prev_prio=120 prev_state=S ==> next_comm=b next_pid=6\n",
        "a-5 [000] 1.000001: sched_switch: a:5 [120] S ==> b:6\n",
        "a-5 [000] 1.000001: sched_waking: comm=dd pid=60 prio=120\n",
        "a-5 [000] 1.000001: sched_wakeup: dd:60 CPU:001\n",
    ] {
        let (events, problems) = split(ftrace_text::read(line.as_bytes(), "t"));
        assert_eq!((events.len(), problems.len()), (0, 1), "{line}");
    }
}
