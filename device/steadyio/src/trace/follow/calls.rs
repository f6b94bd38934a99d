// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who asks: system calls, io_uring operations, writeback, journals.

use super::super::event::{Call, Event, Extent, What};
use super::super::io::Origin;
use super::Follower;
use super::tasks::{Handover, Key, Share, Task};
use super::threads::InCall;

impl Follower {
    pub(super) fn dispatch_to_threads(&mut self, event: &Event) {
        match event.what {
            What::CallEnter { call, .. } => self.enter_call(event, call),
            What::CallExit { call, result } => self.exit_call(event, call, result),
            What::UringSubmit { request, sq_thread } => self.submit(event, request, sq_thread),
            What::UringComplete { request, result } => {
                self.complete_operation(event, request, result)
            }
            What::JournalCommitStart { .. } => self.start_commit(event),
            What::JournalCommitEnd { .. } => self.end_commit(event),
            What::WritebackStart { inode } => {
                self.threads.entry(event.pid).or_default().writeback = Some(inode);
            }
            What::WritebackEnd { .. } => {
                self.threads.entry(event.pid).or_default().writeback = None;
            }
            What::PageCacheAdd { inode, .. } => {
                self.threads.entry(event.pid).or_default().cached_inode = Some(inode);
            }
            _ => {}
        }
    }

    /// Who a bio is for that this thread queues now.
    pub(super) fn share_of(&mut self, event: &Event, extent: &Extent) -> Share {
        let task = self.task_of(event);
        let thread = self.threads.entry(event.pid).or_default();
        let origin = if matches!(task, Task::Commit(_)) || is_journal(event) {
            Origin::Journal
        } else if thread.writeback.is_some() {
            Origin::Writeback(thread.writeback)
        } else if extent.op.ahead {
            Origin::Readahead(thread.cached_inode)
        } else {
            Origin::Thread
        };
        Share { task, origin, queued_ns: event.time_ns, ahead: extent.op.ahead }
    }

    fn task_of(&mut self, event: &Event) -> Task {
        let thread = self.threads.entry(event.pid).or_default();
        if let Some(key) = thread.submitting {
            return Task::Io(key);
        }
        let who = (event.pid, event.comm);
        let Some(in_call) = &mut thread.call else {
            if let Some(key) = thread.commit {
                return Task::Commit(key);
            }
            if !event.comm.as_bytes().starts_with(b"iou-wrk") {
                return Task::None;
            }
            let (tasks, call) = (&mut self.tasks, Call::IoUringEnter);
            // Where its completions are another thread's, it would grow for ever.
            if thread.worker_io.is_some_and(|key| tasks.is_long(key)) {
                thread.worker_io.take().into_iter().for_each(|key| tasks.forget_io(key));
            }
            let begin = || tasks.begin_io(call, who, event.time_ns, Handover::Reap);
            return Task::Io(*thread.worker_io.get_or_insert_with(begin));
        };
        let entered_ns = in_call.entered_ns;
        match in_call.call {
            // Its operations can be told apart by their bios only.
            Call::IoSubmit => {}
            Call::IoUringEnter if !self.seen.uring_submit => {}
            // Not submitting, so the kernel works for an operation that it does not name.
            Call::IoUringEnter | Call::IoGetevents | Call::IoPgetevents => return Task::None,
            call => {
                let tasks = &mut self.tasks;
                let begin = || tasks.begin_io(call, who, entered_ns, Handover::Return);
                return Task::Io(*in_call.io.get_or_insert_with(begin));
            }
        }
        let key = self.tasks.begin_io(in_call.call, who, entered_ns, Handover::Reap);
        thread.unreaped.push(key);
        Task::Io(key)
    }

    fn enter_call(&mut self, event: &Event, call: Call) {
        self.drop_pending(event.pid);
        let thread = self.threads.entry(event.pid).or_default();
        let in_call = InCall { call, entered_ns: event.time_ns, io: None, commits: Vec::new() };
        thread.cached_inode = None;
        if let Some(lost) = thread.call.replace(in_call) {
            self.abandon(lost);
        }
    }

    /// Its end was not seen.
    fn abandon(&mut self, call: InCall) {
        self.tasks.unclaim_commits(&call.commits);
        if let Some(key) = call.io {
            self.tasks.spoil(Task::Io(key));
            self.tasks.end_io(key, call.entered_ns, &mut self.results);
        }
    }

