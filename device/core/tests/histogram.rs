// SPDX-License-Identifier: MIT OR Apache-2.0
//! Histograms against the plain model: a sorted list of all latencies.

#![allow(clippy::expect_used, clippy::unwrap_used)]

use proptest::prelude::*;
use steadyio_core::histogram::{Histogram, Percentiles};

fn histogram(latencies: &[u64]) -> Histogram {
    let min = latencies.iter().min().copied().unwrap_or_default();
    let max = latencies.iter().max().copied().unwrap_or_default();
    let mut sum = Histogram::default();
    for &latency in latencies {
        sum.merge(&Histogram::new([(latency, 1)], latency, latency));
    }
    let whole = Histogram::new(sum.bins(), min, max);
    assert_eq!(whole, sum);
    whole
}

/// Nearest rank, on the list itself.
fn nearest_rank(latencies: &[u64], numerator: usize, denominator: usize) -> Option<u64> {
    let mut sorted = latencies.to_vec();
    sorted.sort_unstable();
    let rank = (latencies.len() * numerator).div_ceil(denominator).max(1);
    sorted.get(rank - 1).copied()
}

proptest! {
    #[test]
    fn quantiles_are_those_of_the_list(list in prop::collection::vec(0u64..5_000, 0..400)) {
        let histogram = histogram(&list);
        for (numerator, denominator) in [(50, 100), (95, 100), (99, 100), (999, 1_000), (9_999, 10_000)] {
            prop_assert_eq!(
                histogram.quantile(numerator, denominator),
                nearest_rank(&list, numerator as usize, denominator as usize)
            );
        }
        let figures = histogram.percentiles();
        prop_assert_eq!(figures.min, list.iter().min().copied());
        prop_assert_eq!(figures.max, list.iter().max().copied());
        prop_assert_eq!(histogram.count(), list.len() as u64);
    }

    #[test]
    fn merging_is_measuring_both(
        one in prop::collection::vec(0u64..5_000, 0..100),
        two in prop::collection::vec(0u64..5_000, 0..100),
    ) {
        let mut merged = histogram(&one);
        merged.merge(&histogram(&two));
        prop_assert_eq!(merged, histogram(&[one, two].concat()));
    }

    #[test]
    fn figures_stay_within_the_exact_extremes(
        bins in prop::collection::btree_map(1u64..1_000_000, 1u64..u64::from(u32::MAX), 1..50),
        min in 1u64..1_000_000,
        width in 0u64..1_000_000,
    ) {
        let figures = Histogram::new(bins, min, min + width).percentiles();
        let Percentiles { min, p50, p95, p99, p999, p9999, max } = figures;
        prop_assert!([min, p50, p95, p99, p999, p9999, max].is_sorted(), "{:?}", figures);
    }
}
