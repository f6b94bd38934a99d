// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints the report of `steady tune` for users.

use steadyio_tune::report::{Knobs, Point, Report};
use steadyio_tune::run::Tune;

use crate::table::align;

/// The text columns; the others have numbers.
const WORDS: [usize; 3] = [0, 6, 7];

pub fn us(ns: u64) -> String {
    format!("{:.1}", ns as f64 / 1_000.0)
}

/// The output of `--check`.
pub fn plan(tune: &Tune) -> String {
    let mut text = format!("{}: {} bytes\n", tune.device.name, tune.device.size_bytes);
    for choice in &tune.choices.all {
        let values: Vec<String> = choice.values.iter().map(i64::to_string).collect();
        text += &format!("{} ({}): {}\n", choice.knob.name, choice.knob.unit, values.join(" "));
    }
    let candidates = tune.choices.grid.candidates();
    let none = if tune.wanted.needs_none() { ", and without a scheduler" } else { "" };
    text + &format!("{candidates} candidates{none}\n")
}

pub fn render(report: &Report) -> String {
    let mut text = goal(report) + "\n" + &table(report);
    for quantity in ["tail", "throughput"] {
        text += &contradictions(report, quantity);
    }
    text += &samples(report);
    text + &picked(report)
}

/// The first contradiction, and the number of others.
fn contradictions(report: &Report, quantity: &str) -> String {
    let mut all = report.contradictions.iter().filter(|one| one.quantity == quantity);
    let Some(first) = all.next() else { return String::new() };
    let (lower, upper) = (chosen(report, &first.lower), chosen(report, &first.upper));
    let others = match all.count() {
        0 => String::new(),
        others => format!(" ({others} other pairs as well)"),
    };
    format!("{}{others}\n", not_rising(quantity == "tail", &lower, &upper))
}

/// The sentence about a quantity that falls although the knobs rise.
pub fn not_rising(is_tail: bool, lower: &str, upper: &str) -> String {
    let what = if is_tail { "longer latency" } else { "more throughput" };
    format!("not monotonic: {lower} has {what} than {upper}; nothing is concluded from its rise")
}

fn goal(report: &Report) -> String {
    let goal = &report.goal;
    let tail = format!("p{}", goal.quantile_percent);
    let of_none = goal
        .limit_percent_of_none
        .map_or(String::new(), |percent| format!(" ({percent} % of none)"));
    match (goal.tail_ns_max, goal.mib_s_min) {
        (Some(ns), _) => {
            format!("most throughput, {tail} at most {:.1} us{of_none}", ns / 1_000.0)
        }
        (None, mib_s) => {
            format!("shortest {tail}, at least {:.2} MiB/s{of_none}", mib_s.unwrap_or_default())
        }
    }
}

fn table(report: &Report) -> String {
    let tail = format!("p{} us", report.goal.quantile_percent);
    let words = ["knobs", &tail, "from", "to", "samples", "MiB/s", "limit", ""];
    let mut rows = vec![words.map(String::from)];
    if let Some(none) = &report.none {
        rows.push(row("none".into(), none, String::new(), ""));
    }
    let pick = report.pick.as_ref().map(|pick| &pick.knobs);
    for point in &report.points {
        let limit = match (point.is_met, point.is_certain) {
            (true, Some(false)) => "kept, uncertain",
            (true, _) => "kept",
            (false, Some(false)) => "not kept, uncertain",
            (false, _) => "not kept",
        };
        let note = match point {
            point if pick == Some(&point.knobs) => "pick",
            point if report.nearest.as_ref() == Some(&point.knobs) => "nearest",
            point if point.is_frontier => "frontier",
            _ => "",
        };
        rows.push(row(chosen(report, &point.knobs), point, limit.into(), note));
    }
    align(&rows, &WORDS)
}

fn row(name: String, point: &Point, limit: String, note: &str) -> [String; 8] {
    let end = |ns: Option<u64>| ns.map_or("?".into(), us);
    [
        name,
        us(point.tail_ns),
        end(point.tail_ns_min),
        end(point.tail_ns_max),
        point.samples.to_string(),
        format!("{:.2}", point.mib_s),
        limit,
        note.into(),
    ]
}

/// The knobs for which there is a choice.
fn chosen(report: &Report, knobs: &Knobs) -> String {
    let has_choice = |name: &str| report.knobs.get(name).is_some_and(|values| values.len() > 1);
    let chosen = knobs.iter().filter(|(name, _)| has_choice(name));
    chosen.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

fn samples(report: &Report) -> String {
    let confidence = &report.confidence;
    let (percent, tail) = (confidence.percent, report.goal.quantile_percent);
    let measured = format!("{} of {} candidates measured", report.points.len(), report.candidates);
    match confidence.is_enough {
        true => format!("{measured}; from, to: {percent} % interval of the p{tail}\n"),
        false => format!(
            "{measured}\ntoo few samples: the p{tail} needs {} for a {percent} % interval\n",
            confidence.samples_needed
        ),
    }
}

fn picked(report: &Report) -> String {
    let Some(pick) = &report.pick else {
        return nearest(report);
    };
    let set = if pick.is_applied { "set:" } else { "to set it:" };
    let uncertainty = match report.picked_or_nearest().and_then(|point| point.is_certain) {
        Some(false) => " (uncertain: its interval and the limit's overlap)",
        _ => "",
    };
    let mut text = format!("pick: {}{uncertainty}; {set}\n", chosen(report, &pick.knobs));
    for command in &pick.commands {
        text += &format!("  {command}\n");
    }
    text
}

/// The output if no candidate was chosen.
fn nearest(report: &Report) -> String {
    let Some(point) = report.picked_or_nearest() else { return String::new() };
    let value = match report.goal.tail_ns_max {
        Some(_) => format!("{} us", us(point.tail_ns)),
        None => format!("{:.2} MiB/s", point.mib_s),
    };
    let name = chosen(report, &point.knobs);
    format!("no pick: no measured candidate keeps the limit; nearest: {name}, {value}\n")
}
