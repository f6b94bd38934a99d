// SPDX-License-Identifier: MIT OR Apache-2.0
//! The goal of a search: Park and Lee's objectives O1 and O2. Limits are relative to no scheduler,
//! as in their paper, or absolute. `search` and `run` use it.

use std::cmp::Ordering;
use std::str::FromStr;

/// The results of one candidate, or of a run without a scheduler.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    /// The real-time quantile.
    pub tail_ns: u64,
    /// The lower end of its confidence interval; None: too few samples.
    pub tail_ns_min: Option<u64>,
    /// The upper end; None: too few samples.
    pub tail_ns_max: Option<u64>,
    /// The throughput of all jobs.
    pub mib_s: f64,
}

impl Figures {
    /// Whether there were enough samples for both ends.
    pub fn has_interval(&self) -> bool {
        self.tail_ns_min.is_some() && self.tail_ns_max.is_some()
    }
}

/// A share, above 0 and at most 100.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Percent(f64);

impl Percent {
    pub fn value(self) -> f64 {
        self.0
    }

    fn of(self, whole: f64) -> f64 {
        whole * self.0 / 100.0
    }
}

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Percent, String> {
        match text.parse::<f64>() {
            Ok(value) if value > 0.0 && value <= 100.0 => Ok(Percent(value)),
            _ => Err(format!("{text} %: must be above 0 and at most 100")),
        }
    }
}

/// A limit: relative to the value without a scheduler, or absolute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit<T> {
    OfNone(Percent),
    Absolute(T),
}

/// The requested goal, before any measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Wanted {
    /// O1: highest throughput, with this limit of the tail (ns, above 0).
    MostThroughput(Limit<u64>),
    /// O2: the shortest tail, with this minimum of throughput (MiB/s, above 0).
    LeastTail(Limit<f64>),
}

impl Wanted {
    /// Whether a measurement without a scheduler must come first.
    pub fn needs_none(&self) -> bool {
        matches!(
            self,
            Wanted::MostThroughput(Limit::OfNone(_)) | Wanted::LeastTail(Limit::OfNone(_))
        )
    }

    /// Whether it is certain that a tail keeps the limit, or breaks it: its interval and that of a
    /// relative limit do not overlap. None for a limit of the throughput, of which one measurement
    /// gives no interval.
    pub fn is_certain(&self, figures: &Figures, none: Option<&Figures>) -> Option<bool> {
        let Wanted::MostThroughput(limit) = *self else { return None };
        let (least, most) = match limit {
            Limit::Absolute(ns) => (Some(ns as f64), Some(ns as f64)),
            Limit::OfNone(percent) => {
                let end = |end: Option<u64>| end.map(|ns| percent.of(ns as f64));
                (end(none?.tail_ns_min), end(none?.tail_ns_max))
            }
        };
        let is_below =
            |a: Option<f64>, b: Option<f64>| matches!((a, b), (Some(a), Some(b)) if a <= b);
        let end = |end: Option<u64>| end.map(|ns| ns as f64);
        Some(is_below(end(figures.tail_ns_max), least) || is_below(most, end(figures.tail_ns_min)))
    }

    /// The goal with the limit as a number; None if it is relative, and nothing was measured
    /// without a scheduler.
    pub fn goal(&self, none: Option<&Figures>) -> Option<Goal> {
        Some(match *self {
            Wanted::MostThroughput(limit) => {
                let tail_ns_max = match limit {
                    Limit::OfNone(percent) => percent.of(none?.tail_ns as f64),
                    Limit::Absolute(ns) => ns as f64,
                };
                Goal::MostThroughput { tail_ns_max }
            }
            Wanted::LeastTail(limit) => {
                let mib_s_min = match limit {
                    Limit::OfNone(percent) => percent.of(none?.mib_s),
                    Limit::Absolute(mib_s) => mib_s,
                };
                Goal::LeastTail { mib_s_min }
            }
        })
    }
}

/// The goal, in numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Goal {
    MostThroughput { tail_ns_max: f64 },
    LeastTail { mib_s_min: f64 },
}

impl Goal {
    /// Whether the limit is kept.
    pub fn is_met(&self, figures: &Figures) -> bool {
        match *self {
            Goal::MostThroughput { tail_ns_max } => figures.tail_ns as f64 <= tail_ns_max,
            Goal::LeastTail { mib_s_min } => figures.mib_s >= mib_s_min,
        }
    }

    /// `Less` if `a` is better than `b` in the quantity to optimize.
    pub fn compare_best(&self, a: &Figures, b: &Figures) -> Ordering {
        match self {
            Goal::MostThroughput { .. } => more(a, b),
            Goal::LeastTail { .. } => shorter(a, b),
        }
    }

    /// `Less` if `a` is better than `b` in the limited quantity.
    pub fn compare_limited(&self, a: &Figures, b: &Figures) -> Ordering {
        match self {
            Goal::MostThroughput { .. } => shorter(a, b),
            Goal::LeastTail { .. } => more(a, b),
        }
    }

    /// Whether `a` counts as equal to `best`: it differs by at most `near_percent`.
    pub fn is_near(&self, a: &Figures, best: &Figures, near_percent: f64) -> bool {
        match self {
            Goal::MostThroughput { .. } => a.mib_s >= best.mib_s * (1.0 - near_percent / 100.0),
            Goal::LeastTail { .. } => {
                a.tail_ns as f64 <= best.tail_ns as f64 * (1.0 + near_percent / 100.0)
            }
        }
    }
}

fn more(a: &Figures, b: &Figures) -> Ordering {
    b.mib_s.total_cmp(&a.mib_s)
}

fn shorter(a: &Figures, b: &Figures) -> Ordering {
    a.tail_ns.cmp(&b.tail_ns)
}
