// SPDX-License-Identifier: MIT OR Apache-2.0
//! From single commands to the times of the model: base + KiB x per_kib + jump +- jitter + slow +
//! pause.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::line::{Faster, Line};
use crate::rounds::{COMMANDS, Rounds};
use crate::samples::{Sample, median};
use crate::states::{self, States};
use crate::tail::{Tail, Unknown};

/// A jump shorter than this share of the base is not told from none.
const JUMP_SHARE: f64 = 0.02;

/// Times of one operation, and what they rest on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Times {
    pub line: Line,
    /// The sizes that take less than it says.
    pub faster: Option<Faster>,
    /// Added unless a command goes on where the one before ended.
    pub jump_ns: f64,
    pub states: States,
    pub samples: u64,
    /// Commands that met other I/O, and were left out.
    pub disturbed: u64,
    /// For how long it was measured.
    pub length: Duration,
    pub longest_ns: u64,
    /// So much longer was the worst than the model allows; 0: none was.
    pub beyond_ns: f64,
    /// How much longer than most of its size the rarest of the usual commands are.
    pub tail: Result<Tail, Unknown>,
}

impl Times {
    /// Fits samples in the order in which they were taken. None if there are fewer than two sizes.
    pub fn of(rounds: &Rounds, writes: bool) -> Option<Times> {
        let samples = &rounds.samples[..];
        let medians = Medians::of(samples);
        let (jumping, faster) = Line::over(&medians.jumping)?;
        let jump_ns = medians.jump_ns(jumping.base);
        let line = Line { base: jumping.base - jump_ns, ..jumping };
        let expected_ns = |sample: &Sample| match faster {
            // What a size takes less than the line is no state of the device.
            Some(_) => medians.ns(sample),
            None if sample.continues => line.at(sample.kib as f64),
            None => jumping.at(sample.kib as f64),
        };
        let off_ns: Vec<f64> =
            samples.iter().map(|sample| sample.took_ns as f64 - expected_ns(sample)).collect();
        let smallest_kib = samples.iter().map(|sample| sample.kib).min().unwrap_or(0);
        let (found, usual) = states::find(samples, &off_ns, line.at(smallest_kib as f64), writes);
        let allowed_ns = found.allowed_ns();
        let beyond_ns = off_ns.iter().fold(0.0, |most: f64, off| most.max(off - allowed_ns));
        Some(Times {
            line,
            faster,
            jump_ns,
            states: found,
            samples: samples.len() as u64,
            disturbed: rounds.disturbed,
            length: rounds.length,
            longest_ns: samples.iter().map(|sample| sample.took_ns).max().unwrap_or(0),
            beyond_ns,
            tail: Tail::of(&longest_of_rounds(samples, &usual, &medians), COMMANDS),
        })
    }
}

/// Of each round in which all were measured and usual, the most that a command took longer than most
/// of its kind. Single commands are not alike: their sizes take turns.
fn longest_of_rounds(samples: &[Sample], usual: &[bool], medians: &Medians) -> Vec<f64> {
    let mut found = Vec::new();
    let numbered: Vec<(&Sample, &bool)> = samples.iter().zip(usual).collect();
    for round in numbered.chunk_by(|(one, _), (other, _)| one.round == other.round) {
        if round.len() as u64 == COMMANDS && round.iter().all(|(_, usual)| **usual) {
            let longer = round.iter().map(|(sample, _)| sample.took_ns as f64 - medians.ns(sample));
            found.push(longer.fold(f64::MIN, f64::max));
        }
    }
    found
}

/// (KiB, median ns) of each size.
struct Medians {
    jumping: Vec<(f64, f64)>,
    continuing: Vec<(f64, f64)>,
}

impl Medians {
    fn of(samples: &[Sample]) -> Medians {
        let of_kind = |continues| {
            let mut by_size: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
            for sample in samples.iter().filter(|sample| sample.continues == continues) {
                by_size.entry(sample.kib).or_default().push(sample.took_ns as f64);
            }
            by_size.into_iter().map(|(kib, took_ns)| (kib as f64, median(took_ns))).collect()
        };
        Medians { jumping: of_kind(false), continuing: of_kind(true) }
    }

    /// Of samples like this one.
    fn ns(&self, sample: &Sample) -> f64 {
        let of_kind = if sample.continues { &self.continuing } else { &self.jumping };
        of_size(of_kind, sample.kib as f64).unwrap_or(0.0)
    }

    /// What commands save that continue the one before. `base_ns`: of those that jump.
    fn jump_ns(&self, base_ns: f64) -> f64 {
        let saved = |(kib, ns): &(f64, f64)| Some(of_size(&self.jumping, *kib)? - ns);
        let saved: Vec<f64> = self.continuing.iter().filter_map(saved).collect();
        let jump_ns = saved.iter().sum::<f64>() / saved.len().max(1) as f64;
        if jump_ns < JUMP_SHARE * base_ns { 0.0 } else { jump_ns.min(base_ns) }
    }
}

fn of_size(medians: &[(f64, f64)], kib: f64) -> Option<f64> {
    medians.iter().find(|(size, _)| *size == kib).map(|(_, ns)| *ns)
}
