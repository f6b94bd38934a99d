// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model's results for each entry of a spans file, which `steady model` prints.

use serde::Serialize;

use super::pipeline::{Queue, Stages, mib_s};
use super::spans::{Entry, Op, Span, Spans};

/// Schema of the JSON output.
pub const MODEL_SCHEMA: &str = "steadyio.model/1";

/// The assumption of the limits, which spans cannot confirm.
pub const ASSUMED: &str = "each stage serves one request at a time";

/// The overlap of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overlap {
    /// None: one thread, one request at a time.
    SingleThread,
    /// The device overlaps the software of other requests.
    OneCore,
    /// All stages overlap.
    ManyCores,
}

impl Overlap {
    fn request_ns(self, stages: Stages) -> u64 {
        match self {
            Overlap::SingleThread => stages.total_ns(),
            Overlap::OneCore => stages.one_core_ns(),
            Overlap::ManyCores => stages.many_cores_ns(),
        }
    }
}

/// The model's results for one kind of request. A speed is None if nothing limits it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    pub name: String,
    pub op: Option<Op>,
    pub size_bytes: u64,
    pub count: Option<u64>,
    /// The entry's spans, in order.
    pub spans: Vec<SpanTime>,
    /// The sum of all spans.
    pub total_us: f64,
    /// The share of request-pre and request-post.
    pub software_percent: f64,
    /// The limits of speeds if [`ASSUMED`] is true.
    pub limits_mib_s: Limits,
    pub measured_mib_s: Option<f64>,
    /// Whether the measured speed is above the limit on many cores, so that [`ASSUMED`] is false.
    pub exceeds_limits: bool,
    /// The time for a number of requests.
    pub queue: QueueTimes,
    /// The effect of halving each span, the most useful first.
    pub halved: Vec<Halved>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SpanTime {
    pub span: Span,
    pub us: f64,
}

/// Speeds in MiB/s.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Limits {
    /// One request at a time.
    pub single_thread: Option<f64>,
    /// One request at a time, or many on one core, on an infinitely fast device.
    pub no_device: Option<f64>,
    /// Many requests, one core.
    pub one_core: Option<f64>,
    /// Many requests, a core for each software stage.
    pub many_cores: Option<f64>,
    /// The same on an infinitely fast device.
    pub many_cores_no_device: Option<f64>,
}

/// The time for N requests.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct QueueTimes {
    pub requests: u64,
    /// The highest number in flight.
    pub depth: u64,
    /// The smallest depth with the full speed on many cores.
    pub depth_enough: u64,
    pub one_core: QueueTime,
    /// With a core for each software stage.
    pub many_cores: QueueTime,
}

/// The time for N requests in one case.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct QueueTime {
    /// The time from the start of the first to the end of the last.
    pub us: f64,
    /// The speed of N requests in that time.
    pub mib_s: Option<f64>,
}

/// The effect of halving one span.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Halved {
    pub span: Span,
    /// The time before it is halved.
    pub us: f64,
    pub single_thread: Gain,
    pub one_core: Gain,
    pub many_cores: Gain,
}

/// A speed, and its gain.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Gain {
    /// The new limit.
    pub mib_s: Option<f64>,
    /// The gain; 0 if the span does not limit.
    pub gain_percent: Option<f64>,
}

impl Halved {
    /// The gain for this overlap.
    pub fn gain(&self, overlap: Overlap) -> Gain {
        match overlap {
            Overlap::SingleThread => self.single_thread,
            Overlap::OneCore => self.one_core,
            Overlap::ManyCores => self.many_cores,
        }
    }
}

/// Applies the model. `rank` is the overlap by whose gain halved spans are sorted.
pub fn predict(entry: &Entry, queue: Queue, rank: Overlap) -> Prediction {
    let stages = entry.spans.stages();
    let limits_mib_s = limits(entry.size_bytes, stages);
    let exceeds_limits =
        entry.measured_mib_s.zip(limits_mib_s.many_cores).is_some_and(|(is, most)| is > most);
    Prediction {
        name: entry.name.clone(),
        op: entry.op,
        size_bytes: entry.size_bytes,
        count: entry.count,
        spans: entry.spans.iter().map(|(span, ns)| SpanTime { span, us: us(ns) }).collect(),
        total_us: us(stages.total_ns()),
        software_percent: software_percent(stages),
        limits_mib_s,
        measured_mib_s: entry.measured_mib_s,
        exceeds_limits,
        queue: queue_times(entry.size_bytes, stages, queue),
        halved: halved(entry, rank),
    }
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1_000.0
}

/// The e.MMC analysis paper's "software system overhead".
pub fn software_percent(stages: Stages) -> f64 {
    100.0 * stages.software_ns() as f64 / stages.total_ns() as f64
}

pub fn limits(size_bytes: u64, stages: Stages) -> Limits {
    let speed = |request_ns| mib_s(size_bytes, 1, request_ns);
    Limits {
        single_thread: speed(stages.total_ns()),
        no_device: speed(stages.without_device().total_ns()),
        one_core: speed(stages.one_core_ns()),
        many_cores: speed(stages.many_cores_ns()),
        many_cores_no_device: speed(stages.without_device().many_cores_ns()),
    }
}

fn queue_times(size_bytes: u64, stages: Stages, queue: Queue) -> QueueTimes {
    let time = |ns| QueueTime { us: us(ns), mib_s: mib_s(size_bytes, queue.requests(), ns) };
    QueueTimes {
        requests: queue.requests(),
        depth: queue.depth(),
        depth_enough: stages.depth_enough(),
        one_core: time(stages.one_core_queue_ns(queue)),
        many_cores: time(stages.many_cores_queue_ns(queue)),
    }
}

/// The spans with one of them halved, to the ns.
pub fn with_half(spans: &Spans, half: Span) -> Spans {
    spans.map(|span, ns| if span == half { ns / 2 } else { ns })
}

/// The limit with one span halved.
pub fn gain(size_bytes: u64, spans: &Spans, half: Span, overlap: Overlap) -> Gain {
    let before_ns = overlap.request_ns(spans.stages());
    let after_ns = overlap.request_ns(with_half(spans, half).stages());
    Gain {
        mib_s: mib_s(size_bytes, 1, after_ns),
        gain_percent: (after_ns > 0)
            .then(|| 100.0 * (before_ns - after_ns) as f64 / after_ns as f64),
    }
}

fn halved(entry: &Entry, rank: Overlap) -> Vec<Halved> {
    let gain = |span, overlap| gain(entry.size_bytes, &entry.spans, span, overlap);
    let halve = |(span, ns)| Halved {
        span,
        us: us(ns),
        single_thread: gain(span, Overlap::SingleThread),
        one_core: gain(span, Overlap::OneCore),
        many_cores: gain(span, Overlap::ManyCores),
    };
    let mut halved: Vec<Halved> = entry.spans.iter().map(halve).collect();
    // With no time left the gain is unlimited, so it comes first.
    let key = |halved: &Halved| halved.gain(rank).gain_percent.unwrap_or(f64::INFINITY);
    halved.sort_by(|one, other| key(other).total_cmp(&key(one)).then(other.us.total_cmp(&one.us)));
    halved
}
