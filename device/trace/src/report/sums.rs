// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long calls took, by thread, by process, and by the file descriptor that they name.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use super::distribution::Distribution;
use crate::event::Comm;
use crate::io::Trace;

/// All I/Os and other calls of one thread, process or file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallsOf {
    /// The thread's number, or the process's.
    pub pid: u32,
    /// Its name when the last of them was made; of a process, that of the thread that made it.
    pub comm: String,
    /// The file descriptor, if they are those that name one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fd: Option<i32>,
    /// How many of them are I/Os.
    pub ios: u64,
    /// What its I/Os moved.
    pub bytes: u64,
    /// Of all of them together, in ns.
    pub sum_ns: u64,
    #[serde(flatten)]
    pub times: Distribution,
}

#[derive(Default)]
struct Sum {
    comm: Comm,
    last_ns: u64,
    ios: u64,
    bytes: u64,
    times_ns: Vec<u64>,
}

/// A thread's or a process's number, and a file descriptor.
type Key = (u32, Option<i32>);

/// Calls, of those given as indices into [`Trace::ios`] and [`Trace::calls_without_request`].
pub struct Sums<'a> {
    pub trace: &'a Trace,
    pub ios: &'a [usize],
    pub others: &'a [usize],
}

impl Sums<'_> {
    pub fn by_thread(&self) -> Vec<CallsOf> {
        self.by(|pid, _| Some((pid, None)))
    }

    pub fn by_process(&self) -> Vec<CallsOf> {
        self.by(|pid, _| Some((self.trace.processes.of(pid), None)))
    }

    pub fn by_file(&self) -> Vec<CallsOf> {
        self.by(|pid, fd| Some((self.trace.processes.of(pid), Some(fd?))))
    }

    /// The longest sum first.
    fn by(&self, key: impl Fn(u32, Option<i32>) -> Option<Key>) -> Vec<CallsOf> {
        let mut all: BTreeMap<Key, Sum> = BTreeMap::new();
        let mut add =
            |pid: u32, fd, comm: Comm, (from_ns, to_ns): (u64, u64), moved: Option<u64>| {
                let Some(key) = key(pid, fd) else { return };
                let sum = all.entry(key).or_default();
                if to_ns >= sum.last_ns && !comm.is_empty() {
                    (sum.comm, sum.last_ns) = (comm, to_ns);
                }
                sum.ios += u64::from(moved.is_some());
                sum.bytes += moved.unwrap_or(0);
                sum.times_ns.push(to_ns.saturating_sub(from_ns));
            };
        for call in self.others.iter().map(|index| &self.trace.calls_without_request[*index]) {
            add(call.pid, call.fd, call.comm, (call.entered_ns, call.exited_ns), None);
        }
        for io in self.ios.iter().map(|index| &self.trace.ios[*index]) {
            add(io.pid, io.fd, io.comm, (io.entered_ns, io.exited_ns), Some(io.bytes));
        }
        let of = |((pid, fd), sum): (Key, Sum)| {
            let Sum { comm, ios, bytes, times_ns, .. } = sum;
            let (sum_ns, comm) = (times_ns.iter().sum(), comm.to_string());
            Some(CallsOf { pid, comm, fd, ios, bytes, sum_ns, times: Distribution::of(times_ns)? })
        };
        let mut sums: Vec<CallsOf> = all.into_iter().filter_map(of).collect();
        sums.sort_by_key(|sum| Reverse(sum.sum_ns));
        sums
    }
}
