// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes a file of measured spans (`docs/spec/spans-1.md`) from the record of a trace. `steady
//! trace --spans` and `spans` call it.

use serde::Deserialize;
use serde_json::{Value, json};
use steadyio_trace::report::groups::Group;
use steadyio_trace::report::record::TRACE_SCHEMA;
use steadyio_trace::report::times::SPANS;

/// The file's schema, which `steady model` reads.
pub const SPANS_SCHEMA: &str = "steadyio.spans/1";
const NS_PER_US: f64 = 1_000.0;

#[derive(Debug, thiserror::Error)]
pub enum NoSpans {
    #[error("not a {TRACE_SCHEMA} record")]
    Record(#[from] serde_json::Error),
    /// Requests outside system calls have no submission and no return.
    #[error(
        "the trace has no read or write of a system call, so there are no spans; \
         record the events of system calls (syscalls:*)"
    )]
    NoIos,
}

/// The used part of a record.
#[derive(Deserialize)]
struct RecordAsWritten {
    ios: Vec<Group>,
}

/// The file for a record in JSON.
pub fn of_json(text: &str) -> Result<Value, NoSpans> {
    of_groups(&serde_json::from_str::<RecordAsWritten>(text)?.ios)
}

/// The file for a record's groups of I/Os: one entry per kind of read and write with the means, and
/// the statistics of each span as detail.
pub fn of_groups(groups: &[Group]) -> Result<Value, NoSpans> {
    let moves = |group: &&Group| matches!(&*group.op, "read" | "write") && group.size_bytes_max > 0;
    let entries: Vec<Value> = groups.iter().filter(moves).map(entry).collect();
    if entries.is_empty() {
        Err(NoSpans::NoIos)
    } else {
        Ok(json!({
            "schema": SPANS_SCHEMA,
            "name": "trace",
            "source": "steady trace",
            "spans": entries,
        }))
    }
}

fn entry(group: &Group) -> Value {
    let times = &group.times;
    let mean_us =
        SPANS.map(|span| times.span(span).map_or(0.0, |span| span.times.mean_ns / NS_PER_US));
    json!({
        "name": group.title(),
        "op": group.op,
        // A group has different sizes only within a power of two, so their mean represents them.
        "size_bytes": times.bytes / times.count,
        "count": times.count,
        "submission_us": mean_us[0],
        "block_us": mean_us[1],
        "device_us": mean_us[2],
        "post_us": mean_us[3],
        "detail": { "at_once_max": group.at_once_max, "spans": times.spans },
    })
}
