// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes the confidence interval of a quantile, from order statistics alone. `run` and `report`
//! use it.
//!
//! Of n independent samples, the number above the true quantile q is binomially distributed with n
//! and 1 - q, for any distribution of the latencies. The i-th largest sample is therefore an upper
//! bound with a known probability, and likewise below. With too few samples even the largest is not
//! a bound: for the p99.9, with fewer than 3,688. Latencies of successive requests are not quite
//! independent (a slow episode of a device affects several), so real intervals are wider.

use std::fmt;
use std::str::FromStr;

use steadyio_core::histogram::Histogram;

/// The share of intervals that contain the true quantile, in percent.
pub const CONFIDENCE_PERCENT: f64 = 95.0;
/// The probability that the quantile lies below the interval, and the same above.
const OUTSIDE: f64 = (1.0 - CONFIDENCE_PERCENT / 100.0) / 2.0;
/// Smaller probabilities do not count, because their share of [`OUTSIDE`] is not detectable.
const NEGLIGIBLE: f64 = 1e-18;
const MILLION: u64 = 1_000_000;

/// A quantile of latencies, such as the p99.9, in millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantile(u64);

impl Quantile {
    /// The p99.9.
    pub const P999: Quantile = Quantile(999_000);

    pub fn percent(self) -> f64 {
        self.0 as f64 / 10_000.0
    }

    fn share_above(self) -> f64 {
        (MILLION - self.0) as f64 / MILLION as f64
    }

    /// Its value in a histogram; None if that is empty.
    pub fn of(self, latency: &Histogram) -> Option<u64> {
        latency.quantile(self.0, MILLION)
    }
}

impl FromStr for Quantile {
    type Err = String;

    fn from_str(text: &str) -> Result<Quantile, String> {
        let plain = text.chars().all(|c| c.is_ascii_digit() || c == '.');
        match text.parse::<f64>() {
            Ok(percent) if plain && (50.0..=99.999).contains(&percent) => {
                Ok(Quantile((percent * 10_000.0).round() as u64))
            }
            _ => Err(format!("{text}: must be a percentage from 50 to 99.999, such as 99.9")),
        }
    }
}

impl fmt::Display for Quantile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{}", self.percent())
    }
}

/// The samples that enclose a quantile; an end is None with too few samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    pub ns_min: Option<u64>,
    pub ns_max: Option<u64>,
}

/// The lowest number of samples with which both ends of the interval exist.
pub fn samples_needed(quantile: Quantile) -> u64 {
    // All n lie below the quantile, which is above the median, with probability q^n.
    let share_below = 1.0 - quantile.share_above();
    (libm::log(OUTSIDE) / libm::log(share_below)).ceil() as u64
}

/// The interval that contains the true quantile with [`CONFIDENCE_PERCENT`].
pub fn interval(latency: &Histogram, quantile: Quantile) -> Interval {
    let samples = latency.count();
    let (below, above) = ranks(samples, quantile);
    let at = |rank: Option<u64>| rank.and_then(|rank| latency.at_rank(rank));
    Interval { ns_min: at(below), ns_max: at(above) }
}

/// The ranks, from 1, of the samples that enclose the quantile.
///
/// `above` is the lowest rank r for which at most n - r samples lie above the quantile with a
/// probability of 2.5 % at most; `below` the highest for which at least n - r + 1 do.
pub fn ranks(samples: u64, quantile: Quantile) -> (Option<u64>, Option<u64>) {
    let (first, shares) = binomial(samples, quantile.share_above());
    let mut sum = 0.0;
    let few = shares.iter().take_while(|&&share| {
        sum += share;
        sum <= OUTSIDE
    });
    let above = (few.count() as u64 + first).checked_sub(1).map(|most| samples - most);
    let mut sum = 0.0;
    let many = shares.iter().rev().take_while(|&&share| {
        sum += share;
        sum <= OUTSIDE
    });
    let last = first + shares.len() as u64;
    let least = last - many.count() as u64;
    let below = (samples + 1).checked_sub(least).filter(|&rank| rank > 0);
    (below, above)
}

/// The probabilities of k out of n, beginning with the first k that is not negligible.
fn binomial(n: u64, share: f64) -> (u64, Vec<f64>) {
    let mode = (((n + 1) as f64 * share) as u64).min(n);
    let odds = share / (1.0 - share);
    let top = at_mode(n, mode, share);
    let mut down = Vec::new();
    let (mut k, mut p) = (mode, top);
    while k > 0 && p > NEGLIGIBLE {
        p *= k as f64 / ((n - k + 1) as f64 * odds);
        k -= 1;
        down.push(p);
    }
    let first = k;
    down.reverse();
    down.push(top);
    let (mut k, mut p) = (mode, top);
    while k < n && p > NEGLIGIBLE {
        p *= (n - k) as f64 * odds / (k + 1) as f64;
        k += 1;
        down.push(p);
    }
    (first, down)
}

fn at_mode(n: u64, k: u64, share: f64) -> f64 {
    let factorial = |n: u64| libm::lgamma(n as f64 + 1.0);
    let choose = factorial(n) - factorial(k) - factorial(n - k);
    libm::exp(choose + k as f64 * libm::log(share) + (n - k) as f64 * libm::log1p(-share))
}
