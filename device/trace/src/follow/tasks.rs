// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks, for which requests are made, while in progress: I/Os of programs and commits of journals.
//!
//! Each bio of a task holds it open until the bio's request has completed, so a task is judged when all is known.

use std::collections::HashMap;

use super::super::event::{Call, Comm};
use super::super::io::{CallWithoutRequest, Origin};
use super::drafts::{Draft, Handover, Part};
use super::judge::{asked_for, make_io, parts_of, waited_for};
use super::results::Results;

/// A task's number, never used twice.
pub(super) type Key = u64;

/// What a bio is queued for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// For no task.
    None,
    Io(Key),
    Commit(Key),
}

/// A bio's claim on its request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    pub task: Task,
    /// On whose behalf, if it turns out to be no I/O's.
    pub origin: Origin,
    /// When the bio was queued, or when it was first seen.
    pub queued_ns: u64,
    /// It is readahead.
    pub ahead: bool,
}

#[derive(Debug)]
pub(super) struct Commit {
    pub begun_ns: u64,
    pub ended_ns: Option<u64>,
    pub requests: Vec<usize>,
    held: u32,
    /// I/Os that may have waited for it and are not judged yet.
    claims: u32,
    broken: bool,
}

/// All tasks in progress.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    next: Key,
    drafts: HashMap<Key, Draft>,
    commits: HashMap<Key, Commit>,
    /// I/Os that have ended, but for a commit with an open request.
    waiting: Vec<Key>,
}

impl Tasks {
    pub fn begin_io(
        &mut self,
        call: Call,
        (pid, comm): (u32, Comm),
        entered_ns: u64,
        handover: Handover,
    ) -> Key {
        self.next += 1;
        let draft = Draft {
            call,
            operation: None,
            pid,
            comm,
            entered_ns,
            exited_ns: None,
            bytes: None,
            handover,
            completed_ns: None,
            commits: Vec::new(),
            parts: Vec::new(),
            held: 0,
            broken: false,
            joined: false,
            doubts: 0,
            stand_in: None,
        };
        self.drafts.insert(self.next, draft);
        self.next
    }

    pub fn draft_mut(&mut self, key: Key) -> Option<&mut Draft> {
        self.drafts.get_mut(&key)
    }

    /// Whether the next call reaps it: an event showed its completion, or all its requests have completed.
    pub fn is_served(&self, key: Key) -> bool {
        let served = |draft: &Draft| draft.held == 0 || draft.completed_ns.is_some();
        self.drafts.get(&key).is_some_and(served)
    }

    /// The program has reaped it, or its call has returned.
    pub fn end_io(&mut self, key: Key, exited_ns: u64, results: &mut Results) {
        if let Some(draft) = self.drafts.get_mut(&key) {
            draft.exited_ns = Some(exited_ns);
        }
        self.judge(key, results);
    }

    /// `key` stands for requests of one of `candidates`, which are not reported until it is known of which.
    pub fn stand_in(&mut self, key: Key, candidates: &[Key]) {
        if let Some(draft) = self.drafts.get_mut(&key) {
            draft.stand_in = Some(None);
        }
        for candidate in candidates {
            if let Some(draft) = self.drafts.get_mut(candidate) {
                draft.doubts += 1;
            }
        }
    }

    /// A worker does it, or a part of it.
    pub fn join(&mut self, key: Key) {
        if let Some(draft) = self.drafts.get_mut(&key) {
            draft.joined = true;
        }
    }

    /// A stand-in is not part of `key`, or if it is, nothing of it is reported.
    pub fn rule_out(&mut self, key: Key, results: &mut Results) {
        if let Some(draft) = self.drafts.get_mut(&key) {
            draft.doubts = draft.doubts.saturating_sub(1);
        }
        self.judge(key, results);
    }

    /// The stand-in `from` is part of `to`, and that is the last to be known of it but the end of its requests.
    pub fn bequeath(&mut self, from: Key, to: Key, results: &mut Results) {
        if let Some(draft) = self.drafts.get_mut(&from) {
            draft.stand_in = Some(Some(to));
        }
        // At once, and not when the last request completes: a doubt about one until then is a doubt about both.
        self.join(to);
        self.inherit(from, results);
    }

