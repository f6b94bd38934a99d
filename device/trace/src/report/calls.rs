// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long calls took, and what they waited for: all of them, and those that queued no request of their own.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::distribution::Distribution;
use super::groups::size_text;
use super::thread_time::{Woken, context_word};
use super::waiting::{Wait, WaitedFor, Waiting, length, most};
use super::words::{behalf, by, call_op, count, inode, op_word, origin_word, thread, us};
use crate::io::{CallWithoutRequest, Trace};

/// All calls of one name, those with requests of their own too.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallSum {
    /// The kernel's name of the call, or `page_fault`.
    pub call: &'static str,
    pub count: u64,
    /// Of all of them together, in ns.
    pub sum_ns: u64,
    /// How much of that each thing was waited for, in ns, the largest first; together `sum_ns`.
    pub waits: Vec<WaitSum>,
}

/// How long something was waited for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaitSum {
    /// `own_request`, `other_request`, `journal`, `dirty_throttling`, `readahead`, `lock`, `cpu`, `running` (it did not
    /// wait) or `unknown`.
    pub waited_for: &'static str,
    pub ns: u64,
}

/// Calls without a request of their own, of one kind, that waited most for the same.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallGroup {
    /// `read`, `write`, or the name of another call.
    pub op: &'static str,
    /// As in [`WaitSum`].
    pub waited_for: &'static str,
    /// Of all of them together, in ns.
    pub sum_ns: u64,
    #[serde(flatten)]
    pub times: Distribution,
}

/// One of those that took longest.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorstCall {
    /// When it began, in ns of the trace's clock.
    pub at_ns: u64,
    pub total_ns: u64,
    pub call: &'static str,
    pub pid: u32,
    /// That thread's name.
    pub comm: String,
    /// Its own requests are not all known.
    pub incomplete: bool,
    /// The longest first.
    pub waits: Vec<CallWait>,
}

/// What one call waited for, altogether.
#[derive(Clone, Debug, PartialEq)]
pub struct CallWait {
    pub what: WaitedFor,
    pub ns: u64,
    pub times: u64,
    /// In words.
    pub text: String,
}

impl Serialize for CallWait {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut wait = out.serialize_struct("CallWait", 4)?;
        wait.serialize_field("waited_for", self.what.word())?;
        wait.serialize_field("ns", &self.ns)?;
        wait.serialize_field("times", &self.times)?;
        wait.serialize_field("text", &self.text)?;
        wait.end()
    }
}

/// The calls of a trace that are shown, each with what it waited for.
pub struct Calls<'a> {
    trace: &'a Trace,
    /// Without a request of their own.
    others: Vec<(&'a CallWithoutRequest, Vec<Wait>)>,
    sums: Vec<CallSum>,
}

