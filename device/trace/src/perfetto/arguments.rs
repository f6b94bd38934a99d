// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names of slices, and what Perfetto shows when one is selected.

use crate::event::Op;
use crate::io::{Io, Request};
use crate::report::words::{class_word, inode, op_word, origin_word};

/// An argument's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A count, a size, a sector.
    Unsigned(u64),
    /// An errno.
    Signed(i64),
    /// Text, interned.
    Text(String),
}

/// Arguments by name. Unknown and default values are omitted.
pub type Arguments = Vec<(&'static str, Value)>;

/// As "read 64K": the same for all alike, so that Perfetto adds them up.
pub fn request_name(request: &Request) -> String {
    let kind = op_word(request.op.kind);
    match request.bytes {
        0 => kind.to_string(),
        bytes => format!("{kind} {}", size(bytes)),
    }
}

/// As "pread64 64K".
pub fn io_name(io: &Io) -> String {
    match io.bytes {
        0 => io.call.name().to_string(),
        bytes => format!("{} {}", io.call.name(), size(bytes)),
    }
}

/// Of each slice of a request; `index` is that in the trace.
pub fn of_request(index: usize, request: &Request) -> Arguments {
    let text = |text: String| Value::Text(text);
    let mut all = vec![("request", Value::Unsigned(index as u64))];
    if request.bytes > 0 {
        all.push(("sector", Value::Unsigned(request.sector)));
        all.push(("bytes", Value::Unsigned(request.bytes)));
    }
    all.push(("op", text(op(request.op))));
    let levels = class_word(request).zip(request.priority.map(|priority| priority.level));
    all.extend(levels.map(|(class, level)| ("priority", text(format!("{class}/{level}")))));
    all.push(("origin", text(origin_word(request.origin).to_string())));
    all.extend(inode(request.origin).map(|inode| ("inode", Value::Unsigned(inode))));
    if !request.comm.is_empty() {
        all.push(("comm", text(request.comm.to_string())));
    }
    all.push(("pid", Value::Unsigned(request.pid.into())));
    let counts = [
        ("merged", request.merged_queued_ns.len() as u64),
        ("pieces", request.pieces.len() as u64),
        ("requeues", request.requeues.into()),
        ("cut_from_bio", request.cut_from_bio.into()),
    ];
    let counted = counts.into_iter().filter(|(_, count)| *count > 0);
    all.extend(counted.map(|(name, count)| (name, Value::Unsigned(count))));
    if request.error != 0 {
        all.push(("error", Value::Signed(request.error.into())));
    }
    all
}

/// Of a piece, besides those of its request; `index` is that among its pieces.
pub fn of_piece(index: usize, request: &Request) -> Arguments {
    let piece = &request.pieces[index];
    vec![
        ("piece", Value::Unsigned(index as u64 + 1)),
        ("piece_sector", Value::Unsigned(piece.sector)),
        ("piece_bytes", Value::Unsigned(piece.bytes)),
    ]
}

/// Of the slice of an I/O; `index` is that in the trace.
pub fn of_io(index: usize, io: &Io) -> Arguments {
    vec![
        ("io", Value::Unsigned(index as u64)),
        ("bytes", Value::Unsigned(io.bytes)),
        ("requests", Value::Unsigned(io.requests.len() as u64)),
        ("submission_ns", Value::Unsigned(io.spans.submission_ns)),
        ("block_ns", Value::Unsigned(io.spans.block_ns)),
        ("device_ns", Value::Unsigned(io.spans.device_ns)),
        ("post_ns", Value::Unsigned(io.spans.post_ns)),
    ]
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
    std::iter::once(op_word(op.kind)).chain(set).collect::<Vec<_>>().join(" ")
}

/// Short, but exact: in the largest unit that divides it.
fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")];
    let whole = UNITS.into_iter().find(|(unit, _)| bytes % unit == 0);
    whole.map_or(format!("{bytes}B"), |(unit, name)| format!("{}{name}", bytes / unit))
}
