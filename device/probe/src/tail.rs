// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long the rarest of the usual commands take: extreme value statistics.
//!
//! What lies beyond a high threshold follows a generalized Pareto distribution, whatever the times
//! follow (Pickands; Balkema and de Haan). It is fitted by probability-weighted moments (Hosking and
//! Wallis, *Parameter and Quantile Estimation for the Generalized Pareto Distribution*, 1987), and
//! the confidence is that of a parametric bootstrap. No kept library of Rust fits it; the
//! distributions of the tests are those of statrs.
//!
//! This assumes that the numbers do not depend on each other, that they come from the same
//! distribution from first to last, and that the fit is one. Each is tested; if a test fails, the
//! result is which.

use statrs::distribution::{ChiSquared, ContinuousCDF};
use steadyio_core::random::draw;

/// The threshold: so many of the numbers lie beyond it.
const BEYOND_SHARE: f64 = 0.1;
/// With fewer beyond it there is no answer.
const BEYOND_MIN: usize = 50;
/// One of so many.
const ONE_OF: f64 = 1e6;
const RESAMPLES: u64 = 199;
const CONFIDENCE: f64 = 0.95;
/// A test fails if what was seen is rarer than this under its assumption.
const SIGNIFICANCE: f64 = 0.01;
/// Of a shape nearer to 0 the distribution is the exponential one.
const SHAPE_ZERO: f64 = 1e-6;
/// Excesses of a lower shape have no finite variance, and their moments mean nothing.
const SHAPE_MIN: f64 = -0.5;
/// An answer so many times as far beyond the threshold as anything seen is none.
const WIDEST: f64 = 10.0;
/// Distances at which numbers are tested for dependence.
const LAGS: usize = 10;
/// Parts of the time in which as many must lie beyond the threshold.
const PARTS: usize = 8;
/// Classes of excesses that are equally probable under the fit.
const CLASSES: usize = 10;
/// Parameters that are fitted.
const FITTED: usize = 2;

/// How large one of a million is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tail {
    pub estimate: f64,
    /// With 95 % confidence it is no more than this.
    pub at_most: f64,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum Unknown {
    #[error("too few are longer than the others: {beyond}, at least {BEYOND_MIN} are needed")]
    TooFew { beyond: usize },
    #[error("long ones come together (Ljung-Box test, p = {p:.1e})")]
    Dependent { p: f64 },
    #[error(
        "long ones are more frequent at some times than at others (chi-squared test, p = {p:.1e})"
    )]
    Drifting { p: f64 },
    #[error("no generalized Pareto distribution fits them (chi-squared test, p = {p:.1e})")]
    Misfit { p: f64 },
    #[error("their tail is too heavy: the fit has no variance")]
    Heavy,
    #[error("the sample is too small for so heavy a tail")]
    Wide,
}

impl Unknown {
    /// Whether the numbers have passed the tests of independence and stationarity.
    pub fn is_of_fit(self) -> bool {
        matches!(self, Unknown::Misfit { .. } | Unknown::Heavy | Unknown::Wide)
    }
}

/// F(x) = 1 - (1 - shape x / scale)^(1 / shape); a shape above 0 has an end.
#[derive(Debug, Clone, Copy)]
struct Pareto {
    shape: f64,
    scale: f64,
}

impl Tail {
    /// Of numbers in the order in which they were measured. Each is the largest of `each` others, of
    /// which one in a million is meant.
    pub fn of(numbers: &[f64], each: u64) -> Result<Tail, Unknown> {
        let threshold = threshold(numbers)?;
        let is_beyond: Vec<bool> = numbers.iter().map(|number| *number > threshold).collect();
        let mut excesses: Vec<f64> = numbers
            .iter()
            .filter(|number| **number > threshold)
            .map(|number| number - threshold)
            .collect();
        excesses.sort_by(f64::total_cmp);
        let beyond = excesses.len();
        if beyond < BEYOND_MIN {
            return Err(Unknown::TooFew { beyond });
        }
        test(dependence(&is_beyond)).map_err(|p| Unknown::Dependent { p })?;
        test(drift(&is_beyond)).map_err(|p| Unknown::Drifting { p })?;
        let fitted = Pareto::fit(&excesses).ok_or(Unknown::Misfit { p: 0.0 })?;
        if fitted.shape <= SHAPE_MIN {
            return Err(Unknown::Heavy);
        }
        test(misfit(fitted, &excesses)).map_err(|p| Unknown::Misfit { p })?;
        // Of those beyond the threshold.
        let share = each as f64 / ONE_OF * numbers.len() as f64 / beyond as f64;
        let estimate = fitted.level(share);
        let at_most = fitted.at_most(share, beyond).ok_or(Unknown::Heavy)?.max(estimate);
        if at_most > WIDEST * excesses[beyond - 1] {
            return Err(Unknown::Wide);
        }
        Ok(Tail { estimate: threshold + estimate, at_most: threshold + at_most })
    }
}

