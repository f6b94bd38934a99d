// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes sequences of trace events as a kernel would emit them, a line per event.

use steadyio_trace::event::{Call, Comm, Dev, Event, EventKind, Extent, Op, OpKind};
use steadyio_trace::follow::{Follower, Options};
use steadyio_trace::io::Trace;

pub const DISK: Dev = Dev { major: 179, minor: 0 };

/// Read or write with a sync flag, and so on, as the letters of block events say it.
pub fn op(letters: &str) -> Op {
    let mut op = Op::default();
    let mut rest = letters;
    if rest.starts_with('F') {
        op.preflush = true;
        rest = &rest[1..];
    }
    op.kind = match rest.chars().next() {
        Some('R') => OpKind::Read,
        Some('W') => OpKind::Write,
        Some('D') => OpKind::Discard,
        Some('F') => OpKind::Flush,
        _ => OpKind::Other,
    };
    for letter in rest.chars().skip(1) {
        match letter {
            'F' => op.fua = true,
            'S' => op.sync = true,
            'M' => op.meta = true,
            'A' => op.ahead = true,
            _ => panic!("unknown letter {letter} in {letters}"),
        }
    }
    op
}

pub fn extent(letters: &str, sector: u64, sectors: u32) -> Extent {
    Extent { dev: DISK, sector, sectors, op: op(letters), priority: None }
}

/// A trace in the making: `at(t).by(pid)` sets who does what follows, and when.
#[derive(Clone, Default)]
pub struct Script {
    pub events: Vec<Event>,
    time_ns: u64,
    pid: u32,
    cpu: u32,
    comm: Comm,
}

impl Script {
    pub fn new() -> Script {
        Script::default()
    }

    pub fn at(&mut self, time_ns: u64) -> &mut Script {
        self.time_ns = time_ns;
        self
    }

    pub fn by(&mut self, pid: u32) -> &mut Script {
        self.named(pid, "task")
    }

    pub fn named(&mut self, pid: u32, comm: &str) -> &mut Script {
        (self.pid, self.comm) = (pid, Comm::new(comm.as_bytes()));
        self
    }

    pub fn on(&mut self, cpu: u32) -> &mut Script {
        self.cpu = cpu;
        self
    }

    pub fn what(&mut self, what: EventKind) -> &mut Script {
        let (time_ns, cpu, pid, comm) = (self.time_ns, self.cpu, self.pid, self.comm);
        self.events.push(Event { time_ns, cpu, pid, comm, what });
        self
    }

    pub fn enter(&mut self, call: Call) -> &mut Script {
        self.what(EventKind::CallEnter { call, fd: Some(3) })
    }

    pub fn exit(&mut self, call: Call, result: i64) -> &mut Script {
        self.what(EventKind::CallExit { call, result })
    }

    /// One block event, by its letter in blktrace.
    pub fn block(&mut self, letter: char, extent: Extent) -> &mut Script {
        self.what(match letter {
            'Q' => EventKind::BioQueue(extent),
            'M' => EventKind::BackMerge(extent),
            'F' => EventKind::FrontMerge(extent),
            'm' => EventKind::RequestMerge(extent),
            'G' => EventKind::GetRequest(extent),
            'I' => EventKind::Insert(extent),
            'D' => EventKind::Issue(extent),
            'R' => EventKind::Requeue(extent),
            'C' => EventKind::Complete { extent, error: 0 },
            _ => panic!("unknown event {letter}"),
        })
    }

    pub fn follow(&self) -> Trace {
        follow(&self.events)
    }
}

/// Follows `events` to requests and I/Os.
pub fn follow(events: &[Event]) -> Trace {
    let mut follower = Follower::new(Options::default());
    events.iter().for_each(|event| follower.take(event));
    follower.finish()
}

/// How many requests the trace has: matched, at its edges, hit by loss and unmatched.
pub fn counted(trace: &Trace) -> u64 {
    let account = &trace.account;
    account.matched + account.at_the_edges + account.hit_by_loss + account.unmatched_count
}
