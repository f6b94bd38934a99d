// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which kinds of event there have been, and what cannot be known without the others.

use super::super::event::{Call, Driver, Event, EventKind};
use super::super::io::Missing;
use super::workers::submitter_of;

/// What has been seen.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub get_request: bool,
    pub uring_submit: bool,
    pub loss: bool,
    queue: bool,
    insert: bool,
    issue: bool,
    complete: bool,
    call: bool,
    uring_call: bool,
    worker: bool,
    handed_over: bool,
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
    /// Called with each event, before it is looked at further.
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
                self.card |= extent.dev.major == super::hardware::MMC_MAJOR;
            }
            EventKind::Complete { .. } => self.complete = true,
            EventKind::CallEnter { call, .. } => {
                self.call = true;
                self.uring_call |= *call == Call::IoUringEnter;
            }
            EventKind::UringSubmit { .. } => self.uring_submit = true,
            EventKind::UringQueueWork { .. } => self.handed_over = true,
            EventKind::PageCacheAdd { .. } => self.page_cache = true,
            EventKind::JournalCommitStart { .. } => self.commit = true,
            EventKind::HardwareStart(command) => self.command |= command.driver == Driver::Mmc,
            EventKind::Switch(_) => self.switch = true,
            EventKind::Waking(_) => self.waking = true,
            EventKind::Lost { .. } => self.loss = true,
            _ => {}
        }
    }

    /// The events that were never seen although there was occasion, with what follows.
    pub fn missing(&self) -> Vec<Missing> {
        let requests = self.issue || self.complete;
        let rows = [
            (
                requests && !self.queue,
                "block:block_bio_queue",
                "not known who asked for a request, nor when it reached the block layer",
            ),
            (
                requests && !self.get_request,
                "block:block_getrq",
                "waiting for a tag is not told from waiting in the scheduler; flushes are not linked to who waits",
            ),
            (
                requests && !self.insert,
                "block:block_rq_insert",
                "not known when the scheduler got a request (there may be no scheduler)",
            ),
            (
                self.complete && !self.issue,
                "block:block_rq_issue",
                "no request can be followed: not known when the driver got it",
            ),
            (
                self.issue && !self.complete,
                "block:block_rq_complete",
                "no request can be followed: not known when it ended",
            ),
            (
                self.queue && !self.call,
                "syscalls:sys_enter_*",
                "requests only, no I/Os: submission and post are not known",
            ),
            (
                self.uring_call && !self.uring_submit,
                "io_uring:io_uring_submit_req",
                "operations of io_uring are told apart by their bios only",
            ),
            (
                self.worker && self.uring_submit && !self.handed_over,
                "io_uring:io_uring_queue_async_work",
                "not known which operations of io_uring worker threads do: those are left out",
            ),
            (
                self.readahead && !self.page_cache,
                "filemap:mm_filemap_add_to_page_cache",
                "not known of which file readahead is",
            ),
            (
                self.journal_thread && !self.commit,
                "jbd2:jbd2_start_commit",
                "not known which fsync waited for which commit of the journal",
            ),
            (
                self.card && !self.command,
                "mmc:mmc_request_start",
                "the time in the MMC driver is part of the device's",
            ),
            (
                self.call && !self.switch,
                "sched:sched_switch",
                "not known what threads did in submission and post (--sched)",
            ),
            (
                self.switch && !self.waking,
                "sched:sched_waking",
                "not known whether a thread slept or waited for a CPU",
            ),
        ];
        let absent = rows.into_iter().filter(|(absent, ..)| *absent);
        absent.map(|(_, event, consequence)| Missing { event, consequence }).collect()
    }
}
