// SPDX-License-Identifier: MIT OR Apache-2.0
//! The I/Os and requests that took longest, each with where its time went and why.

use serde::Serialize;

use super::case::{ByEnd, Case};
use super::cause::Cause;
use super::cause_text::with_text;
use super::groups::{Group, Grouped};
use super::medians::DeviceMedians;
use super::steps::device;
use super::times::{SPANS, in_order};
use super::words::{class_word, inode, io_op, op_word, origin_word};
use crate::event::Dev;
use crate::io::{Io, Request, Spans, Trace};

/// One of those that took longest.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Worst {
    /// When it began, in ns of the trace's clock.
    pub at_ns: u64,
    /// How long it took.
    pub total_ns: u64,
    /// The device's name, or major:minor.
    pub device: String,
    /// As in groups.
    pub op: &'static str,
    /// The system call; `null` of a request outside system calls.
    pub call: Option<&'static str>,
    /// On whose behalf.
    pub origin: &'static str,
    /// The inode, if known.
    pub inode: Option<u64>,
    /// Its data.
    pub bytes: u64,
    /// First sector of its first request, in units of 512 bytes.
    pub sector: u64,
    pub requests: u64,
    pub pid: u32,
    /// That thread's name.
    pub comm: String,
    /// The I/O priority class of its first request; `null` if events do not carry it.
    pub class: Option<&'static str>,
    /// 0, or the first negative errno of its requests.
    pub error: i32,
    /// Where its time went.
    pub spans: Spans,
    /// Where most of it went.
    pub largest: Largest,
    /// The longest first; empty if the cause is unknown.
    #[serde(serialize_with = "with_text")]
    pub causes: Vec<Cause>,
}

/// The longest span of one, with the median of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Largest {
    pub span: &'static str,
    pub ns: u64,
    /// The median of that span in its group.
    pub p50_ns: u64,
    /// Over how many.
    pub of_count: u64,
}

/// Where the worst are looked for.
pub struct Search<'a> {
    /// Everything that was found.
    pub trace: &'a Trace,
    /// The usual times of its devices.
    pub medians: &'a DeviceMedians,
    pub by_end: &'a ByEnd,
    /// How many are wanted.
    pub count: usize,
    /// Names of devices.
    pub name: &'a dyn Fn(Dev) -> String,
}

impl Search<'_> {
    /// The worst of these I/Os, which are grouped in the same order.
    pub fn ios(&self, indices: &[usize], grouped: &Grouped) -> Vec<Worst> {
        let ios = indices.iter().map(|index| &self.trace.ios[*index]);
        let timed = ios.zip(&grouped.of).map(|(io, of)| (io.spans.total_ns(), (io, *of)));
        let worst = |(io, of): (&Io, usize)| self.io(io, &grouped.groups[of]);
        longest(timed.collect(), self.count).into_iter().filter_map(worst).collect()
    }

    /// The worst of these requests, likewise.
    pub fn requests(&self, indices: &[usize], grouped: &Grouped) -> Vec<Worst> {
        let timed = indices.iter().zip(&grouped.of).map(|(index, of)| {
            let request = &self.trace.requests[*index];
            (request.end_ns().saturating_sub(request.begin_ns()), (*index, *of))
        });
        let worst = |(index, of): (usize, usize)| self.request(index, &grouped.groups[of]);
        longest(timed.collect(), self.count).into_iter().map(worst).collect()
    }

    fn io(&self, io: &Io, group: &Group) -> Option<Worst> {
        let first = &self.trace.requests[*io.requests.first()?];
        let errors = io.requests.iter().map(|index| self.trace.requests[*index].error);
        Some(Worst {
            at_ns: io.entered_ns,
            total_ns: io.spans.total_ns(),
            device: device(io, self.trace).map_or_else(String::new, self.name),
            op: io_op(io, self.trace),
            call: Some(io.call.name()),
            origin: "io",
            inode: None,
            bytes: io.bytes,
            sector: first.sector,
            requests: io.requests.len() as u64,
            pid: io.pid,
            comm: io.comm.to_string(),
            class: class_word(first),
            error: errors.into_iter().find(|error| *error != 0).unwrap_or(0),
            spans: io.spans,
            largest: largest(&io.spans, group),
            causes: Case::of_io(self.trace, io).causes(self.medians, self.by_end),
        })
    }

    fn request(&self, index: usize, group: &Group) -> Worst {
        let request: &Request = &self.trace.requests[index];
        let spans = request.spans();
        let during_ns = request.life();
        Worst {
            at_ns: during_ns.0,
            total_ns: spans.total_ns(),
            device: (self.name)(request.dev),
            op: op_word(request.op.kind),
            call: None,
            origin: origin_word(request.origin),
            inode: inode(request.origin),
            bytes: request.bytes,
            sector: request.sector,
            requests: 1,
            pid: request.pid,
            comm: request.comm.to_string(),
            class: class_word(request),
            error: request.error,
            spans,
            largest: largest(&spans, group),
            causes: Case::new(self.trace, &[index], during_ns).causes(self.medians, self.by_end),
        }
    }
}

/// The longest first; of equal ones, the first in the trace.
fn longest<T>(mut timed: Vec<(u64, T)>, count: usize) -> Vec<T> {
    timed.sort_by_key(|(ns, _)| std::cmp::Reverse(*ns));
    timed.into_iter().take(count).map(|(_, item)| item).collect()
}

fn largest(spans: &Spans, group: &Group) -> Largest {
    let times = SPANS.into_iter().zip(in_order(spans));
    let (span, ns) = times.max_by_key(|(_, ns)| *ns).unwrap_or((SPANS[0], 0));
    let usual = group.times.span(span).map(|span| &span.times);
    let p50_ns = usual.map_or(0, |times| times.p50_ns);
    Largest { span, ns, p50_ns, of_count: usual.map_or(0, |times| times.count) }
}
