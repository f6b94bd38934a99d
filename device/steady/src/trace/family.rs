// SPDX-License-Identifier: MIT OR Apache-2.0
//! A process, its threads and its children: whose I/O is shown.

use std::collections::BTreeSet;

use steadyio::trace::event::{Event, What};

/// Threads of a process and of all that it started, grown by the events of the trace.
pub struct Family(BTreeSet<u32>);

impl Family {
    /// A process of which nothing else is known.
    pub fn of(pid: u32) -> Family {
        Family(BTreeSet::from([pid]))
    }

    /// Notes a new thread of one of them.
    pub fn take(&mut self, event: &Event) {
        if let What::Fork { child } = event.what
            && self.0.contains(&event.pid)
        {
            self.0.insert(child);
        }
    }

    /// Their thread IDs.
    pub fn into_pids(self) -> BTreeSet<u32> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use steadyio::trace::event::Comm;

    use super::*;

    fn fork(pid: u32, child: u32) -> Event {
        Event { time_ns: 0, cpu: 0, pid, comm: Comm::default(), what: What::Fork { child } }
    }

    #[test]
    fn children_of_children_belong_to_it_and_nobody_else() {
        let mut family = Family::of(10);
        for (parent, child) in [(10, 11), (11, 12), (20, 21), (1, 10)] {
            family.take(&fork(parent, child));
        }
        assert_eq!(family.into_pids(), BTreeSet::from([10, 11, 12]));
    }
}
