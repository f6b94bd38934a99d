// SPDX-License-Identifier: MIT OR Apache-2.0
//! The record of a trace.

use std::collections::BTreeMap;

use serde::Serialize;
use steadyio_core::kernel::Kernel;

use super::calls::{CallGroup, CallSum, Calls, WorstCall};
use super::case::ByEnd;
use super::groups::{self, Group};
use super::medians::DeviceMedians;
use super::sums::{CallsOf, Sums};
use super::times::{Sample, Times};
use super::words::{class_word, op_word};
use super::worst::{Search, Worst};
use crate::event::{Dev, OpKind};
use crate::io::{CallWithoutRequest, Coverage, Missing, Origin, Request, Trace};
use crate::source::capture::devices::Stack;
use crate::source::capture::threads::AskedFor;

/// The record's schema.
pub const TRACE_SCHEMA: &str = "steadyio.trace/1";

/// What is asked of a trace.
#[derive(Debug, Default)]
pub struct Question {
    /// How many of the worst are wanted, of I/Os and of other requests.
    pub worst: usize,
    /// Only I/Os and requests of these threads are shown; the others still count as causes. `None`: all.
    pub asked_for: Option<AskedFor>,
    /// Only I/Os and requests of this device are shown; the others still count as causes. `None`: all.
    pub device: Option<Stack>,
    /// What devices are called, if that is known.
    pub names: BTreeMap<Dev, String>,
    /// The kernel that was traced, if that is known.
    pub kernel: Option<Kernel>,
    /// Parse errors.
    pub problems: Unread,
    /// Events of kinds that are not used.
    pub skipped: u64,
}

impl Question {
    /// Which I/Os and requests are shown.
    pub fn shown(&self, trace: &Trace) -> Shown {
        Shown::of(trace, self)
    }

    /// Which calls without a request of their own are shown, as indices into the trace. Events do not tell which device
    /// such a call is about; of processes that nobody asked for it would be about any.
    pub fn calls_shown(&self, trace: &Trace) -> Vec<usize> {
        let is_shown = |call: &CallWithoutRequest| match &self.asked_for {
            Some(threads) => threads.includes(call.pid, call.entered_ns),
            None => self.device.is_none(),
        };
        let calls = trace.calls_without_request.iter().enumerate();
        calls.filter(|(_, call)| is_shown(call)).map(|(index, _)| index).collect()
    }
}

/// Parse errors of the sources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Unread {
    pub count: u64,
    /// The first of them, in words.
    pub first: Vec<String>,
}

/// The record. Times are in ns.
#[derive(Debug, Serialize)]
pub struct Record {
    schema: &'static str,
    tool: Tool,
    kernel: Option<Kernel>,
    /// What is shown of it, if not all.
    pub scope: Scope,
    /// How complete the trace is.
    pub account: CoverageReport,
    /// Events that the trace lacks.
    pub missing: Vec<Missing>,
    /// I/Os of system calls, per operation and size.
    pub ios: Vec<Group>,
    /// Requests outside system calls.
    pub requests: Vec<Group>,
    /// Flushes and discards of any origin.
    pub flushes_and_discards: Vec<Group>,
    /// How long all of these calls took together, and what they waited for.
    pub calls: Vec<CallSum>,
    /// The same calls, by thread.
    pub threads: Vec<CallsOf>,
    /// By process, as far as events tell of which process a thread is.
    pub processes: Vec<CallsOf>,
    /// Those that name a file descriptor, by process and that.
    pub files: Vec<CallsOf>,
    /// Calls that queued no request of their own; of processes that were asked for, or of all if no device was.
    pub calls_without_request: Vec<CallGroup>,
    /// The same I/Os and requests per I/O priority class; empty if events do not carry it.
    pub classes: Vec<ClassTimes>,
    /// I/Os that took longest.
    pub worst_ios: Vec<Worst>,
    /// Calls of `calls_without_request` that took longest.
    pub worst_calls: Vec<WorstCall>,
    /// Requests of `requests` that took longest.
    pub worst_requests: Vec<Worst>,
}

#[derive(Clone, Debug, Serialize)]
struct Tool {
    steady: &'static str,
}

/// What is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Scope {
    /// Whether only some processes are shown.
    pub processes: &'static str,
    /// I/Os that are not shown.
    pub ios_hidden: u64,
    /// Requests outside system calls that are not shown.
    pub requests_hidden: u64,
}

/// Where every event and request went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CoverageReport {
    #[serde(flatten)]
    pub of_trace: Coverage,
    /// Further events, of kinds that are not used.
    pub events_skipped: u64,
    pub unmatched_first: Vec<UnmatchedRequest>,
    /// Parse errors.
    pub unread: Unread,
}

/// A request that is not matched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnmatchedRequest {
    /// When its last event was.
    pub at_ns: u64,
    /// The device's name, or major:minor.
    pub device: String,
    /// First sector, in units of 512 bytes.
    pub sector: u64,
    pub op: &'static str,
    pub why: &'static str,
}

/// I/Os or requests of one I/O priority class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassTimes {
    /// `rt`, `be`, `idle` or `none` (not set).
    pub class: &'static str,
    /// `ios`, or `requests` outside system calls.
    pub of: &'static str,
    /// Where their time went.
    #[serde(flatten)]
    pub times: Times,
}

