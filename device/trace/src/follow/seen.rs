// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records which kinds of event the trace has, and lists the facts that stay unknown without the
//! others. `follow` and its stages call it.

use crate::event::{Call, Driver, Event, EventKind, Kind, MMC_MAJOR};
use crate::io::Missing;

#[derive(Debug, Default)]
pub(super) struct Seen {
    /// One bit per [`Kind`].
    kinds: u64,
    uring_call: bool,
    worker: bool,
    readahead: bool,
    journal_thread: bool,
    card: bool,
    card_command: bool,
    /// Whether a request was issued while one that looks the same was in flight.
    pub issued_again: bool,
}

impl Seen {
    /// Records the kind of an event. It must be called before the stages.
    pub fn note(&mut self, event: &Event) {
        self.kinds |= 1 << Kind::from(&event.what) as u32;
        match &event.what {
            EventKind::BioQueue(extent) => {
                self.readahead |= extent.op.ahead;
                self.journal_thread |= event.comm.is_journal();
                self.worker |= event.comm.uring_submitter().is_some();
            }
            EventKind::Issue(extent) => self.card |= extent.dev.major == MMC_MAJOR,
            EventKind::CallEnter { call, .. } => self.uring_call |= *call == Call::IoUringEnter,
            EventKind::HardwareStart(of) => self.card_command |= of.driver == Driver::Mmc,
            _ => {}
        }
    }

    pub fn has(&self, kind: Kind) -> bool {
        self.kinds & 1 << kind as u32 != 0
    }

    /// The expected events that did not occur, with the consequence.
    #[rustfmt::skip]
    pub fn missing(&self) -> Vec<Missing> {
        let has = |kind| self.has(kind);
        let requests = has(Kind::Issue) || has(Kind::Complete);
        let rows = [
            (requests && !has(Kind::BioQueue), "block:block_bio_queue",
             "unknown who queued a request, and when it entered the block layer"),
            (requests && !has(Kind::GetRequest), "block:block_getrq",
             "waits for a tag and in the scheduler look alike; flushes are not linked to the I/Os that wait"),
            (requests && !has(Kind::Insert), "block:block_rq_insert",
             "unknown when a request entered the scheduler (there may be none)"),
            (has(Kind::Complete) && !has(Kind::Issue), "block:block_rq_issue",
             "no request can be followed: unknown when it was issued to the driver"),
            (has(Kind::Issue) && !has(Kind::Complete), "block:block_rq_complete",
             "no request can be followed: unknown when it completed"),
            (self.issued_again && !has(Kind::Requeue), "block:block_rq_requeue",
             "a request that its driver gives back looks like two at one sector, which are unmatched"),
            (has(Kind::BioQueue) && !has(Kind::CallEnter), "syscalls:sys_enter_*",
             "requests only, no I/Os: submission and post are unknown"),
            (self.uring_call && !has(Kind::UringSubmit), "io_uring:io_uring_submit_req",
             "io_uring operations are distinguished by their bios only"),
            (self.worker && has(Kind::UringSubmit) && !has(Kind::UringQueueWork), "io_uring:io_uring_queue_async_work",
             "unknown which operations io_uring workers do: these I/Os are incomplete"),
            (self.readahead && !has(Kind::PageCacheAdd), "filemap:mm_filemap_add_to_page_cache",
             "unknown which inode readahead is for"),
            (has(Kind::WritebackStart) && !has(Kind::WritebackEnd), "writeback:writeback_single_inode",
             "unknown which requests are writeback"),
            (self.journal_thread && !has(Kind::JournalCommitStart), "jbd2:jbd2_start_commit",
             "unknown which fsync waited for which journal commit"),
            (self.card && !self.card_command, "mmc:mmc_request_start",
             "time in the MMC driver counts as device time"),
            (has(Kind::CallEnter) && !has(Kind::Switch), "sched:sched_switch",
             "unknown what threads did in submission and post (--sched)"),
            (has(Kind::Switch) && !has(Kind::Waking), "sched:sched_waking",
             "unknown whether a thread slept or waited for a CPU"),
        ];
        let absent = rows.into_iter().filter(|(absent, ..)| *absent);
        absent.map(|(_, event, consequence)| Missing { event, consequence }).collect()
    }
}
