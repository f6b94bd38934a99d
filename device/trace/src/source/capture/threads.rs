// SPDX-License-Identifier: MIT OR Apache-2.0
//! The threads whose I/O was requested. The report asks [`AskedFor`] whether to show an I/O.

use std::collections::HashMap;
use std::ops::Range;

use crate::event::{Event, EventKind};

/// Some threads and all threads that they start. Only the report uses it; `follow` needs all
/// threads.
///
/// The kernel gives the number of a thread that has ended to a new one. Therefore each number has
/// the periods, in ns, in which it was one of these threads.
#[derive(Clone, Debug, Default)]
pub struct AskedFor {
    times: HashMap<u32, Vec<Range<u64>>>,
    /// The requested number, whichever thread has it.
    number: Option<u32>,
    tracer: Vec<u32>,
}

impl AskedFor {
    /// Any thread with this number: for traces that do not show when it was reused.
    pub fn of_number(thread: u32) -> AskedFor {
        AskedFor { number: Some(thread), ..AskedFor::of_threads(&[thread], &[]) }
    }

    /// The given threads. Each ran when tracing began, or one of `tracer` started it later.
    pub fn of_threads(threads: &[u32], tracer: &[u32]) -> AskedFor {
        let always = |thread: &u32| (*thread, std::iter::once(0..u64::MAX).collect());
        let times = threads.iter().map(always).collect();
        AskedFor { times, number: None, tracer: tracer.to_vec() }
    }

    /// Learns of new threads. It must get all events in order.
    pub fn take(&mut self, event: &Event) {
        let EventKind::Fork { child, .. } = event.what else { return };
        let now_ns = event.time_ns;
        match (self.includes(event.pid, now_ns), self.includes(child, now_ns)) {
            (true, false) => self.times.entry(child).or_default().push(now_ns..u64::MAX),
            // The number belongs to another thread from now on, so its last owner has ended.
            (false, true) if self.number != Some(child) => {
                let by_tracer = self.tracer.contains(&event.pid);
                let last = self.times.get_mut(&child).and_then(|times| times.last_mut());
                let Some(time) = last else { return };
                // A thread that the tracer starts was requested.
                *(if by_tracer { &mut time.start } else { &mut time.end }) = now_ns;
            }
            _ => {}
        }
    }

    /// Whether the activity of a thread at that time was requested. All events must have been
    /// taken.
    pub fn includes(&self, thread: u32, time_ns: u64) -> bool {
        self.times.get(&thread).into_iter().flatten().any(|time| time.contains(&time_ns))
    }
}
