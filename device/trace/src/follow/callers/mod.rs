// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tracks the work of each thread: its system call, the writeback of an inode, a journal's commit,
//! or an operation of io_uring (`uring`, with `workers`). A bio that the thread queues belongs to
//! that work. `follow` calls it with each event.

mod uring;
mod workers;

use std::collections::HashMap;

use super::descriptors::Descriptors;
use super::sink::{Key, Share, Sink};
use crate::event::{Call, Event, EventKind, Extent, Kind, Switch};
use crate::io::{Io, Origin, Processes};
use workers::Pool;

#[derive(Debug)]
struct InCall {
    call: Call,
    /// The I/O that the call becomes if it queues a bio.
    key: Key,
    entered_ns: u64,
    /// For a page fault: the time at which the thread last continued after a sleep in it; without
    /// such an event, the time of the wakeup.
    continued_ns: u64,
    /// Whether the thread sleeps in the page fault.
    asleep: bool,
}

#[derive(Debug, Default)]
struct Caller {
    /// The io_uring operation that the thread is submitting.
    submitting: Option<Key>,
    /// The inode that the thread writes back.
    writeback: Option<u64>,
    /// The journal's transaction that the thread commits.
    commit: Option<Key>,
    /// The inode that the thread last read into the page cache, in this call.
    cached_inode: Option<u64>,
    /// I/Os that the thread submitted, and that have completed but are not reaped.
    unreaped: Vec<Key>,
    /// The number of operations of io_uring that the thread submitted, and that have not completed.
    operations: u32,
    /// Whether the thread was started within the trace.
    born: bool,
    /// The last thread that it started.
    child: Option<u32>,
    /// The descriptor, if one is named, that the thread's present call closes.
    closes: Option<i32>,
}

/// An operation of io_uring.
#[derive(Clone, Copy, Debug)]
struct Operation {
    pid: u32,
    /// Whether the kernel's polling thread submitted it. That thread makes no calls that could
    /// reap.
    by_sq_thread: bool,
    /// The I/O of this operation.
    key: Key,
    /// How often it was queued to workers. If never, the submitting thread executes it.
    handed: u32,
    /// The first operation of its chain.
    head: Option<Key>,
}

#[derive(Debug, Default)]
pub(super) struct Callers {
    threads: HashMap<u32, Caller>,
    /// The call of each thread that is in one.
    calls: HashMap<u32, InCall>,
    /// Operations of io_uring, by `struct io_kiocb`.
    operations: HashMap<u64, Operation>,
    /// The io_uring workers of each submitting thread.
    pools: HashMap<u32, Pool>,
    pub processes: Processes,
    pub descriptors: Descriptors,
    /// Whether calls of `close` are reported.
    pub shows_close: bool,
}

/// The descriptor that a call names, and the number of its opening.
type Named = (Option<i32>, Option<usize>);

impl InCall {
    fn begin(call: Call, (fd, file): Named, event: &Event, sink: &mut Sink) -> InCall {
        let entered_ns = event.time_ns;
        let io = Io::begin(call, (event.pid, event.comm), entered_ns);
        let key = sink.begin_io(Io { fd, file, ..io });
        InCall { call, key, entered_ns, continued_ns: entered_ns, asleep: false }
    }
}

impl Callers {
    pub fn take(&mut self, event: &Event, sink: &mut Sink) {
        self.descriptors.take_looks(event.time_ns, &self.processes);
        match event.what {
            EventKind::CallEnter { call, fd } => self.enter_call(event, call, fd, sink),
            EventKind::CallExit { call, result } => {
                if call.closes_files() {
                    // Until now, the file was perhaps still open.
                    let fd = self.thread(event.pid).closes.take();
                    self.close(event.pid, fd);
                }
                self.exit_call(event, call, result, sink);
            }
            EventKind::PageFault => self.begin_fault(event, sink),
            EventKind::AnyCall => self.end_fault(event.pid, sink),
            EventKind::Switch(switch) => self.note_fault_sleep(&switch, event.time_ns),
            EventKind::Waking(waking) => {
                if let Some(fault) = self.fault_of(waking.woken.pid).filter(|fault| fault.asleep) {
                    fault.continued_ns = event.time_ns;
                }
            }
            EventKind::Fork { child, same_process } => {
                self.begin_thread(event.pid, child, same_process, sink);
            }
            EventKind::JournalCommitStart { .. } => {
                self.thread(event.pid).commit = Some(sink.begin_commit(event.time_ns));
            }
            EventKind::JournalCommitEnd { .. } => self.end_commit(event, sink),
            EventKind::WritebackStart { inode } => self.thread(event.pid).writeback = Some(inode),
            EventKind::WritebackEnd { .. } => self.thread(event.pid).writeback = None,
            EventKind::PageCacheAdd { inode, .. } => {
                self.thread(event.pid).cached_inode = Some(inode);
            }
            EventKind::UringSubmit { .. } => self.submit(event, sink),
            EventKind::UringQueueWork { request } => self.queue_work(event, request),
            EventKind::UringLink { request, after } => self.link(event, request, after),
            EventKind::UringFileGet { request } => self.begin_operation(event, request, sink),
            EventKind::UringComplete { .. } => self.complete_operation(event, sink),
            _ => {}
        }
    }