    fn exit_call(&mut self, event: &Event, call: Call, result: i64) {
        self.drop_pending(event.pid);
        let thread = self.threads.entry(event.pid).or_default();
        let Some(in_call) = thread.call.take() else { return };
        if in_call.call != call {
            return self.abandon(in_call);
        }
        if call == Call::IoUringEnter {
            thread.submitting = None;
        }
        match (in_call.io, call) {
            (Some(key), _) => {
                if let Some(draft) = self.tasks.draft_mut(key) {
                    draft.bytes = Some(if moves_data(call) { result.max(0) as u64 } else { 0 });
                    draft.commits = in_call.commits;
                }
                self.tasks.end_io(key, event.time_ns, &mut self.results);
            }
            (None, Call::IoSubmit) => {}
            (None, Call::IoUringEnter | Call::IoGetevents | Call::IoPgetevents) => {
                self.reap(event);
            }
            (None, _) => {
                self.tasks.unclaim_commits(&in_call.commits);
                self.results.account.calls_without_request += 1;
            }
        }
    }

    /// What this thread submitted and is served is the program's now.
    fn reap(&mut self, event: &Event) {
        let Some(thread) = self.threads.get_mut(&event.pid) else { return };
        let tasks = &self.tasks;
        let unreaped = std::mem::take(&mut thread.unreaped);
        let (served, open): (Vec<Key>, Vec<Key>) =
            unreaped.into_iter().partition(|key| tasks.is_served(*key));
        thread.unreaped = open;
        for key in served {
            self.tasks.end_io(key, event.time_ns, &mut self.results);
        }
    }

    /// What this thread queues until its next submission is for this operation.
    fn submit(&mut self, event: &Event, request: u64, sq_thread: bool) {
        self.drop_pending(event.pid);
        let who = (event.pid, event.comm);
        let call = Call::IoUringEnter;
        // The kernel's thread makes no calls that could fetch anything.
        let handover = if sq_thread { Handover::Return } else { Handover::Reap };
        let key = self.tasks.begin_io(call, who, event.time_ns, handover);
        self.threads.entry(event.pid).or_default().submitting = Some(key);
        if let Some((_, lost)) = self.operations.insert(request, (event.pid, key)) {
            self.tasks.spoil(Task::Io(lost));
            self.tasks.end_io(lost, event.time_ns, &mut self.results);
        }
    }

    fn complete_operation(&mut self, event: &Event, request: u64, result: i32) {
        let done = self.threads.get_mut(&event.pid).and_then(|worker| worker.worker_io.take());
        let Some((pid, key)) = self.operations.remove(&request) else { return };
        // A worker serves one operation at a time, and completes it itself.
        if let Some(done) = done {
            self.tasks.adopt(done, key);
        }
        let thread = self.threads.entry(pid).or_default();
        if thread.submitting == Some(key) {
            thread.submitting = None;
        }
        let Some(draft) = self.tasks.draft_mut(key) else { return };
        draft.bytes = Some(u64::try_from(result).unwrap_or(0));
        match draft.handover {
            Handover::Return => self.tasks.end_io(key, event.time_ns, &mut self.results),
            Handover::Reap => {
                draft.completed_ns = Some(event.time_ns);
                thread.unreaped.push(key);
            }
        }
    }

    /// The trace is over: operations that no call fetched were fetched from memory, as they completed.
    pub(super) fn hand_over_the_rest(&mut self) {
        let threads = std::mem::take(&mut self.threads);
        for key in threads.into_values().flat_map(|thread| thread.unreaped) {
            let completed_ns = self.tasks.draft_mut(key).and_then(|draft| draft.completed_ns);
            if let Some(completed_ns) = completed_ns {
                self.tasks.end_io(key, completed_ns, &mut self.results);
            }
        }
    }

    fn start_commit(&mut self, event: &Event) {
        let key = self.tasks.begin_commit(event.time_ns);
        self.threads.entry(event.pid).or_default().commit = Some(key);
    }

    /// Calls that were in progress all the time may have waited for it.
    fn end_commit(&mut self, event: &Event) {
        let thread = self.threads.entry(event.pid).or_default();
        let Some(key) = thread.commit.take() else { return };
        let Some(begun_ns) = self.tasks.end_commit(key, event.time_ns) else { return };
        for call in self.threads.values_mut().filter_map(|thread| thread.call.as_mut()) {
            let may_wait = call.call.is_sync() || call.call.is_write();
            if may_wait && call.entered_ns <= begun_ns {
                call.commits.push(key);
                self.tasks.claim_commit(key);
            }
        }
        self.tasks.forget_commit(key);
    }
}

fn is_journal(event: &Event) -> bool {
    event.comm.as_bytes().starts_with(b"jbd2/")
}

fn moves_data(call: Call) -> bool {
    !call.is_sync() && !matches!(call, Call::SyncFileRange | Call::Fallocate | Call::Ftruncate)
}
