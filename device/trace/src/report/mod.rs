// SPDX-License-Identifier: MIT OR Apache-2.0
//! The record `steadyio.trace/1` of a trace (`docs/spec/steady-trace-record-1.schema.json`).
//!
//! In reading order: [`record`] holds the whole answer to a [`question`]. [`shown`] selects the
//! I/Os, each as one of [`rows`]. [`groups`] makes groups; [`times`] and [`distribution`] summarize
//! their times. [`calls`] has the waits of calls ([`waiting`]), and the CPU time of a thread per
//! I/O. [`worst`] lists the longest I/Os. `case` and `own_time` find their [`cause`]s, the latter
//! in the time of their own threads ([`thread_time`]). The command prints the tables.

pub mod calls;
mod case;
pub mod cause;
pub mod distribution;
pub mod groups;
mod own_time;
pub mod question;
pub mod record;
pub mod rows;
pub mod shown;
pub mod thread_time;
pub mod times;
pub mod waited_for;
pub mod waiting;
pub mod words;
pub mod worst;

use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Groups by key, in the order of the keys.
pub(crate) fn by_key<K: Ord, T>(all: impl IntoIterator<Item = (K, T)>) -> BTreeMap<K, Vec<T>> {
    let mut found: BTreeMap<K, Vec<T>> = BTreeMap::new();
    for (key, one) in all {
        found.entry(key).or_default().push(one);
    }
    found
}

/// Sorts by size, the largest first; equal ones keep their order.
fn sorted<T>(all: impl IntoIterator<Item = T>, size: impl Fn(&T) -> u64) -> Vec<T> {
    let mut all: Vec<T> = all.into_iter().collect();
    all.sort_by_key(|one| Reverse(size(one)));
    all
}
