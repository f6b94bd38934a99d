// SPDX-License-Identifier: MIT OR Apache-2.0
//! Statistics of the time that many I/Os or requests spent in each part of their path. The parts
//! are the e.MMC analysis paper's spans, and the finer steps: the time from each mark to the next.
//! `groups` and `record` use it.
//!
//! A mark may have no event, or the request may not pass it (without a scheduler). Then one step
//! leads from the mark before it to the mark after it, so the steps always add up.

use serde::{Deserialize, Serialize};

use super::by_key;
use super::distribution::{Bin, Distribution, histogram, one_decimal};
use super::rows::Item;

/// The e.MMC analysis paper's spans in order, with their names in records and tables.
pub const SPANS: [&str; 4] = ["submission", "block", "device", "post"];

/// The points of an I/O's path; between its call and its return each [`Mark`](crate::io::Mark).
const POINTS: [&str; 9] =
    ["call", "queue", "tag", "insert", "issue", "hardware", "hardware", "completion", "return"];
/// blktrace's letters for these points.
const BTT: [Option<&str>; 9] =
    [None, Some("Q"), Some("G"), Some("I"), Some("D"), None, None, Some("C"), None];
const HARDWARE_START: usize = 5;
const HARDWARE_DONE: usize = 6;

/// Statistics of several I/Os' or requests' times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Times {
    pub count: u64,
    pub bytes: u64,
    pub total: Distribution,
    /// The histogram of the whole times.
    #[serde(default)]
    pub histogram: Vec<Bin>,
    /// The share of all spans but the device in the sum of all times.
    pub software_percent: f64,
    /// Each span; requests have no submission.
    pub spans: Vec<SpanTimes>,
    /// The finer steps. Each counts the items that have it.
    pub steps: Vec<StepTimes>,
}

/// Statistics of one span of several I/Os.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpanTimes {
    pub span: String,
    /// The span's share in the sum of all times.
    pub share_percent: f64,
    #[serde(flatten)]
    pub times: Distribution,
}

/// Statistics of one finer step, over the requests or I/Os that have it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepTimes {
    /// The first and the last mark.
    pub step: String,
    #[serde(flatten)]
    pub times: Distribution,
}

impl Times {
    /// The statistics of I/Os or requests; `None` if there are none.
    pub fn of(items: &[&Item]) -> Option<Times> {
        let total_ns: Vec<u64> = items.iter().map(|item| item.row.total_ns).collect();
        let sum_ns: u64 = total_ns.iter().sum();
        let percent = |ns: u64| one_decimal(ns as f64 * 100.0 / sum_ns.max(1) as f64);
        let device_ns: u64 = items.iter().filter_map(|item| item.row.device_ns).sum();
        let span = |(number, span): (usize, &str)| {
            let of_items = items.iter().filter_map(|item| item.row.spans_ns()[number]);
            let share_percent = percent(of_items.clone().sum());
            let times = Distribution::of(of_items.collect())?;
            Some(SpanTimes { span: span.into(), share_percent, times })
        };
        let step = |(step, times_ns)| {
            Some(StepTimes { step: step_name(step), times: Distribution::of(times_ns)? })
        };
        let steps = by_key(items.iter().flat_map(|item| steps(item)));
        Some(Times {
            count: items.len() as u64,
            bytes: items.iter().filter_map(|item| item.row.bytes).sum(),
            histogram: histogram(&total_ns),
            total: Distribution::of(total_ns)?,
            software_percent: percent(sum_ns - device_ns),
            spans: SPANS.into_iter().enumerate().filter_map(span).collect(),
            steps: steps.into_iter().filter_map(step).collect(),
        })
    }

    /// The statistics of one of [`SPANS`].
    pub fn span(&self, name: &str) -> Option<&SpanTimes> {
        self.spans.iter().find(|times| times.span == name)
    }
}

impl StepTimes {
    /// btt's name of the step, such as Q2G; `None` if blktrace does not see it.
    pub fn btt(&self) -> Option<String> {
        let (from, to) = self.step.split_once("->")?;
        let letter = |name| BTT[POINTS.iter().position(|point| *point == name)?];
        Some(format!("{}2{}", letter(from)?, letter(to)?))
    }
}

/// Two indices of [`POINTS`].
type Step = (usize, usize);

/// The steps of an I/O or request, with their times in ns. An I/O whose request ends after the
/// return lacks some.
fn steps(item: &Item) -> Vec<(Step, u64)> {
    let mut steps = Vec::new();
    for request in &item.own {
        let points = (1..).zip(request.marks.0);
        let passed: Vec<(usize, u64)> = points.filter_map(|(at, ns)| Some((at, ns?))).collect();
        let step =
            |pair: &[(usize, u64)]| ((pair[0].0, pair[1].0), pair[1].1.saturating_sub(pair[0].1));
        steps.extend(passed.windows(2).map(step));
    }
    if item.row.kind == "io" {
        let (entered_ns, exited_ns) = item.during_ns();
        let first_ns = item.own.iter().map(|request| request.begin_ns()).min();
        let last_ns = item.own.iter().map(|request| request.end_ns()).max();
        let before = first_ns.and_then(|ns| ns.checked_sub(entered_ns));
        let behind = last_ns.and_then(|ns| exited_ns.checked_sub(ns));
        steps.extend(before.map(|ns| ((0, 1), ns)));
        steps.extend(behind.map(|ns| ((POINTS.len() - 2, POINTS.len() - 1), ns)));
    }
    steps
}

fn step_name((from, to): Step) -> String {
    match (from, to) {
        (HARDWARE_START, HARDWARE_DONE) => "hardware".into(),
        (HARDWARE_START, to) => format!("hardware start->{}", POINTS[to]),
        (from, to) => format!("{}->{}", POINTS[from], POINTS[to]),
    }
}
