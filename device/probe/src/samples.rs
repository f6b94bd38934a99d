// SPDX-License-Identifier: MIT OR Apache-2.0
//! The measured commands.

/// One command by itself: nothing else was with the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    pub kib: u64,
    /// It went on where the one before had ended.
    pub continues: bool,
    /// Its round, counted from 0.
    pub round: u32,
    /// Since the first sample.
    pub begun_ns: u64,
    pub took_ns: u64,
    /// Written to the disk before it began, by anybody.
    pub written_kib: u64,
}

/// The middle of some numbers; 0 of none.
pub(crate) fn median(mut numbers: Vec<f64>) -> f64 {
    quantile(&mut numbers, 0.5)
}

/// Nearest rank; 0 of none.
pub(crate) fn quantile(numbers: &mut [f64], share: f64) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let rank = (numbers.len() as f64 * share) as usize;
    numbers.get(rank.min(numbers.len().saturating_sub(1))).copied().unwrap_or(0.0)
}
