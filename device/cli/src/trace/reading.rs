// SPDX-License-Identifier: MIT OR Apache-2.0
//! Passes a source's events to the follower, with progress on stderr. `files` and `live` use it.

use std::time::Instant;

use steadyio_core::diagnostic;
use steadyio_core::interrupt::Interrupt;
use steadyio_trace::event::Event;
use steadyio_trace::follow::{Follower, Options};
use steadyio_trace::io::Trace;
use steadyio_trace::source::capture::Captured;
use steadyio_trace::source::capture::threads::AskedFor;
use steadyio_trace::source::{Problem, Problems};

use crate::progress::Pace;

/// The number of events between two readings of the clock.
const EVENTS_PER_LOOK: u64 = 65_536;

/// The properties of a capture that its events do not have.
pub fn options_of(captured: &Captured) -> Options {
    let (sched_of_all, processes) = (captured.has_all_switches(), captured.processes());
    let (open_files, shows_close) = (captured.open_files(), captured.has_metadata());
    Options { sched_of_all, processes, open_files, shows_close }
}

/// A follower and its progress.
pub struct Reading {
    follower: Follower,
    asked_for: Option<AskedFor>,
    problems: Problems,
    events: u64,
    began: Instant,
    pace: Pace,
}

pub struct Followed {
    /// The requests and I/Os.
    pub trace: Trace,
    /// The requested threads and those that they started; `None` for all.
    pub asked_for: Option<AskedFor>,
    /// Parse errors.
    pub problems: Problems,
    /// The number of events of other kinds.
    pub skipped: u64,
}

impl Reading {
    /// `asked_for`: the threads to show; `None` for all.
    pub fn new(asked_for: Option<AskedFor>, options: Options) -> Reading {
        Reading {
            follower: Follower::new(options),
            asked_for,
            problems: Problems::default(),
            events: 0,
            began: Instant::now(),
            pace: Pace::new(),
        }
    }

    /// Takes the next event, or a parse error.
    pub fn take(&mut self, item: Result<Event, Problem>) {
        match item {
            Ok(event) => {
                self.events += 1;
                self.follower.take(&event);
                if let Some(threads) = &mut self.asked_for {
                    threads.take(&event);
                }
            }
            Err(problem) => self.problems.note(&problem),
        }
    }

    /// Takes all items of a source; false if it was interrupted before the end.
    pub fn take_all(
        &mut self,
        items: impl Iterator<Item = Result<Event, Problem>>,
        stop: &Interrupt,
    ) -> bool {
        for (item, number) in items.zip(0u64..) {
            self.take(item);
            if number % EVENTS_PER_LOOK == 0 {
                if stop.requested() {
                    return false;
                }
                self.tell("reading");
            }
        }
        true
    }

    /// Prints progress, if it is due.
    pub fn tell(&mut self, doing: &str) {
        let elapsed = self.began.elapsed();
        if self.pace.is_due(elapsed) {
            diagnostic!("steady: {doing} for {} s, {} events", elapsed.as_secs(), self.events);
        }
    }

    /// Ends the trace.
    pub fn finish(self) -> Followed {
        let (asked_for, problems) = (self.asked_for, self.problems);
        Followed { trace: self.follower.finish(), asked_for, problems, skipped: 0 }
    }
}
