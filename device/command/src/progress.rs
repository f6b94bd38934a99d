// SPDX-License-Identifier: MIT OR Apache-2.0
//! Progress on stderr for long runs.

use std::time::Duration;

use steadyio_bench::run::Event;
use steadyio_core::diagnostic;

/// No line before this.
const FIRST_AFTER: Duration = Duration::from_secs(2);
/// Then the pause between lines doubles up to this.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// When the next line is due: at growing intervals.
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

    /// Whether a line is due so long after the start; if so, the next one is later.
    pub fn is_due(&mut self, elapsed: Duration) -> bool {
        let due = elapsed >= self.next;
        if due {
            self.pause = (self.pause * 2).min(PAUSE_MAX);
            self.next = elapsed + self.pause;
        }
        due
    }
}

/// Prints events; one per bench.
#[derive(Default)]
pub struct Progress(Pace);

impl Progress {
    /// Prints nothing at first.
    pub fn new() -> Progress {
        Progress::default()
    }

    /// Prints what is due.
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
