// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times are found again in samples that were made of them.

use std::time::Duration;

use proptest::prelude::*;
use steadyio_core::random::{below, draw};
use steadyio_probe::fit::Times;
use steadyio_probe::profile::{Cost, Seen, Slow, WriteCost};
use steadyio_probe::rounds::{COMMANDS, Rounds};
use steadyio_probe::samples::Sample;
use steadyio_probe::tail::Unknown;

#[derive(Debug, Clone)]
struct Made {
    base_ns: u64,
    per_kib_ns: u64,
    jump_ns: u64,
    jitter_ns: u64,
    slow_ns: u64,
    pause_ns: u64,
}

const PERIOD_NS: u64 = 1_000_000_000;
const SLOW_NS: u64 = 50_000_000;
const PAUSE_KIB: u64 = 4_096;

/// Sizes, and which command continues the one before.
const ROUND: [(u64, bool); COMMANDS as usize] =
    [(4, false), (16, false), (64, false), (256, false), (512, false), (16, false), (16, true)];

/// About 20 s of commands, as `rounds` gives them.
fn rounds(made: &Made) -> Rounds {
    rounds_of(made, |made, kib| kib * made.per_kib_ns)
}

/// The same; `size_ns` is the time of the data of a size.
fn rounds_of(made: &Made, size_ns: impl Fn(&Made, u64) -> u64) -> Rounds {
    let mut samples = Vec::new();
    let (mut now_ns, mut written_kib, mut number) = (0, 0, 0);
    while now_ns < 20 * PERIOD_NS {
        for (kib, continues) in ROUND {
            number += 1;
            let mut took_ns = made.base_ns + size_ns(made, kib) - made.jitter_ns
                + below(draw(3, number), 2 * made.jitter_ns + 1);
            took_ns += if continues { 0 } else { made.jump_ns };
            took_ns += if now_ns % PERIOD_NS < SLOW_NS { made.slow_ns } else { 0 };
            let paused = (written_kib + kib) / PAUSE_KIB > written_kib / PAUSE_KIB;
            took_ns += if paused { made.pause_ns } else { 0 };
            let round = (number as u32 - 1) / COMMANDS as u32;
            samples.push(Sample { kib, continues, round, begun_ns: now_ns, took_ns, written_kib });
            written_kib += kib;
            now_ns += took_ns;
        }
    }
    Rounds { samples, disturbed: 0, length: Duration::from_nanos(now_ns) }
}

fn near(found: f64, made: u64, share: f64) -> bool {
    (found - made as f64).abs() <= made as f64 * share
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn every_time_is_found_again(
        base_ns in 100_000_u64..1_000_000,
        per_kib_ns in 1_000_u64..20_000,
        jump in prop::option::of(20_u64..80),
        slow in prop::option::of(60_u64..200),
        pause in prop::option::of(5_u64..20),
    ) {
        let made = Made {
            base_ns,
            per_kib_ns,
            jump_ns: base_ns * jump.unwrap_or(0) / 100,
            jitter_ns: base_ns / 50,
            slow_ns: base_ns * slow.unwrap_or(0) / 100,
            pause_ns: base_ns * pause.unwrap_or(0),
        };
        let found = Times::of(&rounds(&made), true).unwrap();
        prop_assert!(near(found.line.base, made.base_ns, 0.05), "{found:?}");
        prop_assert!(near(found.line.per_kib, made.per_kib_ns, 0.05), "{found:?}");
        prop_assert!((found.jump_ns - made.jump_ns as f64).abs() < 0.05 * base_ns as f64, "{found:?}");
        prop_assert!(near(found.states.slow_ns, made.slow_ns, 0.05), "{found:?}");
        prop_assert!(near(found.states.pause_ns, made.pause_ns, 0.05), "{found:?}");
        if pause.is_some() {
            prop_assert!(near(found.states.pause_kib, PAUSE_KIB, 0.05), "{found:?}");
            // The longest, and no more between two than there is; what is between has whole writes.
            prop_assert!(found.states.pause_ns_max >= 0.95 * made.pause_ns as f64, "{found:?}");
            prop_assert!(found.states.pause_kib_min <= PAUSE_KIB, "{found:?}");
            prop_assert!(found.states.pause_kib_min + 2 * 512 >= PAUSE_KIB, "{found:?}");
        }
        let period = Slow::of(&found);
        prop_assert_eq!(period.is_some(), slow.is_some());
        if let Some(slow) = period {
            prop_assert!(near(slow.period_us as f64, PERIOD_NS / 1_000, 0.05), "{slow:?}");
            // A command that is at work when the state begins or ends counts as half in it.
            let off_ns = (slow.length_us as f64 * 1e3 - SLOW_NS as f64).abs();
            let allowed_ns = 0.1 * SLOW_NS as f64 + 0.5 * found.longest_ns as f64;
            prop_assert!(off_ns <= allowed_ns, "{slow:?}");
        }
        // What the model of these times allows covers all that was seen, but for the fit's error.
        prop_assert!(found.beyond_ns < 0.05 * found.longest_ns as f64, "{found:?}");
        prop_assert_eq!(found.states.rare, 0, "{:?}", found);
    }
}

