// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lists the longest I/Os and requests, with the spans and causes of each, for `record`.

use serde::Serialize;

use super::case::Causes;
use super::cause::Cause;
use super::groups::Group;
use super::question::Question;
use super::rows::{Item, Row};
use super::sorted;
use super::times::SPANS;
use crate::io::Spans;

/// One of the longest I/Os or requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Worst {
    /// Its beginning in ns, on the trace's clock.
    pub at_ns: u64,
    pub total_ns: u64,
    /// The device's name, or major:minor.
    pub device: String,
    /// The operation, as in groups.
    pub op: &'static str,
    /// The system call; `null` for a request outside system calls.
    pub call: Option<&'static str>,
    pub origin: &'static str,
    pub inode: Option<u64>,
    /// The file of its descriptor or inode, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
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
    /// Its longest span.
    pub largest: Largest,
    /// The longest first; empty if the cause is unknown.
    pub causes: Vec<Cause>,
}

/// The longest span of an I/O or request, with the median of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Largest {
    pub span: &'static str,
    pub ns: u64,
    /// The group's median of that span.
    pub p50_ns: u64,
    /// The size of the group.
    pub of_count: u64,
}

/// The list, the longest first; equal ones keep the order of the trace.
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
        path: row.path,
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
