// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known of an I/O or a journal's commit until it is over.

use super::Key;
use crate::io::Io;

/// What is known of the requests of one.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// Bios whose requests have not completed.
    pub held: u32,
    /// A request of it is not known.
    pub broken: bool,
    pub parts: Vec<Part>,
}

/// An I/O that is not over.
#[derive(Debug, Default)]
pub(in crate::follow) struct OpenIo {
    pub io: Io,
    pub(super) has_ended: bool,
    /// Bytes moved, if the call says so; if not, those of its requests.
    pub bytes: Option<u64>,
    /// When an operation completed that a later call reaps.
    pub completed_ns: Option<u64>,
    /// Commits that began and ended in the call.
    pub commits: Vec<Key>,
    pub(super) work: Work,
    /// A worker of io_uring did it, or a part of it.
    pub(super) of_worker: bool,
    /// How many placeholders may turn out to be part of it.
    pub(super) placeholders: u32,
    pub(super) placeholder: Placeholder,
}

/// Whether it is an I/O itself, or stands for requests of one of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Placeholder {
    #[default]
    No,
    /// Of an owner that is not known yet.
    OfSomebody,
    Of(Key),
}

/// A journal's commit. It is kept: calls that waited for it may be judged at any later time.
#[derive(Debug)]
pub(super) struct Commit {
    pub begun_ns: u64,
    pub ended_ns: Option<u64>,
    pub work: Work,
}

/// A request, as one task sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub request: usize,
    pub from_ns: u64,
    pub ahead: bool,
    /// This task's bio was the request's first.
    pub first: bool,
}

impl OpenIo {
    /// As a call of which no request is reported.
    pub fn as_call(&self) -> Io {
        Io { has_commit: !self.commits.is_empty(), ..self.io.clone() }
    }

    /// It led to requests, or may have.
    pub(super) fn asked(&self) -> bool {
        let Work { held, broken, parts } = &self.work;
        *held > 0 || *broken || self.placeholders > 0 || !parts.is_empty()
    }
}

impl Work {
    /// The bios of one request come together.
    pub fn add(&mut self, part: Part) {
        if !self.parts.last_mut().is_some_and(|last| last.is_joined_by(&part)) {
            self.parts.push(part);
        }
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