#[test]
fn a_single_long_command_is_beyond_the_model() {
    let made = Made {
        base_ns: 100_000,
        per_kib_ns: 4_000,
        jump_ns: 0,
        jitter_ns: 1_000,
        slow_ns: 0,
        pause_ns: 0,
    };
    let mut rounds = rounds(&made);
    rounds.samples[1_000].took_ns += 50_000_000;
    let found = Times::of(&rounds, false).unwrap();
    assert!(found.beyond_ns > 49_000_000.0);
    let seen = Seen::of(&found);
    assert_eq!((seen.beyond_count, seen.seconds), (1, 20));
    assert_eq!(seen.longest_ns, found.longest_ns);
    // 3 / n, the rule of three.
    assert!((seen.longer_ppm_max.unwrap() - 3e6 / seen.samples as f64).abs() < 0.5, "{seen:?}");
}

#[test]
fn long_writes_that_a_slow_state_covers_are_no_pauses() {
    let made = Made {
        base_ns: 300_000,
        per_kib_ns: 1_000,
        jump_ns: 0,
        jitter_ns: 3_000,
        slow_ns: 10_000_000,
        pause_ns: 0,
    };
    let mut rounds = rounds(&made);
    let usual = rounds.samples.iter_mut().filter(|one| one.begun_ns % PERIOD_NS > 2 * SLOW_NS);
    usual.step_by(97).for_each(|sample| sample.took_ns += 4_000_000);
    let found = Times::of(&rounds, true).unwrap();
    let write = WriteCost::of(&found, None);
    assert!(near(found.states.slow_ns, made.slow_ns, 0.05), "{found:?}");
    assert_eq!((write.pause_kib, write.pause_ns), (0, 0), "a bound rejects one without the other");
    assert_eq!(found.states.rare, 0);
}

#[test]
fn a_pause_that_two_writes_wait_for_is_one() {
    let mut rounds = rounds(&STRIPED);
    let paused = |rounds: &Rounds, at: usize| rounds.samples[at].took_ns > STRIPED.pause_ns;
    let waiting: Vec<usize> =
        (1..rounds.samples.len()).filter(|at| paused(&rounds, at - 1)).collect();
    waiting.iter().for_each(|at| rounds.samples[*at].took_ns += STRIPED.pause_ns);
    let found = Times::of(&rounds, true).unwrap().states;
    assert_eq!(found.pauses, waiting.len() as u64);
    assert!(near(found.pause_ns_max, 2 * STRIPED.pause_ns, 0.05), "{found:?}");
    assert!(found.pause_kib_min + 3 * 512 >= PAUSE_KIB, "{found:?}");
}

#[test]
fn a_jump_that_takes_all_of_the_base_leaves_a_profile_that_a_bound_takes() {
    let made = Made {
        base_ns: 100_000,
        per_kib_ns: 1_000,
        jump_ns: 0,
        jitter_ns: 3_000,
        slow_ns: 0,
        pause_ns: 0,
    };
    let mut rounds = rounds(&made);
    // They come from the card's own memory.
    let continuing = rounds.samples.iter_mut().filter(|sample| sample.continues);
    continuing.for_each(|sample| sample.took_ns = 5_000);
    let cost = Cost::of(&Times::of(&rounds, false).unwrap(), None);
    assert!(cost.base_ns >= cost.jitter_ns.max(1), "{cost:?}");
    assert!(near((cost.base_ns + cost.jump_ns) as f64, made.base_ns, 0.05), "{cost:?}");
}

#[test]
fn of_commands_that_depend_on_each_other_no_share_is_known() {
    let mut found = Times::of(&rounds(&STRIPED), true).unwrap();
    found.tail = Err(Unknown::Dependent { p: 0.0 });
    assert_eq!(Seen::of(&found).longer_ppm_max, None);
    found.tail = Err(Unknown::Misfit { p: 0.0 });
    assert!(Seen::of(&found).longer_ppm_max.is_some());
}

