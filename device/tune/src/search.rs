// SPDX-License-Identifier: MIT OR Apache-2.0
//! Selects the next candidate to measure, and the best one. `run` calls it.
//!
//! The search assumes that tail and throughput rise with each knob. One measurement then excludes
//! other candidates: all above one whose tail is too long break the limit, and none below one that
//! keeps it has more throughput. A candidate is *open* if no measurement excludes it. The next to
//! measure is the one that excludes most in the worst case; in a single row that is the middle. Of
//! n values at most log2(n) + 1 are measured, rounded down: an answer has n + 1 possibilities, and
//! each measurement only says "below" or "above".
//!
//! If two measurements contradict the rise of a quantity, the search concludes nothing from that
//! quantity any more, and must measure all open candidates. Contradictions among candidates that
//! were not measured remain unknown.

use std::collections::BTreeMap;

use crate::goal::{Figures, Goal};
use crate::grid::Grid;

/// Throughput that falls by at most this is noise. Under one load the same setting gives results
/// that differ by a few percent. Park and Lee's averages of five runs are 419 to 438 MB/s where the
/// bound does not matter.
pub const THROUGHPUT_NOISE_PERCENT: f64 = 5.0;

/// A quantity that should rise with each knob.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quantity {
    Tail,
    Throughput,
}

/// Two measured candidates in the wrong order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Contradiction {
    /// The quantity that does not rise.
    pub quantity: Quantity,
    /// The candidate with the lower knobs and the higher value.
    pub lower: usize,
    /// The candidate with the higher knobs.
    pub upper: usize,
}

/// The candidates, the goal, and the results so far.
#[derive(Debug, Clone)]
pub struct Search {
    grid: Grid,
    goal: Goal,
    /// A candidate within this percentage of the best counts as equal; then the limited quantity
    /// decides.
    near_percent: f64,
    measured: BTreeMap<usize, Figures>,
    is_trusted: [bool; 2],
}

/// The candidates that a measurement excludes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Below,
    Above,
    /// Only itself.
    Itself,
}

impl Search {
    /// A search without measurements.
    pub fn new(grid: Grid, goal: Goal, near_percent: f64) -> Search {
        Search { grid, goal, near_percent, measured: BTreeMap::new(), is_trusted: [true; 2] }
    }

    /// Adds the measurement of a candidate.
    pub fn add(&mut self, candidate: usize, figures: Figures) {
        self.measured.insert(candidate, figures);
        for found in self.contradictions() {
            self.is_trusted[found.quantity as usize] = false;
        }
    }

    /// The results by candidate.
    pub fn measured(&self) -> &BTreeMap<usize, Figures> {
        &self.measured
    }

    /// The candidate to measure next; None if no further measurement could change the result.
    pub fn next(&self) -> Option<usize> {
        let (open, sides) = self.open();
        let score = |&candidate: &usize| {
            let [if_good, if_bad] = sides.map(|side| self.excluded(candidate, &open, side));
            (if_good.min(if_bad), if_good + if_bad, std::cmp::Reverse(candidate))
        };
        open.iter().copied().max_by_key(score)
    }

    /// The highest number of further measurements without contradictions.
    pub fn left_max(&self) -> usize {
        let open = self.open().0.len();
        match self.grid.dimensions() {
            0 | 1 if self.is_trusted == [true; 2] && self.near_percent == 0.0 => halvings(open),
            _ => open,
        }
    }

    /// The best measured candidate that meets the limit.
    pub fn pick(&self) -> Option<usize> {
        let best = self.best()?;
        let near =
            self.met().filter(|(_, figures)| self.goal.is_near(figures, best, self.near_percent));
        near.min_by(|(_, a), (_, b)| {
            let second = self.goal.compare_limited(a, b);
            second.then(self.goal.compare_best(a, b))
        })
        .map(|(candidate, _)| candidate)
    }

    /// The measured candidate nearest to the limit; None if one meets it.
    pub fn nearest(&self) -> Option<usize> {
        let order = |(_, a): &(&usize, &Figures), (_, b): &(&usize, &Figures)| {
            self.goal.compare_limited(a, b).then(self.goal.compare_best(a, b))
        };
        match self.best() {
            Some(_) => None,
            None => self.measured.iter().min_by(order).map(|(&candidate, _)| candidate),
        }
    }

    /// The measured candidates that no other beats in both tail and throughput.
    pub fn frontier(&self) -> Vec<usize> {
        let beats = |a: &Figures, b: &Figures| {
            let as_good = a.tail_ns <= b.tail_ns && a.mib_s >= b.mib_s;
            as_good && (a.tail_ns < b.tail_ns || a.mib_s > b.mib_s)
        };
        let mut frontier: Vec<usize> = self
            .measured
            .iter()
            .filter(|(_, one)| !self.measured.values().any(|other| beats(other, one)))
            .map(|(&candidate, _)| candidate)
            .collect();
        frontier.sort_by_key(|candidate| self.measured[candidate].tail_ns);
        frontier
    }

