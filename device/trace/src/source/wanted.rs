// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of wanted events, and how each is decoded.

use serde::{Deserialize, Serialize};

use super::calls::{CALLS, CallEvents};
use super::drivers;
use super::fields::Fields;
use super::sched;
use crate::event::{Call, EventKind, Extent, Op};

/// How much of the path of an I/O is traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Detail {
    /// What the spans and the causes need.
    Summary,
    /// Plugs, interrupts and the page cache too, which happen more often than I/Os.
    Fine,
}

/// What an event is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// [`Detail::Summary`].
    Summary,
    /// [`Detail::Fine`].
    Fine,
    /// What threads do. Context switches are more frequent than I/Os, so this is optional.
    Sched,
}

/// One event of the kernel.
#[derive(Debug)]
pub struct Wanted {
    /// The folder under `events`.
    pub system: &'static str,
    /// The folder in it.
    pub name: String,
    /// What older kernels called it.
    pub old_name: Option<&'static str>,
    need: Need,
    /// Which of them, in the kernel's words; empty for all.
    pub filter: &'static str,
    /// The fields that `decode` takes, by their number in this list; `?` before one that not all kernels have.
    pub(super) fields: Vec<&'static str>,
    pub(super) decode: Decode,
}

impl Wanted {
    /// Whether it is wanted for this detail, and with sched events.
    pub fn is_needed(&self, detail: Detail, sched: bool) -> bool {
        match self.need {
            Need::Summary => true,
            Need::Fine => detail == Detail::Fine,
            Need::Sched => sched,
        }
    }

    /// The field with the name of the thread in whose context it happens, after `?`.
    pub(super) fn comm_field(&self) -> &'static str {
        match (self.system, self.name.as_str()) {
            ("sched", "sched_switch") => "?prev_comm",
            // `comm` is the woken thread.
            ("sched", _) => ABSENT,
            _ => "?comm",
        }
    }

    /// The fields with the device's number, for the kernel's event filter.
    pub fn dev_fields(&self) -> impl Iterator<Item = &'static str> {
        let of_devices = matches!(self.system, "block" | "k2");
        self.fields
            .iter()
            .copied()
            .filter(move |name| of_devices && matches!(*name, "dev" | "old_dev"))
    }
}

/// How the fields become a [`EventKind`]; `None` if a field is not what it should be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Decode {
    Event(fn(&Fields) -> Option<EventKind>),
    /// The beginning of a call; fields 0 and 1 are the file descriptor and the bytes, if it has them.
    Enter(Call),
    /// Field 0 is the result.
    Exit(Call),
}

const NS_PER_MS: u64 = 1_000_000;
/// Keeps the place of a field that an event does not have.
const ABSENT: &str = "?";

pub fn wanted() -> Vec<Wanted> {
    let mut all = events();
    for CallEvents { call, name, fd, bytes } in CALLS {
        let row = |name: String, fields, decode| Wanted {
            system: "syscalls",
            name,
            old_name: None,
            need: Need::Summary,
            filter: "",
            fields,
            decode,
        };
        let arguments = vec![fd.unwrap_or(ABSENT), bytes.unwrap_or(ABSENT)];
        all.push(row(format!("sys_enter_{name}"), arguments, Decode::Enter(call)));
        all.push(row(format!("sys_exit_{name}"), vec!["ret"], Decode::Exit(call)));
    }
    all
}

const EXTENT: &str = "dev sector nr_sector rwbs ?ioprio";
const SCSI: &str = "host_no channel id lun driver_tag opcode cmnd";

