// SPDX-License-Identifier: MIT OR Apache-2.0
//! For whom each thread works now: its system call, the writeback of an inode, a journal's commit, or an operation of
//! io_uring (`uring`; `workers` knows which one a worker does). So it says for whom a bio is that the thread queues.

mod uring;
mod workers;

use std::collections::HashMap;

use super::ledger::{Key, Ledger, Share, Task};
use crate::event::{Call, Comm, Event, EventKind, Extent, Kind};
use crate::io::{Io, Origin, Processes};
use crate::sched::Switch;
use uring::Uring;
pub(super) use workers::submitter_of;

#[derive(Debug)]
struct InCall {
    io: Io,
    /// Of a page fault: when the thread last continued after a sleep in it; if no event tells, when it was woken.
    continued_ns: u64,
    /// Of a page fault: the thread sleeps in it.
    asleep: bool,
    /// The I/O that it is, once it has queued a bio.
    key: Option<Key>,
    /// Journal commits that began and ended in it.
    commits: Vec<Key>,
}

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

#[derive(Debug, Default)]
pub(super) struct Callers {
    threads: HashMap<u32, Caller>,
    uring: Uring,
    pub processes: Processes,
}

impl InCall {
    fn new(call: Call, fd: Option<i32>, event: &Event) -> InCall {
        let begun = Io::begin(call, (event.pid, event.comm), event.time_ns);
        let (io, continued_ns) = (Io { fd, ..begun }, event.time_ns);
        InCall { io, continued_ns, asleep: false, key: None, commits: Vec::new() }
    }
}

impl Callers {
    pub fn take(&mut self, event: &Event, ledger: &mut Ledger) {
        match event.what {
            EventKind::CallEnter { call, fd } => self.enter_call(event, call, fd, ledger),
            EventKind::CallExit { call, result } => self.exit_call(event, call, result, ledger),
            EventKind::PageFault => self.begin_fault(event, ledger),
            EventKind::AnyCall => self.end_fault(event.pid, ledger),
            EventKind::Switch(switch) => self.note_fault_sleep(&switch, event.time_ns),
            EventKind::Waking(waking) => {
                if let Some(fault) = self.fault_of(waking.woken.pid).filter(|fault| fault.asleep) {
                    fault.continued_ns = event.time_ns;
                }
            }
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
        let thread = self.thread(event.pid);
        if let Some(key) = thread.submitting {
            return Task::Io(key);
        }
        let Some(in_call) = &mut thread.call else {
            let commit = thread.commit.map(Task::Commit);
            return commit.unwrap_or_else(|| self.task_of_worker(event, ledger));
        };
        let io = Io::begin(in_call.io.call, (event.pid, event.comm), in_call.io.entered_ns);
        match io.call {
            // Its operations can be told apart by their bios only.
            Call::IoSubmit => {}
            Call::IoUringEnter if !ledger.seen.has(Kind::UringSubmit) => {}
            // Not submitting, so the kernel serves an operation that no event names.
            Call::IoUringEnter | Call::IoGetevents | Call::IoPgetevents => return Task::None,
            _ => return Task::Io(*in_call.key.get_or_insert_with(|| ledger.begin_io(io))),
        }
        let key = ledger.begin_io(io);
        thread.unreaped.push(key);
        Task::Io(key)
    }

    fn enter_call(&mut self, event: &Event, call: Call, fd: Option<i32>, ledger: &mut Ledger) {
        self.end_fault(event.pid, ledger);
        let thread = self.thread(event.pid);
        thread.cached_inode = None;
        if let Some(lost) = thread.call.replace(InCall::new(call, fd, event)) {
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
        let InCall { io, key, commits, .. } = &in_call;
        if io.call != call {
            return abandon(in_call, ledger);
        }
        let (comm, exited_ns, has_commit) = (event.comm, event.time_ns, !commits.is_empty());
        let without_request = Io { comm, exited_ns, has_commit, ..io.clone() };
        match (*key, call) {
            (Some(key), _) => {
                if let Some(io) = ledger.io_mut(key) {
                    io.bytes = Some(if call.moves_data() { result.max(0) as u64 } else { 0 });
                    io.io.fd = in_call.io.fd;
                    io.commits = in_call.commits;
                }
                ledger.end_io(key, exited_ns);
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
                ledger.results.push_call_without_request(without_request);
            }
        }
    }

    /// The program touches memory. How long that takes is known only if the thread sleeps, and that this is no other
    /// sleep only if all its calls are seen to begin.
    fn begin_fault(&mut self, event: &Event, ledger: &mut Ledger) {
        self.end_fault(event.pid, ledger);
        let is_known = ledger.seen.has(Kind::Switch) && ledger.seen.has(Kind::AnyCall);
        let thread = self.thread(event.pid);
        if is_known && thread.call.is_none() {
            thread.call = Some(InCall::new(Call::PageFault, None, event));
        }
    }

    /// A thread that loses its CPU may have returned to the program before; one that sleeps has not.
    fn note_fault_sleep(&mut self, switch: &Switch, time_ns: u64) {
        if let Some(fault) = self.fault_of(switch.prev.pid) {
            fault.asleep = !switch.runnable;
        }
        if let Some(fault) = self.fault_of(switch.next.pid).filter(|fault| fault.asleep) {
            (fault.asleep, fault.continued_ns) = (false, time_ns);
        }
    }

    fn fault_of(&mut self, pid: u32) -> Option<&mut InCall> {
        let call = self.threads.get_mut(&pid)?.call.as_mut()?;
        (call.io.call == Call::PageFault).then_some(call)
    }

    /// It is over when the program goes on to something else; it took until the thread last continued after a
    /// sleep.
    fn end_fault(&mut self, pid: u32, ledger: &mut Ledger) {
        let Some(thread) = self.threads.get_mut(&pid) else { return };
        let Some(fault) = thread.call.take_if(|call| call.io.call == Call::PageFault) else {
            return;
        };
        let exited_ns = fault.continued_ns;
        if let Some(key) = fault.key {
            ledger.end_io(key, exited_ns);
        } else if exited_ns > fault.io.entered_ns {
            let has_commit = !fault.commits.is_empty();
            ledger.results.push_call_without_request(Io { exited_ns, has_commit, ..fault.io });
        }
    }

    /// Calls that were in progress all the time may have waited for it.
    fn end_commit(&mut self, event: &Event, ledger: &mut Ledger) {
        let Some(key) = self.thread(event.pid).commit.take() else { return };
        let Some(begun_ns) = ledger.end_commit(key, event.time_ns) else { return };
        for call in self.threads.values_mut().filter_map(|thread| thread.call.as_mut()) {
            let may_wait = call.io.call.is_sync() || call.io.call.is_write();
            if may_wait && call.io.entered_ns <= begun_ns {
                call.commits.push(key);
            }
        }
    }
}

/// The end of the call was not seen.
fn abandon(call: InCall, ledger: &mut Ledger) {
    if let Some(key) = call.key {
        ledger.spoil(Task::Io(key));
        ledger.end_io(key, call.io.entered_ns);
    }
}

fn is_journal(comm: &Comm) -> bool {
    comm.as_bytes().starts_with(b"jbd2/")
}
