// SPDX-License-Identifier: MIT OR Apache-2.0
//! Summarizes the times of many I/Os: count, mean and percentiles, all exact. The whole report uses
//! it.

use serde::{Deserialize, Serialize};

const NS_PER_US: u64 = 1_000;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    pub count: u64,
    /// Mean in ns, one decimal.
    pub mean_ns: f64,
    /// Median in ns. Percentiles use the nearest rank: the smallest time with at least that share
    /// of times at or below it.
    pub p50_ns: u64,
    pub p99_ns: u64,
    pub p999_ns: u64,
    pub max_ns: u64,
}

impl Distribution {
    /// The summary of times in ns; `None` if there are none.
    pub fn of(mut times_ns: Vec<u64>) -> Option<Distribution> {
        times_ns.sort_unstable();
        let max_ns = *times_ns.last()?;
        let sum: u128 = times_ns.iter().map(|ns| u128::from(*ns)).sum();
        let rank = |per_mille: usize| (times_ns.len() * per_mille).div_ceil(1_000);
        let at = |per_mille| times_ns[rank(per_mille).max(1) - 1];
        Some(Distribution {
            count: times_ns.len() as u64,
            mean_ns: one_decimal(sum as f64 / times_ns.len() as f64),
            p50_ns: at(500),
            p99_ns: at(990),
            p999_ns: at(999),
            max_ns,
        })
    }
}

/// The number of times between two powers of two of a microsecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bin {
    pub from_ns: u64,
    /// The upper end, exclusive.
    pub to_ns: u64,
    pub count: u64,
}

/// The bins from the shortest time to the longest. The first bin holds all times below 1 us.
pub fn histogram(times_ns: &[u64]) -> Vec<Bin> {
    let place = |ns: &u64| (ns / NS_PER_US).checked_ilog2().map_or(0, |log| log as usize + 1);
    let (first, last) = (times_ns.iter().map(place).min(), times_ns.iter().map(place).max());
    let bin = |place: usize| Bin {
        from_ns: if place == 0 { 0 } else { NS_PER_US << (place - 1) },
        to_ns: NS_PER_US << place,
        count: 0,
    };
    let first = first.unwrap_or(0);
    let mut bins: Vec<Bin> = (first..last.map_or(0, |last| last + 1)).map(bin).collect();
    times_ns.iter().for_each(|ns| bins[place(ns) - first].count += 1);
    bins
}

/// Rounds to one decimal. More digits only make records longer.
pub(super) fn one_decimal(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