#[rustfmt::skip]
fn events() -> Vec<Wanted> {
    use Need::{Fine, Sched, Summary};
    vec![
        row("block block_bio_queue", Summary, EXTENT, |f| Some(EventKind::BioQueue(f.extent()?))),
        row("block block_bio_remap", Summary, "dev sector nr_sector rwbs ?ioprio old_dev old_sector", |f| {
            Some(EventKind::BioRemap { to: f.extent()?, from: (f.dev(5)?, f.u64(6)?) })
        }),
        row("block block_split", Summary, "dev sector new_sector rwbs", |f| {
            let (dev, sector, new_sector) = (f.dev(0)?, f.u64(1)?, f.u64(2)?);
            let bio = Extent { dev, sector, sectors: 0, op: f.op(3)?, priority: None };
            Some(EventKind::BioSplit { bio, new_sector })
        }),
        row("block block_bio_backmerge", Summary, EXTENT, |f| Some(EventKind::BackMerge(f.extent()?))),
        row("block block_bio_frontmerge", Summary, EXTENT, |f| Some(EventKind::FrontMerge(f.extent()?))),
        row("block block_rq_merge", Summary, EXTENT, |f| Some(EventKind::RequestMerge(f.extent()?))),
        row("block block_getrq", Summary, EXTENT, |f| Some(EventKind::GetRequest(f.extent()?))),
        row("block block_plug", Fine, "", |_| Some(EventKind::Plug)),
        row("block block_unplug", Fine, "", |_| Some(EventKind::Unplug)),
        row("block block_rq_insert", Summary, EXTENT, |f| Some(EventKind::Insert(f.extent()?))),
        row("block block_rq_issue", Summary, EXTENT, |f| Some(EventKind::Issue(f.extent()?))),
        row("block block_rq_requeue", Summary, EXTENT, |f| Some(EventKind::Requeue(f.extent()?))),
        row("block block_rq_complete", Summary, "dev sector nr_sector rwbs ?ioprio error", |f| {
            Some(EventKind::Complete { extent: f.extent()?, error: f.i32(5)? })
        }),
        row("mmc mmc_request_start", Summary, "mrq cmd_opcode blocks blksz blk_addr", drivers::mmc_start),
        row("mmc mmc_request_done", Summary, "mrq cmd_opcode bytes_xfered", drivers::mmc_done),
        row("nvme nvme_setup_cmd", Summary, "ctrl_id qid cid ?opcode", |f| drivers::nvme(f).map(EventKind::HardwareStart)),
        row("nvme nvme_complete_rq", Summary, "ctrl_id qid cid ?opcode", |f| drivers::nvme(f).map(EventKind::HardwareDone)),
        row("scsi scsi_dispatch_cmd_start", Summary, SCSI, |f| drivers::scsi(f).map(EventKind::HardwareStart)),
        row("scsi scsi_dispatch_cmd_done", Summary, SCSI, |f| drivers::scsi(f).map(EventKind::HardwareDone)),
        row("irq irq_handler_entry", Fine, "irq", |f| Some(EventKind::IrqEnter { irq: f.u32(0)? })),
        row("irq irq_handler_exit", Fine, "irq", |f| Some(EventKind::IrqExit { irq: f.u32(0)? })),
        Wanted { old_name: Some("io_uring_submit_sqe"), ..row("io_uring io_uring_submit_req", Summary, "req ?sq_thread", |f| {
            Some(EventKind::UringSubmit { request: f.u64(0)?, sq_thread: f.u64(1).unwrap_or(0) != 0 })
        }) },
        row("io_uring io_uring_complete", Summary, "req res", |f| {
            Some(EventKind::UringComplete { request: f.u64(0)?, result: f.i32(1)? })
        }),
        row("io_uring io_uring_queue_async_work", Summary, "req", |f| Some(EventKind::UringQueueWork { request: f.u64(0)? })),
        row("io_uring io_uring_link", Summary, "req target_req", |f| {
            Some(EventKind::UringLink { request: f.u64(0)?, after: f.u64(1)? })
        }),
        // Only of workers: others do it for each operation.
        Wanted { filter: "comm ~ \"iou-wrk-*\"", ..row("io_uring io_uring_file_get", Summary, "req", |f| {
            Some(EventKind::UringFileGet { request: f.u64(0)? })
        }) },
        row("writeback writeback_single_inode_start", Summary, "ino", |f| Some(EventKind::WritebackStart { inode: f.u64(0)? })),
        row("writeback writeback_single_inode", Summary, "ino", |f| Some(EventKind::WritebackEnd { inode: f.u64(0)? })),
        row("filemap mm_filemap_add_to_page_cache", Fine, "s_dev i_ino", |f| {
            Some(EventKind::PageCacheAdd { dev: f.dev(0)?, inode: f.u64(1)? })
        }),
        row("k2 k2_split", Summary, "dev sector piece_bytes rest_bytes", |f| {
            let (dev, sector, sectors) = (f.dev(0)?, f.u64(1)?, f.u32(2)? / 512);
            let piece = Extent { dev, sector, sectors, op: Op::default(), priority: None };
            Some(EventKind::K2Split { piece, rest_bytes: f.u32(3)? })
        }),
        row("jbd2 jbd2_start_commit", Summary, "dev transaction", |f| {
            Some(EventKind::JournalCommitStart { dev: f.dev(0)?, transaction: f.u32(1)? })
        }),
        row("jbd2 jbd2_end_commit", Summary, "dev transaction", |f| {
            Some(EventKind::JournalCommitEnd { dev: f.dev(0)?, transaction: f.u32(1)? })
        }),
        // Comes once per pause, from a thread that is about to sleep.
        row("writeback balance_dirty_pages", Summary, "pause", |f| {
            Some(EventKind::DirtyPause { pause_ns: u64::try_from(f.int(0)?).unwrap_or(0).saturating_mul(NS_PER_MS) })
        }),
        row("sched sched_switch", Sched, "prev_pid prev_comm prev_prio prev_state next_pid next_comm next_prio", sched::switch),
        row("sched sched_waking", Sched, "pid comm prio common_flags", sched::waking),
        // Not sched_process_fork: the workers of io_uring begin without it.
        row("task task_newtask", Summary, "pid", |f| Some(EventKind::Fork { child: f.u32(0)? })),
    ]
}

fn row(
    path: &'static str,
    need: Need,
    fields: &'static str,
    decode: fn(&Fields) -> Option<EventKind>,
) -> Wanted {
    let (system, name) = path.split_once(' ').unwrap_or((path, ""));
    let fields = fields.split_whitespace().collect();
    Wanted {
        system,
        name: name.into(),
        old_name: None,
        need,
        filter: "",
        fields,
        decode: Decode::Event(decode),
    }
}
