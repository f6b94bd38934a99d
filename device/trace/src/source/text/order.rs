// SPDX-License-Identifier: MIT OR Apache-2.0
//! Puts events into the order of their time that are almost in it: tools that merge the events of several
//! CPUs while these go on can print neighbours the wrong way round.

use std::collections::BTreeMap;

use crate::event::Event;

/// How many events are held back to see whether an earlier one comes.
const HELD_BACK: usize = 1024;

/// Events that were read and not yet given on.
#[derive(Default)]
pub struct Order {
    /// By time and, at the same time, as they came.
    held: BTreeMap<(u64, u64), Event>,
    pushed: u64,
    released_ns: u64,
    newest_ns: u64,
}

impl Order {
    /// Takes the next event; one from before those that were given on is an error.
    pub fn push(&mut self, event: Event) -> Result<(), String> {
        if event.time_ns < self.released_ns {
            let back_ns = self.released_ns - event.time_ns;
            return Err(format!(
                "goes back in time by {back_ns} ns, behind more than {HELD_BACK} events: two traces in one \
                 file, or clocks that differ between CPUs (use the trace clock mono)"
            ));
        }
        self.push_in_order(event);
        Ok(())
    }

    /// Takes an event that is known not to be before those that were given on.
    pub fn push_in_order(&mut self, event: Event) {
        self.newest_ns = self.newest_ns.max(event.time_ns);
        self.pushed += 1;
        self.held.insert((event.time_ns, self.pushed), event);
    }

    /// The earliest event, when enough others are behind it or `all` are there.
    pub fn pop(&mut self, all: bool) -> Option<Event> {
        if !all && self.held.len() <= HELD_BACK {
            return None;
        }
        let (_, event) = self.held.pop_first()?;
        self.released_ns = event.time_ns;
        Some(event)
    }

    /// When the last event was that was given on; 0 before the first.
    pub fn released_ns(&self) -> u64 {
        self.released_ns
    }

    /// When the latest event was.
    pub fn newest_ns(&self) -> u64 {
        self.newest_ns
    }
}
