// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interval of a quantile, against plain sums and drawn samples.

use proptest::prelude::*;
use steadyio_core::histogram::Histogram;
use steadyio_core::random::draw;
use steadyio_tune::confidence::{Quantile, interval, ranks, samples_needed};

fn quantile(text: &str) -> Quantile {
    text.parse().unwrap()
}

/// Probability of at most `most` of `n`, summed as it is defined.
fn at_most(n: u64, most: u64, share: f64) -> f64 {
    let mut sum = 0.0;
    let mut p = (1.0 - share).powi(i32::try_from(n).unwrap());
    for k in 0..=most {
        sum += p;
        p *= (n - k) as f64 / (k + 1) as f64 * share / (1.0 - share);
    }
    sum
}

#[test]
fn a_quantile_needs_so_many_samples() {
    for (text, samples) in [("99.9", 3_688), ("99", 368), ("95", 72), ("50", 6), ("99.99", 36_887)]
    {
        let quantile = quantile(text);
        assert_eq!(samples_needed(quantile), samples, "{text}");
        assert!(ranks(samples, quantile).1.is_some() && ranks(samples, quantile).0.is_some());
        assert_eq!(ranks(samples - 1, quantile).1, None, "{text}");
    }
    assert_eq!(ranks(0, Quantile::P999), (None, None));
}

#[test]
fn a_wrong_quantile_is_refused() {
    for text in ["49", "100", "99.9999", "p99", "", "1e1", "-99", "nan"] {
        assert!(text.parse::<Quantile>().is_err(), "{text}");
    }
    assert_eq!(quantile("99.9"), Quantile::P999);
    assert_eq!(quantile("99.95").to_string(), "p99.95");
}

proptest! {
    #[test]
    fn the_ranks_are_the_closest_that_the_binomial_allows(n in 10u64..700, q in 50u64..99) {
        let (below, above) = ranks(n, quantile(&q.to_string()));
        let share = (100 - q) as f64 / 100.0;
        // At least one side of 2.5 % is as full as it can be.
        if let Some(above) = above {
            prop_assert!(at_most(n, n - above, share) <= 0.025 + 1e-9);
            prop_assert!(at_most(n, n - above + 1, share) > 0.025 - 1e-9);
        }
        if let Some(below) = below {
            prop_assert!(1.0 - at_most(n, n - below, share) <= 0.025 + 1e-9);
            prop_assert!(1.0 - at_most(n, n - below - 1, share) > 0.025 - 1e-9);
        }
    }

    #[test]
    fn many_samples_are_no_trouble(n in 1u64..400_000_000, q in 500_000u64..999_990) {
        let quantile = quantile(&format!("{}", q as f64 / 10_000.0));
        let rank = (n as f64 * quantile.percent() / 100.0).ceil() as u64;
        let (below, above) = ranks(n, quantile);
        prop_assert!(below.is_none_or(|below| below >= 1 && below <= rank));
        prop_assert!(above.is_none_or(|above| above >= rank.max(1) && above <= n));
    }
}

#[test]
fn of_many_intervals_19_of_20_hold_the_true_quantile() {
    let quantile = quantile("99");
    // Uniform on 0 to 1e6, so the true p99 is 990,000; values are the bins.
    let held = (0..1_000u64).filter(|&run| {
        let samples = (0..1_000).map(|at| (draw(run, at) % 1_000_000, 1));
        let latency = Histogram::new(samples, 0, 999_999);
        let found = interval(&latency, quantile);
        found.ns_min.unwrap() <= 990_000 && 990_000 <= found.ns_max.unwrap()
    });
    let held = held.count();
    // 950 are expected at least, give or take 7.
    assert!((930..=985).contains(&held), "{held} of 1000");
}
