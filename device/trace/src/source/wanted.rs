// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the table of events (`table.rs`) says of each, and which of them are wanted.

use serde::{Deserialize, Serialize};

use super::fields::Fields;
use super::table;
use crate::event::{Call, EventKind};

/// How much of the path of an I/O is traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Detail {
    /// What the spans and the causes need.
    Summary,
    /// Plugs, interrupts and the page cache too, which happen more often than I/Os.
    Fine,
}

/// Which events are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    pub detail: Detail,
    /// What threads do beside their calls.
    pub threads: bool,
    /// Calls about names and attributes of files.
    pub metadata: bool,
}

/// What an event is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// [`Detail::Summary`].
    Summary,
    /// [`Detail::Fine`].
    Fine,
    /// What threads do. Context switches are more frequent than I/Os, so this is optional.
    Threads,
    /// Calls about names and attributes of files: frequent, and seldom waited for.
    Metadata,
    /// Not asked of this kernel, but read in files.
    Files,
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
    pub(super) need: Need,
    /// Which of them, in the kernel's words; empty for all.
    pub filter: &'static str,
    /// The fields that `decode` takes, by their number in this list; `?` before one that not all kernels have.
    pub(super) fields: Vec<&'static str>,
    /// How it is printed: patterns of `text::pattern`, the first that fits counts. Of system calls
    /// `text::syscall` knows.
    pub(super) text: &'static [&'static str],
    pub(super) decode: Decode,
}

impl Wanted {
    pub fn is_needed(&self, choice: Choice) -> bool {
        match self.need {
            Need::Summary => true,
            Need::Fine => choice.detail == Detail::Fine,
            Need::Threads => choice.threads,
            Need::Metadata => choice.metadata,
            Need::Files => false,
        }
    }

    /// It is about what the thread in whose context it happens does, and not about what happens to a device.
    pub fn is_of_thread(&self) -> bool {
        let of_system =
            matches!(self.system, "syscalls" | "raw_syscalls" | "sched" | "lock" | "exceptions");
        of_system || self.system == "filemap" || self.name == "balance_dirty_pages"
    }

    /// What switches tell of CPUs, they tell only if they are those of all threads.
    pub fn is_of_cpus(&self) -> bool {
        self.system == "sched"
    }

    /// The field with the name of the thread in whose context it happens, after `?`.
    pub(super) fn comm_field(&self) -> &'static str {
        match (self.system, self.name.as_str()) {
            ("sched", "sched_switch") => "?prev_comm",
            // `comm` is the woken, or the new, thread.
            ("sched" | "task", _) => ABSENT,
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

/// Keeps the place of a field that an event does not have.
pub(super) const ABSENT: &str = "?";

/// How the fields become a [`EventKind`]; `None` if a field is not what it should be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Decode {
    Event(fn(&Fields) -> Option<EventKind>),
    /// The beginning of a call; field 0 is the file descriptor, if it has one.
    Enter(Call),
    /// Field 0 is the result.
    Exit(Call),
}

impl Decode {
    pub(super) fn take(self, fields: &Fields) -> Option<EventKind> {
        Some(match self {
            Decode::Event(decode) => decode(fields)?,
            Decode::Enter(call) => EventKind::CallEnter { call, fd: fields.int_argument(0) },
            Decode::Exit(call) => EventKind::CallExit { call, result: fields.int(0)? },
        })
    }
}

/// All that can be asked of a kernel, or read.
pub fn wanted() -> Vec<Wanted> {
    table::rows()
}
