// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long the rarest commands take: extreme value statistics.
//!
//! What lies beyond a high threshold follows a generalized Pareto distribution, whatever the times follow (Pickands;
//! Balkema and de Haan). It is fitted by probability-weighted moments (Hosking and Wallis, *Parameter and Quantile
//! Estimation for the Generalized Pareto Distribution*, 1987), and the confidence is that of a parametric bootstrap. No
//! Rust library that is kept up fits it.

use steadyio_core::random::draw;

/// The threshold: so many of the numbers lie beyond it.
const BEYOND_SHARE: f64 = 0.05;
/// With fewer beyond it nothing is said.
const BEYOND_MIN: usize = 50;
/// One of so many.
const ONE_OF: f64 = 1e6;
const RESAMPLES: u64 = 99;
const CONFIDENCE: f64 = 0.95;
/// Of a shape nearer to 0 the distribution is the exponential one.
const SHAPE_ZERO: f64 = 1e-6;

/// How large one of a million is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tail {
    pub estimate: f64,
    /// With 95 % confidence it is no more than this.
    pub at_most: f64,
}

/// F(x) = 1 - (1 - shape x / scale)^(1 / shape); a shape above 0 has an end.
#[derive(Debug, Clone, Copy)]
struct Pareto {
    shape: f64,
    scale: f64,
}

impl Tail {
    /// Of independent numbers in any order. `None`: too few, or all the same beyond the threshold.
    pub fn of(mut numbers: Vec<f64>) -> Option<Tail> {
        numbers.sort_by(f64::total_cmp);
        let beyond = (numbers.len() as f64 * BEYOND_SHARE) as usize;
        if beyond < BEYOND_MIN {
            return None;
        }
        let threshold = numbers[numbers.len() - beyond - 1];
        let excesses: Vec<f64> =
            numbers[numbers.len() - beyond..].iter().map(|number| number - threshold).collect();
        let fitted = Pareto::fit(&excesses)?;
        // Of those beyond the threshold.
        let share = 1.0 / ONE_OF / BEYOND_SHARE;
        let mut levels: Vec<f64> = (0..RESAMPLES)
            .filter_map(|seed| Some(Pareto::fit(&fitted.sample(beyond, seed))?.level(share)))
            .collect();
        levels.sort_by(f64::total_cmp);
        let rank = (levels.len() as f64 * CONFIDENCE) as usize;
        let at_most = *levels.get(rank.min(levels.len().checked_sub(1)?))?;
        let estimate = fitted.level(share);
        Some(Tail { estimate: threshold + estimate, at_most: threshold + at_most.max(estimate) })
    }
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

    fn sample(self, count: usize, seed: u64) -> Vec<f64> {
        // Above 0: the logarithm is taken of it.
        let uniform = |number: u64| (number >> 11) as f64 / (1_u64 << 53) as f64 + f64::EPSILON;
        let mut sample: Vec<f64> =
            (0..count as u64).map(|place| self.level(uniform(draw(seed, place)))).collect();
        sample.sort_by(f64::total_cmp);
        sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often the bound is not below the level of one in a million, of 40 samples.
    fn covered(of: Pareto, count: usize) -> usize {
        let level = of.level(1.0 / ONE_OF);
        let tail = |seed: u64| Tail::of(of.sample(count, 1_000 + seed));
        (0..40).filter(|seed| tail(*seed).is_some_and(|tail| tail.at_most >= level)).count()
    }

    #[test]
    fn the_bound_holds_about_as_often_as_it_says() {
        for shape in [-0.1, 0.0, 0.3] {
            let covered = covered(Pareto { shape, scale: 20.0 }, 2_000);
            assert!(covered >= 34, "{shape}: {covered} of 40");
        }
    }

    #[test]
    fn numbers_with_an_end_have_a_bound_near_it() {
        let uniform = Pareto { shape: 1.0, scale: 100.0 };
        let tail = Tail::of(uniform.sample(4_000, 7));
        assert!(tail.is_some_and(|tail| (99.0..101.0).contains(&tail.at_most)), "{tail:?}");
    }

    #[test]
    fn of_few_numbers_or_equal_ones_nothing_is_said() {
        assert_eq!(Tail::of(vec![1.0; 900]), None);
        assert_eq!(Tail::of(vec![1.0; 9_000]), None);
    }
}