    fn inherit(&mut self, from: Key, results: &mut Results) {
        let Some(draft) = self.drafts.get(&from).filter(|draft| draft.held == 0) else { return };
        let Some(Some(to)) = draft.stand_in else { return };
        let Some(from) = self.drafts.remove(&from) else { return };
        if let Some(to) = self.drafts.get_mut(&to) {
            to.broken |= from.broken;
            to.parts.extend(from.parts);
            to.parts.sort_by_key(|part| part.request);
            to.parts.dedup_by(|part, known| known.is_joined_by(part));
        }
        self.rule_out(to, results);
    }

    /// It was nobody's I/O.
    pub fn forget_io(&mut self, key: Key) {
        self.drafts.remove(&key);
    }

    pub fn begin_commit(&mut self, begun_ns: u64) -> Key {
        self.next += 1;
        let commit = Commit {
            begun_ns,
            ended_ns: None,
            requests: Vec::new(),
            held: 0,
            claims: 0,
            broken: false,
        };
        self.commits.insert(self.next, commit);
        self.next
    }

    /// When the commit began.
    pub fn end_commit(&mut self, key: Key, ended_ns: u64) -> Option<u64> {
        let commit = self.commits.get_mut(&key)?;
        commit.ended_ns = Some(ended_ns);
        Some(commit.begun_ns)
    }

    /// A call that was in progress all through the commit may have waited for it.
    pub fn claim_commit(&mut self, key: Key) {
        if let Some(commit) = self.commits.get_mut(&key) {
            commit.claims += 1;
        }
    }

    /// The call has returned, and was no I/O.
    pub fn unclaim_commits(&mut self, keys: &[Key]) {
        for key in keys {
            if let Some(commit) = self.commits.get_mut(key) {
                commit.claims = commit.claims.saturating_sub(1);
            }
            self.forget_commit(*key);
        }
    }

    /// Called when nobody else can claim it.
    pub fn forget_commit(&mut self, key: Key) {
        let over =
            |commit: &Commit| commit.ended_ns.is_some() && commit.held == 0 && commit.claims == 0;
        if self.commits.get(&key).is_some_and(over) {
            self.commits.remove(&key);
        }
    }

    /// A bio is queued for it.
    pub fn hold(&mut self, task: Task) {
        match task {
            Task::None => {}
            Task::Io(key) => {
                if let Some(draft) = self.drafts.get_mut(&key) {
                    draft.held += 1;
                }
            }
            Task::Commit(key) => {
                if let Some(commit) = self.commits.get_mut(&key) {
                    commit.held += 1;
                }
            }
        }
    }

    /// That bio's request has completed, or the bio led to none.
    pub fn release(&mut self, task: Task, results: &mut Results) {
        match task {
            Task::None => {}
            Task::Io(key) => {
                if let Some(draft) = self.drafts.get_mut(&key) {
                    draft.held = draft.held.saturating_sub(1);
                    self.judge(key, results);
                    self.inherit(key, results);
                }
            }
            Task::Commit(key) => {
                let Some(commit) = self.commits.get_mut(&key) else { return };
                commit.held = commit.held.saturating_sub(1);
                if commit.held == 0 {
                    for waiting in std::mem::take(&mut self.waiting) {
                        self.judge(waiting, results);
                    }
                }
                self.forget_commit(key);
            }
        }
    }

    /// `request` was (also) for the task of this share.
    pub fn add(&mut self, share: &Share, request: usize, first: bool) {
        match share.task {
            Task::None => {}
            Task::Io(key) => {
                let (from_ns, ahead) = (share.queued_ns, share.ahead);
                let part = Part { request, from_ns, ahead, first };
                let Some(draft) = self.drafts.get_mut(&key) else { return };
                // The bios of one request come together.
                if !draft.parts.last_mut().is_some_and(|last| last.is_joined_by(&part)) {
                    draft.parts.push(part);
                }
            }
            Task::Commit(key) => {
                if let Some(commit) = self.commits.get_mut(&key) {
                    if commit.requests.last() != Some(&request) {
                        commit.requests.push(request);
                    }
                }
            }
        }
    }

