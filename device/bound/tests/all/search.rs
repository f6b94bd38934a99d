// SPDX-License-Identifier: MIT OR Apache-2.0
//! No choice of knobs that meets all deadlines leaves the background more than the pick.

use proptest::prelude::*;
use steadyio_bound::analysis::responses;
use steadyio_bound::search::{Mode, candidates, pick};
use steadyio_bound::share::loss;
use steadyio_bound::tasks::TaskSet;

use super::{card, with_k2};

const BACKGROUND: &str = "background = { op = \"readwrite\", kib = 512 }\n";

/// Each task: level, KiB, period, and how much of it the deadline is; their `block_us`.
fn set(tasks: &[(u64, u64, u64, u64)], knobs: &str, block_us: &[u64]) -> TaskSet {
    let mut text = BACKGROUND.to_string();
    for (index, (level, kib, period_us, percent)) in tasks.iter().enumerate() {
        let deadline_us = period_us * percent / 100;
        text += &format!(
            "[[task]]\nname = \"t{index}\"\nop = \"read\"\nkib = {kib}\nlevel = {level}\n\
             period_us = {period_us}\njitter_us = 100\ndeadline_us = {deadline_us}\n"
        );
        if let Some(us) = block_us.get(index) {
            text += &format!("block_us = {us}\n");
        }
    }
    TaskSet::parse(&with_k2(&format!("inflight_max = 1\n{knobs}"), &text)).unwrap()
}

/// The loss with a set's knobs; None: a deadline may be missed.
fn cost(set: &TaskSet) -> Option<f64> {
    let found = responses(&card(""), set);
    let holds = set.tasks.iter().zip(found).all(|(task, found)| found.meets(task.deadline_us()));
    holds.then(|| loss(&card(""), set).unwrap().all)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn no_other_knobs_are_better(
        tasks in prop::collection::vec((0_u64..3, 4_u64..128, 2_000_u64..40_000, 30_u64..100), 2),
        split_kib in 1_u64..128,
        block_us in prop::collection::vec(1_u64..80, 2),
    ) {
        let found = candidates(&card(""), &set(&tasks, "", &[]), &mut || ()).unwrap();
        let best = pick(&found);
        if let Some(best) = best {
            prop_assert_eq!(cost(&best.set), Some(best.loss));
        }
        let block_us: Vec<u64> = block_us.iter().map(|us| us * 100).collect();
        let others = [
            set(&tasks, &format!("split_kib = {}", 4 * split_kib), &[]),
            set(&tasks, "rt_block_us = 100", &block_us),
        ];
        // The search tries values that are up to a quarter apart.
        for other in others.iter().filter_map(cost) {
            let best = best.map_or(1.0, |best| best.loss);
            prop_assert!(best <= 1.25 * other + 0.01, "{best} {other}");
        }
    }
}

#[test]
fn a_short_deadline_is_declared_and_a_long_one_cuts_nothing() {
    let mode = |percent| {
        let found =
            candidates(&card(""), &set(&[(0, 4, 10_000, percent)], "", &[]), &mut || ()).unwrap();
        pick(&found).map(|best| best.mode)
    };
    assert_eq!(mode(100), Some(Mode::Whole));
    assert_eq!(mode(10), Some(Mode::Declared));
    assert_eq!(mode(1), None);
}

#[test]
fn tasks_of_one_service_are_not_declared() {
    let mut set = set(&[(0, 4, 10_000, 10), (0, 4, 10_000, 10)], "", &[]);
    let modes = |set: &TaskSet| {
        let found = candidates(&card(""), set, &mut || ()).unwrap();
        found.iter().map(|candidate| candidate.mode).collect::<Vec<_>>()
    };
    assert!(modes(&set).contains(&Mode::Declared));
    set.tasks.iter_mut().for_each(|task| task.service = Some("x.service".into()));
    assert!(!modes(&set).contains(&Mode::Declared));
}

#[test]
fn of_values_that_cost_the_same_the_longest_is_declared() {
    let mut set = set(&[(0, 4, 10_000, 100)], "", &[]);
    set.tasks[0].jitter_us = 0;
    let found = candidates(&card(""), &set, &mut || ()).unwrap();
    let declared = found.iter().find(|found| found.mode == Mode::Declared).unwrap();
    // The deadline: no command of the background takes as long.
    assert_eq!(declared.set.tasks[0].block_us, Some(10_000));
}