fn threshold(numbers: &[f64]) -> Result<f64, Unknown> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let beyond = (sorted.len() as f64 * BEYOND_SHARE) as usize;
    if beyond < BEYOND_MIN {
        return Err(Unknown::TooFew { beyond });
    }
    Ok(sorted[sorted.len() - beyond - 1])
}

/// A statistic and its degrees of freedom; the error is the probability of one as large.
fn test((statistic, freedom): (f64, usize)) -> Result<(), f64> {
    let chi_squared = ChiSquared::new(freedom as f64);
    let p = chi_squared.map_or(0.0, |distribution| distribution.sf(statistic));
    // Not a number: there is nothing to compare.
    if p >= SIGNIFICANCE { Ok(()) } else { Err(p) }
}

/// Ljung and Box, On a Measure of Lack of Fit in Time Series Models, 1978.
fn dependence(is_beyond: &[bool]) -> (f64, usize) {
    let count = is_beyond.len() as f64;
    let mean = is_beyond.iter().filter(|is| **is).count() as f64 / count;
    let off: Vec<f64> = is_beyond.iter().map(|is| f64::from(u8::from(*is)) - mean).collect();
    let variance: f64 = off.iter().map(|off| off * off).sum();
    let of_lag = |lag: usize| {
        let together: f64 = off.iter().zip(&off[lag..]).map(|(one, other)| one * other).sum();
        (together / variance).powi(2) / (count - lag as f64)
    };
    (count * (count + 2.0) * (1..=LAGS).map(of_lag).sum::<f64>(), LAGS)
}

/// Pearson's test of equal numbers in equal parts.
fn drift(is_beyond: &[bool]) -> (f64, usize) {
    let beyond = is_beyond.iter().filter(|is| **is).count() as f64;
    let part = is_beyond.len().div_ceil(PARTS);
    let of_part = |part: &[bool]| {
        let expected = beyond * part.len() as f64 / is_beyond.len() as f64;
        let found = part.iter().filter(|is| **is).count() as f64;
        (found - expected).powi(2) / expected
    };
    (is_beyond.chunks(part).map(of_part).sum(), PARTS - 1)
}

/// The same of classes that are equally probable under the fit.
fn misfit(fitted: Pareto, excesses: &[f64]) -> (f64, usize) {
    let mut found = [0_u32; CLASSES];
    for excess in excesses {
        let class = (fitted.share_beyond(*excess) * CLASSES as f64) as usize;
        found[class.min(CLASSES - 1)] += 1;
    }
    let expected = excesses.len() as f64 / CLASSES as f64;
    let squares = found.map(|count| (f64::from(count) - expected).powi(2) / expected);
    (squares.iter().sum(), CLASSES - 1 - FITTED)
}

impl Pareto {
    /// `sorted`: the smallest first.
    fn fit(sorted: &[f64]) -> Option<Pareto> {
        let count = sorted.len() as f64;
        let mean = sorted.iter().sum::<f64>() / count;
        let weight = |place: usize| 1.0 - (place as f64 + 1.0 - 0.35) / count;
        let weighted =
            sorted.iter().enumerate().map(|(place, x)| weight(place) * x).sum::<f64>() / count;
        let apart = mean - 2.0 * weighted;
        (mean > 0.0 && apart.abs() > f64::EPSILON * mean)
            .then(|| Pareto { shape: mean / apart - 2.0, scale: 2.0 * mean * weighted / apart })
    }

    /// What this share of all lies beyond.
    fn level(self, share: f64) -> f64 {
        if self.shape.abs() < SHAPE_ZERO {
            return -self.scale * share.ln();
        }
        self.scale / self.shape * (1.0 - share.powf(self.shape))
    }

    /// The share of all that lies beyond `x`.
    fn share_beyond(self, x: f64) -> f64 {
        if self.shape.abs() < SHAPE_ZERO {
            return (-x / self.scale).exp();
        }
        (1.0 - self.shape * x / self.scale).max(0.0).powf(1.0 / self.shape)
    }

    /// The level that fits of so many numbers keep to, with 95 % confidence.
    fn at_most(self, share: f64, count: usize) -> Option<f64> {
        let refitted = |seed| Some(Pareto::fit(&self.sample(count, seed))?.level(share));
        let mut levels: Vec<f64> = (0..RESAMPLES).filter_map(refitted).collect();
        levels.sort_by(f64::total_cmp);
        let rank = (levels.len() as f64 * CONFIDENCE) as usize;
        levels.get(rank.min(levels.len().checked_sub(1)?)).copied()
    }

