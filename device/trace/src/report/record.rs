// SPDX-License-Identifier: MIT OR Apache-2.0
//! The record of a trace, which `steady trace` prints as tables or JSON.

use std::collections::BTreeMap;

use serde::Serialize;
use steadyio_core::kernel::Kernel;

use super::calls::{self, CallGroup, CallSum, CallsOf, Whose, WorstCall};
use super::case::Causes;
use super::groups::{Group, groups};
use super::question::Scope;
use super::rows::Item;
use super::shown::Shown;
use super::times::Times;
use super::words::device_name;
use super::worst::{Worst, worst};
use crate::io::{Coverage, Io, Missing, Unmatched};
use crate::source::Problems;

pub const TRACE_SCHEMA: &str = "steadyio.trace/1";

/// The record. Times are in ns.
#[derive(Debug, Serialize)]
pub struct Record {
    schema: &'static str,
    tool: BTreeMap<&'static str, &'static str>,
    kernel: Option<Kernel>,
    /// The selection that is shown, if not everything is.
    pub scope: Scope,
    pub account: CoverageReport,
    pub missing: Vec<Missing>,
    /// I/Os of system calls, per operation and size.
    pub ios: Vec<Group>,
    /// Requests outside system calls.
    pub requests: Vec<Group>,
    /// Flushes and discards of any origin.
    pub flushes_and_discards: Vec<Group>,
    /// The total duration of all these calls, and the reasons of their waits.
    pub calls: Vec<CallSum>,
    /// The same calls, by thread.
    pub threads: Vec<CallsOf>,
    /// The same calls by process, as far as events show the process of a thread.
    pub processes: Vec<CallsOf>,
    /// The same calls by cgroup, as far as known.
    pub cgroups: Vec<CallsOf>,
    /// Calls that name a file descriptor, by file, or else by process and descriptor.
    pub files: Vec<CallsOf>,
    /// Calls without a request of their own: those of the requested processes, or all if no device
    /// was requested.
    pub calls_without_request: Vec<CallGroup>,
    /// The same I/Os and requests per I/O priority class; empty if events do not carry it.
    pub classes: Vec<ClassTimes>,
    pub worst_ios: Vec<Worst>,
    /// The longest of `calls_without_request`.
    pub worst_calls: Vec<WorstCall>,
    pub worst_requests: Vec<Worst>,
}

/// The number of events and requests, by outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CoverageReport {
    #[serde(flatten)]
    pub of_trace: Coverage,
    /// The number of events of unused kinds.
    pub events_skipped: u64,
    pub unmatched_first: Vec<Unmatched>,
    pub unread: Problems,
}

/// I/Os or requests of one I/O priority class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassTimes {
    /// `rt`, `be`, `idle` or `none` (not set).
    pub class: &'static str,
    /// `ios`, or `requests` outside system calls.
    pub of: &'static str,
    #[serde(flatten)]
    pub times: Times,
}

impl Record {
    pub fn new(shown: &Shown) -> Record {
        let (trace, question) = (shown.waiting.trace, shown.question);
        let (ios, requests) = (groups(&shown.ios), groups(&shown.requests));
        let causes = Causes::new(&shown.waiting);
        let process = |pid| trace.processes.of(pid);
        let file = |io: &Io| match io.file {
            Some(file) => Some(Whose::File(file)),
            None => Some(Whose::Fd(process(io.pid), io.fd?)),
        };
        let unmatched = trace.account.unmatched.iter().map(|request| Unmatched {
            device: device_name(&question.names, request.dev),
            ..request.clone()
        });
        Record {
            schema: TRACE_SCHEMA,
            tool: BTreeMap::from([("steady", env!("CARGO_PKG_VERSION"))]),
            worst_ios: worst(&shown.ios, &ios, &causes, question),
            worst_requests: worst(&shown.requests, &requests, &causes, question),
            worst_calls: calls::worst(shown, question.worst),
            ios,
            requests,
            flushes_and_discards: groups(&shown.flushes_and_discards),
            calls: calls::sums(shown),
            threads: calls::of_threads(shown),
            processes: calls::of(shown, |io| Some(Whose::Pid(process(io.pid)))),
            cgroups: calls::of(shown, |io| Some(Whose::Cgroup(trace.processes.cgroup(io.pid)?))),
            files: calls::of(shown, file),
            calls_without_request: calls::groups(&shown.calls),
            classes: classes(shown),
            scope: shown.scope.clone(),
            account: CoverageReport {
                of_trace: trace.account.clone(),
                events_skipped: question.skipped,
                unmatched_first: unmatched.collect(),
                unread: question.problems.clone(),
            },
            missing: trace.missing.clone(),
            kernel: question.kernel.clone(),
        }
    }

    pub fn to_json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Whether events were lost or unreadable, or requests are unmatched.
    pub fn is_flawed(&self) -> bool {
        let Coverage { events_lost, hit_by_loss, unmatched_count, .. } = self.account.of_trace;
        [events_lost, hit_by_loss, unmatched_count, self.account.unread.count] != [0; 4]
    }
}

/// The classes, real-time first.
fn classes(shown: &Shown) -> Vec<ClassTimes> {
    let times = |class: &'static str, of: &'static str, items: &[Item]| {
        let own: Vec<&Item> = items.iter().filter(|item| item.row.class == Some(class)).collect();
        Some(ClassTimes { class, of, times: Times::of(&own)? })
    };
    let of_class =
        |class| [times(class, "ios", &shown.ios), times(class, "requests", &shown.requests)];
    ["rt", "be", "idle", "none"].into_iter().flat_map(of_class).flatten().collect()
}
