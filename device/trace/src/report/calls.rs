// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls that queued no request of their own, and what they waited for.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::distribution::Distribution;
use super::steps::end_ns;
use super::words::call_op;
use crate::io::{CallWithoutRequest, Origin, Trace};

/// Calls of one kind that waited for the same.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallGroup {
    /// `read`, `write`, or the name of another call.
    pub op: &'static str,
    /// `journal`: a commit; `dirty_throttling`: a pause of a writer; `readahead`: a request that this thread had
    /// queued before; `unknown`: another request, a lock or the CPU, or it did not wait.
    pub waited_for: &'static str,
    /// Of all of them together, in ns.
    pub sum_ns: u64,
    #[serde(flatten)]
    pub times: Distribution,
}

/// Groups of those that `is_shown`, the longest sum first.
pub fn groups(trace: &Trace, is_shown: impl Fn(&CallWithoutRequest) -> bool) -> Vec<CallGroup> {
    let waits = Waits::of(trace);
    let mut times_ns: BTreeMap<(&str, &str), Vec<u64>> = BTreeMap::new();
    for call in trace.calls_without_request.iter().filter(|call| is_shown(call)) {
        let key = (call_op(call.call), waits.word(call));
        times_ns.entry(key).or_default().push(call.exited_ns.saturating_sub(call.entered_ns));
    }
    let group = |((op, waited_for), times_ns): ((&'static str, &'static str), Vec<u64>)| {
        let sum_ns = times_ns.iter().sum();
        Some(CallGroup { op, waited_for, sum_ns, times: Distribution::of(times_ns)? })
    };
    let mut groups: Vec<CallGroup> = times_ns.into_iter().filter_map(group).collect();
    groups.sort_by_key(|group| Reverse(group.sum_ns));
    groups
}

/// When what a thread may wait for ended or began, by thread, sorted.
struct Waits {
    readahead_ended_ns: HashMap<u32, Vec<u64>>,
    pauses_begun_ns: HashMap<u32, Vec<u64>>,
}

impl Waits {
    fn of(trace: &Trace) -> Waits {
        let ahead = trace.requests.iter().filter(|of| matches!(of.origin, Origin::Readahead(_)));
        let pauses = trace.dirty_pauses.iter().map(|pause| (pause.pid, pause.begin_ns));
        Waits {
            readahead_ended_ns: by_thread(ahead.map(|request| (request.pid, end_ns(request)))),
            pauses_begun_ns: by_thread(pauses),
        }
    }

    fn word(&self, call: &CallWithoutRequest) -> &'static str {
        let is_in_call = |times_ns: &HashMap<u32, Vec<u64>>| {
            times_ns.get(&call.pid).is_some_and(|times_ns| {
                let next = times_ns.partition_point(|ns| *ns < call.entered_ns);
                times_ns.get(next).is_some_and(|ns| *ns <= call.exited_ns)
            })
        };
        if call.has_commit {
            "journal"
        } else if is_in_call(&self.pauses_begun_ns) {
            "dirty_throttling"
        } else if call.call.is_read() && is_in_call(&self.readahead_ended_ns) {
            "readahead"
        } else {
            "unknown"
        }
    }
}

fn by_thread(times: impl Iterator<Item = (u32, u64)>) -> HashMap<u32, Vec<u64>> {
    let mut found: HashMap<u32, Vec<u64>> = HashMap::new();
    for (pid, ns) in times {
        found.entry(pid).or_default().push(ns);
    }
    found.values_mut().for_each(|times_ns| times_ns.sort_unstable());
    found
}
