// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lanes: Perfetto nests slices of one track that overlap, so concurrent slices need tracks of their own, as few as
//! possible, since each is a row on the screen.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// The lane of each interval, given in the order of their begin: the lowest that is free. One may begin where
/// another ends. This takes as many lanes as intervals are concurrent, which is the minimum.
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
