// SPDX-License-Identifier: MIT OR Apache-2.0
//! What stands behind the name of an event, as the kernel's own formats print it: the same for ftrace,
//! trace-cmd and perf. Each function reads one format, all of it; nothing is guessed from a part.

pub mod block;
mod driver;
mod kernel;
mod sched;
mod syscall;

use super::scan::{Parsed, Scan};
use crate::event::{Comm, Dev, EventKind};

pub use syscall::{enter as call_enter, exit as call_exit};

/// What an event says.
#[derive(Clone, Copy, Debug)]
pub struct Body {
    pub what: EventKind,
    /// The name of the thread in whose context it happened, if the event repeats it.
    pub comm: Comm,
}

impl From<EventKind> for Body {
    fn from(what: EventKind) -> Body {
        Body { what, comm: Comm::default() }
    }
}

/// The event called `name`, without its system, whose values are `text`; `None` if nobody here needs it.
pub fn parse<'a>(name: &[u8], text: &'a [u8]) -> Option<Parsed<'a, Body>> {
    let mut scan = Scan::new(text.trim_ascii_start());
    let scan = &mut scan;
    Some(match name {
        [b'b', b'l', b'o', b'c', b'k', b'_', name @ ..] => return block::parse(name, scan),
        [b's', b'y', b's', b'_', b'e', b'n', b't', b'e', b'r', b'_', name @ ..] => {
            return syscall::by_name(name).map(|events| syscall::enter(events, scan));
        }
        [b's', b'y', b's', b'_', b'e', b'x', b'i', b't', b'_', name @ ..] => {
            return syscall::by_name(name).map(|events| syscall::exit(events, scan));
        }
        b"mmc_request_start" => driver::mmc_start(scan),
        b"mmc_request_done" => driver::mmc_done(scan),
        b"nvme_setup_cmd" => driver::nvme_setup(scan),
        b"nvme_complete_rq" => driver::nvme_complete(scan),
        b"scsi_dispatch_cmd_start" => {
            driver::scsi(scan).map(|command| EventKind::HardwareStart(command).into())
        }
        b"scsi_dispatch_cmd_done" => {
            driver::scsi(scan).map(|command| EventKind::HardwareDone(command).into())
        }
        b"irq_handler_entry" => {
            kernel::irq(scan, " name=").map(|irq| EventKind::IrqEnter { irq }.into())
        }
        b"irq_handler_exit" => {
            kernel::irq(scan, " ret=").map(|irq| EventKind::IrqExit { irq }.into())
        }
        b"io_uring_submit_req" | b"io_uring_submit_sqe" => kernel::uring_submit(scan),
        b"io_uring_complete" => kernel::uring_complete(scan),
        b"io_uring_queue_async_work" => kernel::uring_queue_work(scan),
        b"io_uring_link" => kernel::uring_link(scan),
        b"io_uring_file_get" => kernel::uring_file_get(scan),
        b"writeback_single_inode_start" => {
            kernel::writeback(scan).map(|inode| EventKind::WritebackStart { inode }.into())
        }
        b"writeback_single_inode" => {
            kernel::writeback(scan).map(|inode| EventKind::WritebackEnd { inode }.into())
        }
        b"mm_filemap_add_to_page_cache" => kernel::page_cache_add(scan, " ", " ino "),
        b"page_cache_ra_unbounded"
        | b"page_cache_ra_order"
        | b"page_cache_sync_ra"
        | b"page_cache_async_ra" => kernel::page_cache_add(scan, "=", " ino="),
        b"jbd2_start_commit" => kernel::commit(scan)
            .map(|(dev, transaction)| EventKind::JournalCommitStart { dev, transaction }.into()),
        b"jbd2_end_commit" => kernel::commit(scan)
            .map(|(dev, transaction)| EventKind::JournalCommitEnd { dev, transaction }.into()),
        b"balance_dirty_pages" => kernel::dirty_pause(scan),
        b"sched_switch" => sched::switch(scan),
        b"sched_waking" | b"sched_wakeup" => sched::waking(scan),
        b"sched_process_fork" => kernel::fork(scan),
        b"task_newtask" => kernel::new_task(scan),
        b"k2_split" => kernel::k2_split(scan),
        _ => return None,
    })
}

/// `8,0` or, with another separator, `8:0`.
pub fn dev<'a>(scan: &mut Scan<'a>, separator: &'static str) -> Parsed<'a, Dev> {
    let major = scan.decimal("a device, as major and minor number")?;
    scan.literal(separator)?;
    let minor = scan.decimal("a minor number")?;
    Ok(Dev { major, minor })
}
