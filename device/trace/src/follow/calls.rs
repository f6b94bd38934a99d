// SPDX-License-Identifier: MIT OR Apache-2.0
//! For whom a bio is queued: system calls, writeback, journals; operations of io_uring are in `uring`.

use super::super::event::{Call, Event, EventKind, Extent};
use super::super::io::{CallWithoutRequest, LockWait, Origin};
use super::super::sched::Switch;
use super::Follower;
use super::drafts::Handover;
use super::tasks::{Share, Task};
use super::threads::InCall;

impl Follower {
    pub(super) fn dispatch_to_threads(&mut self, event: &Event) {
        match event.what {
            EventKind::CallEnter { call, .. } => self.enter_call(event, call),
            EventKind::PageFault => self.begin_fault(event),
            EventKind::AnyCall => self.end_fault(event.pid),
            EventKind::LockBegin => {
                let thread = self.threads.entry(event.pid).or_default();
                thread.lock_since_ns = thread.lock_since_ns.or(Some(event.time_ns));
            }
            EventKind::LockEnd => self.end_lock_wait(event),
            EventKind::CallExit { call, result } => self.exit_call(event, call, result),
            EventKind::UringSubmit { .. }
            | EventKind::UringQueueWork { .. }
            | EventKind::UringLink { .. }
            | EventKind::UringFileGet { .. }
            | EventKind::UringComplete { .. } => self.dispatch_to_operations(event),
            EventKind::Fork { child } => self.threads.entry(child).or_default().born = true,
            EventKind::JournalCommitStart { .. } => self.start_commit(event),
            EventKind::JournalCommitEnd { .. } => self.end_commit(event),
            EventKind::WritebackStart { inode } => {
                self.threads.entry(event.pid).or_default().writeback = Some(inode);
            }
            EventKind::WritebackEnd { .. } => {
                self.threads.entry(event.pid).or_default().writeback = None;
            }
            EventKind::PageCacheAdd { inode, .. } => {
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
            return self.task_of_worker(event);
        };
        let entered_ns = in_call.entered_ns;
        match in_call.call {
            // Its operations can be told apart by their bios only.
            Call::IoSubmit => {}
            Call::IoUringEnter if !self.seen.uring_submit => {}
            // Not submitting, so the kernel serves an operation that no event names.
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
        self.end_fault(event.pid);
        let in_call = InCall::new(call, event);
        let thread = self.threads.entry(event.pid).or_default();
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
        if call == Call::IoUringEnter {
            thread.submitting = None;
        }
        let fetches = matches!(call, Call::IoUringEnter | Call::IoGetevents | Call::IoPgetevents);
        let Some(in_call) = thread.call.take() else {
            // It began before the trace.
            if fetches {
                self.reap(event);
            }
            return;
        };
        if in_call.call != call {
            return self.abandon(in_call);
        }
        let without_request = CallWithoutRequest {
            call,
            pid: event.pid,
            comm: event.comm,
            entered_ns: in_call.entered_ns,
            exited_ns: event.time_ns,
            has_commit: !in_call.commits.is_empty(),
            incomplete: false,
        };
        match (in_call.io, call) {
            (Some(key), _) => {
                if let Some(draft) = self.tasks.draft_mut(key) {
                    draft.bytes = Some(if call.moves_data() { result.max(0) as u64 } else { 0 });
                    draft.commits = in_call.commits;
                }
                self.tasks.end_io(key, event.time_ns, &mut self.results);
            }
            (None, Call::IoSubmit) => {}
            (None, _) if fetches => {
                // What another thread submitted, such as the kernel's polling one.
                if thread.unreaped.is_empty() && !self.uring.is_submitter(event.pid) {
                    self.results.push_uncounted(without_request);
                }
                self.reap(event);
            }
            (None, _) => {
                self.tasks.unclaim_commits(&in_call.commits);
                self.results.push_call_without_request(without_request);
            }
        }
    }

    /// The program touches memory. How long that takes is known only if the thread sleeps, and that this is no other
    /// sleep only if all its calls are seen to begin.
    fn begin_fault(&mut self, event: &Event) {
        self.end_fault(event.pid);
        let thread = self.threads.entry(event.pid).or_default();
        if self.seen.switch && self.seen.any_call && thread.call.is_none() {
            thread.call = Some(InCall::new(Call::PageFault, event));
        }
    }

    /// A thread that loses its CPU may have returned to the program before; one that sleeps has not.
    pub(super) fn note_fault_sleep(&mut self, switch: &Switch, time_ns: u64) {
        if let Some(fault) = self.fault_of(switch.prev.pid) {
            fault.asleep = !switch.runnable;
        }
        if let Some(fault) = self.fault_of(switch.next.pid).filter(|fault| fault.asleep) {
            (fault.asleep, fault.continued_ns) = (false, time_ns);
        }
    }

    fn fault_of(&mut self, pid: u32) -> Option<&mut InCall> {
        let call = self.threads.get_mut(&pid)?.call.as_mut()?;
        (call.call == Call::PageFault).then_some(call)
    }

    /// It is over when the program goes on to something else; it took until the thread last continued after a
    /// sleep.
    fn end_fault(&mut self, pid: u32) {
        let Some(thread) = self.threads.get_mut(&pid) else { return };
        let Some(fault) = thread.call.take_if(|call| call.call == Call::PageFault) else { return };
        let exited_ns = fault.continued_ns;
        if let Some(key) = fault.io {
            return self.tasks.end_io(key, exited_ns, &mut self.results);
        }
        if exited_ns > fault.entered_ns {
            self.results.push_call_without_request(CallWithoutRequest {
                call: Call::PageFault,
                pid,
                comm: fault.comm,
                entered_ns: fault.entered_ns,
                exited_ns,
                has_commit: false,
                incomplete: false,
            });
        }
    }

    /// The end of the trace.
    pub(super) fn end_all_faults(&mut self) {
        let pids: Vec<u32> = self.threads.keys().copied().collect();
        pids.into_iter().for_each(|pid| self.end_fault(pid));
    }

    fn end_lock_wait(&mut self, event: &Event) {
        let thread = self.threads.entry(event.pid).or_default();
        if let Some(begin_ns) = thread.lock_since_ns.take() {
            let (pid, end_ns) = (event.pid, event.time_ns);
            self.lock_waits.push(LockWait { pid, begin_ns, end_ns });
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