impl<'a> Calls<'a> {
    /// Given as indices into [`Trace::ios`] and [`Trace::calls_without_request`].
    pub fn new(trace: &'a Trace, ios: &[usize], others: &[usize]) -> Calls<'a> {
        let waiting = Waiting::new(trace);
        let others: Vec<_> = others
            .iter()
            .map(|index| &trace.calls_without_request[*index])
            .map(|call| (call, waiting.of_call(call)))
            .collect();
        let mut sums: BTreeMap<&str, Sum> = BTreeMap::new();
        for io in ios.iter().map(|index| &trace.ios[*index]) {
            sums.entry(io.call.name()).or_default().add(&waiting.of_io(io));
        }
        for (call, waits) in &others {
            sums.entry(call.call.name()).or_default().add(waits);
        }
        let mut sums: Vec<CallSum> =
            sums.into_iter().map(|(call, sum)| sum.into_call(call)).collect();
        sums.sort_by_key(|sum| Reverse(sum.sum_ns));
        Calls { trace, others, sums }
    }

    /// The longest sum first.
    pub fn sums(&self) -> Vec<CallSum> {
        self.sums.clone()
    }

    /// Those without a request of their own, the longest sum first.
    pub fn groups(&self) -> Vec<CallGroup> {
        let mut times_ns: BTreeMap<(&str, WaitedFor), Vec<u64>> = BTreeMap::new();
        for (call, waits) in &self.others {
            let key = (call_op(call.call), most(waits));
            times_ns.entry(key).or_default().push(call.exited_ns.saturating_sub(call.entered_ns));
        }
        let group = |((op, what), times_ns): ((&'static str, WaitedFor), Vec<u64>)| {
            let (sum_ns, waited_for) = (times_ns.iter().sum(), what.word());
            Some(CallGroup { op, waited_for, sum_ns, times: Distribution::of(times_ns)? })
        };
        let mut groups: Vec<CallGroup> = times_ns.into_iter().filter_map(group).collect();
        groups.sort_by_key(|group| Reverse(group.sum_ns));
        groups
    }

    /// Those without a request of their own that took longest.
    pub fn worst(&self, count: usize) -> Vec<WorstCall> {
        let mut longest: Vec<_> = self.others.iter().collect();
        longest.sort_by_key(|(call, _)| Reverse(call.exited_ns.saturating_sub(call.entered_ns)));
        longest.into_iter().take(count).map(|(call, waits)| self.worst_of(call, waits)).collect()
    }

    fn worst_of(&self, call: &CallWithoutRequest, waits: &[Wait]) -> WorstCall {
        let mut by_kind: BTreeMap<WaitedFor, Vec<&Wait>> = BTreeMap::new();
        waits.iter().for_each(|wait| by_kind.entry(wait.what).or_default().push(wait));
        let mut waits: Vec<CallWait> = by_kind
            .into_iter()
            .filter_map(|(what, all)| {
                let ns = all.iter().map(|wait| length(wait)).sum();
                let longest = all.iter().max_by_key(|wait| length(wait))?;
                let text = format!("{} us {}", us(ns), self.text(longest, all.len() as u64));
                Some(CallWait { what, ns, times: all.len() as u64, text })
            })
            .collect();
        waits.sort_by_key(|wait| Reverse(wait.ns));
        WorstCall {
            at_ns: call.entered_ns,
            total_ns: call.exited_ns.saturating_sub(call.entered_ns),
            call: call.call.name(),
            pid: call.pid,
            comm: call.comm.to_string(),
            incomplete: call.incomplete,
            waits,
        }
    }

    fn text(&self, longest: &Wait, times: u64) -> String {
        let what = longest.what.title();
        let many = match times {
            1 => String::new(),
            times => format!(" {}, longest {} us", count(times, "time"), us(length(longest))),
        };
        let request = longest.request.map_or_else(String::new, |index| self.request(index));
        let woken = longest.woken.filter(|_| longest.request.is_none());
        format!("{what}{many}{request}{}", woken.map_or_else(String::new, |woken| waker(&woken)))
    }

    fn request(&self, index: usize) -> String {
        let request = &self.trace.requests[index];
        let size = match request.bytes {
            0 => String::new(),
            bytes => format!(" {}", size_text(bytes)),
        };
        format!(
            ": {}{size} sector {} by {}, {}",
            op_word(request.op.kind),
            request.sector,
            thread(&request.comm.to_string(), request.pid),
            behalf(origin_word(request.origin), inode(request.origin))
        )
    }
}

fn waker(woken: &Woken) -> String {
    let (pid, comm) = woken.by;
    format!(", woken {}", by(&comm.to_string(), pid, woken.context.map(context_word)))
}

/// Calls of one name, while they are added up.
#[derive(Default)]
struct Sum {
    count: u64,
    waits: BTreeMap<WaitedFor, u64>,
}

impl Sum {
    fn add(&mut self, waits: &[Wait]) {
        self.count += 1;
        waits.iter().for_each(|wait| *self.waits.entry(wait.what).or_default() += length(wait));
    }

    fn into_call(self, call: &'static str) -> CallSum {
        let sum_ns = self.waits.values().sum();
        let mut waits: Vec<WaitSum> = self
            .waits
            .into_iter()
            .map(|(what, ns)| WaitSum { waited_for: what.word(), ns })
            .collect();
        waits.sort_by_key(|wait| Reverse(wait.ns));
        CallSum { call, count: self.count, sum_ns, waits }
    }
}