#[test]
fn one_size_is_no_line() {
    let mut rounds = Rounds::default();
    assert_eq!(Times::of(&rounds, false), None);
    let (kib, took_ns) = (4, 100);
    let sample = Sample { kib, continues: false, round: 0, begun_ns: 0, took_ns, written_kib: 0 };
    rounds.samples = vec![sample; 10];
    assert_eq!(Times::of(&rounds, false), None);
}

#[test]
fn pauses_are_no_tail_of_the_usual_times() {
    let made = Made {
        base_ns: 300_000,
        per_kib_ns: 1_000,
        jump_ns: 0,
        jitter_ns: 100_000,
        slow_ns: 0,
        pause_ns: 20_000_000,
    };
    let found = Times::of(&rounds(&made), true).unwrap();
    assert!(near(found.states.pause_ns_max, made.pause_ns, 0.01), "{found:?}");
    // Jitter is uniform: nothing usual is longer by more, and the pauses are not usual.
    let at_most = found.tail.unwrap().at_most;
    assert!((0.8..1.2).contains(&(at_most / made.jitter_ns as f64)), "{found:?}");
}

#[test]
fn a_pause_of_seven_seconds_is_found_as_it_is() {
    let made = Made {
        base_ns: 1_000_000,
        per_kib_ns: 20_000,
        jump_ns: 0,
        jitter_ns: 10_000,
        slow_ns: 0,
        pause_ns: 0,
    };
    let mut rounds = rounds(&made);
    let mut late_ns = 0;
    for (number, sample) in rounds.samples.iter_mut().enumerate() {
        sample.begun_ns += late_ns;
        if number % 400 == 399 {
            sample.took_ns += 7_000_000_000;
            late_ns += 7_000_000_000;
        }
    }
    let found = Seen::of(&Times::of(&rounds, true).unwrap());
    assert!(found.pause_ns_max.unwrap().abs_diff(7_000_000_000) < 20_000_000, "{found:?}");
    assert_eq!(found.beyond_ns, 0);
}

const STRIPED: Made = Made {
    base_ns: 250_000,
    per_kib_ns: 7_500,
    jump_ns: 60_000,
    jitter_ns: 30_000,
    slow_ns: 0,
    pause_ns: 12_000_000,
};

#[test]
fn stripes_that_work_at_once_are_no_pauses_and_the_line_is_that_of_one_stripe() {
    // Two units with stripes of 32 KiB, and half of the time per KiB is that of their bus.
    let size_ns = |made: &Made, kib: u64| (kib.min(32) + kib) * made.per_kib_ns / 2;
    let found = Times::of(&rounds_of(&STRIPED, size_ns), true).unwrap();
    assert!(near(found.line.base, STRIPED.base_ns, 0.05), "{found:?}");
    assert!(near(found.line.per_kib, STRIPED.per_kib_ns, 0.05), "{found:?}");
    assert!(near(found.jump_ns, STRIPED.jump_ns, 0.05), "{found:?}");
    assert!(near(found.states.pause_ns, STRIPED.pause_ns, 0.05), "{found:?}");
    assert!(near(found.states.pause_kib, PAUSE_KIB, 0.05), "{found:?}");
    let seen = Seen::of(&found);
    // 512 KiB take 2,350 us, and as one stripe 4,150.
    assert_eq!(seen.exact_kib, Some(16));
    assert!((41..=45).contains(&seen.faster_percent.unwrap()), "{seen:?}");
    assert_eq!((seen.beyond_count, found.beyond_ns), (0, 0.0), "{found:?}");
}

#[test]
fn without_a_line_no_size_takes_longer_than_the_times_and_the_profile_says_so() {
    // Small ones cost a page of 16 KiB, and large ones meet a second cost.
    let size_ns = |made: &Made, kib: u64| {
        kib.max(16) * made.per_kib_ns + kib.saturating_sub(64) * made.per_kib_ns / 2
    };
    let made = rounds_of(&STRIPED, size_ns);
    let found = Times::of(&made, true).unwrap();
    for (kib, _) in ROUND {
        let took_ns = STRIPED.base_ns + STRIPED.jump_ns + size_ns(&STRIPED, kib);
        let says_ns = found.line.at(kib as f64) + found.jump_ns;
        assert!(says_ns >= 0.98 * took_ns as f64, "{kib} KiB: {says_ns} {found:?}");
    }
    let seen = Seen::of(&found);
    assert_eq!((seen.exact_kib, seen.beyond_count), (Some(0), 0), "{seen:?}");
    assert!(seen.faster_percent > Some(5), "{seen:?}");
    assert!(near(found.states.pause_ns, STRIPED.pause_ns, 0.05), "{found:?}");
}
