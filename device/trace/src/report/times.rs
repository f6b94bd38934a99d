// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the time of many I/Os or requests went: the e.MMC analysis paper's spans, and the finer steps.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::distribution::{Bin, Distribution, histogram, one_decimal};
use super::steps::{self, Step};
use crate::io::{Io, Request, Spans, Trace};

/// The e.MMC analysis paper's spans in order, as they are called in records and tables.
pub const SPANS: [&str; 4] = ["submission", "block", "device", "post"];
/// Which of them is not software.
const DEVICE: usize = 2;

/// Where the time of several went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Times {
    pub count: u64,
    pub bytes: u64,
    pub total: Distribution,
    /// Of the whole.
    #[serde(default)]
    pub histogram: Vec<Bin>,
    /// The share of all but the device in the sum of all times.
    pub software_percent: f64,
    /// Each span; requests have no submission.
    pub spans: Vec<SpanTimes>,
    /// The finer spans; each over those that have it.
    pub steps: Vec<StepTimes>,
}

/// One span of several I/Os.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpanTimes {
    pub span: String,
    /// Its share in the sum of all times.
    pub share_percent: f64,
    /// Over all I/Os.
    #[serde(flatten)]
    pub times: Distribution,
}

/// One finer span, over the requests or I/Os that have it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepTimes {
    /// From which mark to which.
    pub step: String,
    /// Over those that have it.
    #[serde(flatten)]
    pub times: Distribution,
}

/// The times of one I/O or request.
pub struct Sample {
    /// In the order of [`SPANS`]; the first only counts for an I/O.
    spans_ns: [u64; 4],
    is_io: bool,
    steps: Vec<(Step, u64)>,
}

impl Sample {
    /// Of an I/O with its requests.
    pub fn of_io(io: &Io, trace: &Trace) -> Sample {
        let own = io.requests.iter().map(|index| &trace.requests[*index]);
        let inside = own.flat_map(|request| steps::of_request(&request.marks));
        let steps = inside.chain(steps::around_requests(io, trace)).collect();
        Sample { spans_ns: in_order(&io.spans), is_io: true, steps }
    }

    /// Of a request on its own.
    pub fn of_request(request: &Request) -> Sample {
        let spans_ns = in_order(&request.spans());
        Sample { spans_ns, is_io: false, steps: steps::of_request(&request.marks) }
    }
}

pub fn in_order(spans: &Spans) -> [u64; 4] {
    [spans.submission_ns, spans.block_ns, spans.device_ns, spans.post_ns]
}

impl Times {
    /// Of I/Os or requests, each with its bytes; `None` if there are none.
    pub fn of(samples: impl Iterator<Item = (u64, Sample)>) -> Option<Times> {
        let mut total_ns = Vec::new();
        let mut spans_ns: [Vec<u64>; 4] = Default::default();
        let mut steps: BTreeMap<Step, Vec<u64>> = BTreeMap::new();
        let (mut bytes, mut first) = (0, SPANS.len());
        for (moved, sample) in samples {
            bytes += moved;
            first = first.min(usize::from(!sample.is_io));
            total_ns.push(sample.spans_ns.iter().sum());
            for (all, ns) in spans_ns.iter_mut().zip(sample.spans_ns) {
                all.push(ns);
            }
            for (step, ns) in sample.steps {
                steps.entry(step).or_default().push(ns);
            }
        }
        let sum_ns = sum(&total_ns);
        let percent =
            |part: f64| if sum_ns > 0.0 { one_decimal(part * 100.0 / sum_ns) } else { 0.0 };
        let software_percent = percent(sum_ns - sum(&spans_ns[DEVICE]));
        let span = |(span, times_ns): (&str, Vec<u64>)| {
            let share_percent = percent(sum(&times_ns));
            let times = Distribution::of(times_ns)?;
            Some(SpanTimes { span: span.into(), share_percent, times })
        };
        let step = |(step, times_ns): (Step, Vec<u64>)| {
            Some(StepTimes { step: step.to_string(), times: Distribution::of(times_ns)? })
        };
        Some(Times {
            count: total_ns.len() as u64,
            bytes,
            histogram: histogram(&total_ns),
            total: Distribution::of(total_ns)?,
            software_percent,
            spans: SPANS.into_iter().zip(spans_ns).skip(first).filter_map(span).collect(),
            steps: steps.into_iter().filter_map(step).collect(),
        })
    }

    /// The figures of one of [`SPANS`].
    pub fn span(&self, name: &str) -> Option<&SpanTimes> {
        self.spans.iter().find(|times| times.span == name)
    }
}

fn sum(times_ns: &[u64]) -> f64 {
    times_ns.iter().map(|ns| u128::from(*ns)).sum::<u128>() as f64
}