    /// Whether the thread has submitted all bios that it queued before.
    pub fn moves_on(&self, event: &Event) -> bool {
        match event.what {
            EventKind::CallEnter { .. }
            | EventKind::CallExit { .. }
            | EventKind::UringSubmit { .. } => true,
            EventKind::UringFileGet { request } => self.submitter_for(event, request).is_some(),
            EventKind::UringComplete { request, .. } => self.ends_as_worker(event, request),
            _ => false,
        }
    }

    /// Forgets all work, because events after `since_ns` were lost.
    pub fn forget(&mut self, since_ns: u64) {
        self.descriptors.forget(since_ns);
        let Callers { processes, descriptors, shows_close, .. } = std::mem::take(self);
        *self = Callers { processes, descriptors, shows_close, ..Callers::default() };
    }

    /// Ends all work at the end of the trace.
    pub fn finish(&mut self, sink: &mut Sink) {
        let pids: Vec<u32> = self.calls.keys().copied().collect();
        pids.into_iter().for_each(|pid| self.end_fault(pid, sink));
        let threads = std::mem::take(&mut self.threads);
        threads.into_values().for_each(|thread| Callers::reap_from_memory(thread, sink));
    }

    /// A thread starts another. An earlier one of that number has ended, perhaps in the middle of
    /// its work.
    fn begin_thread(&mut self, by: u32, pid: u32, same_process: bool, sink: &mut Sink) {
        // Of two events of one start, only the first shows whether the process is the same.
        if self.thread(by).child.replace(pid) == Some(pid) {
            return;
        }
        self.end_fault(pid, sink);
        if let Some(call) = self.calls.remove(&pid) {
            sink.abandon(call.key);
        }
        let new = Caller { born: true, ..Caller::default() };
        if let Some(old) = self.threads.insert(pid, new) {
            Callers::reap_from_memory(old, sink);
        }
        self.processes.start(by, pid, same_process);
        if !same_process {
            self.close(pid, None);
        }
    }

    fn thread(&mut self, pid: u32) -> &mut Caller {
        self.threads.entry(pid).or_default()
    }

    /// The work to which a bio belongs that this thread queues now.
    pub fn share_of(&mut self, event: &Event, extent: &Extent, sink: &mut Sink) -> Share {
        let task = self.task_of(event, sink);
        let thread = self.thread(event.pid);
        let is_commit = task.is_some() && task == thread.commit;
        let origin = match thread.writeback {
            _ if is_commit || event.comm.is_journal() => Origin::Journal,
            Some(inode) => Origin::Writeback(Some(inode)),
            None if extent.op.ahead => Origin::Readahead(thread.cached_inode),
            None => Origin::Thread,
        };
        Share { task, origin, queued_ns: event.time_ns, ahead: extent.op.ahead }
    }

    fn task_of(&mut self, event: &Event, sink: &mut Sink) -> Option<Key> {
        let thread = self.thread(event.pid);
        if thread.submitting.is_some() {
            return thread.submitting;
        }
        let (commit, born) = (thread.commit, thread.born);
        let Some(in_call) = self.calls.get(&event.pid) else {
            return commit.or_else(|| self.task_of_worker(event, born, sink));
        };
        match in_call.call {
            // Only bios distinguish its operations.
            Call::IoSubmit => {}
            Call::IoUringEnter if !sink.seen.has(Kind::UringSubmit) => {}
            // The thread is not submitting, so the kernel serves an operation that no event names.
            Call::IoUringEnter | Call::IoGetevents | Call::IoPgetevents => return None,
            _ => {
                sink.name_io(in_call.key, event.comm);
                return Some(in_call.key);
            }
        }
        let who = (event.pid, event.comm);
        let key = sink.begin_io(Io::begin(in_call.call, who, in_call.entered_ns));
        self.thread(event.pid).unreaped.push(key);
        Some(key)
    }

