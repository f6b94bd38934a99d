// SPDX-License-Identifier: MIT OR Apache-2.0
//! A small trace with one of each: a read, two overlapping ones of a ring, a sync with two requests, a
//! writeback in three pieces, a failed readahead on another device.

use std::collections::BTreeMap;

use steadyio_trace::event::{Call, Class, Comm, Dev, Op, OpKind, Priority};
use steadyio_trace::io::{Coverage, Io, Marks, Missing, Origin, Piece, Request, Spans, Trace};

/// When it begins, in ns.
pub const BEGIN_NS: u64 = 5_000_000_000_000;
const US: u64 = 1_000;

const CARD: Dev = Dev { major: 179, minor: 0 };
const DISK: Dev = Dev { major: 8, minor: 16 };

/// Of the one whose name is known.
pub fn names() -> BTreeMap<Dev, String> {
    BTreeMap::from([(CARD, "mmcblk0".to_string())])
}

fn marks(at_us: [Option<u64>; 7]) -> Marks {
    Marks(at_us.map(|at_us| Some(BEGIN_NS + at_us? * US)))
}

fn request(
    kind: OpKind,
    sector: u64,
    bytes: u64,
    origin: Origin,
    at_us: [Option<u64>; 7],
) -> Request {
    Request {
        dev: CARD,
        op: Op { kind, sync: kind == OpKind::Read, ..Op::default() },
        sector,
        bytes,
        priority: Some(Priority { class: Class::Be, level: 4 }),
        pid: 1201,
        comm: Comm::new(b"reader"),
        origin,
        marks: marks(at_us),
        ..Request::default()
    }
}

/// From `marks_us`: queued, issued, completed.
fn short(kind: OpKind, sector: u64, bytes: u64, origin: Origin, marks_us: [u64; 3]) -> Request {
    let [queued, issued, completed] = marks_us.map(Some);
    request(kind, sector, bytes, origin, [queued, None, None, issued, None, None, completed])
}

fn io(call: Call, pid: u32, when_us: (u64, u64), bytes: u64, requests: &[usize]) -> Io {
    let (entered_ns, exited_ns) = (BEGIN_NS + when_us.0 * US, BEGIN_NS + when_us.1 * US);
    let spans =
        Spans { submission_ns: US, device_ns: exited_ns - entered_ns - US, ..Spans::default() };
    let requests = requests.to_vec();
    let begun = Io::begin(call, (pid, Comm::new(b"reader")), entered_ns);
    Io { exited_ns, bytes, requests, spans, ..begun }
}

fn written_back() -> Request {
    let piece = |issued_us, ended_us, sector, bytes| Piece {
        issued_ns: BEGIN_NS + issued_us * US,
        ended_ns: BEGIN_NS + ended_us * US,
        sector,
        bytes,
        hardware_start_ns: None,
        hardware_done_ns: None,
    };
    let whole = short(OpKind::Write, 8192, 512 << 10, Origin::Writeback(Some(77)), [60, 70, 400]);
    Request {
        pid: 31,
        comm: Comm::new(b"kworker/u8:1"),
        merged_queued_ns: vec![BEGIN_NS + 61 * US],
        pieces: vec![
            Piece {
                hardware_start_ns: Some(BEGIN_NS + 75 * US),
                hardware_done_ns: Some(BEGIN_NS + 148 * US),
                ..piece(70, 150, 8192, 256 << 10)
            },
            piece(180, 200, 8704, 0),
            piece(250, 400, 8704, 256 << 10),
        ],
        requeues: 1,
        ..whole
    }
}

fn read_ahead() -> Request {
    let ahead = short(OpKind::Read, 64, 4096, Origin::Readahead(Some(12)), [20, 21, 90]);
    let op = Op { ahead: true, ..ahead.op };
    Request { dev: DISK, op, priority: None, error: -5, ..ahead }
}

pub fn trace() -> Trace {
    let read_us = [2, 3, 4, 9, 12, 92, 95].map(Some);
    Trace {
        requests: vec![
            request(OpKind::Read, 2048, 64 << 10, Origin::Io(0), read_us),
            read_ahead(),
            short(OpKind::Read, 4096, 4096, Origin::Io(1), [30, 31, 110]),
            short(OpKind::Read, 4224, 4096, Origin::Io(2), [33, 34, 120]),
            written_back(),
            short(OpKind::Write, 16, 8192, Origin::Io(3), [502, 503, 560]),
            short(OpKind::Flush, 0, 0, Origin::Io(3), [561, 562, 700]),
        ],
        ios: vec![
            io(Call::Pread64, 1201, (0, 99), 64 << 10, &[0]),
            io(Call::IoUringEnter, 1202, (29, 112), 4096, &[2]),
            io(Call::IoUringEnter, 1202, (32, 121), 4096, &[3]),
            io(Call::Fsync, 1201, (500, 705), 0, &[5, 6]),
        ],
        account: Coverage { events: 60, matched: 7, at_the_edges: 2, ..Coverage::default() },
        missing: vec![Missing {
            event: "irq:irq_handler_entry",
            consequence: "the time in interrupts is not known",
        }],
        ..Trace::default()
    }
}
