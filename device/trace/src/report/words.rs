// SPDX-License-Identifier: MIT OR Apache-2.0
//! What things are called in records and tables.

use crate::event::{Call, Class, OpKind};
use crate::io::{Io, Origin, Request, Trace};
use crate::source::calls::CALLS;

/// What a call does with the device; what was submitted through a ring or aio does what its first request does.
pub fn io_op(io: &Io, trace: &Trace) -> &'static str {
    use Call::*;
    match io.call {
        Read | Pread64 | Readv | Preadv | Preadv2 => "read",
        Write | Pwrite64 | Writev | Pwritev | Pwritev2 => "write",
        IoSubmit | IoGetevents | IoPgetevents | IoUringEnter => {
            io.requests.first().map_or("other", |index| op_word(trace.requests[*index].op.kind))
        }
        other => call_word(other),
    }
}

/// The kernel's name of a system call.
pub fn call_word(call: Call) -> &'static str {
    CALLS.iter().find(|events| events.call == call).map_or("?", |events| events.name)
}

/// What a request does, in records.
pub fn op_word(kind: OpKind) -> &'static str {
    match kind {
        OpKind::Read => "read",
        OpKind::Write => "write",
        OpKind::Flush => "flush",
        OpKind::Discard => "discard",
        OpKind::Other => "other",
    }
}

/// On whose behalf, in records.
pub fn origin_word(origin: Origin) -> &'static str {
    match origin {
        Origin::Io(_) => "io",
        Origin::Writeback(_) => "writeback",
        Origin::Readahead(_) => "readahead",
        Origin::Journal => "journal",
        Origin::Thread => "thread",
    }
}

/// The inode that a request is for, if it is known.
pub fn inode(origin: Origin) -> Option<u64> {
    match origin {
        Origin::Writeback(inode) | Origin::Readahead(inode) => inode,
        _ => None,
    }
}

/// The class of a request; `None` if events do not carry it.
pub fn class_word(request: &Request) -> Option<&'static str> {
    request.priority.map(|priority| match priority.class {
        Class::None => "none",
        Class::Rt => "rt",
        Class::Be => "be",
        Class::Idle => "idle",
    })
}
