// SPDX-License-Identifier: MIT OR Apache-2.0
//! The question to a trace, and how much of it that hides.

use serde::Serialize;
use steadyio_core::kernel::Kernel;

use super::words::Names;
use crate::event::Class;
use crate::source::Problems;
use crate::source::capture::devices::Stack;
use crate::source::capture::threads::AskedFor;

#[derive(Debug, Default)]
pub struct Question {
    /// How many of the worst are wanted, of I/Os and of other requests.
    pub worst: usize,
    /// Of the worst, only I/Os and requests that may be of this class. `None`: all.
    pub worst_class: Option<Class>,
    /// Only I/Os and requests of these threads are shown; the others still count as causes. `None`: all.
    pub asked_for: Option<AskedFor>,
    /// Only those of this cgroup and the ones below it, as in `/proc/PID/cgroup`. `None`: all.
    pub cgroup: Option<String>,
    /// Only I/Os and requests of this device are shown; the others still count as causes. `None`: all.
    pub device: Option<Stack>,
    /// What devices are called, if that is known.
    pub names: Names,
    /// The kernel that was traced, if that is known.
    pub kernel: Option<Kernel>,
    pub problems: Problems,
    /// Events of kinds that are not used.
    pub skipped: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Scope {
    /// Whether only some processes are shown.
    pub processes: &'static str,
    pub ios_hidden: u64,
    /// Requests outside system calls that are not shown.
    pub requests_hidden: u64,
}
