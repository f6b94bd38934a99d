// SPDX-License-Identifier: MIT OR Apache-2.0
//! Latency histograms, with merging and percentiles. The bench, `direct` and `tune` use them.
//!
//! The bins are fio's: 64 linear steps per power of two, so a bin is at most 1/64 wide relative to
//! its value and a bin value is off by less than 0.8 %. Minimum and maximum are exact.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The latencies of a set of I/Os in ns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    bins: BTreeMap<u64, u64>,
    min: Option<u64>,
    max: Option<u64>,
}

/// Percentiles and extremes in ns; None if the histogram is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Percentiles {
    /// The shortest latency, exact.
    pub min: Option<u64>,
    pub p50: Option<u64>,
    pub p95: Option<u64>,
    pub p99: Option<u64>,
    pub p999: Option<u64>,
    pub p9999: Option<u64>,
    /// The longest latency, exact.
    pub max: Option<u64>,
}

impl Histogram {
    /// Makes a histogram from bins (value to count) and the exact extremes; empty if no bin counts.
    /// Bins with the same value are added up.
    pub fn new(bins: impl IntoIterator<Item = (u64, u64)>, min: u64, max: u64) -> Histogram {
        let mut histogram = Histogram::default();
        for (value, count) in bins.into_iter().filter(|&(_, count)| count > 0) {
            *histogram.bins.entry(value).or_default() += count;
            (histogram.min, histogram.max) = (Some(min), Some(max));
        }
        histogram
    }

    /// Adds all latencies of another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        for (&value, &count) in &other.bins {
            *self.bins.entry(value).or_default() += count;
        }
        self.min = self.min.into_iter().chain(other.min).min();
        self.max = self.max.max(other.max);
    }

    /// The number of latencies.
    pub fn count(&self) -> u64 {
        self.bins.values().sum()
    }

    /// The bins as (value in ns, count), values rising.
    pub fn bins(&self) -> Vec<(u64, u64)> {
        self.bins.iter().map(|(&value, &count)| (value, count)).collect()
    }

    /// The quantile by nearest rank: the smallest bin value with at least `numerator / denominator`
    /// of all latencies at or below it, limited to the exact extremes.
    pub fn quantile(&self, numerator: u64, denominator: u64) -> Option<u64> {
        let wide = u128::from(self.count()) * u128::from(numerator);
        let rank = wide.div_ceil(u128::from(denominator)).max(1);
        self.at_rank(u64::try_from(rank).ok()?)
    }

    /// The bin value of the `rank`th shortest latency, counted from 1, limited to the exact
    /// extremes; None if there are fewer.
    pub fn at_rank(&self, rank: u64) -> Option<u64> {
        let mut seen = 0u64;
        for (&value, &count) in &self.bins {
            seen += count;
            if seen >= rank {
                return Some(value.clamp(self.min?, self.max?));
            }
        }
        None
    }

    /// The percentiles for a record.
    pub fn percentiles(&self) -> Percentiles {
        Percentiles {
            min: self.min,
            p50: self.quantile(50, 100),
            p95: self.quantile(95, 100),
            p99: self.quantile(99, 100),
            p999: self.quantile(999, 1_000),
            p9999: self.quantile(9_999, 10_000),
            max: self.max,
        }
    }
}
