// SPDX-License-Identifier: MIT OR Apache-2.0
//! Switches and wakeups of threads, kept for the report, which asks why a thread did not run
//! (`report/thread_time.rs`).

use std::collections::HashMap;

use super::event::Comm;

/// A thread, as sched events have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedTask {
    /// Its number; 0 is idle.
    pub pid: u32,
    pub comm: Comm,
    /// The kernel's priority: below 0 deadline, to 99 real-time (99 is the lowest), from 100 on nice + 120.
    pub prio: i32,
}

/// `sched:sched_switch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// The thread that is switched out.
    pub prev: SchedTask,
    /// That thread is still runnable: it was preempted, or yielded. If not, it sleeps.
    pub runnable: bool,
    /// The thread that is switched in.
    pub next: SchedTask,
}

/// `sched:sched_waking`, or `sched_wakeup`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waking {
    pub woken: SchedTask,
    /// The waker's context; `None` if the source does not show it.
    pub context: Option<Context>,
}

/// The context that a CPU is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// The thread itself.
    Thread,
    /// A softirq, on top of that thread or in it (ksoftirqd).
    Softirq,
    /// An interrupt, on top of that thread.
    Interrupt,
}

/// One event of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedEvent {
    /// In the clock of the trace, in ns.
    pub time_ns: u64,
    pub cpu: u32,
    pub what: SchedWhat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedWhat {
    /// A context switch.
    Switch(Switch),
    /// A thread is woken.
    Waking {
        waking: Waking,
        /// In the context of that one.
        by: (u32, Comm),
        /// By the completion of the request that completed then.
        completed_ns: Option<u64>,
    },
    /// Events of this CPU are missing here.
    Lost,
}

/// All of a trace, in the order of their time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sched {
    events: Vec<SchedEvent>,
    /// Places in `events` of those about each thread.
    of_thread: HashMap<u32, Vec<usize>>,
    /// First and last switch of each thread, in ns.
    seen_ns: HashMap<u32, (u64, u64)>,
    of_all: bool,
}

impl Sched {
    /// The next event.
    pub fn take(&mut self, event: SchedEvent) {
        let place = self.events.len();
        match event.what {
            SchedWhat::Switch(switch) => {
                for pid in [switch.prev.pid, switch.next.pid] {
                    self.of_thread.entry(pid).or_default().push(place);
                    let seen = self.seen_ns.entry(pid).or_insert((event.time_ns, event.time_ns));
                    seen.1 = event.time_ns;
                }
                let of_nobody = |task: &SchedTask| {
                    let names = ["kworker/", "ksoftirqd/", "rcu", "migration/"];
                    let comm = task.comm.as_bytes();
                    task.pid == 0 || names.iter().any(|name| comm.starts_with(name.as_bytes()))
                };
                self.of_all |= of_nobody(&switch.prev) && of_nobody(&switch.next);
            }
            // Without earlier events, nothing is incomplete.
            SchedWhat::Lost if self.events.is_empty() => return,
            SchedWhat::Lost => {}
            SchedWhat::Waking { waking, .. } => {
                self.of_thread.entry(waking.woken.pid).or_default().push(place);
            }
        }
        self.events.push(event);
    }

    pub fn events(&self) -> &[SchedEvent] {
        &self.events
    }

    /// Those about a thread after a moment.
    pub fn of_thread_after(&self, pid: u32, ns: u64) -> impl Iterator<Item = &SchedEvent> {
        let own = self.of_thread.get(&pid).map_or(&[][..], Vec::as_slice);
        let first = own.partition_point(|place| self.events[*place].time_ns <= ns);
        own[first..].iter().map(|place| &self.events[*place])
    }

    /// First and last switch of a thread, in ns.
    pub fn seen_ns(&self, pid: u32) -> Option<(u64, u64)> {
        self.seen_ns.get(&pid).copied()
    }

    /// The switches of all threads were traced.
    pub fn note_all(&mut self) {
        self.of_all = true;
    }

    /// The switches of all threads were traced, not only of some: as captured by `steady`, or shown by a switch between
    /// idle and a kernel thread that nobody selects.
    pub fn is_of_all(&self) -> bool {
        self.of_all
    }
}
