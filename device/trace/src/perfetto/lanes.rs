// SPDX-License-Identifier: MIT OR Apache-2.0
//! Assigns lanes to concurrent slices. Perfetto nests slices that overlap on one track, so
//! concurrent slices need separate tracks. Each track is a row on the screen, so there should be
//! few. `tracks` calls it.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// The lane of each interval: the lowest free one. Intervals must be sorted by their beginning, and
/// one may begin where another ends. The number of lanes is the number of concurrent intervals,
/// which is the minimum.
pub fn assign(intervals: impl IntoIterator<Item = (u64, u64)>) -> Vec<usize> {
    let mut busy: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let mut free: BTreeSet<usize> = BTreeSet::new();
    let mut lanes = Vec::new();
    for (begin, end) in intervals {
        while let Some(&Reverse((_, lane))) = busy.peek().filter(|earliest| earliest.0.0 <= begin) {
            busy.pop();
            free.insert(lane);
        }
        let lane = free.pop_first().unwrap_or(busy.len());
        busy.push(Reverse((end, lane)));
        lanes.push(lane);
    }
    lanes
}
