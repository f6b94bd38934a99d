// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random curves: what a search with few measurements picks, next to the full sweep's pick.

use proptest::prelude::*;
use steadyio_tune::goal::{Figures, Goal};
use steadyio_tune::grid::Grid;
use steadyio_tune::search::{Contradiction, Quantity, Search};

use crate::{figures, search, sweep};

/// Steps of tail and throughput; 0 makes a plateau.
fn steps(count: impl Into<prop::collection::SizeRange>) -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((prop_oneof![0..3u64, 0..500u64], prop_oneof![0..3u64, 0..500u64]), count)
}

/// A row that rises by these steps.
fn rising(steps: &[(u64, u64)]) -> Vec<Figures> {
    let (mut tail, mut rate) = (1, 1);
    let rise = |&(a, b): &(u64, u64)| {
        (tail, rate) = (tail + a, rate + b);
        figures(tail, rate as f64)
    };
    steps.iter().map(rise).collect()
}

/// The same in two knobs: a step at a place raises all that is above and right of it.
fn rising_both(rows: usize, columns: usize, steps: &[(u64, u64)]) -> Vec<Figures> {
    let grid = Grid::new(vec![rows, columns]);
    let sum = |candidate: usize, of: fn(&(u64, u64)) -> u64| -> u64 {
        let below = (0..grid.candidates()).filter(|&other| grid.is_below(other, candidate));
        1 + below.map(|other| of(&steps[other])).sum::<u64>()
    };
    (0..grid.candidates())
        .map(|candidate| figures(sum(candidate, |s| s.0), sum(candidate, |s| s.1) as f64))
        .collect()
}

/// A limit at a share of the highest value there is, for either objective.
fn goal(curves: &[Figures], share: f64, is_tail: bool) -> Goal {
    let tail = curves.iter().map(|one| one.tail_ns).max().unwrap_or_default();
    let rate = curves.iter().map(|one| one.mib_s).fold(0.0, f64::max);
    match is_tail {
        true => Goal::MostThroughput { tail_ns_max: tail as f64 * share },
        false => Goal::LeastTail { mib_s_min: rate * share },
    }
}

/// Of the quantity that is to be best, and the other where the first is equal.
fn picked(search: &Search, goal: Goal) -> Option<f64> {
    let figures = search.measured()[&search.pick()?];
    Some(match goal {
        Goal::MostThroughput { .. } => figures.mib_s,
        Goal::LeastTail { .. } => figures.tail_ns as f64,
    })
}

/// Most measurements that a row needs: an answer has one more possibility than there are values.
fn halvings(values: usize) -> usize {
    values.ilog2() as usize + 1
}

