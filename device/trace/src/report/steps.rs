// SPDX-License-Identifier: MIT OR Apache-2.0
//! The finer spans: the time between each two marks that follow each other.
//!
//! A mark that a request did not pass (without a scheduler) or that has no event has no step; the step from the mark
//! before it then leads to the one after it. So steps always add up.

use crate::event::Dev;
use crate::io::{Io, Mark, Marks, Request, Trace};

/// Between which two points; sorts as an I/O takes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Step(Point, Point);

/// A point of an I/O's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Point {
    Call,
    /// An index into [`Mark::ALL`].
    Passed(usize),
    Return,
}

/// The steps of a request with their times in ns, in order.
pub fn of_request(marks: &Marks) -> Vec<(Step, u64)> {
    let at = |(index, mark)| Some((Point::Passed(index), marks.get(mark)?));
    let passed: Vec<_> = Mark::ALL.into_iter().enumerate().filter_map(at).collect();
    let step =
        |pair: &[(Point, u64)]| (Step(pair[0].0, pair[1].0), pair[1].1.saturating_sub(pair[0].1));
    passed.windows(2).map(step).collect()
}

/// The steps of an I/O outside its requests. One that is not there (a request that ends after the return) is
/// omitted.
pub fn around_requests(io: &Io, trace: &Trace) -> Vec<(Step, u64)> {
    let own = || io.requests.iter().map(|index| &trace.requests[*index]);
    let before = own().map(Request::begin_ns).min().and_then(|ns| ns.checked_sub(io.entered_ns));
    let behind = own().map(Request::end_ns).max().and_then(|ns| io.exited_ns.checked_sub(ns));
    let call = Step(Point::Call, Point::Passed(Mark::Queued as usize));
    let back = Step(Point::Passed(Mark::Completed as usize), Point::Return);
    [(call, before), (back, behind)]
        .into_iter()
        .filter_map(|(step, ns)| Some((step, ns?)))
        .collect()
}

impl std::fmt::Display for Step {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const START: Point = Point::Passed(Mark::HardwareStart as usize);
        const DONE: Point = Point::Passed(Mark::HardwareDone as usize);
        match (self.0, self.1) {
            (START, DONE) => out.pad("hardware"),
            (START, to) => out.pad(&format!("hardware start->{}", to.word())),
            (from, to) => out.pad(&format!("{}->{}", from.word(), to.word())),
        }
    }
}

impl Point {
    fn word(self) -> &'static str {
        match self {
            Point::Call => "call",
            Point::Return => "return",
            Point::Passed(index) => {
                ["queue", "tag", "insert", "issue", "hardware", "hardware", "completion"][index]
            }
        }
    }
}

/// The device of an I/O: that of its first request.
pub fn device(io: &Io, trace: &Trace) -> Option<Dev> {
    io.requests.first().map(|index| trace.requests[*index].dev)
}