impl Record {
    /// Answers the question from the trace.
    pub fn new(trace: &Trace, question: Question) -> Record {
        let shown = Shown::of(trace, &question);
        let names = &question.names;
        let name = |dev: Dev| names.get(&dev).cloned().unwrap_or_else(|| dev.to_string());
        let ios = groups::ios(trace, &shown.ios, names);
        let requests = groups::requests(trace, &shown.requests, names);
        let flushes_and_discards = groups::requests(trace, &shown.flushes_and_discards, names);
        let others = question.calls_shown(trace);
        let calls = Calls::new(trace, &shown.ios, &others);
        let sums = Sums { trace, ios: &shown.ios, others: &others };
        let medians = DeviceMedians::of_trace(trace);
        let (medians, by_end) = (&medians, &ByEnd::of(trace));
        let search = Search { trace, medians, by_end, count: question.worst, name: &name };
        Record {
            schema: TRACE_SCHEMA,
            tool: Tool { steady: env!("CARGO_PKG_VERSION") },
            scope: shown.scope(trace, &question),
            account: account(trace, question.problems, question.skipped, name),
            missing: trace.missing.clone(),
            worst_ios: search.ios(&shown.ios, &ios),
            worst_requests: search.requests(&shown.requests, &requests),
            classes: classes(trace, &shown),
            ios: ios.groups,
            requests: requests.groups,
            flushes_and_discards: flushes_and_discards.groups,
            calls: calls.sums(),
            threads: sums.by_thread(),
            processes: sums.by_process(),
            files: sums.by_file(),
            calls_without_request: calls.groups(),
            worst_calls: calls.worst(question.worst),
            kernel: question.kernel,
        }
    }

    /// As a document.
    pub fn to_json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Events were lost or unreadable, or requests are unmatched.
    pub fn is_flawed(&self) -> bool {
        let Coverage { events_lost, hit_by_loss, unmatched_count, .. } = self.account.of_trace;
        let lost = events_lost + hit_by_loss + unmatched_count;
        lost > 0 || self.account.unread.count > 0
    }
}

/// What is shown, as indices into the trace.
pub struct Shown {
    pub ios: Vec<usize>,
    /// Of no I/O, no flushes, no discards.
    pub requests: Vec<usize>,
    pub flushes_and_discards: Vec<usize>,
}

impl Shown {
    fn of(trace: &Trace, question: &Question) -> Shown {
        let asked_for = question.asked_for.as_ref();
        let thread =
            |pid: u32, time_ns: u64| asked_for.is_none_or(|threads| threads.includes(pid, time_ns));
        let of_device =
            |request: &Request| question.device.as_ref().is_none_or(|it| it.has(request));
        let requests_of = |io: usize| trace.ios[io].requests.iter().map(|of| &trace.requests[*of]);
        let of_asker = |io: usize| thread(trace.ios[io].pid, trace.ios[io].entered_ns);
        let io = |io: &usize| of_asker(*io) && requests_of(*io).any(of_device);
        let was_asked_for = |request: &Request| match request.origin {
            Origin::Io(io) => of_asker(io),
            _ => thread(request.pid, request.begin_ns()),
        };
        let request = |index: &usize| {
            let request = &trace.requests[*index];
            of_device(request) && was_asked_for(request)
        };
        let all = (0..trace.requests.len()).filter(request);
        let (flushes_and_discards, data): (Vec<usize>, Vec<usize>) =
            all.partition(|index| is_flush_or_discard(&trace.requests[*index]));
        let of_no_io = |index: &usize| !matches!(trace.requests[*index].origin, Origin::Io(_));
        Shown {
            ios: (0..trace.ios.len()).filter(io).collect(),
            requests: data.into_iter().filter(of_no_io).collect(),
            flushes_and_discards,
        }
    }

    fn scope(&self, trace: &Trace, question: &Question) -> Scope {
        let of_no_io = |request: &&Request| {
            !matches!(request.origin, Origin::Io(_)) && !is_flush_or_discard(request)
        };
        let requests = trace.requests.iter().filter(of_no_io).count();
        Scope {
            processes: if question.asked_for.is_some() { "traced" } else { "all" },
            ios_hidden: (trace.ios.len() - self.ios.len()) as u64,
            requests_hidden: (requests - self.requests.len()) as u64,
        }
    }
}

fn is_flush_or_discard(request: &Request) -> bool {
    matches!(request.op.kind, OpKind::Flush | OpKind::Discard)
}

fn classes(trace: &Trace, shown: &Shown) -> Vec<ClassTimes> {
    let mut samples: BTreeMap<(&str, &str), Vec<(u64, Sample)>> = BTreeMap::new();
    for io in shown.ios.iter().map(|index| &trace.ios[*index]) {
        let class = io.requests.first().and_then(|index| class_word(&trace.requests[*index]));
        let Some(class) = class else { continue };
        samples.entry((class, "ios")).or_default().push((io.bytes, Sample::of_io(io, trace)));
    }
    for request in shown.requests.iter().map(|index| &trace.requests[*index]) {
        let Some(class) = class_word(request) else { continue };
        let sample = (request.bytes, Sample::of_request(request));
        samples.entry((class, "requests")).or_default().push(sample);
    }
    // Real-time first.
    let order = ["rt", "be", "idle", "none"];
    let found = order.into_iter().flat_map(|class| [(class, "ios"), (class, "requests")]);
    let times = |(class, of)| {
        let times = Times::of(samples.remove(&(class, of))?.into_iter())?;
        Some(ClassTimes { class, of, times })
    };
    found.filter_map(times).collect()
}

fn account(
    trace: &Trace,
    unread: Unread,
    events_skipped: u64,
    name: impl Fn(Dev) -> String,
) -> CoverageReport {
    let from = &trace.account;
    let unmatched = from.unmatched.iter().map(|request| UnmatchedRequest {
        at_ns: request.time_ns,
        device: name(request.dev),
        sector: request.sector,
        op: op_word(request.op.kind),
        why: request.why,
    });
    let (of_trace, unmatched_first) = (from.clone(), unmatched.collect());
    CoverageReport { of_trace, events_skipped, unmatched_first, unread }
}
