// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every request and every I/O of a folder that `steady trace --keep` made, one JSON object a line, and the
//! account as the last: `cargo run --example trace_requests FOLDER`. For programs that look at each of them; the
//! tests in `tests/trace/` compare them with what blktrace and fio saw.

use std::error::Error;
use std::io::{BufWriter, Write, stdout};
use std::path::Path;

use serde_json::{Value, json};
use steadyio_trace::follow::{Follower, Options};
use steadyio_trace::io::{Io, Origin, Piece, Request, Trace};
use steadyio_trace::source::capture::Captured;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).ok_or("no FOLDER is given")?;
    let trace = follow(Path::new(&folder))?;
    let mut out = BufWriter::new(stdout().lock());
    for request in &trace.requests {
        writeln!(out, "{}", of_request(request))?;
    }
    for io in &trace.ios {
        writeln!(out, "{}", of_io(io))?;
    }
    writeln!(out, "{}", of_account(&trace))?;
    Ok(out.flush()?)
}

fn follow(folder: &Path) -> Result<Trace, Box<dyn Error>> {
    let captured = Captured::open(folder)?;
    let mut follower = Follower::new(Options::default());
    for event in captured.events() {
        follower.take(&event?);
    }
    Ok(follower.finish())
}

fn of_request(request: &Request) -> Value {
    let piece = |piece: &Piece| {
        json!({
            "issued_ns": piece.issued_ns,
            "ended_ns": piece.ended_ns,
            "sector": piece.sector,
            "bytes": piece.bytes,
            "hardware_ns": [piece.hardware_start_ns, piece.hardware_done_ns],
        })
    };
    json!({
        "kind": "request",
        "dev": request.dev.to_string(),
        "through": request.through.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "op": format!("{:?}", request.op.kind).to_lowercase(),
        "preflush": request.op.preflush,
        "sector": request.sector,
        "bytes": request.bytes,
        "marks_ns": request.marks.0,
        "pieces": request.pieces.iter().map(piece).collect::<Vec<_>>(),
        "merged": request.merged_queued_ns.len(),
        "cut_from_bio": request.cut_from_bio,
        "requeues": request.requeues,
        "origin": match request.origin {
            Origin::Io(_) => "io",
            Origin::Writeback(_) => "writeback",
            Origin::Readahead(_) => "readahead",
            Origin::Journal => "journal",
            Origin::Thread => "thread",
        },
        "comm": request.comm.to_string(),
        "pid": request.pid,
        "error": request.error,
    })
}

fn of_io(io: &Io) -> Value {
    let spans = io.spans;
    json!({
        "kind": "io",
        "call": format!("{:?}", io.call),
        "pid": io.pid,
        "comm": io.comm.to_string(),
        "entered_ns": io.entered_ns,
        "exited_ns": io.exited_ns,
        "bytes": io.bytes,
        "requests": io.requests,
        "spans_ns": [spans.submission_ns, spans.block_ns, spans.device_ns, spans.post_ns],
    })
}

fn of_account(trace: &Trace) -> Value {
    let account = &trace.account;
    let unmatched = account.unmatched.iter().map(|one| {
        json!({ "dev": one.device, "sector": one.sector, "at_ns": one.at_ns, "why": one.why })
    });
    json!({
        "kind": "account",
        "events": account.events,
        "events_lost": account.events_lost,
        "matched": account.matched,
        "at_the_edges": account.at_the_edges,
        "hit_by_loss": account.hit_by_loss,
        "unmatched": account.unmatched_count,
        "unmatched_first": unmatched.collect::<Vec<_>>(),
        "calls_without_request": account.calls_without_request,
        "ios_incomplete": account.ios_incomplete,
        "missing": trace.missing.iter().map(|one| one.event).collect::<Vec<_>>(),
    })
}
