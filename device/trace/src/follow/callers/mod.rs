// SPDX-License-Identifier: MIT OR Apache-2.0
//! For whom each thread works now: its system call, the writeback of an inode, a journal's commit, or an operation of
//! io_uring (`uring`; `workers` knows which one a worker does). So it says for whom a bio is that the thread queues.

mod uring;
mod workers;

use std::collections::HashMap;

use super::ledger::{Key, Ledger, Share, Task};
use crate::event::{Call, Comm, Event, EventKind, Extent};
use crate::io::{CallWithoutRequest, Origin, Processes};
use crate::sched::Switch;
use uring::Uring;
pub(super) use workers::submitter_of;

/// A system call in progress.
#[derive(Debug)]
struct InCall {
    call: Call,
    fd: Option<i32>,
    comm: Comm,
    entered_ns: u64,
    /// Of a page fault: when the thread last continued after a sleep in it.
    continued_ns: u64,
    /// Of a page fault: the thread sleeps in it.
    asleep: bool,
    /// The I/O that it is, once it has queued a bio.
    io: Option<Key>,
    /// Journal commits that began and ended in it.
    commits: Vec<Key>,
}

/// What a thread is at.
#[derive(Debug, Default)]
struct Caller {
    call: Option<InCall>,
    /// The io_uring operation that it is submitting.
    submitting: Option<Key>,
    /// It writes this inode back.
    writeback: Option<u64>,
    /// It commits this transaction of a journal.
    commit: Option<Key>,
    /// The inode that it last read into the page cache, in this call.
    cached_inode: Option<u64>,
    /// I/Os that it submitted, that have completed and are not reaped.
    unreaped: Vec<Key>,
    /// It was started within the trace.
    born: bool,
}

/// All threads seen.
#[derive(Debug, Default)]
pub(super) struct Callers {
    threads: HashMap<u32, Caller>,
    uring: Uring,
    pub processes: Processes,
    seen: SeenOfThreads,
}

/// Which events the trace has.
#[derive(Debug, Default)]
struct SeenOfThreads {
    submission: bool,
    switch: bool,
    any_call: bool,
}

impl InCall {
    /// It begins with that event.
    fn new((call, fd): (Call, Option<i32>), event: &Event) -> InCall {
        InCall {
            call,
            fd,
            comm: event.comm,
            entered_ns: event.time_ns,
            continued_ns: event.time_ns,
            asleep: false,
            io: None,
            commits: Vec::new(),
        }
    }

    fn without_request(&self, pid: u32, comm: Comm, exited_ns: u64) -> CallWithoutRequest {
        CallWithoutRequest {
            call: self.call,
            fd: self.fd,
            pid,
            comm,
            entered_ns: self.entered_ns,
            exited_ns,
            has_commit: !self.commits.is_empty(),
            incomplete: false,
        }
    }
}

impl Callers {
    pub fn take(&mut self, event: &Event, ledger: &mut Ledger) {
        match event.what {
            EventKind::CallEnter { call, fd } => self.enter_call(event, (call, fd), ledger),
            EventKind::CallExit { call, result } => self.exit_call(event, call, result, ledger),
            EventKind::PageFault => self.begin_fault(event, ledger),
            EventKind::AnyCall => {
                self.seen.any_call = true;
                self.end_fault(event.pid, ledger);
            }
            EventKind::Switch(switch) => self.note_fault_sleep(&switch, event.time_ns),
            EventKind::Fork { child, same_process } => {
                self.thread(child).born = true;
                self.processes.start(event.pid, child, same_process);
            }
            EventKind::JournalCommitStart { .. } => {
                self.thread(event.pid).commit = Some(ledger.begin_commit(event.time_ns));
            }
            EventKind::JournalCommitEnd { .. } => self.end_commit(event, ledger),
            EventKind::WritebackStart { inode } => {
                self.thread(event.pid).writeback = Some(inode);
            }
            EventKind::WritebackEnd { .. } => self.thread(event.pid).writeback = None,
            EventKind::PageCacheAdd { inode, .. } => {
                self.thread(event.pid).cached_inode = Some(inode);
            }
            _ => self.take_operation(event, ledger),
        }
    }

    /// Whether the thread has submitted all that it queued before.
    pub fn moves_on(&self, event: &Event) -> bool {
        match event.what {
            EventKind::CallEnter { .. }
            | EventKind::CallExit { .. }
            | EventKind::UringSubmit { .. } => true,
            EventKind::UringFileGet { request } => self.begins_as_worker(event, request),
            EventKind::UringComplete { request, .. } => self.ends_as_worker(event, request),
            _ => false,
        }
    }

    /// Events were lost.
    pub fn forget(&mut self) {
        self.threads.clear();
        self.uring = Uring::default();
    }

    /// The end of the trace.
    pub fn finish(&mut self, ledger: &mut Ledger) {
        let pids: Vec<u32> = self.threads.keys().copied().collect();
        pids.into_iter().for_each(|pid| self.end_fault(pid, ledger));
        self.reap_from_memory(ledger);
    }

    fn thread(&mut self, pid: u32) -> &mut Caller {
        self.threads.entry(pid).or_default()
    }

