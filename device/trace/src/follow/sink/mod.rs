// SPDX-License-Identifier: MIT OR Apache-2.0
//! Collects the I/Os of programs and the commits of journals in progress (`open_io`), the certain
//! results (`results`), and the kinds of events that were seen. All stages of `follow` write to it.
//!
//! Each bio keeps its I/O or commit open until the bio's request has completed. Only then is it
//! complete enough to be judged.

mod open_io;
mod results;

use std::collections::HashMap;

pub(super) use open_io::{Key, OpenIo};
pub(super) use results::{Ambiguity, Results};

use super::seen::Seen;
use crate::event::{Call, Comm};
use crate::io::{Io, Origin};
use open_io::OpenKind;
use results::Part;

/// A bio's claim on its request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    /// The I/O or commit that the bio is queued for, if it is for any.
    pub task: Option<Key>,
    /// The origin of the request, if it belongs to no I/O.
    pub origin: Origin,
    /// The time at which the bio was queued or first seen.
    pub queued_ns: u64,
    pub ahead: bool,
}

#[derive(Debug, Default)]
pub(super) struct Sink {
    next: Key,
    /// I/Os, commits and placeholders.
    pub ios: HashMap<Key, OpenIo>,
    /// I/Os that have ended, and wait only for an open request of a commit.
    waiting: Vec<Key>,
    pub results: Results,
    pub seen: Seen,
}

impl Sink {
    /// Changes an I/O or commit, if it is known and in progress.
    pub fn change(&mut self, key: impl Into<Option<Key>>, change: impl FnOnce(&mut OpenIo)) {
        if let Some(io) = key.into().and_then(|key| self.ios.get_mut(&key)) {
            change(io);
        }
    }

    pub fn begin_io(&mut self, io: Io) -> Key {
        self.begin(OpenKind::Io, io)
    }

    fn begin(&mut self, kind: OpenKind, io: Io) -> Key {
        self.next += 1;
        self.ios.insert(self.next, OpenIo { io, kind, ..OpenIo::default() });
        self.next
    }

    /// Whether the next call reaps the I/O: an event showed its completion, or all its requests
    /// have completed.
    pub fn is_served(&self, key: Key) -> bool {
        let served = |io: &OpenIo| io.held == 0 || io.completed_ns.is_some();
        self.ios.get(&key).is_some_and(served)
    }

    /// Ends an I/O: the program has reaped it, or its call has returned.
    pub fn end_io(&mut self, key: Key, exited_ns: u64) {
        self.change(key, |io| (io.io.exited_ns, io.has_ended) = (exited_ns, true));
        self.judge(key);
    }

    /// Creates a placeholder for requests of one of `candidates`. They are not reported until the
    /// owner is known.
    pub fn begin_placeholder(&mut self, who: (u32, Comm), now_ns: u64, candidates: &[Key]) -> Key {
        for candidate in candidates {
            self.change(*candidate, |io| io.placeholders += 1);
        }
        self.begin(OpenKind::Placeholder(None), Io::begin(Call::IoUringEnter, who, now_ns))
    }

    /// Excludes `key` from the owners of a placeholder, or gives up all of `key`.
    pub fn rule_out(&mut self, key: Key) {
        self.change(key, |io| io.placeholders = io.placeholders.saturating_sub(1));
        self.judge(key);
    }

    /// Sets the owner of `placeholder`. After this, only the ends of its requests are unknown.
    pub fn find_owner(&mut self, placeholder: Key, owner: Key) {
        self.change(placeholder, |io| io.kind = OpenKind::Placeholder(Some(owner)));
        // Now and not when the last request completes: an ambiguity of one until then affects both.
        self.change(owner, |io| io.of_worker = true);
        self.hand_to_owner(placeholder);
    }

    fn hand_to_owner(&mut self, placeholder: Key) {
        let Some(io) = self.ios.get(&placeholder).filter(|io| io.held == 0) else { return };
        let OpenKind::Placeholder(Some(owner)) = io.kind else { return };
        let Some(placeholder) = self.ios.remove(&placeholder) else { return };
        self.change(owner, |io| {
            io.broken |= placeholder.broken;
            io.parts.extend(placeholder.parts);
            io.parts.sort_by_key(|part| part.request);
            io.parts.dedup_by(|part, known| known.is_joined_by(part));
        });
        self.rule_out(owner);
    }

    /// Sets the thread's name as of its first bio; without a bio, as of its end.
    pub fn name_io(&mut self, key: Key, comm: Comm) {
        self.change(key, |io| io.io.comm = if io.asked() { io.io.comm } else { comm });
    }

    /// Gives up an I/O: the end of its call was not seen, so nothing of it is certain.
    pub fn abandon(&mut self, key: Key) {
        let Some(io) = self.ios.get_mut(&key).filter(|io| io.asked()) else {
            return drop(self.ios.remove(&key));
        };
        (io.broken, io.io.fd, io.io.file) = (true, None, None);
        io.commits.clear();
        let entered_ns = io.io.entered_ns;
        self.end_io(key, entered_ns);
    }

