// SPDX-License-Identifier: MIT OR Apache-2.0
//! From single commands to the times of the model: base + KiB x per_kib + jump +- jitter + slow +
//! pause.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::line::Line;
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
        let jumping = Line::through(&medians(samples, false))?;
        let jump_ns = jump_ns(jumping, &medians(samples, true));
        let line = Line { base: jumping.base - jump_ns, ..jumping };
        let off_ns: Vec<f64> = samples
            .iter()
            .map(|sample| {
                let jump_ns = if sample.continues { 0.0 } else { jump_ns };
                sample.took_ns as f64 - line.at(sample.kib as f64) - jump_ns
            })
            .collect();
        let smallest_kib = samples.iter().map(|sample| sample.kib).min().unwrap_or(0);
        let (found, usual) = states::find(samples, &off_ns, line.at(smallest_kib as f64), writes);
        let allowed_ns = found.allowed_ns();
        let beyond_ns = off_ns.iter().fold(0.0, |most: f64, off| most.max(off - allowed_ns));
        Some(Times {
            line,
            jump_ns,
            states: found,
            samples: samples.len() as u64,
            disturbed: rounds.disturbed,
            length: rounds.length,
            longest_ns: samples.iter().map(|sample| sample.took_ns).max().unwrap_or(0),
            beyond_ns,
            tail: Tail::of(&longest_of_rounds(samples, &usual), COMMANDS),
        })
    }
}

/// Of each round in which all were measured and usual, the most that a command took longer than most
/// of its kind. Single commands are not alike: their sizes take turns.
fn longest_of_rounds(samples: &[Sample], usual: &[bool]) -> Vec<f64> {
    let most = [false, true].map(|continues| medians(samples, continues));
    let usual_ns = |sample: &Sample| {
        let of_kind = &most[usize::from(sample.continues)];
        of_kind.iter().find(|(kib, _)| *kib == sample.kib as f64).map_or(0.0, |(_, ns)| *ns)
    };
    let mut found = Vec::new();
    let numbered: Vec<(&Sample, &bool)> = samples.iter().zip(usual).collect();
    for round in numbered.chunk_by(|(one, _), (other, _)| one.round == other.round) {
        if round.len() as u64 == COMMANDS && round.iter().all(|(_, usual)| **usual) {
            let longer = round.iter().map(|(sample, _)| sample.took_ns as f64 - usual_ns(sample));
            found.push(longer.fold(f64::MIN, f64::max));
        }
    }
    found
}

/// (KiB, median ns) of each size.
fn medians(samples: &[Sample], continues: bool) -> Vec<(f64, f64)> {
    let mut by_size: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for sample in samples.iter().filter(|sample| sample.continues == continues) {
        by_size.entry(sample.kib).or_default().push(sample.took_ns as f64);
    }
    by_size.into_iter().map(|(kib, took_ns)| (kib as f64, median(took_ns))).collect()
}

fn jump_ns(jumping: Line, continuing: &[(f64, f64)]) -> f64 {
    if continuing.is_empty() {
        return 0.0;
    }
    let saved: f64 = continuing.iter().map(|(kib, ns)| jumping.at(*kib) - ns).sum();
    let jump_ns = (saved / continuing.len() as f64).clamp(0.0, jumping.base);
    if jump_ns < JUMP_SHARE * jumping.base { 0.0 } else { jump_ns }
}
