// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names of slices, and what Perfetto shows when one is selected.

use crate::event::{Op, Priority};
use crate::io::Request;
use crate::report::rows::Row;
use crate::report::words::inode;

pub enum Value {
    Number(i64),
    Text(String),
}

/// Arguments by name. Unknown and default values are omitted.
pub type Arguments = Vec<(&'static str, Value)>;

fn number(value: u64) -> Value {
    Value::Number(value as i64)
}

/// As "read 64K" or "pread64 64K": the same for all alike, so that Perfetto adds them up.
pub fn name(what: &str, bytes: u64) -> String {
    match bytes {
        0 => what.to_string(),
        bytes => format!("{what} {}", size(bytes)),
    }
}

/// Of each slice of a request; `index` is that in the trace.
pub fn of_request(index: usize, request: &Request) -> Arguments {
    let text = |text: &str| Value::Text(text.to_string());
    let mut all = vec![("request", number(index as u64))];
    if request.bytes > 0 {
        all.extend([("sector", number(request.sector)), ("bytes", number(request.bytes))]);
    }
    all.push(("op", Value::Text(op(request.op))));
    let level = |of: Priority| Value::Text(format!("{}/{}", of.class.into_str(), of.level));
    all.extend(request.priority.map(|priority| ("priority", level(priority))));
    all.push(("origin", text(request.origin.into_str())));
    all.extend(inode(request.origin).map(|inode| ("inode", number(inode))));
    if !request.comm.is_empty() {
        all.push(("comm", text(&request.comm.to_string())));
    }
    all.push(("pid", number(request.pid.into())));
    let counts = [
        ("merged", request.merged_queued_ns.len() as i64),
        ("pieces", request.pieces.len() as i64),
        ("requeues", request.requeues.into()),
        ("cut_from_bio", request.cut_from_bio.into()),
        ("error", request.error.into()),
    ];
    let counted = counts.into_iter().filter(|(_, count)| *count != 0);
    all.extend(counted.map(|(name, count)| (name, Value::Number(count))));
    all
}

/// Of a piece, besides those of its request; `index` is that among its pieces.
pub fn of_piece(index: usize, request: &Request) -> Arguments {
    let piece = &request.pieces[index];
    vec![
        ("piece", number(index as u64 + 1)),
        ("piece_sector", number(piece.sector)),
        ("piece_bytes", number(piece.bytes)),
    ]
}

/// Of the slice of an I/O; `index` is that in the trace.
pub fn of_io(index: usize, row: &Row) -> Arguments {
    let mut all = vec![("io", number(index as u64))];
    all.extend(row.bytes.map(|bytes| ("bytes", number(bytes))));
    all.push(("requests", number(row.requests)));
    let spans =
        ["submission_ns", "block_ns", "device_ns", "post_ns"].into_iter().zip(row.spans_ns());
    all.extend(spans.filter_map(|(name, ns)| Some((name, number(ns?)))));
    all
}

fn op(op: Op) -> String {
    let flags = [
        (op.preflush, "preflush"),
        (op.fua, "fua"),
        (op.sync, "sync"),
        (op.meta, "meta"),
        (op.ahead, "readahead"),
    ];
    let set = flags.into_iter().filter_map(|(set, name)| set.then_some(name));
    std::iter::once(op.kind.into_str()).chain(set).collect::<Vec<_>>().join(" ")
}

/// Short, but exact: in the largest unit that divides it.
fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")];
    let whole = UNITS.into_iter().find(|(unit, _)| bytes % unit == 0);
    whole.map_or(format!("{bytes}B"), |(unit, name)| format!("{}{name}", bytes / unit))
}
