// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which kinds of event the trace has, and what is unknown without the others.

use super::callers::submitter_of;
use super::requests::MMC_MAJOR;
use crate::event::{Call, Driver, Event, EventKind};
use crate::io::Missing;

/// What has been seen.
#[derive(Debug, Default)]
pub(super) struct Seen {
    get_request: bool,
    uring_submit: bool,
    queue: bool,
    insert: bool,
    issue: bool,
    complete: bool,
    call: bool,
    uring_call: bool,
    worker: bool,
    queued_work: bool,
    readahead: bool,
    page_cache: bool,
    journal_thread: bool,
    commit: bool,
    card: bool,
    command: bool,
    switch: bool,
    waking: bool,
}

impl Seen {
    /// Called with each event, before anything else.
    pub fn note(&mut self, event: &Event) {
        match &event.what {
            EventKind::BioQueue(extent) => {
                self.queue = true;
                self.readahead |= extent.op.ahead;
                self.journal_thread |= event.comm.as_bytes().starts_with(b"jbd2/");
                self.worker |= submitter_of(&event.comm).is_some();
            }
            EventKind::GetRequest(_) => self.get_request = true,
            EventKind::Insert(_) => self.insert = true,
            EventKind::Issue(extent) => {
                self.issue = true;
                self.card |= extent.dev.major == MMC_MAJOR;
            }
            EventKind::Complete { .. } => self.complete = true,
            EventKind::CallEnter { call, .. } => {
                self.call = true;
                self.uring_call |= *call == Call::IoUringEnter;
            }
            EventKind::UringSubmit { .. } => self.uring_submit = true,
            EventKind::UringQueueWork { .. } => self.queued_work = true,
            EventKind::PageCacheAdd { .. } => self.page_cache = true,
            EventKind::JournalCommitStart { .. } => self.commit = true,
            EventKind::HardwareStart(command) => self.command |= command.driver == Driver::Mmc,
            EventKind::Switch(_) => self.switch = true,
            EventKind::Waking(_) => self.waking = true,
            _ => {}
        }
    }

    /// The events that should have been seen and were not, with the consequence.
    pub fn missing(&self) -> Vec<Missing> {
        let requests = self.issue || self.complete;
        let rows = [
            (
                requests && !self.queue,
                "block:block_bio_queue",
                "unknown who queued a request, and when it entered the block layer",
            ),
            (
                requests && !self.get_request,
                "block:block_getrq",
                "waits for a tag and in the scheduler look alike; flushes are not linked to the I/Os that wait",
            ),
            (
                requests && !self.insert,
                "block:block_rq_insert",
                "unknown when a request entered the scheduler (there may be none)",
            ),
            (
                self.complete && !self.issue,
                "block:block_rq_issue",
                "no request can be followed: unknown when it was issued to the driver",
            ),
            (
                self.issue && !self.complete,
                "block:block_rq_complete",
                "no request can be followed: unknown when it completed",
            ),
            (
                self.queue && !self.call,
                "syscalls:sys_enter_*",
                "requests only, no I/Os: submission and post are unknown",
            ),
            (
                self.uring_call && !self.uring_submit,
                "io_uring:io_uring_submit_req",
                "io_uring operations are told apart by their bios only",
            ),
            (
                self.worker && self.uring_submit && !self.queued_work,
                "io_uring:io_uring_queue_async_work",
                "unknown which operations io_uring workers do: these I/Os are incomplete",
            ),
            (
                self.readahead && !self.page_cache,
                "filemap:mm_filemap_add_to_page_cache",
                "unknown which inode readahead is for",
            ),
            (
                self.journal_thread && !self.commit,
                "jbd2:jbd2_start_commit",
                "unknown which fsync waited for which journal commit",
            ),
            (
                self.card && !self.command,
                "mmc:mmc_request_start",
                "time in the MMC driver counts as device time",
            ),
            (
                self.call && !self.switch,
                "sched:sched_switch",
                "unknown what threads did in submission and post (--sched)",
            ),
            (
                self.switch && !self.waking,
                "sched:sched_waking",
                "unknown whether a thread slept or waited for a CPU",
            ),
        ];
        let absent = rows.into_iter().filter(|(absent, ..)| *absent);
        absent.map(|(_, event, consequence)| Missing { event, consequence }).collect()
    }
}
