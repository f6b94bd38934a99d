// SPDX-License-Identifier: MIT OR Apache-2.0
//! The I/Os and requests that took longest, each with where its time went and why.

use serde::Serialize;

use super::case::Causes;
use super::cause::Cause;
use super::groups::Group;
use super::question::Question;
use super::rows::{Item, Row};
use super::sorted;
use super::times::SPANS;
use crate::io::Spans;

/// One of those that took longest.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Worst {
    /// When it began, in ns of the trace's clock.
    pub at_ns: u64,
    pub total_ns: u64,
    /// The device's name, or major:minor.
    pub device: String,
    /// As in groups.
    pub op: &'static str,
    /// The system call; `null` of a request outside system calls.
    pub call: Option<&'static str>,
    pub origin: &'static str,
    pub inode: Option<u64>,
    pub bytes: u64,
    /// First sector of its first request, in units of 512 bytes.
    pub sector: u64,
    pub requests: u64,
    pub pid: u32,
    pub comm: String,
    /// The I/O priority class of its first request; `null` if events do not carry it.
    pub class: Option<&'static str>,
    /// 0, or the first negative errno of its requests.
    pub error: i32,
    pub spans: Spans,
    /// Where most of it went.
    pub largest: Largest,
    /// The longest first; empty if the cause is unknown.
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

/// The longest first; of equal ones, the first in the trace.
pub fn worst(items: &[Item], groups: &[Group], causes: &Causes, asked: &Question) -> Vec<Worst> {
    let class = asked.worst_class.map(|class| class.into_str());
    let longest = sorted(items, |item| item.row.total_ns).into_iter();
    let may_be = |of: Option<&str>| class.is_none() || of.is_none() || of == class;
    let of_class = longest.filter(|item| may_be(item.row.class));
    of_class.take(asked.worst).filter_map(|item| of(item, groups, causes)).collect()
}

fn of(item: &Item, groups: &[Group], causes: &Causes) -> Option<Worst> {
    let row = item.row.clone();
    let group = groups.iter().find(|group| group.has(&row))?;
    let largest = largest(&row, group);
    let [submission_ns, block_ns, device_ns, post_ns] =
        row.spans_ns().map(Option::unwrap_or_default);
    Some(Worst {
        at_ns: row.at_ns,
        total_ns: row.total_ns,
        device: row.device?,
        op: row.op,
        call: row.call,
        origin: row.origin.unwrap_or("io"),
        inode: row.inode,
        bytes: row.bytes?,
        sector: row.sector?,
        requests: row.requests,
        pid: row.pid,
        comm: row.comm,
        class: row.class,
        error: row.error?,
        spans: Spans { submission_ns, block_ns, device_ns, post_ns },
        largest,
        causes: causes.of(item),
    })
}

fn largest(row: &Row, group: &Group) -> Largest {
    let times = SPANS.into_iter().zip(row.spans_ns().map(Option::unwrap_or_default));
    let (span, ns) = times.max_by_key(|(_, ns)| *ns).unwrap_or((SPANS[0], 0));
    let usual = group.times.span(span).map(|span| (span.times.p50_ns, span.times.count));
    let (p50_ns, of_count) = usual.unwrap_or_default();
    Largest { span, ns, p50_ns, of_count }
}
