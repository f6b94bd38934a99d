// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints progress on stderr during long runs. `bench`, `with` and other commands use it.

use std::time::Duration;

use steadyio_bench::run::bench::Event;
use steadyio_core::diagnostic;

/// The time before the first line.
const FIRST_AFTER: Duration = Duration::from_secs(2);
/// The longest pause between lines. The pause doubles up to this.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// The times of lines, at growing intervals.
pub struct Pace {
    next: Duration,
    pause: Duration,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { next: FIRST_AFTER, pause: FIRST_AFTER }
    }
}

impl Pace {
    pub fn new() -> Pace {
        Pace::default()
    }

    /// Whether a line is due this long after the start. If so, the pause until the next one grows.
    pub fn is_due(&mut self, elapsed: Duration) -> bool {
        let due = elapsed >= self.next;
        if due {
            self.pause = (self.pause * 2).min(PAUSE_MAX);
            self.next = elapsed + self.pause;
        }
        due
    }
}

/// Prints the events of one bench.
#[derive(Default)]
pub struct Progress(Pace);

impl Progress {
    /// Prints nothing yet.
    pub fn new() -> Progress {
        Progress::default()
    }

    /// Prints an event's message, if it is due.
    pub fn event(&mut self, event: Event) {
        match event {
            Event::Note(text) => diagnostic!("steady: {text}"),
            Event::Start { variant, points } => {
                *self = Progress::new();
                let plural = if points == 1 { "" } else { "s" };
                diagnostic!("steady: {variant}: {points} point{plural}");
            }
            Event::Running { variant, elapsed } if self.0.is_due(elapsed) => {
                diagnostic!("steady: {variant}: running for {} s", elapsed.as_secs());
            }
            Event::Running { .. } => {}
        }
    }
}