proptest! {
    #[test]
    fn a_rising_row_is_halved_to_what_the_sweep_picks(
        steps in steps(1..70),
        share in 0.0..1.2f64,
        is_tail in any::<bool>(),
    ) {
        let curves = rising(&steps);
        let goal = goal(&curves, share, is_tail);
        let sizes = [curves.len()];
        let (few, all) = (search(&sizes, &curves, goal, 0.0), sweep(&sizes, &curves, goal, 0.0));
        prop_assert_eq!(picked(&few, goal), picked(&all, goal));
        prop_assert_eq!(few.contradictions(), vec![]);
        let measured = few.measured().len();
        prop_assert!(measured <= halvings(curves.len()), "{} of {}", measured, curves.len());
        // 8 answers for 7 values cannot be told apart by fewer than 3 measurements; from 12 values
        // on a third is enough.
        let third = if curves.len() < 12 { 4 } else { curves.len() / 3 };
        prop_assert!(measured <= third, "{} of {}", measured, curves.len());
    }

    #[test]
    fn it_says_beforehand_how_many_are_left_at_most(
        steps in steps(1..70),
        share in 0.0..1.2f64,
        is_tail in any::<bool>(),
    ) {
        let curves = rising(&steps);
        let mut search =
            Search::new(Grid::new(vec![curves.len()]), goal(&curves, share, is_tail), 0.0);
        let mut left_max = search.left_max();
        while let Some(next) = search.next() {
            search.add(next, curves[next]);
            prop_assert!(search.left_max() < left_max);
            left_max = search.left_max();
        }
        prop_assert_eq!(left_max, 0);
    }

    #[test]
    fn two_rising_knobs_give_what_the_sweep_picks(
        rows in 2usize..9,
        columns in 7usize..16,
        all_steps in steps(8 * 15),
        share in 0.0..1.2f64,
        is_tail in any::<bool>(),
    ) {
        let curves = rising_both(rows, columns, &all_steps);
        let goal = goal(&curves, share, is_tail);
        let sizes = [rows, columns];
        let (few, all) = (search(&sizes, &curves, goal, 0.0), sweep(&sizes, &curves, goal, 0.0));
        prop_assert_eq!(picked(&few, goal), picked(&all, goal));
        // Never more than row by row.
        prop_assert!(few.measured().len() <= rows.min(columns) * halvings(rows.max(columns)));
    }

    #[test]
    fn what_is_near_to_the_best_is_decided_by_the_other_quantity(
        steps in steps(1..40),
        share in 0.0..1.2f64,
        near in 0.1..30.0f64,
        is_tail in any::<bool>(),
    ) {
        let curves = rising(&steps);
        let goal = goal(&curves, share, is_tail);
        let sizes = [curves.len()];
        let (few, all) = (search(&sizes, &curves, goal, near), sweep(&sizes, &curves, goal, near));
        let (few_pick, all_pick) = (few.pick(), all.pick());
        prop_assert_eq!(few_pick.is_some(), all_pick.is_some());
        if let (Some(pick), Some(all_pick)) = (few_pick, all_pick) {
            prop_assert!(goal.compare_limited(&curves[pick], &curves[all_pick]).is_eq());
        }
        prop_assert!(few.measured().len() <= 2 * halvings(curves.len()));
    }

    #[test]
    fn what_does_not_rise_is_said_and_the_pick_is_the_best_of_what_was_measured(
        values in prop::collection::vec((1..50u64, 1..50u64), 1..30),
        share in 0.0..1.2f64,
        is_tail in any::<bool>(),
    ) {
        let curves: Vec<Figures> =
            values.iter().map(|&(tail, rate)| figures(tail, rate as f64)).collect();
        let goal = goal(&curves, share, is_tail);
        let few = search(&[curves.len()], &curves, goal, 0.0);
        let measured: Vec<(usize, Figures)> =
            few.measured().iter().map(|(&at, &figures)| (at, figures)).collect();
        let falls = |quantity, wrong: fn(&Figures, &Figures) -> bool| {
            let pairs = measured.iter().flat_map(|a| measured.iter().map(move |b| (a, b)));
            let wrong = pairs.filter(|(a, b)| a.0 < b.0 && wrong(&a.1, &b.1));
            wrong.map(|(a, b)| Contradiction { quantity, lower: a.0, upper: b.0 }).collect::<Vec<_>>()
        };
        let mut said = falls(Quantity::Tail, |a, b| a.tail_ns > b.tail_ns);
        said.extend(falls(Quantity::Throughput, |a, b| b.mib_s < a.mib_s * 0.95));
        prop_assert_eq!(few.contradictions(), said);
        let met = || measured.iter().filter(|(_, figures)| goal.is_met(figures));
        prop_assert_eq!(few.pick().is_some(), met().next().is_some());
        if let Some(pick) = few.pick() {
            let pick = few.measured()[&pick];
            prop_assert!(goal.is_met(&pick));
            prop_assert!(met().all(|(_, other)| goal.compare_best(&pick, other).is_le()));
        }
    }

    #[test]
    fn once_nothing_rises_everything_is_measured(
        count in 3usize..30,
        share in 0.0..1.2f64,
        is_tail in any::<bool>(),
    ) {
        let falls = |at: usize| 1u64 << (count - at);
        let curves: Vec<Figures> =
            (0..count).map(|at| figures(falls(at), falls(at) as f64)).collect();
        let few = search(&[count], &curves, goal(&curves, share, is_tail), 0.0);
        prop_assert_eq!(few.measured().len(), count);
    }

    #[test]
    fn nothing_on_the_frontier_is_beaten(values in prop::collection::vec((1..9u64, 1..9u64), 1..30)) {
        let curves: Vec<Figures> =
            values.iter().map(|&(tail, rate)| figures(tail, rate as f64)).collect();
        let all = sweep(&[curves.len()], &curves, Goal::LeastTail { mib_s_min: 0.0 }, 0.0);
        let frontier = all.frontier();
        for (at, one) in curves.iter().enumerate() {
            let beaten = curves.iter().any(|other| {
                let (tail, rate) = (other.tail_ns <= one.tail_ns, other.mib_s >= one.mib_s);
                tail && rate && other != one
            });
            prop_assert_eq!(frontier.contains(&at), !beaten);
        }
    }
}

#[test]
fn a_fall_within_the_noise_contradicts_nothing() {
    let goal = Goal::MostThroughput { tail_ns_max: 1_000.0 };
    let noisy = |tail_ns: u64, mib_s| Figures {
        tail_ns,
        tail_ns_min: Some(tail_ns - 10),
        tail_ns_max: Some(tail_ns + 10),
        mib_s,
    };
    let near = sweep(&[2], &[noisy(500, 100.0), noisy(480, 95.0)], goal, 0.0);
    assert_eq!(near.contradictions(), []);
    let far = sweep(&[2], &[noisy(500, 100.0), noisy(479, 94.9)], goal, 0.0);
    let quantities: Vec<Quantity> = far.contradictions().iter().map(|one| one.quantity).collect();
    assert_eq!(quantities, [Quantity::Tail, Quantity::Throughput]);
    // Without an interval a value stands for itself.
    let bare = |tail_ns, mib_s| Figures { tail_ns, tail_ns_min: None, tail_ns_max: None, mib_s };
    let known = sweep(&[2], &[bare(500, 100.0), bare(499, 100.0)], goal, 0.0);
    assert_eq!(known.contradictions().len(), 1);
}

#[test]
fn what_a_broken_tail_leaves_to_conclude_is_still_concluded() {
    // The throughput rises: what has less than one that keeps the limit is not measured.
    let tails = [9, 9, 9, 9, 9, 9, 9, 4, 9, 3, 9, 9, 9, 2, 9];
    let curves: Vec<Figures> =
        tails.iter().enumerate().map(|(at, &tail)| figures(tail, (at + 1) as f64 * 10.0)).collect();
    let goal = Goal::MostThroughput { tail_ns_max: 5.0 };
    let few = search(&[15], &curves, goal, 0.0);
    assert!(!few.contradictions().is_empty());
    assert_eq!(few.pick(), Some(13), "the best of all");
    let measured: Vec<usize> = few.measured().keys().copied().collect();
    assert_eq!(measured, [7, 9, 11, 13, 14]);
}
