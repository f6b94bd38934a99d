// SPDX-License-Identifier: MIT OR Apache-2.0
//! The results so far. They are not final: if the kernel reports later that it lost events,
//! completions in that time are withdrawn.

use std::collections::HashMap;

use super::open_io::Part;
use crate::io::{Coverage, Io, Mark, Origin, Request, Trace, Unmatched};

/// How many unmatched requests are kept in full.
const UNMATCHED_KEPT: usize = 1_000;

/// Why a request cannot be reported as matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::follow) enum Ambiguity {
    /// It began before the trace.
    Edge,
    /// It was open while events were lost, or cannot be told from one that was.
    Loss,
    /// It contradicts the events.
    Odd(&'static str),
}

/// A result, or `None` once withdrawn.
#[derive(Debug, Default)]
pub(in crate::follow) struct Results {
    /// An index holds until `into_trace`.
    pub requests: Vec<Option<Request>>,
    pub ios: Vec<Option<Io>>,
    /// Counted, or I/Os already, or calls that only fetch I/Os.
    pub calls_without_request: Vec<Io>,
    /// I/Os that workers of io_uring did, by the thread that submitted them.
    pub of_workers: HashMap<u32, Vec<usize>>,
    pub account: Coverage,
}

impl Results {
    pub fn request(&self, index: usize) -> Option<&Request> {
        self.requests.get(index)?.as_ref()
    }

    /// Those that are known, and from when on each is present for the task.
    pub(super) fn of_parts(&self, parts: &[Part]) -> impl Iterator<Item = (&Request, u64)> {
        parts.iter().filter_map(|part| Some((self.request(part.request)?, part.from_ns)))
    }

    /// A request that is not matched: why decides where it is counted.
    pub fn count_ambiguous(&mut self, ambiguity: Ambiguity, request: &Request, time_ns: u64) {
        match ambiguity {
            Ambiguity::Edge => self.account.at_the_edges += 1,
            Ambiguity::Loss => self.account.hit_by_loss += 1,
            Ambiguity::Odd(why) => {
                self.account.unmatched_count += 1;
                if self.account.unmatched.len() < UNMATCHED_KEPT {
                    let Request { dev, op, sector, .. } = *request;
                    let (device, op) = (dev.to_string(), op.kind.into_str());
                    let at_ns = time_ns;
                    self.account.unmatched.push(Unmatched { at_ns, dev, device, sector, op, why });
                }
            }
        }
    }

    /// Events after `since_ns` are missing: what completed after it may have been matched wrongly.
    pub fn take_back(&mut self, since_ns: u64) {
        for slot in self.requests.iter_mut().rev() {
            if let Some(request) = slot {
                if request.marks.get(Mark::Completed).is_some_and(|end| end <= since_ns) {
                    break;
                }
                *slot = None;
                self.account.hit_by_loss += 1;
            }
        }
        self.calls_without_request.retain(|call| call.exited_ns <= since_ns);
        // I/Os are found up to one lazy step after their end, so not quite in that order.
        for slot in &mut self.ios {
            if slot.as_ref().is_some_and(|io| io.exited_ns > since_ns) {
                *slot = None;
                self.account.ios_incomplete += 1;
            }
        }
    }

    /// I/Os of this thread may have been given requests that its workers made for others.
    pub fn take_back_of_workers(&mut self, pid: u32) {
        for io in self.of_workers.remove(&pid).unwrap_or_default() {
            if self.ios[io].take().is_some() {
                self.account.ios_incomplete += 1;
            }
        }
    }

    /// Drops what was withdrawn, and sorts I/Os by their end.
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
        let (mut calls_without_request, account) = (self.calls_without_request, self.account);
        calls_without_request.sort_by_key(|call| call.exited_ns);
        Trace { requests, ios, calls_without_request, account, ..Trace::default() }
    }
}
