// SPDX-License-Identifier: MIT OR Apache-2.0
//! Progress on stderr for runs that take longer than a moment.

use std::time::Duration;

use steadyio::bench::Event;

/// Shorter waits need no explanation.
const FIRST_AFTER: Duration = Duration::from_secs(2);
/// Then the pause between lines doubles up to this.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Prints events; one per bench.
pub struct Progress {
    next: Duration,
    pause: Duration,
}

impl Progress {
    /// Starts silent.
    pub fn new() -> Progress {
        Progress { next: FIRST_AFTER, pause: FIRST_AFTER }
    }

    /// Prints what is due.
    pub fn event(&mut self, event: Event) {
        match event {
            Event::Note(text) => eprintln!("steady: {text}"),
            Event::Start { variant, points } => {
                *self = Progress::new();
                let plural = if points == 1 { "" } else { "s" };
                eprintln!("steady: {variant}: {points} point{plural}");
            }
            Event::Running { variant, elapsed } if elapsed >= self.next => {
                eprintln!("steady: {variant}: running for {} s", elapsed.as_secs());
                self.pause = (self.pause * 2).min(PAUSE_MAX);
                self.next = elapsed + self.pause;
            }
            Event::Running { .. } => {}
        }
    }
}