    /// Who a bio is for that this thread queues now.
    pub fn share_of(&mut self, event: &Event, extent: &Extent, ledger: &mut Ledger) -> Share {
        let task = self.task_of(event, ledger);
        let thread = self.thread(event.pid);
        let origin = if matches!(task, Task::Commit(_)) || is_journal(&event.comm) {
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

    fn task_of(&mut self, event: &Event, ledger: &mut Ledger) -> Task {
        let submission_seen = self.seen.submission;
        let thread = self.thread(event.pid);
        if let Some(key) = thread.submitting {
            return Task::Io(key);
        }
        let who = (event.pid, event.comm);
        let Some(in_call) = &mut thread.call else {
            let commit = thread.commit.map(Task::Commit);
            return commit.unwrap_or_else(|| self.task_of_worker(event, ledger));
        };
        let entered_ns = in_call.entered_ns;
        match in_call.call {
            // Its operations can be told apart by their bios only.
            Call::IoSubmit => {}
            Call::IoUringEnter if !submission_seen => {}
            // Not submitting, so the kernel serves an operation that no event names.
            Call::IoUringEnter | Call::IoGetevents | Call::IoPgetevents => return Task::None,
            call => {
                let begin = || ledger.begin_io(call, who, entered_ns);
                return Task::Io(*in_call.io.get_or_insert_with(begin));
            }
        }
        let key = ledger.begin_io(in_call.call, who, entered_ns);
        thread.unreaped.push(key);
        Task::Io(key)
    }

    fn enter_call(&mut self, event: &Event, call: (Call, Option<i32>), ledger: &mut Ledger) {
        self.end_fault(event.pid, ledger);
        let thread = self.thread(event.pid);
        thread.cached_inode = None;
        if let Some(lost) = thread.call.replace(InCall::new(call, event)) {
            abandon(lost, ledger);
        }
    }

    fn exit_call(&mut self, event: &Event, call: Call, result: i64, ledger: &mut Ledger) {
        let thread = self.thread(event.pid);
        if call == Call::IoUringEnter {
            thread.submitting = None;
        }
        let fetches = matches!(call, Call::IoUringEnter | Call::IoGetevents | Call::IoPgetevents);
        let Some(in_call) = thread.call.take() else {
            // It began before the trace.
            if fetches {
                self.reap(event, ledger);
            }
            return;
        };
        if in_call.call != call {
            return abandon(in_call, ledger);
        }
        let without_request = in_call.without_request(event.pid, event.comm, event.time_ns);
        match (in_call.io, call) {
            (Some(key), _) => {
                if let Some(io) = ledger.io_mut(key) {
                    io.bytes = Some(if call.moves_data() { result.max(0) as u64 } else { 0 });
                    io.fd = in_call.fd;
                    io.commits = in_call.commits;
                }
                ledger.end_io(key, event.time_ns);
            }
            (None, Call::IoSubmit) => {}
            (None, _) if fetches => {
                // What another thread submitted, such as the kernel's polling one.
                if thread.unreaped.is_empty() && !self.uring.is_submitter(event.pid) {
                    ledger.results.push_uncounted(without_request);
                }
                self.reap(event, ledger);
            }
            (None, _) => {
                ledger.unclaim_commits(&in_call.commits);
                ledger.results.push_call_without_request(without_request);
            }
        }
    }

    /// The program touches memory. How long that takes is known only if the thread sleeps, and that this is no other
    /// sleep only if all its calls are seen to begin.
    fn begin_fault(&mut self, event: &Event, ledger: &mut Ledger) {
        self.end_fault(event.pid, ledger);
        let is_known = self.seen.switch && self.seen.any_call;
        let thread = self.thread(event.pid);
        if is_known && thread.call.is_none() {
            thread.call = Some(InCall::new((Call::PageFault, None), event));
        }
    }

    /// A thread that loses its CPU may have returned to the program before; one that sleeps has not.
    fn note_fault_sleep(&mut self, switch: &Switch, time_ns: u64) {
        self.seen.switch = true;
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
    fn end_fault(&mut self, pid: u32, ledger: &mut Ledger) {
        let Some(thread) = self.threads.get_mut(&pid) else { return };
        let Some(fault) = thread.call.take_if(|call| call.call == Call::PageFault) else { return };
        let exited_ns = fault.continued_ns;
        if let Some(key) = fault.io {
            ledger.end_io(key, exited_ns);
        } else if exited_ns > fault.entered_ns {
            let call = fault.without_request(pid, fault.comm, exited_ns);
            ledger.results.push_call_without_request(call);
        }
    }

    /// Calls that were in progress all the time may have waited for it.
    fn end_commit(&mut self, event: &Event, ledger: &mut Ledger) {
        let Some(key) = self.thread(event.pid).commit.take() else { return };
        let Some(begun_ns) = ledger.end_commit(key, event.time_ns) else { return };
        for call in self.threads.values_mut().filter_map(|thread| thread.call.as_mut()) {
            let may_wait = call.call.is_sync() || call.call.is_write();
            if may_wait && call.entered_ns <= begun_ns {
                call.commits.push(key);
                ledger.claim_commit(key);
            }
        }
        ledger.forget_commit(key);
    }
}

/// The end of the call was not seen.
fn abandon(call: InCall, ledger: &mut Ledger) {
    ledger.unclaim_commits(&call.commits);
    if let Some(key) = call.io {
        ledger.end_unknown_io(key, call.entered_ns);
    }
}

fn is_journal(comm: &Comm) -> bool {
    comm.as_bytes().starts_with(b"jbd2/")
}
