// SPDX-License-Identifier: MIT OR Apache-2.0
//! Switches and wakeups of threads, kept for the report, which asks why a thread did not run
//! (`report/thread_time.rs`).

use std::collections::HashMap;

use super::event::{Comm, Event, EventKind};

/// A thread, as sched events have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedTask {
    /// Its number; 0 is idle.
    pub pid: u32,
    pub comm: Comm,
    /// The kernel's priority: below 0 deadline, to 99 real-time (99 is the lowest), from 100 on nice + 120.
    pub prio: i32,
}

impl SchedTask {
    fn is_of_nobody(&self) -> bool {
        let names: [&[u8]; 4] = [b"kworker/", b"ksoftirqd/", b"rcu", b"migration/"];
        self.pid == 0 || names.iter().any(|name| self.comm.as_bytes().starts_with(name))
    }
}

/// `sched:sched_switch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    pub prev: SchedTask,
    /// That thread is still runnable: it was preempted, or yielded. If not, it sleeps.
    pub runnable: bool,
    pub next: SchedTask,
}

/// `sched:sched_waking`, or `sched_wakeup`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waking {
    pub woken: SchedTask,
    /// The waker's context; `None` if the source does not show it.
    pub context: Option<Context>,
    /// By the completion of the request that completed then; no source shows it, but `follow` finds it.
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

/// Switches, wakeups and losses of a trace, in the order of their time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sched {
    pub events: Vec<Event>,
    /// Places in `events` of those about each thread.
    of_thread: HashMap<u32, Vec<usize>>,
    /// The switches of all threads were traced, not only of some: as captured by `steady`, or shown by a switch between
    /// idle and a kernel thread that nobody selects.
    pub of_all: bool,
}

impl Sched {
    /// The next event; others are not kept.
    pub fn take(&mut self, event: Event) {
        let about = match event.what {
            EventKind::Switch(Switch { prev, next, .. }) => {
                self.of_all |= [prev, next].iter().all(SchedTask::is_of_nobody);
                vec![prev.pid, next.pid]
            }
            EventKind::Waking(waking) => vec![waking.woken.pid],
            // Without earlier events, nothing is incomplete.
            EventKind::Lost { .. } if !self.events.is_empty() => Vec::new(),
            _ => return,
        };
        for pid in about {
            self.of_thread.entry(pid).or_default().push(self.events.len());
        }
        self.events.push(event);
    }

    fn of_thread(&self, pid: u32) -> &[usize] {
        self.of_thread.get(&pid).map_or(&[], Vec::as_slice)
    }

    /// Those about a thread after a moment.
    pub fn of_thread_after(&self, pid: u32, ns: u64) -> impl Iterator<Item = &Event> {
        let own = self.of_thread(pid);
        let first = own.partition_point(|place| self.events[*place].time_ns <= ns);
        own[first..].iter().map(|place| &self.events[*place])
    }

    /// First and last switch of a thread, in ns.
    pub fn seen_ns(&self, pid: u32) -> Option<(u64, u64)> {
        let own = self.of_thread(pid).iter().map(|place| &self.events[*place]);
        let mut switches = own.filter(|event| matches!(event.what, EventKind::Switch(_)));
        let first_ns = switches.next()?.time_ns;
        Some((first_ns, switches.next_back().map_or(first_ns, |last| last.time_ns)))
    }
}
