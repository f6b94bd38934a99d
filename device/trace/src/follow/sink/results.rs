// SPDX-License-Identifier: MIT OR Apache-2.0
//! The results so far. They are not final: if the kernel reports later that it lost events,
//! completions in that time are withdrawn. `sink` and the stages add results; `follow` makes the
//! trace from them.

use std::collections::HashMap;

use crate::io::{Coverage, Io, Origin, Request, Trace, Unmatched};

/// The number of unmatched requests to keep in full.
const UNMATCHED_KEPT: usize = 1_000;

/// The reason why a request is not reported as matched.
///
/// Of several, the last in this order counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::follow) enum Ambiguity {
    /// Events contradict each other.
    Odd(&'static str),
    /// It began before the trace.
    #[default]
    Edge,
    /// It was open while events were lost, or cannot be distinguished from a request that was.
    Loss,
}

/// A request from the view of one task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub request: usize,
    pub from_ns: u64,
    pub ahead: bool,
    /// Whether this task's bio was the request's first.
    pub first: bool,
}

impl Part {
    /// Merges the other part into this one if both belong to one request. Returns whether they do.
    pub fn is_joined_by(&mut self, other: &Part) -> bool {
        let same = self.request == other.request;
        if same {
            self.from_ns = self.from_ns.min(other.from_ns);
            self.ahead &= other.ahead;
            self.first |= other.first;
        }
        same
    }
}

/// A result is `None` once it is withdrawn.
#[derive(Debug, Default)]
pub(in crate::follow) struct Results {
    /// Indices stay valid until `into_trace`.
    pub requests: Vec<Option<Request>>,
    pub ios: Vec<Option<Io>>,
    /// Includes calls that are already counted, that are I/Os, or that only fetch I/Os.
    pub calls_without_request: Vec<Option<Io>>,
    /// Where each loss began in ns, and the numbers of requests, I/Os and calls that were known at
    /// its end. Those that a later loss includes are left out.
    losses: Vec<(u64, [usize; 3])>,
    /// I/Os that workers of io_uring executed, by the submitting thread.
    pub of_workers: HashMap<u32, Vec<usize>>,
    pub account: Coverage,
}

impl Results {
    pub fn request(&self, index: usize) -> Option<&Request> {
        self.requests.get(index)?.as_ref()
    }

    /// The known requests of these parts, with the time from which each counts for the task.
    pub(super) fn of_parts(&self, parts: &[Part]) -> impl Iterator<Item = (&Request, u64)> {
        parts.iter().filter_map(|part| Some((self.request(part.request)?, part.from_ns)))
    }

    /// Counts a request that is not matched. The reason decides which counter increases.
    pub fn count_ambiguous(&mut self, ambiguity: Ambiguity, request: &Request, at_ns: u64) {
        match ambiguity {
            Ambiguity::Edge => self.account.at_the_edges += 1,
            Ambiguity::Loss => self.account.hit_by_loss += 1,
            Ambiguity::Odd(why) => {
                self.account.unmatched_count += 1;
                if self.account.unmatched.len() < UNMATCHED_KEPT {
                    let Request { dev, op, sector, .. } = *request;
                    let (device, op) = (dev.to_string(), op.kind.into_str());
                    self.account.unmatched.push(Unmatched { at_ns, dev, device, sector, op, why });
                }
            }
        }
    }

    /// Withdraws results because events after `since_ns` are missing. Requests that completed later
    /// may have been matched wrongly.
    pub fn take_back(&mut self, since_ns: u64) {
        // What an earlier loss has left had ended before it, so only later results are looked at.
        let earlier = self.losses.partition_point(|(began_ns, _)| *began_ns <= since_ns);
        self.losses.truncate(earlier);
        let known = self.losses.last().map(|(_, known)| *known);
        let [requests, ios, calls] = known.unwrap_or_default();
        for slot in &mut self.requests[requests..] {
            let later = slot.take_if(|request| request.end_ns() > since_ns);
            self.account.hit_by_loss += u64::from(later.is_some());
        }
        for slot in &mut self.ios[ios..] {
            let later = slot.take_if(|io| io.exited_ns > since_ns);
            self.account.ios_incomplete += u64::from(later.is_some());
        }
        for slot in &mut self.calls_without_request[calls..] {
            slot.take_if(|call| call.exited_ns > since_ns);
        }
        let known = [self.requests.len(), self.ios.len(), self.calls_without_request.len()];
        self.losses.push((since_ns, known));
    }

    /// Withdraws I/Os of this thread. They may have got requests that its workers made for others.
    pub fn take_back_of_workers(&mut self, pid: u32) {
        for io in self.of_workers.remove(&pid).unwrap_or_default() {
            if self.ios[io].take().is_some() {
                self.account.ios_incomplete += 1;
            }
        }
    }

    /// Forgets which requests are writeback: without the events of its end, any later request of the
    /// thread looks so too.
    pub fn forget_writeback(&mut self) {
        let known = self.requests.iter_mut().flatten();
        for request in known.filter(|request| matches!(request.origin, Origin::Writeback(_))) {
            request.origin = Origin::Thread;
        }
    }

    /// Removes withdrawn results, and sorts I/Os by their end.
    pub fn into_trace(mut self) -> Trace {
        let mut numbers = 0..;
        let number = |request: &Option<Request>| request.as_ref().and_then(|_| numbers.next());
        let request_at: Vec<Option<usize>> = self.requests.iter().map(number).collect();
        let mut ios: Vec<(usize, Io)> = Vec::new();
        for (old, io) in (0..).zip(self.ios) {
            let Some(io) = io else { continue };
            match io.requests.iter().map(|old| request_at[*old]).collect() {
                Some(requests) => ios.push((old, Io { requests, ..io })),
                None => self.account.ios_incomplete += 1,
            }
        }
        ios.sort_by_key(|(_, io)| io.exited_ns);
        let (old_ios, ios): (Vec<usize>, Vec<Io>) = ios.into_iter().unzip();
        let io_at: HashMap<usize, usize> = old_ios.into_iter().zip(0..).collect();
        let mut requests: Vec<Request> = self.requests.into_iter().flatten().collect();
        for request in &mut requests {
            if let Origin::Io(old) = request.origin {
                request.origin = io_at.get(&old).map_or(Origin::Thread, |new| Origin::Io(*new));
            }
        }
        self.account.matched = requests.len() as u64;
        self.account.failed = requests.iter().filter(|request| request.error != 0).count() as u64;
        let calls = self.calls_without_request.into_iter().flatten();
        let mut calls_without_request: Vec<Io> = calls.collect();
        calls_without_request.sort_by_key(|call| call.exited_ns);
        let account = self.account;
        Trace { requests, ios, calls_without_request, account, ..Trace::default() }
    }
}
