// SPDX-License-Identifier: MIT OR Apache-2.0
//! An I/O or a journal's commit in progress, and the requests that an I/O asked for and waited for.
//! `sink` holds these.

use super::results::{Part, Results};
use crate::event::Dev;
use crate::intervals::Intervals;
use crate::io::{Io, Request, Spans};

/// The number of an I/O or commit. No number is used twice.
pub(in crate::follow) type Key = u64;

/// An I/O in progress, or a commit or placeholder, which have requests as an I/O has.
#[derive(Debug, Default)]
pub(in crate::follow) struct OpenIo {
    pub io: Io,
    pub(super) kind: OpenKind,
    pub(super) has_ended: bool,
    /// The number of bytes moved, if the call returns it; otherwise that of its requests.
    pub bytes: Option<u64>,
    /// The time at which an operation completed that a later call reaps, or at which a commit
    /// ended.
    pub completed_ns: Option<u64>,
    /// The commits that began and ended during the call.
    pub commits: Vec<Key>,
    /// The number of bios whose requests have not completed.
    pub(super) held: u32,
    /// Whether one of its requests is unknown.
    pub(super) broken: bool,
    /// Its known requests.
    pub(super) parts: Vec<Part>,
    /// Whether a worker of io_uring executed at least a part of it.
    pub of_worker: bool,
    /// The number of placeholders that may belong to it.
    pub(super) placeholders: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum OpenKind {
    #[default]
    Io,
    /// A journal's commit. It is kept, because calls that waited for it may be judged at any later
    /// time.
    Commit,
    /// A placeholder for requests of one of several I/Os, with the I/O once it is known.
    Placeholder(Option<Key>),
}

impl OpenIo {
    /// The I/O as a call without reported requests.
    pub fn as_call(&self) -> Io {
        Io { has_commit: !self.commits.is_empty(), ..self.io.clone() }
    }

    /// Whether it led to requests, or may have.
    pub(super) fn asked(&self) -> bool {
        self.held > 0 || self.broken || self.placeholders > 0 || !self.parts.is_empty()
    }

    /// The requests that it asked for: all except readahead. Without any, it is the readahead that
    /// completed before the call did, because a reader with a cache miss waits for the readahead
    /// that it has just started. `None` if one of them is unknown.
    pub(super) fn asked_for(&self, results: &Results) -> Option<Vec<Part>> {
        let known = |part: &Part| Some((results.request(part.request)?.end_ns(), *part));
        let parts = self.parts.iter().map(known).collect::<Option<Vec<(u64, Part)>>>()?;
        let all_ahead = parts.iter().all(|(_, part)| part.ahead);
        let is_asked_for = |(end_ns, part): &(u64, Part)| match all_ahead {
            true => *end_ns <= self.io.exited_ns,
            false => !part.ahead,
        };
        Some(parts.into_iter().filter(is_asked_for).map(|(_, part)| part).collect())
    }

    /// Whether the call waited for the commit. The call was in progress during the whole commit,
    /// had requests on that device, and none of its own was pending when the commit ended. The
    /// requests of a write, which may be asynchronous, must have completed before the commit began.
    pub(super) fn waited_for(&self, commit: &OpenIo, own: &[Part], results: &Results) -> bool {
        let dev = |part: &Part| Some(results.request(part.request)?.dev);
        let devs = commit.parts.iter().map(dev).collect::<Option<Vec<Dev>>>();
        let (Some(ended_ns), Some(devs)) = (commit.completed_ns, devs) else { return false };
        let since_ns = if self.io.call.is_write() { commit.io.entered_ns } else { ended_ns };
        let is_pending = |(request, from_ns): (&Request, u64)| {
            from_ns <= ended_ns && since_ns < request.end_ns()
        };
        let own = || results.of_parts(own);
        own().any(|(request, _)| devs.contains(&request.dev)) && !own().any(is_pending)
    }

    /// The I/O with these requests.
    pub(super) fn with(&self, parts: &[Part], results: &Results) -> Io {
        let requests = || results.of_parts(parts);
        // The times in the block layer, the driver or the device, for a task whose bio came at
        // `from_ns`.
        let present = requests().map(|(request, from_ns)| (from_ns, request.end_ns()));
        let with_device = requests().flat_map(|(request, _)| request.with_device().to_vec());
        let moved = || requests().filter(|(of, _)| of.error == 0).map(|(of, _)| of.bytes).sum();
        let during_ns = (self.io.entered_ns, self.io.exited_ns);
        Io {
            bytes: self.bytes.unwrap_or_else(moved),
            requests: parts.iter().map(|part| part.request).collect(),
            spans: Spans::of(during_ns, &Intervals::new(present), &Intervals::new(with_device)),
            ..self.io.clone()
        }
    }

    /// The requests of a commit, as parts of an I/O that waited for it.
    pub(super) fn parts_for_waiter(&self, results: &Results) -> impl Iterator<Item = Part> {
        self.parts.iter().filter_map(|Part { request, .. }| {
            let (request, from_ns) = (*request, results.request(*request)?.begin_ns());
            Some(Part { request, from_ns, ahead: false, first: false })
        })
    }

    /// Adds a part. The bios of one request come one after another.
    pub(super) fn add(&mut self, part: Part) {
        if !self.parts.last_mut().is_some_and(|last| last.is_joined_by(&part)) {
            self.parts.push(part);
        }
    }
}
