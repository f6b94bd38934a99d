// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arguments of slices, which Perfetto shows when a slice is selected. `tracks` adds them.

use super::messages::DebugAnnotation;
use super::strings::Strings;
use crate::event::{Op, Priority};
use crate::io::Request;
use crate::report::rows::Row;

/// The arguments. Unknown and default values are omitted.
pub type Arguments = Vec<DebugAnnotation>;

/// The arguments of each slice of a request; `index` is the request's index in the trace.
pub fn of_request(strings: &mut Strings, index: usize, request: &Request) -> Arguments {
    let mut all = vec![strings.number("request", index as i64)];
    if request.bytes > 0 {
        all.push(strings.number("sector", request.sector as i64));
        all.push(strings.number("bytes", request.bytes as i64));
    }
    all.push(strings.text("op", &op(request.op)));
    if let Some(Priority { class, level }) = request.priority {
        all.push(strings.text("priority", &format!("{}/{level}", class.into_str())));
    }
    all.push(strings.text("origin", request.origin.into_str()));
    all.extend(request.origin.inode().map(|inode| strings.number("inode", inode as i64)));
    if !request.comm.is_empty() {
        all.push(strings.text("comm", &request.comm.to_string()));
    }
    all.push(strings.number("pid", request.pid.into()));
    let counts = [
        ("merged", request.merged_queued_ns.len() as i64),
        ("pieces", request.pieces.len() as i64),
        ("requeues", request.requeues.into()),
        ("cut_from_bio", request.cut_from_bio.into()),
        ("error", request.error.into()),
    ];
    let counted = counts.into_iter().filter(|(_, count)| *count != 0);
    all.extend(counted.map(|(name, count)| strings.number(name, count)));
    all
}

/// The arguments of a piece, in addition to those of its request; `index` is its index among the
/// pieces.
pub fn of_piece(strings: &mut Strings, index: usize, request: &Request) -> Arguments {
    let piece = &request.pieces[index];
    vec![
        strings.number("piece", index as i64 + 1),
        strings.number("piece_sector", piece.sector as i64),
        strings.number("piece_bytes", piece.bytes as i64),
    ]
}

/// The arguments of an I/O's slice; `index` is the I/O's index in the trace.
pub fn of_io(strings: &mut Strings, index: usize, row: &Row) -> Arguments {
    let mut all = vec![strings.number("io", index as i64)];
    all.extend(row.bytes.map(|bytes| strings.number("bytes", bytes as i64)));
    all.push(strings.number("requests", row.requests as i64));
    let names = ["submission_ns", "block_ns", "device_ns", "post_ns"];
    let spans = names.into_iter().zip(row.spans_ns());
    all.extend(spans.filter_map(|(name, ns)| Some(strings.number(name, ns? as i64))));
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
