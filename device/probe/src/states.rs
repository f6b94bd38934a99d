// SPDX-License-Identifier: MIT OR Apache-2.0
//! What makes single commands longer: slow states that last, pauses that come once.
//!
//! A command counts as longer if it is off the line by much more than most are. Several such in a
//! row are a slow state of the device; those that stand alone are pauses.

use crate::samples::{Sample, median, quantile};

/// Off the line by so many times what half of the commands are off by,
const OFF_BY_MEDIANS: f64 = 8.0;
/// and by at least this share of the shortest command's time.
const OFF_BY_SHARE: f64 = 0.1;
/// So many in a row are a state.
const STATE_SAMPLES: usize = 3;
/// What happened less often is no model: it is in what lies beyond it.
const EVENTS_MIN: usize = 5;

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct States {
    /// Of commands that are not longer.
    pub jitter_ns: f64,
    pub slow_ns: f64,
    pub slow_period_ns: f64,
    pub slow_length_ns: f64,
    /// How often it paused; the usual pause, and the mean distance of two in KiB written;
    pub pauses: u64,
    pub pause_ns: f64,
    pub pause_kib: f64,
    /// the longest pause, and the least distance.
    pub pause_ns_max: f64,
    pub pause_kib_min: u64,
    /// Commands that took longer than all of this allows, by more than the jitter: the other times are
    /// no more exact than that. Neighbours count once.
    pub rare: u64,
}

impl States {
    /// The most that a command can be off the line by.
    pub fn allowed_ns(&self) -> f64 {
        self.jitter_ns + self.slow_ns + self.pause_ns_max
    }
}

/// `off_ns` says how far each sample is off the line; `shortest_ns` is the line at the smallest size.
/// Also returns which samples are usual: neither slow nor paused nor rare.
pub fn find(
    samples: &[Sample],
    off_ns: &[f64],
    shortest_ns: f64,
    writes: bool,
) -> (States, Vec<bool>) {
    let usual_ns = median(off_ns.iter().map(|off| off.abs()).collect());
    let limit_ns = (OFF_BY_MEDIANS * usual_ns).max(OFF_BY_SHARE * shortest_ns);
    let runs = runs(off_ns, limit_ns);
    let mut states = States::default();
    let mut usual: Vec<f64> =
        off_ns.iter().map(|off| off.abs()).filter(|off| *off <= limit_ns).collect();
    states.jitter_ns = quantile(&mut usual, 0.999);
    slow(&mut states, samples, off_ns, &runs);
    if writes {
        pauses(&mut states, samples, off_ns, &runs);
    }
    let least_ns = (states.allowed_ns() + states.jitter_ns).max(limit_ns);
    let is_rare = |run: &&Run| off_ns[run.0..run.1].iter().any(|off| *off > least_ns);
    states.rare = runs.iter().filter(is_rare).count() as u64;
    (states, off_ns.iter().map(|off| *off <= limit_ns).collect())
}

fn slow(states: &mut States, samples: &[Sample], off_ns: &[f64], runs: &[Run]) {
    let episodes: Vec<&Run> = runs.iter().filter(|(from, to)| to - from >= STATE_SAMPLES).collect();
    if episodes.len() < EVENTS_MIN {
        return;
    }
    let slow = episodes.iter().flat_map(|(from, to)| &off_ns[*from..*to]);
    states.slow_ns = median(slow.copied().collect());
    states.slow_period_ns = period_ns(samples, &episodes);
    states.slow_length_ns = median(episodes.iter().map(|run| length_ns(samples, **run)).collect());
}

