// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whose I/O was asked for.

use std::collections::HashSet;

use crate::trace::event::{Event, What};

/// Some threads and all that they start. The part that shows I/Os asks it; following needs all threads.
#[derive(Clone, Debug, Default)]
pub struct AskedFor {
    /// `None` for all.
    threads: Option<HashSet<u32>>,
}

impl AskedFor {
    /// These threads, or all if there are none.
    pub fn new(threads: &[u32]) -> AskedFor {
        let some = !threads.is_empty();
        AskedFor { threads: some.then(|| threads.iter().copied().collect()) }
    }

    /// Learns of new threads; takes all events in their order.
    pub fn take(&mut self, event: &Event) {
        if let (Some(threads), What::Fork { child }) = (&mut self.threads, event.what) {
            if threads.contains(&event.pid) {
                threads.insert(child);
            }
        }
    }

    /// Whether this thread's I/O was asked for.
    pub fn includes(&self, thread: u32) -> bool {
        self.threads.as_ref().is_none_or(|threads| threads.contains(&thread))
    }
}
