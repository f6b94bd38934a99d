// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result of one `steady tune` (`docs/spec/tune-1.schema.json`): the goal, the measurements and
//! the choice, with the bench record of all measurements.

use std::collections::BTreeMap;

use serde::Serialize;
use steadyio_bench::record::Record;
use steadyio_core::knobs::in_setting_order;
use steadyio_core::value::Value;

use crate::confidence::{CONFIDENCE_PERCENT, samples_needed};
use crate::goal::{Figures, Goal, Limit, Wanted};
use crate::plan::Tune;
use crate::search::{Quantity, Search};

/// The schema that this version writes.
pub const TUNE_SCHEMA: &str = "steadyio.tune/1";

/// Values by knob.
pub type Knobs = BTreeMap<&'static str, i64>;

#[derive(Debug, Serialize)]
pub struct Report {
    /// Always [`TUNE_SCHEMA`].
    pub schema: &'static str,
    pub goal: GoalReport,
    /// The knobs, with the values to choose from.
    pub knobs: BTreeMap<&'static str, Vec<i64>>,
    /// The knobs that all measurements had.
    pub with: BTreeMap<String, Value>,
    pub confidence: Confidence,
    /// The number of combinations of the knobs' values.
    pub candidates: usize,
    /// The measurement without a scheduler; None if the limit is absolute.
    pub none: Option<Point>,
    /// The measured candidates, knobs rising.
    pub points: Vec<Point>,
    /// The places where a quantity does not rise with the knobs.
    pub contradictions: Vec<ContradictionReport>,
    /// The choice; None if no measured candidate keeps the limit.
    pub pick: Option<Pick>,
    /// Without a choice: the measured candidate nearest to the limit.
    pub nearest: Option<Knobs>,
    /// All measurements (`docs/spec/bench-record-1.schema.json`).
    pub record: Record,
}

/// The goal.
#[derive(Debug, Serialize)]
pub struct GoalReport {
    /// The quantity to optimize.
    pub best: &'static str,
    /// The limit, relative to no scheduler.
    pub limit_percent_of_none: Option<f64>,
    /// The limit, if it is on the tail.
    pub tail_ns_max: Option<f64>,
    /// The limit, if it is on the throughput.
    pub mib_s_min: Option<f64>,
    /// The quantile that is used as the tail.
    pub quantile_percent: f64,
    /// A candidate within this percentage of the best counts as equal.
    pub near_percent: f64,
}

/// The accuracy of the quantile.
#[derive(Debug, Serialize)]
pub struct Confidence {
    /// The share of intervals that contain the true quantile.
    pub percent: f64,
    /// The lowest number of samples for an interval.
    pub samples_needed: u64,
    /// Whether all measurements had this number.
    pub is_enough: bool,
}

/// One measurement.
#[derive(Debug, Serialize)]
pub struct Point {
    /// Empty without a scheduler.
    pub knobs: Knobs,
    /// The quantile of the real-time latency, and its interval; an end is None with too few
    /// samples.
    pub tail_ns: u64,
    pub tail_ns_min: Option<u64>,
    pub tail_ns_max: Option<u64>,
    pub samples: u64,
    /// The throughput of all jobs.
    pub mib_s: f64,
    pub errors: u64,
    /// Whether it keeps the limit.
    pub is_met: bool,
    /// Whether the intervals make that certain; None for a limit of the throughput, which has none.
    pub is_certain: Option<bool>,
    /// Whether no other candidate is better in both.
    pub is_frontier: bool,
}

#[derive(Debug, Serialize)]
pub struct ContradictionReport {
    /// `tail` or `throughput`.
    pub quantity: &'static str,
    /// The candidate with the lower knobs and the higher value.
    pub lower: Knobs,
    pub upper: Knobs,
}

#[derive(Debug, Serialize)]
pub struct Pick {
    pub knobs: Knobs,
    /// All settings, in the form of a workload.
    pub settings: BTreeMap<String, Value>,
    /// Shell commands that make these settings.
    pub commands: Vec<String>,
    /// Whether they were set.
    pub is_applied: bool,
}

/// The result of one measurement.
#[derive(Debug, Clone)]
pub struct Sample {
    pub figures: Figures,
    /// The number of real-time I/Os for its quantile.
    pub samples: u64,
    /// The number of failed I/Os.
    pub errors: u64,
}

/// The results of a run.
pub struct Outcome<'a> {
    pub search: &'a Search,
    pub goal: Goal,
    pub none: Option<&'a Sample>,
    /// The measurements by candidate.
    pub samples: &'a BTreeMap<usize, Sample>,
}