fn pauses(states: &mut States, samples: &[Sample], off_ns: &[f64], runs: &[Run]) {
    let alone = runs.iter().filter(|(from, to)| to - from < STATE_SAMPLES);
    let pauses: Vec<f64> = alone.flat_map(|(from, to)| &off_ns[*from..*to]).copied().collect();
    if pauses.len() < EVENTS_MIN {
        return;
    }
    let pause_ns = median(pauses);
    let least_ns = 0.5 * pause_ns + states.slow_ns;
    let paused: Vec<usize> = (0..off_ns.len()).filter(|at| off_ns[*at] > least_ns).collect();
    // A pause that several writes wait for is one.
    let events: Vec<&[usize]> = paused.chunk_by(|one, other| one + 1 == *other).collect();
    // Otherwise the slow state covers them, or there are too few for a distance.
    if events.len() < EVENTS_MIN {
        return;
    }
    let firsts: Vec<usize> = events.iter().map(|event| event[0]).collect();
    let length_ns = |event: &&[usize]| event.iter().map(|at| off_ns[*at]).sum::<f64>();
    states.pause_ns = pause_ns;
    states.pauses = events.len() as u64;
    states.pause_kib = kib_between_mean(samples, &firsts);
    states.pause_ns_max = events.iter().map(length_ns).fold(0.0, f64::max);
    states.pause_kib_min = kib_between_min(samples, &events);
}

/// Of pauses between which only samples were written: what others write may pause, too, and is not
/// timed. Of all, if others always wrote.
fn kib_between_mean(samples: &[Sample], paused: &[usize]) -> f64 {
    let of_pair = |pair: &[usize]| {
        let own_kib: u64 = samples[pair[0]..pair[1]].iter().map(|sample| sample.kib).sum();
        let all_kib = samples[pair[1]].written_kib - samples[pair[0]].written_kib;
        (own_kib, all_kib)
    };
    let pairs: Vec<(u64, u64)> = paused.windows(2).map(of_pair).collect();
    let alone: Vec<u64> =
        pairs.iter().filter(|(own, all)| own == all).map(|(own, _)| *own).collect();
    let all = pairs.iter().map(|(_, all)| *all).collect();
    let chosen = if alone.is_empty() { all } else { alone };
    chosen.iter().sum::<u64>() as f64 / chosen.len().max(1) as f64
}

/// The least that is written between two pauses, which come in order, without the writes that waited
/// for them: each may have paused at its beginning or its end.
fn kib_between_min(samples: &[Sample], events: &[&[usize]]) -> u64 {
    let between = |pair: &[&[usize]]| {
        let (one, other) = (&samples[pair[0][pair[0].len() - 1]], &samples[pair[1][0]]);
        other.written_kib.saturating_sub(one.written_kib + one.kib)
    };
    events.windows(2).map(between).min().unwrap_or(0)
}

/// Commands that follow each other: from, to.
type Run = (usize, usize);

/// Where commands that are longer follow each other.
fn runs(off_ns: &[f64], limit_ns: f64) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (index, _) in off_ns.iter().enumerate().filter(|(_, off)| **off > limit_ns) {
        match runs.last_mut() {
            Some((_, to)) if *to == index => *to = index + 1,
            _ => runs.push((index, index + 1)),
        }
    }
    runs
}

fn end_ns(sample: &Sample) -> f64 {
    (sample.begun_ns + sample.took_ns) as f64
}

/// From the middle between the last usual command and the first slow one, to the same at the end:
/// whether a command is slow is decided when it starts.
fn length_ns(samples: &[Sample], (from, to): Run) -> f64 {
    let first = samples[from].begun_ns as f64;
    let before = from.checked_sub(1).map_or(first, |before| samples[before].begun_ns as f64);
    let last = samples[to - 1].begun_ns as f64;
    let after = samples.get(to).map_or(end_ns(&samples[to - 1]), |after| after.begun_ns as f64);
    (last + after) / 2.0 - (first + before) / 2.0
}

/// Mean distance of the beginnings.
fn period_ns(samples: &[Sample], episodes: &[&Run]) -> f64 {
    let begin = |run: Option<&&Run>| run.map_or(0.0, |run| samples[run.0].begun_ns as f64);
    (begin(episodes.last()) - begin(episodes.first())) / (episodes.len() - 1).max(1) as f64
}