    /// It is incomplete, so it is not reported.
    pub fn spoil(&mut self, task: Task) {
        match task {
            Task::None => {}
            Task::Io(key) => {
                if let Some(draft) = self.drafts.get_mut(&key) {
                    draft.broken = true;
                }
            }
            Task::Commit(key) => {
                if let Some(commit) = self.commits.get_mut(&key) {
                    commit.broken = true;
                }
            }
        }
    }

    /// The workers of this thread did an operation from before the trace, which may have been mistaken for another.
    pub fn doubt_joined(&mut self, pid: u32, results: &mut Results) {
        let of_workers = |draft: &&mut Draft| draft.joined && draft.pid == pid;
        self.drafts.values_mut().filter(of_workers).for_each(|draft| draft.broken = true);
        results.take_back_joined(pid);
    }

    /// All tasks in progress are in doubt.
    pub fn abandon_all(&mut self, results: &mut Results) {
        let left_out = |draft: &&Draft| draft.stand_in.is_none() && (draft.broken || draft.asked());
        results.account.ios_incomplete += self.drafts.values().filter(left_out).count() as u64;
        self.drafts.clear();
        self.commits.clear();
        self.waiting.clear();
    }

    /// Reports the I/O if it has ended.
    fn judge(&mut self, key: Key, results: &mut Results) {
        let Some(draft) = self.drafts.get(&key) else { return };
        if draft.held > 0 || draft.doubts > 0 || draft.exited_ns.is_none() {
            return;
        }
        let open = |key: &Key| self.commits.get(key).is_some_and(|commit| commit.held > 0);
        if draft.commits.iter().any(open) {
            self.waiting.push(key);
            return;
        }
        let Some(draft) = self.drafts.remove(&key) else { return };
        self.report(&draft, results);
        self.unclaim_commits(&draft.commits);
    }

    fn report(&self, draft: &Draft, results: &mut Results) {
        let exited_ns = draft.exited_ns.unwrap_or(draft.entered_ns);
        let Some(mut parts) = asked_for(draft, exited_ns, results).filter(|_| !draft.broken) else {
            return report_incomplete(draft, exited_ns, results);
        };
        if parts.is_empty() {
            // A page fault that went on without what it had begun to read.
            if draft.call != Call::PageFault || exited_ns > draft.entered_ns {
                results.push_call_without_request(call_of(draft, exited_ns));
            }
            return;
        }
        for key in &draft.commits {
            match self.commits.get(key) {
                Some(commit) if waited_for(commit, draft, &parts, results) => {
                    if commit.broken {
                        return report_incomplete(draft, exited_ns, results);
                    }
                    parts.extend(parts_of(commit, results));
                }
                _ => {}
            }
        }
        parts.sort_by_key(|part| part.from_ns);
        let io = results.push_io(make_io(draft, exited_ns, &parts, results));
        if draft.joined {
            results.joined.entry(draft.pid).or_default().push(io);
        }
        for part in parts.iter().filter(|part| part.first) {
            if let Some(request) = results.request_mut(part.request) {
                request.origin = Origin::Io(io);
            }
        }
    }
}

/// Its requests are not known, but its time is.
fn report_incomplete(draft: &Draft, exited_ns: u64, results: &mut Results) {
    results.account.ios_incomplete += 1;
    results.push_uncounted(CallWithoutRequest { incomplete: true, ..call_of(draft, exited_ns) });
}

fn call_of(draft: &Draft, exited_ns: u64) -> CallWithoutRequest {
    CallWithoutRequest {
        call: draft.call,
        pid: draft.pid,
        comm: draft.comm,
        entered_ns: draft.entered_ns,
        exited_ns,
        has_commit: !draft.commits.is_empty(),
        incomplete: false,
    }
}
