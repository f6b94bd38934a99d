// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every I/O, other call and request outside system calls that is shown, as a row each: for programs that look at each
//! of them. In CSV and in JSON, a line each; times are in ns.

use std::io::{self, Write};

use serde::Serialize;

use super::record::Question;
use super::steps::device;
use super::waiting::{Waiting, most};
use super::words::{call_op, class_word, inode, io_op, op_word, origin_word};
use crate::event::Dev;
use crate::io::{CallWithoutRequest, Io, Request, Spans, Trace};

/// One of them; what one does not have is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    /// `io`, `call` (without a request of its own) or `request` (outside system calls).
    pub kind: &'static str,
    /// When it began, in ns of the trace's clock.
    pub at_ns: u64,
    pub total_ns: u64,
    /// The kernel's name of the call.
    pub call: Option<&'static str>,
    pub op: &'static str,
    /// Of a request, on whose behalf.
    pub origin: Option<&'static str>,
    /// Of a request, if known.
    pub inode: Option<u64>,
    pub device: Option<String>,
    /// Of its first request, in units of 512 bytes.
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
    /// What most of its time was waited for; not of requests.
    pub waited_for: Option<&'static str>,
}

/// In the order of their begin.
pub fn rows(trace: &Trace, question: &Question) -> Vec<Row> {
    let waiting = Waiting::new(trace);
    let shown = question.shown(trace);
    let name = |dev: Dev| question.names.get(&dev).cloned().unwrap_or_else(|| dev.to_string());
    let ios = shown.ios.iter().map(|index| of_io(trace, &trace.ios[*index], &waiting, name));
    let others = question.calls_shown(trace);
    let calls = others.iter().map(|index| of_call(&trace.calls_without_request[*index], &waiting));
    let requests = shown.requests.iter().chain(&shown.flushes_and_discards);
    let requests = requests.map(|index| of_request(&trace.requests[*index], name));
    let mut rows: Vec<Row> = ios.chain(calls).chain(requests).collect();
    rows.sort_by_key(|row| row.at_ns);
    rows
}

fn of_io(trace: &Trace, io: &Io, waiting: &Waiting, name: impl Fn(Dev) -> String) -> Row {
    let requests = || io.requests.iter().map(|index| &trace.requests[*index]);
    let first = requests().next();
    let errors = requests().map(|request| request.error).find(|error| *error != 0);
    with_spans(
        Row {
            kind: "io",
            at_ns: io.entered_ns,
            total_ns: io.spans.total_ns(),
            call: Some(io.call.name()),
            op: io_op(io, trace),
            device: device(io, trace).map(name),
            sector: first.map(|request| request.sector),
            bytes: Some(io.bytes),
            requests: io.requests.len() as u64,
            pid: io.pid,
            comm: io.comm.to_string(),
            class: first.and_then(class_word),
            error: Some(errors.unwrap_or(0)),
            submission_ns: Some(io.spans.submission_ns),
            waited_for: Some(most(&waiting.of_io(io)).word()),
            ..Row::default()
        },
        &io.spans,
    )
}

fn of_call(call: &CallWithoutRequest, waiting: &Waiting) -> Row {
    Row {
        kind: "call",
        at_ns: call.entered_ns,
        total_ns: call.exited_ns.saturating_sub(call.entered_ns),
        call: Some(call.call.name()),
        op: call_op(call.call),
        pid: call.pid,
        comm: call.comm.to_string(),
        waited_for: Some(most(&waiting.of_call(call)).word()),
        ..Row::default()
    }
}

fn of_request(request: &Request, name: impl Fn(Dev) -> String) -> Row {
    with_spans(
        Row {
            kind: "request",
            at_ns: request.begin_ns(),
            total_ns: request.end_ns().saturating_sub(request.begin_ns()),
            op: op_word(request.op.kind),
            origin: Some(origin_word(request.origin)),
            inode: inode(request.origin),
            device: Some(name(request.dev)),
            sector: Some(request.sector),
            bytes: Some(request.bytes),
            requests: 1,
            pid: request.pid,
            comm: request.comm.to_string(),
            class: class_word(request),
            error: Some(request.error),
            ..Row::default()
        },
        &request.spans(),
    )
}

fn with_spans(row: Row, spans: &Spans) -> Row {
    Row {
        block_ns: Some(spans.block_ns),
        device_ns: Some(spans.device_ns),
        post_ns: Some(spans.post_ns),
        ..row
    }
}

/// A JSON object a line.
pub fn write_json_lines(rows: &[Row], mut out: impl Write) -> io::Result<()> {
    for row in rows {
        serde_json::to_writer(&mut out, row)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// With the names of the columns first; what there is none of is empty. A thread can have any name: quoted as RFC 4180 says.
pub fn write_csv(rows: &[Row], mut out: impl Write) -> io::Result<()> {
    let mut names = csv::Writer::from_writer(Vec::new());
    names.serialize(Row::default())?;
    let names = names.into_inner().map_err(|error| io::Error::other(error.to_string()))?;
    let end = names.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    out.write_all(&names[..end])?;
    let mut csv = csv::WriterBuilder::new().has_headers(false).from_writer(out);
    rows.iter().try_for_each(|row| csv.serialize(row))?;
    csv.flush()
}
