// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces made by hand, of which every figure can be told by looking. Times are in us.

use std::collections::BTreeMap;

use serde_json::Value;
use steadyio_trace::event::{Call, Class, Comm, Dev, Op, OpKind, Priority};
use steadyio_trace::io::{
    Io, Mark, Marks, Missing, Origin, Piece, Request, Spans, Trace, Unmatched,
};
use steadyio_trace::report::question::Question;
use steadyio_trace::report::record::Record;
use steadyio_trace::report::shown::Shown;

pub const DEV: Dev = Dev { major: 179, minor: 0 };
pub const US: u64 = 1_000;
pub const STEPS_US: [u64; 6] = [1, 2, 3, 4, 90, 6];

/// A request with all marks: queued, then so many us to tag, insert, issue, hardware, done, completion.
pub fn request(kind: OpKind, bytes: u64, queued_us: u64, steps_us: [u64; 6]) -> Request {
    let mut marks = Marks::default();
    let mut now_ns = queued_us * US;
    marks.set(Mark::Queued, now_ns);
    for (mark, step_us) in marks.0.iter_mut().skip(1).zip(steps_us) {
        now_ns += step_us * US;
        *mark = Some(now_ns);
    }
    Request {
        dev: DEV,
        op: Op { kind, ..Op::default() },
        sector: queued_us,
        bytes,
        pid: 100,
        comm: Comm::new(b"writer"),
        marks,
        ..Request::default()
    }
}

/// Dispatches, each from, to and bytes.
pub fn pieces(stays_us: &[(u64, u64, u64)]) -> Vec<Piece> {
    let piece = |&(issued, ended, bytes): &(u64, u64, u64)| {
        let (issued_ns, ended_ns) = (issued * US, ended * US);
        Piece { issued_ns, ended_ns, bytes, ..Piece::default() }
    };
    stays_us.iter().map(piece).collect()
}

pub fn priority(class: Class) -> Option<Priority> {
    Some(Priority { class, level: 4 })
}

/// A trace that grows.
#[derive(Default)]
pub struct Made(pub Trace);

impl Made {
    /// A request that no program waits for.
    pub fn request(&mut self, request: Request) -> usize {
        self.0.requests.push(request);
        self.0.account.matched += 1;
        self.0.requests.len() - 1
    }

    /// An I/O of thread 7 around these requests: so long before the first, and so long behind the last.
    pub fn io(
        &mut self,
        call: Call,
        bytes: u64,
        around_us: (u64, u64),
        own: Vec<Request>,
    ) -> usize {
        let io = self.0.ios.len();
        let requests: Vec<usize> = own
            .into_iter()
            .map(|request| {
                let (pid, comm) = (7, Comm::new(b"reader"));
                self.request(Request { origin: Origin::Io(io), pid, comm, ..request })
            })
            .collect();
        let marks = |index: &usize| self.0.requests[*index].marks;
        let of = |mark| move |marks: Marks| marks.get(mark).unwrap();
        let first = requests.iter().map(marks).map(of(Mark::Queued)).min().unwrap();
        let start = requests.iter().map(marks).map(of(Mark::HardwareStart)).min().unwrap();
        let done = requests.iter().map(marks).map(of(Mark::HardwareDone)).max().unwrap();
        let last = requests.iter().map(marks).map(of(Mark::Completed)).max().unwrap();
        let spans = Spans {
            submission_ns: around_us.0 * US,
            block_ns: start - first,
            device_ns: done - start,
            post_ns: last - done + around_us.1 * US,
        };
        let entered_ns = first - around_us.0 * US;
        let exited_ns = last + around_us.1 * US;
        let begun = Io::begin(call, (7, Comm::new(b"reader")), entered_ns);
        self.0.ios.push(Io { exited_ns, bytes, requests, spans, ..begun });
        io
    }

    /// `count` reads of 4 KiB, one after the other, each with 90 us at the device.
    pub fn usual_reads(&mut self, count: u64) {
        for number in 0..count {
            let request = request(OpKind::Read, 4096, 1_000_000 + number * 200, STEPS_US);
            self.io(Call::Pread64, 4096, (20, 10), vec![request]);
        }
    }

    pub fn record(&self) -> Record {
        record(&self.0, &question())
    }

    /// Causes of the I/O that took longest, in words.
    pub fn causes(&self) -> Vec<String> {
        let record = self.record();
        valid(&record);
        record.worst_ios[0].causes.iter().map(|cause| cause.text.clone()).collect()
    }
}

/// Reads and writes of two sizes, writeback, journal, readahead, a flush, a discard, two classes, a split
/// request, a slow one, and an account with everything in it.
pub fn rich() -> Made {
    let mut made = Made::default();
    made.usual_reads(30);
    let write = request(OpKind::Write, 131_072, 100, [5, 5, 50, 40, 900, 20]);
    made.io(
        Call::Write,
        131_072,
        (30, 5),
        vec![Request { priority: priority(Class::Rt), ..write }],
    );
    let flush = request(OpKind::Flush, 0, 10_000, [1, 1, 1, 1, 400, 1]);
    made.io(Call::Fsync, 0, (100, 5), vec![flush]);
    for (origin, kind) in [
        (Origin::Writeback(Some(12)), OpKind::Write),
        (Origin::Readahead(None), OpKind::Read),
        (Origin::Journal, OpKind::Write),
        (Origin::Thread, OpKind::Discard),
    ] {
        let request = request(kind, 65_536, 20_000, STEPS_US);
        made.request(Request { origin, priority: priority(Class::Be), ..request });
    }
    let split = request(OpKind::Write, 524_288, 30_000, [1, 1, 1, 1, 5_000, 1]);
    let stays = pieces(&[(30_004, 32_000, 262_144), (33_000, 35_004, 262_144)]);
    made.request(Request { pieces: stays, ..split });
    let waits = request(OpKind::Read, 4096, 30_100, [1, 1, 4_900, 1, 90, 1]);
    made.io(Call::Pread64, 4096, (20, 10), vec![waits]);
    let op = made.0.requests[0].op;
    let (device, op) = (DEV.to_string(), op.kind.into_str());
    let why = "it was never issued";
    let lost = Unmatched { at_ns: 5, dev: DEV, device, sector: 9, op, why };
    made.0.account.unmatched.push(lost);
    made.0.account.unmatched_count = 1;
    let (event, consequence) = ("block:block_getrq", "tag waits are not known");
    made.0.missing.push(Missing { event, consequence });
    made
}

/// The record that answers this question about a trace.
pub fn record(trace: &Trace, question: &Question) -> Record {
    Record::new(&Shown::of(trace, question))
}

/// The record as a document, checked against the published schema.
pub fn valid(record: &Record) -> Value {
    let path = "/../../docs/spec/steady-trace-record-1.schema.json";
    let schema = std::fs::read_to_string([env!("CARGO_MANIFEST_DIR"), path].concat()).unwrap();
    let validator = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
    let record: Value = serde_json::from_str(&record.to_json().unwrap()).unwrap();
    let faults: Vec<String> = validator.iter_errors(&record).map(|e| e.to_string()).collect();
    assert!(faults.is_empty(), "record breaks the schema: {faults:?}");
    let mut wrong = record.clone();
    wrong["unknown"] = Value::Null;
    assert!(!validator.is_valid(&wrong), "the schema allows anything");
    record
}

pub fn question() -> Question {
    let names = BTreeMap::from([(DEV, "mmcblk0".to_string())]);
    Question { worst: 3, names, ..Question::default() }
}
