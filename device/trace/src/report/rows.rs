// SPDX-License-Identifier: MIT OR Apache-2.0
//! A row for each I/O, each other call and each request outside system calls. All tables are made
//! from rows. `steady trace` also writes them as CSV and JSON lines, for other programs. Times are
//! in ns.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use super::waited_for::WaitedFor;
use super::words::{Names, call_op, device_name, io_op};
use crate::io::{Io, Request, Spans, Trace};

/// A value that an item does not have is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    /// `io`, `call` (a call without a request of its own) or `request` (outside system calls).
    pub kind: &'static str,
    /// Its beginning in ns, on the trace's clock.
    pub at_ns: u64,
    pub total_ns: u64,
    /// The kernel's name of the call.
    pub call: Option<&'static str>,
    pub op: &'static str,
    /// The origin of a request.
    pub origin: Option<&'static str>,
    /// The inode of a request, if known.
    pub inode: Option<u64>,
    pub device: Option<String>,
    /// The first sector of its first request, in units of 512 bytes.
    pub sector: Option<u64>,
    pub bytes: Option<u64>,
    pub requests: u64,
    pub pid: u32,
    pub comm: String,
    /// The I/O priority class of its first request.
    pub class: Option<&'static str>,
    /// 0, or the first negative errno of its requests.
    pub error: Option<i32>,
    pub submission_ns: Option<u64>,
    pub block_ns: Option<u64>,
    pub device_ns: Option<u64>,
    pub post_ns: Option<u64>,
    /// The reason for which it waited longest; `None` for requests.
    pub waited_for: Option<&'static str>,
    /// The cgroup of its thread's process, if known.
    pub cgroup: Option<String>,
    /// The file of a call's descriptor or of a request's inode, if known.
    pub path: Option<String>,
}

impl Row {
    fn of_requests(own: &[&Request], spans: &Spans, names: &Names) -> Row {
        let first = own.first();
        let error = own.iter().map(|request| request.error).find(|error| *error != 0);
        Row {
            total_ns: spans.total_ns(),
            device: first.map(|request| device_name(names, request.dev)),
            sector: first.map(|request| request.sector),
            requests: own.len() as u64,
            class: first.and_then(|of| of.priority).map(|priority| priority.class.into_str()),
            error: Some(error.unwrap_or(0)),
            block_ns: Some(spans.block_ns),
            device_ns: Some(spans.device_ns),
            post_ns: Some(spans.post_ns),
            ..Row::default()
        }
    }

    fn by_program(self, io: &Io) -> Row {
        let (at_ns, call, comm) = (io.entered_ns, Some(io.call.name()), io.comm.to_string());
        Row { at_ns, call, pid: io.pid, comm, ..self }
    }

    /// The spans, in the order of [`super::times::SPANS`].
    pub fn spans_ns(&self) -> [Option<u64>; 4] {
        [self.submission_ns, self.block_ns, self.device_ns, self.post_ns]
    }
}

/// A row, with its I/O and requests.
#[derive(Default)]
pub struct Item<'a> {
    pub row: Row,
    /// The I/O or call; `None` for a request.
    pub io: Option<&'a Io>,
    /// The requests of an I/O; a request has only itself.
    pub own: Vec<&'a Request>,
    /// The waiting time per reason, in ns.
    pub waits: BTreeMap<WaitedFor, u64>,
}

impl<'a> Item<'a> {
    pub fn of_io(trace: &'a Trace, io: &'a Io, names: &Names) -> Item<'a> {
        let own: Vec<_> = io.requests.iter().map(|index| &trace.requests[*index]).collect();
        let row = Row {
            kind: "io",
            op: io_op(io, &own),
            bytes: Some(io.bytes),
            submission_ns: Some(io.spans.submission_ns),
            ..Row::of_requests(&own, &io.spans, names)
        };
        Item { row: row.by_program(io), io: Some(io), own, ..Item::default() }
    }

    /// The item of a call without requests.
    pub fn of_call(io: &'a Io) -> Item<'a> {
        let total_ns = io.exited_ns.saturating_sub(io.entered_ns);
        let row = Row { kind: "call", total_ns, op: call_op(io.call), ..Row::default() };
        Item { row: row.by_program(io), io: Some(io), ..Item::default() }
    }

    pub fn of_request(request: &'a Request, names: &Names) -> Item<'a> {
        let own = vec![request];
        let row = Row {
            kind: "request",
            at_ns: request.begin_ns(),
            op: request.op.kind.into_str(),
            origin: Some(request.origin.into_str()),
            inode: request.origin.inode(),
            bytes: Some(request.bytes),
            pid: request.pid,
            comm: request.comm.to_string(),
            ..Row::of_requests(&own, &request.spans(), names)
        };
        Item { row, own, ..Item::default() }
    }

    pub fn during_ns(&self) -> (u64, u64) {
        (self.row.at_ns, self.row.at_ns + self.row.total_ns)
    }

    /// The reason for which it waited longest; unknown for a call that took no time.
    pub fn most(&self) -> WaitedFor {
        let most = self.waits.iter().rev().max_by_key(|(_, ns)| **ns);
        most.map_or(WaitedFor::Unknown, |(what, _)| *what)
    }
}

pub fn write_json_lines(rows: &[&Row], mut out: impl Write) -> io::Result<()> {
    for row in rows {
        serde_json::to_writer(&mut out, row)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// Writes rows after a line of column names; an absent value is empty. Text is quoted as in RFC
/// 4180, because a thread's name may contain anything.
pub fn write_csv(rows: &[&Row], mut out: impl Write) -> io::Result<()> {
    let mut names = csv::Writer::from_writer(Vec::new());
    names.serialize(Row::default())?;
    let names = names.into_inner().map_err(|error| io::Error::other(error.to_string()))?;
    let end = names.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    out.write_all(&names[..end])?;
    let mut csv = csv::WriterBuilder::new().has_headers(false).from_writer(out);
    rows.iter().try_for_each(|row| csv.serialize(row))?;
    csv.flush()
}
