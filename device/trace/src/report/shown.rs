// SPDX-License-Identifier: MIT OR Apache-2.0
//! Selects the I/Os, calls and requests to show, as the query says, for `record`.

use super::question::{Question, Scope};
use super::rows::{Item, Row};
use super::waiting::Waiting;
use crate::event::OpKind;
use crate::io::{Io, Origin, Request, Trace};

/// All shown items, in the order of the trace.
pub struct Shown<'a> {
    pub question: &'a Question,
    pub ios: Vec<Item<'a>>,
    /// Calls without a request of their own.
    pub calls: Vec<Item<'a>>,
    /// Requests without an I/O, except flushes and discards.
    pub requests: Vec<Item<'a>>,
    pub flushes_and_discards: Vec<Item<'a>>,
    pub scope: Scope,
    pub waiting: Waiting<'a>,
}

impl<'a> Shown<'a> {
    pub fn of(trace: &'a Trace, question: &'a Question) -> Shown<'a> {
        let waiting = Waiting::new(trace);
        let names = &question.names;
        let ios = trace.ios.iter().filter(|io| question.shows_io(trace, io));
        let ios: Vec<_> =
            ios.map(|io| waiting.fill(located(trace, Item::of_io(trace, io, names)))).collect();
        let calls =
            trace.calls_without_request.iter().filter(|call| question.shows_call(trace, call));
        let of_kind = |flushes_and_discards: bool| {
            let is_of = move |request: &&Request| match request.op.kind {
                OpKind::Flush | OpKind::Discard => flushes_and_discards,
                _ => !flushes_and_discards && !matches!(request.origin, Origin::Io(_)),
            };
            trace.requests.iter().filter(is_of)
        };
        let shown = |request: &&Request| question.shows_request(trace, request);
        let item = |request| located(trace, Item::of_request(request, names));
        let requests: Vec<_> = of_kind(false).filter(shown).map(item).collect();
        let scope = Scope {
            processes: if question.asks_for_some() { "traced" } else { "all" },
            ios_hidden: (trace.ios.len() - ios.len()) as u64,
            requests_hidden: (of_kind(false).count() - requests.len()) as u64,
        };
        let calls = calls.map(|call| waiting.fill(located(trace, Item::of_call(call)))).collect();
        let flushes_and_discards = of_kind(true).filter(shown).map(item).collect();
        Shown { question, ios, calls, requests, flushes_and_discards, scope, waiting }
    }

    /// All rows, sorted by their beginning.
    pub fn rows(&self) -> Vec<&Row> {
        let Shown { ios, calls, requests, flushes_and_discards, .. } = self;
        let all = [ios, calls, requests, flushes_and_discards].into_iter().flatten();
        let mut rows: Vec<&Row> = all.map(|item| &item.row).collect();
        rows.sort_by_key(|row| row.at_ns);
        rows
    }
}

/// Adds the cgroup and the path.
fn located<'a>(trace: &Trace, mut item: Item<'a>) -> Item<'a> {
    item.row.cgroup = trace.processes.cgroup(item.row.pid).map(str::to_string);
    let file = item.io.map_or_else(|| item.own.first()?.file, |io| io.file);
    item.row.path = trace.path(file).map(str::to_string);
    item
}

impl Question {
    fn asks_for_some(&self) -> bool {
        self.asked_for.is_some() || self.cgroup.is_some()
    }

    fn asks_for(&self, trace: &Trace, pid: u32, time_ns: u64) -> bool {
        let is_in = |cgroup: &String| trace.processes.is_in(pid, cgroup);
        self.cgroup.as_ref().is_none_or(is_in)
            && self.asked_for.as_ref().is_none_or(|threads| threads.includes(pid, time_ns))
    }

    fn is_of_device(&self, request: &Request) -> bool {
        self.device.as_ref().is_none_or(|device| device.has(request))
    }

    fn shows_io(&self, trace: &Trace, io: &Io) -> bool {
        let mut own = io.requests.iter().map(|index| &trace.requests[*index]);
        self.asks_for(trace, io.pid, io.entered_ns) && own.any(|request| self.is_of_device(request))
    }

    fn shows_request(&self, trace: &Trace, request: &Request) -> bool {
        let (pid, time_ns) = match request.origin {
            Origin::Io(io) => (trace.ios[io].pid, trace.ios[io].entered_ns),
            _ => (request.pid, request.begin_ns()),
        };
        self.is_of_device(request) && self.asks_for(trace, pid, time_ns)
    }

    /// Whether to show a call without a request of its own. Events do not name its device. Calls of
    /// processes that were not requested may concern any device, so they are hidden.
    fn shows_call(&self, trace: &Trace, call: &Io) -> bool {
        match self.asks_for_some() {
            true => self.asks_for(trace, call.pid, call.entered_ns),
            false => self.device.is_none(),
        }
    }
}
