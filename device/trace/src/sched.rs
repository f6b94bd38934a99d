// SPDX-License-Identifier: MIT OR Apache-2.0
//! Switches and wakeups of threads. `follow` collects them, and the report
//! (`report/thread_time.rs`) uses them to find why a thread did not run.

use std::collections::HashMap;

use super::event::{Event, EventKind};

pub use super::event::{Context, SchedTask, Switch, Waking};

impl SchedTask {
    fn is_of_nobody(&self) -> bool {
        let names: [&[u8]; 4] = [b"kworker/", b"ksoftirqd/", b"rcu", b"migration/"];
        self.pid == 0 || names.iter().any(|name| self.comm.as_bytes().starts_with(name))
    }
}

/// Switches, wakeups and losses of a trace, in the order of their time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sched {
    pub events: Vec<Event>,
    /// The indices in `events` of the events about each thread.
    of_thread: HashMap<u32, Vec<usize>>,
    /// The times of the first and last switch of each thread, in ns.
    seen_ns: HashMap<u32, (u64, u64)>,
    /// Whether the trace has the switches of all threads. `steady` can capture them all. A file has
    /// them if it shows a switch between idle and a kernel thread, because no filter would select
    /// such a thread.
    pub of_all: bool,
}

impl Sched {
    /// Keeps the event if it is a switch, a wakeup or a loss.
    pub fn take(&mut self, event: Event) {
        let about = match event.what {
            EventKind::Switch(Switch { prev, next, .. }) => {
                self.of_all |= [prev, next].iter().all(SchedTask::is_of_nobody);
                for pid in [prev.pid, next.pid] {
                    self.seen_ns.entry(pid).or_insert((event.time_ns, 0)).1 = event.time_ns;
                }
                vec![prev.pid, next.pid]
            }
            EventKind::Waking(waking) => vec![waking.woken.pid],
            // A loss before all other events makes nothing incomplete.
            EventKind::Lost { .. } if !self.events.is_empty() => Vec::new(),
            _ => return,
        };
        for pid in about {
            self.of_thread.entry(pid).or_default().push(self.events.len());
        }
        self.events.push(event);
    }

    /// The events about a thread after a moment.
    pub fn of_thread_after(&self, pid: u32, ns: u64) -> impl Iterator<Item = &Event> {
        let own = self.of_thread.get(&pid).map_or(&[][..], Vec::as_slice);
        let first = own.partition_point(|place| self.events[*place].time_ns <= ns);
        own[first..].iter().map(|place| &self.events[*place])
    }

    /// The times of the first and last switch of a thread, in ns.
    pub fn seen_ns(&self, pid: u32) -> Option<(u64, u64)> {
        self.seen_ns.get(&pid).copied()
    }
}
