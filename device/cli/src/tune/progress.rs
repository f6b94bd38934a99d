// SPDX-License-Identifier: MIT OR Apache-2.0
//! The progress messages of `steady tune` on stderr.

use std::time::{Duration, Instant};

use steadyio_bench::run::bench::Event as BenchEvent;
use steadyio_core::diagnostic;
use steadyio_tune::goal::Goal;
use steadyio_tune::knob::Choices;
use steadyio_tune::run::{Event, Sample};
use steadyio_tune::search::{Contradiction, Quantity};

use crate::progress::Pace;
use crate::tune::text;

pub struct Progress<'a> {
    choices: &'a Choices,
    pace: Pace,
    started: Option<Instant>,
    /// The duration of the last measurement.
    took: Option<Duration>,
}

impl Progress<'_> {
    pub fn new(choices: &Choices) -> Progress<'_> {
        Progress { choices, pace: Pace::new(), started: None, took: None }
    }

    /// Prints an event's message, if it is due.
    pub fn event(&mut self, event: Event) {
        match event {
            Event::Bench(BenchEvent::Note(text)) => diagnostic!("steady: {text}"),
            Event::Bench(BenchEvent::Running { elapsed, .. }) if self.pace.is_due(elapsed) => {
                diagnostic!("steady: running for {} s", elapsed.as_secs());
            }
            Event::Bench(_) => {}
            Event::Start { number, left_max, name } => self.start(number, left_max, name),
            Event::Measured { sample, goal, .. } => {
                self.took = self.started.map(|started| started.elapsed());
                diagnostic!("steady: {}", measured(sample, goal));
            }
            Event::Contradiction(found) => {
                diagnostic!("steady: {}", contradiction(found, self.choices));
            }
        }
    }

    fn start(&mut self, number: usize, left_max: Option<usize>, name: &str) {
        (self.pace, self.started) = (Pace::new(), Some(Instant::now()));
        let more = match (left_max, self.took) {
            (None | Some(0), _) => String::new(),
            (Some(left), None) => format!(" ({left} more at most)"),
            (Some(left), Some(took)) => {
                // Estimates that each one takes as long as the last, including this one.
                let left_s = took.as_secs() * (left as u64 + 1);
                format!(" ({left} more at most, about {left_s} s)")
            }
        };
        diagnostic!("steady: measurement {number}: {name}{more}");
    }
}

fn measured(sample: &Sample, goal: Option<&Goal>) -> String {
    let figures = &sample.figures;
    let verdict = match goal {
        None => "",
        Some(goal) if goal.is_met(figures) => ": keeps the limit",
        Some(_) => ": does not keep the limit",
    };
    format!("{} us, {:.2} MiB/s{verdict}", text::us(figures.tail_ns), figures.mib_s)
}

fn contradiction(found: &Contradiction, choices: &Choices) -> String {
    let (lower, upper) = (choices.at(found.lower), choices.at(found.upper));
    text::not_rising(found.quantity == Quantity::Tail, &lower.to_string(), &upper.to_string())
}
