// SPDX-License-Identifier: MIT OR Apache-2.0
//! The threads whose I/O was requested.

use std::collections::HashMap;
use std::ops::Range;

use crate::event::{Event, EventKind};

/// Some threads and all that they start. The report asks it; following needs all threads.
///
/// The kernel gives the number of a thread that has ended to another, so each number has the times at which it was
/// one of these, in ns.
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

    /// These threads. Each ran when tracing began, or one of `tracer` started it since.
    pub fn of_threads(threads: &[u32], tracer: &[u32]) -> AskedFor {
        let always = |thread: &u32| (*thread, std::iter::once(0..u64::MAX).collect());
        let times = threads.iter().map(always).collect();
        AskedFor { times, number: None, tracer: tracer.to_vec() }
    }

    /// Learns of new threads; takes all events in their order.
    pub fn take(&mut self, event: &Event) {
        let EventKind::Fork { child, .. } = event.what else { return };
        let now_ns = event.time_ns;
        match (self.includes(event.pid, now_ns), self.includes(child, now_ns)) {
            (true, false) => self.times.entry(child).or_default().push(now_ns..u64::MAX),
            // It is another's from now on: who had it has ended.
            (false, true) if self.number != Some(child) => {
                let by_tracer = self.tracer.contains(&event.pid);
                let last = self.times.get_mut(&child).and_then(|times| times.last_mut());
                match last {
                    // But what the tracer starts was asked for.
                    Some(time) if by_tracer => time.start = now_ns,
                    Some(time) => time.end = now_ns,
                    None => {}
                }
            }
            _ => {}
        }
    }

    /// Whether what this thread did then was asked for; known when all events were taken.
    pub fn includes(&self, thread: u32, time_ns: u64) -> bool {
        self.times
            .get(&thread)
            .is_some_and(|times| times.iter().any(|time| time.contains(&time_ns)))
    }
}
