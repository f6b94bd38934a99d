// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records which segments of a pool may not be overwritten, because an incident keeps them. It
//! belongs to [`super::files::Pool`], and so to the writer thread.

use std::collections::BTreeMap;
use std::time::Duration;

/// The time of the first record of a life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begun {
    /// In this recording, on the monotonic clock in ns.
    Now(u64),
    /// In an earlier recording, or after its end, on the wall clock in ns.
    Before(u64),
}

/// One moment on both clocks, in ns.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    pub monotonic_ns: u64,
    pub wall_ns: u64,
}

impl Begun {
    /// The age; None if it is negative because the wall clock was set back.
    fn age(self, now: Moment) -> Option<Duration> {
        let age_ns = match self {
            Begun::Now(ns) => now.monotonic_ns.checked_sub(ns),
            Begun::Before(ns) => now.wall_ns.checked_sub(ns),
        };
        age_ns.map(Duration::from_nanos)
    }
}

/// The number of lives, from the newest, that hold the last period of this length, and the part of
/// the period that they hold. A life ends when the next one begins.
pub fn reaching_back(
    newest_first: impl Iterator<Item = Begun>,
    last: Duration,
    now: Moment,
) -> (usize, Duration) {
    let (mut count, mut reached) = (0, Duration::ZERO);
    for begun in newest_first {
        count += 1;
        match begun.age(now) {
            Some(age) => reached = reached.max(age),
            // The age of earlier lives is unknown.
            None => break,
        }
        if reached >= last {
            break;
        }
    }
    (count, reached.min(last))
}

/// The pinned segments.
#[derive(Debug, Default)]
pub struct Pins {
    /// Positions in the pool, by incident.
    incidents: BTreeMap<String, Vec<usize>>,
}

impl Pins {
    pub fn add(&mut self, incident: String, segments: Vec<usize>) {
        self.incidents.insert(incident, segments);
    }

    pub fn remove(&mut self, incident: &str) {
        self.incidents.remove(incident);
    }

    pub fn has(&self, incident: &str) -> bool {
        self.incidents.contains_key(incident)
    }

    pub fn holds(&self, segment: usize) -> bool {
        self.incidents.values().any(|segments| segments.contains(&segment))
    }

    pub fn incidents(&self) -> usize {
        self.incidents.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Moment = Moment { monotonic_ns: 1_000, wall_ns: 50_000 };

    fn reach(lives: &[Begun], last_ns: u64) -> (usize, u64) {
        let last = Duration::from_nanos(last_ns);
        let (count, reached) = reaching_back(lives.iter().copied(), last, NOW);
        (count, reached.as_nanos() as u64)
    }

    #[test]
    fn a_life_is_needed_if_any_of_it_is_within_the_time() {
        let lives = [Begun::Now(900), Begun::Now(600), Begun::Before(49_000)];
        assert_eq!(reach(&lives, 1), (1, 1));
        assert_eq!(reach(&lives, 100), (1, 100));
        assert_eq!(reach(&lives, 101), (2, 101));
        assert_eq!(reach(&lives, 401), (3, 401));
        // The pool has no older life.
        assert_eq!(reach(&lives, 5_000), (3, 1_000));
        assert_eq!(reach(&[], 10), (0, 0));
    }

    #[test]
    fn a_clock_that_was_set_back_ends_what_is_known() {
        let lives = [Begun::Now(900), Begun::Before(60_000), Begun::Before(40_000)];
        assert_eq!(reach(&lives, 400), (2, 100));
    }
}