    pub fn begin_commit(&mut self, begun_ns: u64) -> Key {
        self.begin(OpenKind::Commit, Io { entered_ns: begun_ns, ..Io::default() })
    }

    /// Ends a commit, and returns the time at which it began.
    pub fn end_commit(&mut self, key: Key, ended_ns: u64) -> Option<u64> {
        let commit = self.ios.get_mut(&key)?;
        commit.completed_ns = Some(ended_ns);
        Some(commit.io.entered_ns)
    }

    /// Counts a bio that is queued for the task.
    pub fn hold(&mut self, task: Option<Key>) {
        self.change(task, |io| io.held += 1);
    }

    /// Releases a bio: its request has completed, or it led to none.
    pub fn release(&mut self, task: Option<Key>) {
        let Some(key) = task else { return };
        let Some(io) = self.ios.get_mut(&key) else { return };
        io.held = io.held.saturating_sub(1);
        if io.kind == OpenKind::Commit && io.held == 0 {
            std::mem::take(&mut self.waiting).into_iter().for_each(|io| self.judge(io));
        }
        self.judge(key);
        self.hand_to_owner(key);
    }

    /// Adds `request` to the task of this share.
    pub fn add(&mut self, share: &Share, request: usize, first: bool) {
        let Share { task, queued_ns: from_ns, ahead, .. } = *share;
        self.change(task, |io| io.add(Part { request, from_ns, ahead, first }));
    }

    /// Marks a task as incomplete, so that it is not reported.
    pub fn invalidate(&mut self, task: Option<Key>) {
        self.change(task, |io| io.broken = true);
    }

    /// Releases a share whose request is unknown.
    pub fn drop_share(&mut self, share: &Share) {
        self.invalidate(share.task);
        self.release(share.task);
    }

    /// Marks the I/Os of this thread's workers as ambiguous. They executed an operation from before
    /// the trace that may have been mistaken for another.
    pub fn mark_workers_ambiguous(&mut self, pid: u32) {
        let of_workers = |io: &&mut OpenIo| io.of_worker && io.io.pid == pid;
        self.ios.values_mut().filter(of_workers).for_each(|io| io.broken = true);
        self.results.take_back_of_workers(pid);
    }

    /// Gives up all I/Os in progress.
    pub fn abandon_all(&mut self) {
        let left_out = |io: &&OpenIo| io.kind == OpenKind::Io && io.asked();
        self.results.account.ios_incomplete += self.ios.values().filter(left_out).count() as u64;
        self.ios.clear();
        self.waiting.clear();
    }

    /// Reports the I/O if it has ended.
    fn judge(&mut self, key: Key) {
        let Some(io) = self.ios.get(&key) else { return };
        if io.held > 0 || io.placeholders > 0 || !io.has_ended {
            return;
        }
        let open = |key: &Key| self.ios.get(key).is_some_and(|commit| commit.held > 0);
        if io.asked() && io.commits.iter().any(open) {
            self.waiting.push(key);
            return;
        }
        let Some(io) = self.ios.remove(&key) else { return };
        self.report(&io);
    }

    fn report(&mut self, io: &OpenIo) {
        let Some(mut parts) = io.asked_for(&self.results).filter(|_| !io.broken) else {
            return self.report_incomplete(io);
        };
        if parts.is_empty() {
            // A page fault that continued without the data that it had begun to read.
            if io.io.call != Call::PageFault || io.io.exited_ns > io.io.entered_ns {
                self.results.account.calls_without_request += 1;
                self.results.calls_without_request.push(Some(io.as_call()));
            }
            return;
        }
        for commit in io.commits.iter().filter_map(|key| self.ios.get(key)) {
            if io.waited_for(commit, &parts, &self.results) {
                if commit.broken {
                    return self.report_incomplete(io);
                }
                parts.extend(commit.parts_for_waiter(&self.results));
            }
        }
        parts.sort_by_key(|part| part.from_ns);
        let index = self.results.ios.len();
        self.results.ios.push(Some(io.with(&parts, &self.results)));
        if io.of_worker {
            self.results.of_workers.entry(io.io.pid).or_default().push(index);
        }
        for part in parts.iter().filter(|part| part.first) {
            if let Some(request) = &mut self.results.requests[part.request] {
                request.origin = Origin::Io(index);
            }
        }
    }

    /// Reports a call whose requests are unknown, but whose time is known.
    fn report_incomplete(&mut self, io: &OpenIo) {
        self.results.account.ios_incomplete += 1;
        let call = Io { incomplete: true, ..io.as_call() };
        self.results.calls_without_request.push(Some(call));
    }
}
