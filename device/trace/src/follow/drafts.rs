// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known of an I/O until it ends.

use super::super::event::{Call, Comm, UringOp};
use super::tasks::Key;

/// How the program learns of an I/O's completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handover {
    /// The call itself returns.
    Return,
    /// A later call, or the same, reaps it.
    Reap,
}

/// An I/O that is not over.
#[derive(Debug)]
pub(super) struct Draft {
    pub call: Call,
    /// Of io_uring.
    pub operation: Option<UringOp>,
    pub pid: u32,
    pub comm: Comm,
    pub entered_ns: u64,
    pub exited_ns: Option<u64>,
    /// Bytes moved, if the call says so; if not, those of its requests.
    pub bytes: Option<u64>,
    pub handover: Handover,
    /// When an operation completed that a later call reaps.
    pub completed_ns: Option<u64>,
    /// Commits that began and ended in the call.
    pub commits: Vec<Key>,
    pub parts: Vec<Part>,
    pub held: u32,
    pub broken: bool,
    /// A worker of io_uring did it, or a part of it.
    pub joined: bool,
    /// How many stand-ins may turn out to be part of it.
    pub doubts: u32,
    /// It is no I/O itself, but a part of one that is not known yet, or of that one.
    pub stand_in: Option<Heir>,
}

/// Whose a stand-in is.
pub(super) type Heir = Option<Key>;

/// A request, as one task sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub request: usize,
    pub from_ns: u64,
    pub ahead: bool,
    /// This task's bio was the request's first.
    pub first: bool,
}

impl Draft {
    /// It led to requests, or may have.
    pub fn asked(&self) -> bool {
        self.held > 0 || self.doubts > 0 || !self.parts.is_empty()
    }
}

impl Part {
    /// Whether both are of one request; then this one is both.
    pub fn is_joined_by(&mut self, other: &Part) -> bool {
        let same = self.request == other.request;
        if same {
            self.from_ns = self.from_ns.min(other.from_ns);
            self.ahead &= other.ahead;
            self.first |= other.first;
        }
        same
    }
}