    fn enter_call(&mut self, event: &Event, call: Call, fd: Option<i32>, sink: &mut Sink) {
        self.end_fault(event.pid, sink);
        self.thread(event.pid).cached_inode = None;
        let process = self.processes.of(event.pid);
        let file = fd.and_then(|fd| self.descriptors.opening(process, fd));
        if call.closes_files() {
            self.thread(event.pid).closes = fd;
            self.close(event.pid, fd);
        }
        let lost = match self.hides(call) {
            true => self.calls.remove(&event.pid),
            false => self.calls.insert(event.pid, InCall::begin(call, (fd, file), event, sink)),
        };
        if let Some(lost) = lost {
            sink.abandon(lost.key);
        }
    }

    /// The thread may close this descriptor of its process, or (`None`) any.
    fn close(&mut self, pid: u32, fd: Option<i32>) {
        self.descriptors.close(self.processes.of(pid), fd);
    }

    /// Whether the call only serves to know the files of descriptors.
    fn hides(&self, call: Call) -> bool {
        call.closes_files() && !(call == Call::Close && self.shows_close)
    }

    fn exit_call(&mut self, event: &Event, call: Call, result: i64, sink: &mut Sink) {
        let thread = self.thread(event.pid);
        if call == Call::IoUringEnter {
            thread.submitting = None;
        }
        let fetches = matches!(call, Call::IoUringEnter | Call::IoGetevents | Call::IoPgetevents);
        let is_idle = thread.unreaped.is_empty() && thread.operations == 0;
        // A return without a begun call: it began before the trace.
        if let Some(begun) = self.calls.remove(&event.pid) {
            if begun.call != call {
                return sink.abandon(begun.key);
            }
            sink.name_io(begun.key, event.comm);
            if fetches || call == Call::IoSubmit {
                // Another thread may have submitted it, such as the kernel's polling thread.
                if let Some(io) = sink.ios.remove(&begun.key).filter(|_| fetches && is_idle) {
                    let ended = Io { exited_ns: event.time_ns, ..io.as_call() };
                    sink.results.calls_without_request.push(Some(ended));
                }
            } else {
                sink.change(begun.key, |io| {
                    io.bytes = Some(call.moved(result));
                    io.io.file.take_if(|_| result == -i64::from(libc::EBADF));
                });
                sink.end_io(begun.key, event.time_ns);
            }
        }
        if fetches {
            self.reap(event, sink);
        }
    }

    /// The program touches memory that is not present. The duration is known only if the thread
    /// sleeps. The sleep belongs to the fault only if the beginnings of all calls are seen.
    fn begin_fault(&mut self, event: &Event, sink: &mut Sink) {
        self.end_fault(event.pid, sink);
        if sink.seen.has(Kind::Switch) && sink.seen.has(Kind::AnyCall) {
            let begin = || InCall::begin(Call::PageFault, (None, None), event, sink);
            self.calls.entry(event.pid).or_insert_with(begin);
        }
    }

    /// Records that the thread sleeps in a page fault. A thread that loses its CPU may have
    /// returned to the program before; one that sleeps has not.
    fn note_fault_sleep(&mut self, switch: &Switch, time_ns: u64) {
        if let Some(fault) = self.fault_of(switch.prev.pid) {
            fault.asleep = !switch.runnable;
        }
        if let Some(fault) = self.fault_of(switch.next.pid).filter(|fault| fault.asleep) {
            (fault.asleep, fault.continued_ns) = (false, time_ns);
        }
    }

    fn fault_of(&mut self, pid: u32) -> Option<&mut InCall> {
        self.calls.get_mut(&pid).filter(|call| call.call == Call::PageFault)
    }

    /// Ends the page fault when the program does something else. The fault lasted until the thread
    /// last continued after a sleep.
    fn end_fault(&mut self, pid: u32, sink: &mut Sink) {
        let Some(&mut InCall { key, continued_ns, .. }) = self.fault_of(pid) else { return };
        self.calls.remove(&pid);
        sink.end_io(key, continued_ns);
    }

    /// Ends a commit. Calls in progress during all of it may have waited for it.
    fn end_commit(&mut self, event: &Event, sink: &mut Sink) {
        let Some(key) = self.thread(event.pid).commit.take() else { return };
        let Some(begun_ns) = sink.end_commit(key, event.time_ns) else { return };
        for in_call in self.calls.values() {
            let may_wait = in_call.call.is_sync() || in_call.call.is_write();
            if may_wait && in_call.entered_ns <= begun_ns {
                sink.change(in_call.key, |io| io.commits.push(key));
            }
        }
    }
}