    fn sample(self, count: usize, seed: u64) -> Vec<f64> {
        let mut sample = self.unsorted(count, seed);
        sample.sort_by(f64::total_cmp);
        sample
    }

    fn unsorted(self, count: usize, seed: u64) -> Vec<f64> {
        // Above 0: the logarithm is taken of it.
        let uniform = |number: u64| (number >> 11) as f64 / (1_u64 << 53) as f64 + f64::EPSILON;
        (0..count as u64).map(|place| self.level(uniform(draw(seed, place)))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPONENTIAL: Pareto = Pareto { shape: 0.0, scale: 20.0 };

    /// How often an answer is given for 40 samples, and is not below the level of one in a million.
    fn covered(of: Pareto, count: usize) -> (usize, usize) {
        let level = of.level(1.0 / ONE_OF);
        let answers: Vec<Tail> = (0..40)
            .filter_map(|seed| Tail::of(&of.unsorted(count, 1_000 + seed), 1).ok())
            .collect();
        (answers.iter().filter(|tail| tail.at_most >= level).count(), answers.len())
    }

    #[test]
    fn the_bound_holds_about_as_often_as_it_says() {
        for shape in [-0.1, 0.0, 0.3] {
            let (covered, answers) = covered(Pareto { shape, scale: 20.0 }, 2_000);
            assert!(answers >= 34, "{shape}: {answers} answers of 40");
            assert!(covered as f64 >= 0.85 * answers as f64, "{shape}: {covered} of {answers}");
        }
    }

    #[test]
    fn numbers_with_an_end_have_a_bound_near_it() {
        let uniform = Pareto { shape: 1.0, scale: 100.0 };
        let tail = Tail::of(&uniform.unsorted(4_000, 7), 1);
        assert!(tail.is_ok_and(|tail| (99.0..102.0).contains(&tail.at_most)), "{tail:?}");
    }

    #[test]
    fn one_of_several_in_a_number_is_rarer_than_the_number() {
        let numbers = EXPONENTIAL.unsorted(4_000, 3);
        let [one, seven] =
            [1, 7].map(|each| Tail::of(&numbers, each).map_or(0.0, |tail| tail.estimate));
        assert!(one > seven && seven > 0.0, "{one}, {seven}");
    }

    #[test]
    fn of_few_numbers_or_equal_ones_nothing_is_said() {
        assert_eq!(Tail::of(&[1.0; 400], 1), Err(Unknown::TooFew { beyond: 40 }));
        assert_eq!(Tail::of(&[1.0; 9_000], 1), Err(Unknown::TooFew { beyond: 0 }));
    }

    #[test]
    fn numbers_that_depend_on_each_other_are_told() {
        let fresh = EXPONENTIAL.unsorted(4_000, 5);
        let follow = |state: &mut f64, x: &f64| {
            *state = 0.5 * *state + x;
            Some(*state)
        };
        let numbers: Vec<f64> = fresh.iter().scan(0.0, follow).collect();
        assert!(matches!(Tail::of(&numbers, 1), Err(Unknown::Dependent { .. })));
    }

    #[test]
    fn a_sample_whose_second_half_is_longer_is_told() {
        let numbers = EXPONENTIAL.unsorted(4_000, 6);
        let half = |(place, x): (usize, &f64)| if place < 2_000 { *x } else { x * 1.4 };
        let numbers: Vec<f64> = numbers.iter().enumerate().map(half).collect();
        let found = Tail::of(&numbers, 1);
        // Where long ones are more frequent, they are also nearer to each other.
        let is_told = matches!(found, Err(Unknown::Drifting { .. } | Unknown::Dependent { .. }));
        assert!(is_told, "{found:?}");
    }

    #[test]
    fn two_kinds_of_numbers_are_no_fit() {
        // Pauses of 1,000 that would be taken for the tail of the rest.
        let numbers = EXPONENTIAL.unsorted(4_000, 8);
        let paused = |(place, x): (usize, &f64)| {
            if draw(9, place as u64) % 40 == 0 { x + 1_000.0 } else { *x }
        };
        let numbers: Vec<f64> = numbers.iter().enumerate().map(paused).collect();
        let found = Tail::of(&numbers, 1);
        assert!(matches!(found, Err(Unknown::Misfit { .. } | Unknown::Heavy)), "{found:?}");
    }

    #[test]
    fn a_tail_without_variance_is_told() {
        let found = Tail::of(&Pareto { shape: -1.2, scale: 20.0 }.unsorted(4_000, 11), 1);
        assert!(matches!(found, Err(Unknown::Heavy | Unknown::Misfit { .. })), "{found:?}");
    }
}
