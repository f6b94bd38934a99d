// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts latencies while recording, with fixed memory and a few instructions per latency. The
//! recorder and the bench use it.

use crate::histogram::Histogram;

/// log2 of the linear steps per power of two, as in [`Histogram`].
const STEP_BITS: u32 = 6;
const STEPS: usize = 1 << STEP_BITS;
/// The number of bins for every u64: the values below `STEPS`, and 58 powers of two above.
const BINS: usize = STEPS * (64 - STEP_BITS as usize + 1);

/// Latencies in ns, in bins of 1/64 of their value.
#[derive(Debug, Clone)]
pub struct Latencies {
    bins: Box<[u64]>,
    min: u64,
    max: u64,
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies { bins: vec![0; BINS].into_boxed_slice(), min: u64::MAX, max: 0 }
    }
}

fn bin(value: u64) -> usize {
    let shift = value.max(1).ilog2().saturating_sub(STEP_BITS);
    shift as usize * STEPS + (value >> shift) as usize
}

/// The middle of a bin, as in fio.
fn middle(bin: usize) -> u64 {
    let shift = (bin / STEPS).saturating_sub(1);
    let step = (bin - shift * STEPS) as u64;
    (step << shift) + ((1 << shift) >> 1)
}

impl Latencies {
    pub fn add(&mut self, ns: u64) {
        self.bins[bin(ns)] += 1;
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
    }

    /// The longest latency so far; 0 if there is none.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Converts to a histogram, for percentiles and records.
    pub fn histogram(&self) -> Histogram {
        let bins = self.bins.iter().enumerate();
        Histogram::new(bins.map(|(bin, &count)| (middle(bin), count)), self.min, self.max)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_bin_is_near_its_values(value in any::<u64>(), shift in 0u32..64) {
            let value = value >> shift;
            prop_assert!(bin(value) < BINS);
            let middle = middle(bin(value));
            prop_assert!(middle.abs_diff(value) <= value / 128, "{value} is shown as {middle}");
        }
    }

    #[test]
    fn percentiles_and_extremes_come_out() {
        let mut latencies = Latencies::default();
        for ns in 1..=1_000 {
            latencies.add(ns * 1_000);
        }
        let figures = latencies.histogram().percentiles();
        assert_eq!((figures.min, figures.max), (Some(1_000), Some(1_000_000)));
        assert!(figures.p50.unwrap().abs_diff(500_000) < 500_000 / 64);
        assert_eq!(Latencies::default().histogram().percentiles().max, None);
    }
}
