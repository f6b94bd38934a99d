// SPDX-License-Identifier: MIT OR Apache-2.0
//! Collects the activity of threads outside their I/O: switches and wakeups, pauses by dirty
//! throttling, and waits for locks. `follow` calls it with each event.

use std::collections::HashMap;

use crate::event::{Event, EventKind, Waking};
use crate::io::OfThread;
use crate::sched::Sched;

/// The longest time of a request's completion. A later wakeup has another reason.
const COMPLETION_NS_MAX: u64 = 1_000_000;

#[derive(Debug, Default)]
pub(super) struct Waits {
    pub sched: Sched,
    pub dirty_pauses: Vec<OfThread>,
    pub lock_waits: Vec<OfThread>,
    /// The time in ns since which each thread waits for a lock.
    locked_since_ns: HashMap<u32, u64>,
    /// The last completion on each CPU, until the next event there: its time, and the thread in
    /// whose context it ran.
    completing: HashMap<u32, (u64, u32)>,
}

impl Waits {
    pub fn take(&mut self, event: &Event) {
        let (pid, time_ns) = (event.pid, event.time_ns);
        match event.what {
            EventKind::Switch(_) => self.sched.take(*event),
            EventKind::Waking(waking) => {
                let completed_ns = self.completion_before(event);
                let what = EventKind::Waking(Waking { completed_ns, ..waking });
                self.sched.take(Event { what, ..*event });
            }
            EventKind::DirtyPause { pause_ns } => {
                let end_ns = time_ns.saturating_add(pause_ns);
                self.dirty_pauses.push(OfThread { pid, begin_ns: time_ns, end_ns });
            }
            EventKind::LockBegin => {
                self.locked_since_ns.entry(pid).or_insert(time_ns);
            }
            EventKind::LockEnd => {
                if let Some(begin_ns) = self.locked_since_ns.remove(&pid) {
                    self.lock_waits.push(OfThread { pid, begin_ns, end_ns: time_ns });
                }
            }
            EventKind::Lost { since_ns, .. } => {
                if since_ns.is_none() {
                    let of_all = std::mem::take(&mut self.sched).of_all;
                    self.sched.of_all = of_all;
                }
                self.sched.take(*event);
                self.locked_since_ns.clear();
            }
            _ => {}
        }
        // The completion of a request wakes its waiters immediately, on the same CPU and on top of
        // the same thread.
        match event.what {
            EventKind::Complete { .. } => {
                self.completing.insert(event.cpu, (event.time_ns, event.pid));
            }
            EventKind::Waking(_) | EventKind::HardwareDone(_) => {}
            _ => drop(self.completing.remove(&event.cpu)),
        }
    }

    /// The time at which the request completed whose completion includes this wakeup.
    fn completion_before(&self, event: &Event) -> Option<u64> {
        let (completed_ns, pid) = *self.completing.get(&event.cpu)?;
        let is_part = pid == event.pid && event.time_ns - completed_ns <= COMPLETION_NS_MAX;
        is_part.then_some(completed_ns)
    }
}