    /// All pairs of measured candidates whose order is wrong by more than their noise.
    pub fn contradictions(&self) -> Vec<Contradiction> {
        let mut found = Vec::new();
        for (&lower, a) in &self.measured {
            for (&upper, b) in &self.measured {
                if lower == upper || !self.grid.is_below(lower, upper) {
                    continue;
                }
                if tail_falls(a, b) {
                    found.push(Contradiction { quantity: Quantity::Tail, lower, upper });
                }
                if throughput_falls(a, b) {
                    found.push(Contradiction { quantity: Quantity::Throughput, lower, upper });
                }
            }
        }
        found.sort();
        found
    }

    fn met(&self) -> impl Iterator<Item = (usize, &Figures)> {
        let goal = self.goal;
        let all = self.measured.iter().map(|(&candidate, figures)| (candidate, figures));
        all.filter(move |(_, figures)| goal.is_met(figures))
    }

    fn best(&self) -> Option<&Figures> {
        self.met().map(|(_, figures)| figures).min_by(|a, b| self.goal.compare_best(a, b))
    }

    fn trusts(&self, quantity: Quantity) -> bool {
        self.is_trusted[quantity as usize]
    }

    /// The quantity to optimize, and the limited one.
    fn quantities(&self) -> (Quantity, Quantity) {
        match self.goal {
            Goal::MostThroughput { .. } => (Quantity::Throughput, Quantity::Tail),
            Goal::LeastTail { .. } => (Quantity::Tail, Quantity::Throughput),
        }
    }

    /// The side of a candidate on which no other is better, and the side on which none meets the
    /// limit if the candidate does not.
    fn sides(&self) -> [Side; 2] {
        let (best, limited) = self.quantities();
        let sides = match self.goal {
            Goal::MostThroughput { .. } => [Side::Below, Side::Above],
            Goal::LeastTail { .. } => [Side::Above, Side::Below],
        };
        let trusted = |side, quantity| if self.trusts(quantity) { side } else { Side::Itself };
        [trusted(sides[0], best), trusted(sides[1], limited)]
    }

    /// The open candidates, and the sides that a good and a bad one would exclude.
    fn open(&self) -> (Vec<usize>, [Side; 2]) {
        let sides = self.sides();
        let [worse, unmet] = sides;
        let open = self.left(|figures| match self.goal.is_met(figures) {
            true => worse,
            false => unmet,
        });
        if !open.is_empty() || self.near_percent == 0.0 {
            return (open, sides);
        }
        self.open_near()
    }

    /// The same once the best is known: candidates that may be near it and better in the limited
    /// quantity.
    fn open_near(&self) -> (Vec<usize>, [Side; 2]) {
        let (_, limited) = self.quantities();
        let [far, unmet] = self.sides();
        let opposite = match self.goal {
            Goal::MostThroughput { .. } => Side::Above,
            Goal::LeastTail { .. } => Side::Below,
        };
        let near = if self.trusts(limited) { opposite } else { Side::Itself };
        let best = self.best();
        let open = self.left(|figures| {
            if !self.goal.is_met(figures) {
                return unmet;
            }
            match best {
                Some(best) if self.goal.is_near(figures, best, self.near_percent) => near,
                _ => far,
            }
        });
        (open, [near, far])
    }

    /// The unmeasured candidates that are on no excluded side of a measured one.
    fn left(&self, side_of: impl Fn(&Figures) -> Side) -> Vec<usize> {
        let sides: Vec<(usize, Side)> =
            self.measured.iter().map(|(&at, figures)| (at, side_of(figures))).collect();
        (0..self.grid.candidates())
            .filter(|candidate| !self.measured.contains_key(candidate))
            .filter(|&candidate| !sides.iter().any(|&(at, side)| self.is_on(candidate, at, side)))
            .collect()
    }

    fn is_on(&self, candidate: usize, of: usize, side: Side) -> bool {
        match side {
            Side::Below => self.grid.is_below(candidate, of),
            Side::Above => self.grid.is_below(of, candidate),
            Side::Itself => candidate == of,
        }
    }

    fn excluded(&self, by: usize, open: &[usize], side: Side) -> usize {
        open.iter().filter(|&&candidate| self.is_on(candidate, by, side)).count()
    }
}

/// The number of measurements that halve this number of candidates until none is left.
fn halvings(open: usize) -> usize {
    open.checked_ilog2().map_or(0, |log2| log2 as usize + 1)
}

/// Whether the tail falls. A value without an interval counts as exact: a needless measurement is
/// better than a wrong conclusion.
fn tail_falls(lower: &Figures, upper: &Figures) -> bool {
    lower.tail_ns_min.unwrap_or(lower.tail_ns) > upper.tail_ns_max.unwrap_or(upper.tail_ns)
}

fn throughput_falls(lower: &Figures, upper: &Figures) -> bool {
    upper.mib_s < lower.mib_s * (1.0 - THROUGHPUT_NOISE_PERCENT / 100.0)
}