impl Report {
    pub fn new(tune: &Tune, outcome: &Outcome, is_applied: bool, record: Record) -> Report {
        let knobs = |candidate| tune.choices.at(candidate).0.into_iter().collect::<Knobs>();
        let frontier = outcome.search.frontier();
        let point = |(&candidate, sample): (&usize, &Sample)| {
            let is_frontier = frontier.contains(&candidate);
            point(knobs(candidate), sample, outcome, tune.wanted, is_frontier)
        };
        let none = outcome.none;
        let without = none.map(|none| point_without(none, outcome, tune.wanted));
        let all = outcome.samples.values().chain(none);
        let is_enough = all.into_iter().all(|sample| sample.figures.has_interval());
        Report {
            schema: TUNE_SCHEMA,
            goal: goal_report(tune, outcome.goal),
            knobs: tune.choices.all.iter().map(|c| (c.knob.name, c.values.clone())).collect(),
            with: tune.with.clone(),
            confidence: Confidence {
                percent: CONFIDENCE_PERCENT,
                samples_needed: samples_needed(tune.quantile),
                is_enough,
            },
            candidates: tune.choices.grid.candidates(),
            none: without,
            points: outcome.samples.iter().map(point).collect(),
            contradictions: contradictions(outcome.search, &knobs),
            pick: outcome.search.pick().map(|candidate| pick(tune, candidate, is_applied)),
            nearest: outcome.search.nearest().map(knobs),
            record,
        }
    }

    /// The chosen measurement; without a choice, the nearest one.
    pub fn picked_or_nearest(&self) -> Option<&Point> {
        let knobs = self.pick.as_ref().map(|pick| &pick.knobs).or(self.nearest.as_ref())?;
        self.points.iter().find(|point| point.knobs == *knobs)
    }

    /// The number of failed I/Os in all measurements.
    pub fn errors(&self) -> u64 {
        self.record.errors()
    }

    /// The report as one line of JSON.
    pub fn to_json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string(self)? + "\n")
    }
}

fn goal_report(tune: &Tune, goal: Goal) -> GoalReport {
    let percent = match tune.wanted {
        Wanted::MostThroughput(Limit::OfNone(percent))
        | Wanted::LeastTail(Limit::OfNone(percent)) => Some(percent.value()),
        _ => None,
    };
    let (best, tail_ns_max, mib_s_min) = match goal {
        Goal::MostThroughput { tail_ns_max } => ("throughput", Some(tail_ns_max), None),
        Goal::LeastTail { mib_s_min } => ("tail", None, Some(mib_s_min)),
    };
    GoalReport {
        best,
        limit_percent_of_none: percent,
        tail_ns_max,
        mib_s_min,
        quantile_percent: tune.quantile.percent(),
        near_percent: tune.near_percent,
    }
}

fn point(
    knobs: Knobs,
    sample: &Sample,
    outcome: &Outcome,
    wanted: Wanted,
    is_frontier: bool,
) -> Point {
    let Figures { tail_ns, tail_ns_min, tail_ns_max, mib_s } = sample.figures;
    let none = outcome.none.map(|none| &none.figures);
    Point {
        knobs,
        tail_ns,
        tail_ns_min,
        tail_ns_max,
        samples: sample.samples,
        mib_s,
        errors: sample.errors,
        is_met: outcome.goal.is_met(&sample.figures),
        is_certain: wanted.is_certain(&sample.figures, none),
        is_frontier,
    }
}

/// The point without a scheduler. It is not a candidate, so it is not on their frontier. A relative
/// limit refers to its tail.
fn point_without(none: &Sample, outcome: &Outcome, wanted: Wanted) -> Point {
    Point { is_certain: None, ..point(Knobs::new(), none, outcome, wanted, false) }
}

fn contradictions(search: &Search, knobs: &dyn Fn(usize) -> Knobs) -> Vec<ContradictionReport> {
    let all = search.contradictions().into_iter();
    all.map(|found| ContradictionReport {
        quantity: match found.quantity {
            Quantity::Tail => "tail",
            Quantity::Throughput => "throughput",
        },
        lower: knobs(found.lower),
        upper: knobs(found.upper),
    })
    .collect()
}

fn pick(tune: &Tune, candidate: usize, is_applied: bool) -> Pick {
    let settings = tune.settings(candidate);
    let commands = in_setting_order(&settings)
        .into_iter()
        .map(|(_, attribute, value)| {
            format!("echo {value} >/sys/block/{}/queue/{attribute}", tune.device.disk)
        })
        .collect();
    Pick {
        knobs: tune.choices.at(candidate).0.into_iter().collect(),
        settings,
        commands,
        is_applied,
    }
}
