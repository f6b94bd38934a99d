// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a thread computes per I/O, which `steady bound` adds to what its I/Os take.

use std::collections::BTreeMap;

use super::by_key;
use super::distribution::Distribution;
use super::rows::Item;
use super::shown::Shown;
use super::thread_time::{Doing, stays};
use crate::event::Call;
use crate::sched::Sched;

/// Of each thread: for how long it had a CPU from the end of an I/O to the end of its next. The first I/O has none
/// before it. Missing are threads whose switches are not all known, and those that have several I/Os at once.
pub fn per_io(shown: &Shown) -> BTreeMap<u32, Distribution> {
    let of_threads = by_key(shown.ios.iter().map(|item| (item.row.pid, item)));
    let of_thread = |(pid, items): (u32, Vec<&Item>)| {
        let times_ns = between_ends_ns(&shown.waiting.trace.sched, pid, &items)?;
        Some((pid, Distribution::of(times_ns)?))
    };
    of_threads.into_iter().filter_map(of_thread).collect()
}

fn between_ends_ns(sched: &Sched, pid: u32, items: &[&Item]) -> Option<Vec<u64>> {
    let call = |item: &Item| item.io.map(|io| io.call);
    if items.iter().any(|item| matches!(call(item), Some(Call::IoUringEnter | Call::IoSubmit))) {
        return None;
    }
    let mut ends_ns: Vec<u64> = items.iter().map(|item| item.during_ns().1).collect();
    ends_ns.sort_unstable();
    let ran = |ends: &[u64]| {
        let stays = stays(sched, pid, (ends[0], ends[1]), true)?;
        let running = stays.iter().filter(|stay| stay.doing == Doing::Running);
        Some(running.map(|stay| stay.to_ns - stay.from_ns).sum())
    };
    ends_ns.windows(2).map(ran).collect()
}
