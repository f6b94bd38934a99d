// SPDX-License-Identifier: MIT OR Apache-2.0
//! A query on a trace: which I/Os and requests to show. It also counts those that it hides. The
//! command makes it from its options.

use serde::Serialize;
use steadyio_core::kernel::Kernel;

use super::words::Names;
use crate::event::Class;
use crate::source::Problems;
use crate::source::capture::devices::Stack;
use crate::source::capture::threads::AskedFor;

#[derive(Debug, Default)]
pub struct Question {
    /// The number of longest I/Os to list, and of longest other requests.
    pub worst: usize,
    /// List only I/Os and requests of this or an unknown class among the longest. `None`: all.
    pub worst_class: Option<Class>,
    /// Show only I/Os and requests of these threads. The others still count as causes. `None`: all.
    pub asked_for: Option<AskedFor>,
    /// Show only this cgroup and those below it, written as in `/proc/PID/cgroup`. `None`: all.
    pub cgroup: Option<String>,
    /// Show only I/Os and requests of this device. The others still count as causes. `None`: all.
    pub device: Option<Stack>,
    /// The names of devices, as far as known.
    pub names: Names,
    /// The traced kernel, if known.
    pub kernel: Option<Kernel>,
    pub problems: Problems,
    /// The number of events of unused kinds.
    pub skipped: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Scope {
    /// `traced` if only some processes are shown, otherwise `all`.
    pub processes: &'static str,
    pub ios_hidden: u64,
    /// The number of hidden requests outside system calls.
    pub requests_hidden: u64,
}
