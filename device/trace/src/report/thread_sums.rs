// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long the calls of each thread took.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use super::distribution::Distribution;
use crate::event::Comm;
use crate::io::Trace;

/// All I/Os and other calls of one thread.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThreadSum {
    pub pid: u32,
    /// Its name when the last of them was made.
    pub comm: String,
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
    ios: u64,
    bytes: u64,
    times_ns: Vec<u64>,
}

/// Of those given as indices into [`Trace::ios`] and [`Trace::calls_without_request`]; the longest sum first.
pub fn sums(trace: &Trace, ios: &[usize], others: &[usize]) -> Vec<ThreadSum> {
    let mut threads: BTreeMap<u32, Sum> = BTreeMap::new();
    for call in others.iter().map(|index| &trace.calls_without_request[*index]) {
        let sum = threads.entry(call.pid).or_default();
        sum.comm = call.comm;
        sum.times_ns.push(call.exited_ns.saturating_sub(call.entered_ns));
    }
    for io in ios.iter().map(|index| &trace.ios[*index]) {
        let sum = threads.entry(io.pid).or_default();
        sum.comm = io.comm;
        sum.ios += 1;
        sum.bytes += io.bytes;
        sum.times_ns.push(io.spans.total_ns());
    }
    let thread = |(pid, Sum { comm, ios, bytes, times_ns }): (u32, Sum)| {
        let (sum_ns, comm) = (times_ns.iter().sum(), comm.to_string());
        Some(ThreadSum { pid, comm, ios, bytes, sum_ns, times: Distribution::of(times_ns)? })
    };
    let mut sums: Vec<ThreadSum> = threads.into_iter().filter_map(thread).collect();
    sums.sort_by_key(|sum| Reverse(sum.sum_ns));
    sums
}
