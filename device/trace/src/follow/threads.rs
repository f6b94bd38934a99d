// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of each thread: the call it is in, the bios that it has queued and that have no request yet.

use std::collections::HashMap;

use super::super::event::{Call, Comm, Dev, Event, Extent, Op, Priority};
use super::open::StartSector;
use super::tasks::{Key, Share};

/// A thread's bios wait for a request only while it submits them; more than this are stale ones.
const PENDING_MAX: usize = 1_024;

/// A bio that is queued and has no request yet.
#[derive(Clone, Debug)]
pub(super) struct Bio {
    pub dev: Dev,
    pub sector: u64,
    pub sectors: u32,
    pub op: Op,
    pub priority: Option<Priority>,
    /// `None`: queued before the trace, or such events are not traced.
    pub queued_ns: Option<u64>,
    pub pid: u32,
    pub comm: Comm,
    /// A part of a larger one.
    pub cut: bool,
    /// Queued once already, for a device on top of this one or as a part: it is not new when queued again.
    pub carried: bool,
    /// It was remapped to the devices below.
    pub stacked: bool,
    /// The devices above this one that it came through.
    pub through: Vec<Dev>,
    pub share: Share,
}

impl Bio {
    pub fn covers(&self, dev: Dev, sector: u64) -> bool {
        let end = self.sector.saturating_add(u64::from(self.sectors.max(1)));
        self.dev == dev && (self.sector..end).contains(&sector)
    }

    pub fn is_at(&self, extent: &Extent) -> bool {
        (self.dev, self.sector, self.op.kind) == (extent.dev, extent.sector, extent.op.kind)
    }
}

/// A system call in progress.
#[derive(Debug)]
pub(super) struct InCall {
    pub call: Call,
    pub comm: Comm,
    pub entered_ns: u64,
    /// Of a page fault: when the thread last continued after a sleep in it.
    pub continued_ns: u64,
    /// Of a page fault: the thread sleeps in it.
    pub asleep: bool,
    /// The I/O that it is, once it has queued a bio.
    pub io: Option<Key>,
    /// Journal commits that began and ended in it.
    pub commits: Vec<Key>,
}

impl InCall {
    /// It begins with that event.
    pub fn new(call: Call, event: &Event) -> InCall {
        let (comm, entered_ns) = (event.comm, event.time_ns);
        let (io, commits) = (None, Vec::new());
        InCall { call, comm, entered_ns, continued_ns: entered_ns, asleep: false, io, commits }
    }
}

/// What is known of a thread.
#[derive(Debug, Default)]
pub(super) struct Thread {
    pub call: Option<InCall>,
    /// The io_uring operation that it is submitting.
    pub submitting: Option<Key>,
    /// In the order of queueing.
    pub pending: Vec<Bio>,
    /// Where a bio of a partition or of a stacked device is remapped to, and what it came through: it is queued next.
    pub remapped: Option<(StartSector, Vec<Dev>)>,
    /// It writes this inode back.
    pub writeback: Option<u64>,
    /// It commits this transaction of a journal.
    pub commit: Option<Key>,
    /// The inode that it last read into the page cache, in this call.
    pub cached_inode: Option<u64>,
    /// I/Os that it submitted, that have completed and are not reaped.
    pub unreaped: Vec<Key>,
    /// Since when it waits for a lock.
    pub lock_since_ns: Option<u64>,
    /// It was started within the trace.
    pub born: bool,
}

impl Thread {
    /// Adds a bio; returns what has to make room for it.
    pub fn queue(&mut self, bio: Bio) -> Option<Bio> {
        self.pending.push(bio);
        (self.pending.len() > PENDING_MAX).then(|| self.pending.remove(0))
    }

    /// The last bio queued there: a thread submits one at a time.
    pub fn find(&self, extent: &Extent) -> Option<usize> {
        self.pending.iter().rposition(|bio| bio.is_at(extent) && !bio.stacked)
    }
}

/// All threads seen.
pub(super) type Threads = HashMap<u32, Thread>;
