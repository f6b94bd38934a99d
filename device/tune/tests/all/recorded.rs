// SPDX-License-Identifier: MIT OR Apache-2.0
//! A full sweep as it was measured, with its noise: every limit is found from a third of it.
//!
//! `steady tune --all --quantile 95` on the card of `experiments/devices/test-queue.toml`, with the
//! load of `tests/tune/load.toml` and `length.ios=200`.

use steadyio_tune::goal::{Figures, Limit, Wanted};

use crate::{search, sweep};

/// `inflight_max`, p95 and its interval in us, MiB/s.
const SWEEP: [(u32, f64, f64, f64, f64); 13] = [
    (1, 374.8, 366.6, 378.9, 57.05),
    (2, 399.4, 358.4, 436.2, 105.53),
    (3, 444.4, 428.0, 485.4, 135.89),
    (4, 577.5, 522.2, 643.1, 155.63),
    (5, 692.2, 626.7, 815.1, 171.39),
    (6, 725.0, 684.0, 823.3, 184.05),
    (7, 798.7, 749.6, 938.0, 193.25),
    (8, 872.4, 839.7, 1_019.9, 203.51),
    (9, 921.6, 888.8, 1_028.1, 211.03),
    (10, 1_036.3, 962.6, 1_171.5, 217.98),
    (12, 1_171.5, 1_122.3, 1_335.3, 227.79),
    (14, 1_335.3, 1_269.8, 1_466.4, 237.18),
    (16, 1_417.2, 1_351.7, 1_531.9, 242.60),
];
/// The same without a scheduler.
const NONE: (u32, f64, f64, f64, f64) = (0, 1_384.4, 1_318.9, 1_597.4, 240.94);

fn figures(&(_, tail_us, from_us, to_us, mib_s): &(u32, f64, f64, f64, f64)) -> Figures {
    let ns = |us: f64| (us * 1_000.0).round() as u64;
    Figures {
        tail_ns: ns(tail_us),
        tail_ns_min: Some(ns(from_us)),
        tail_ns_max: Some(ns(to_us)),
        mib_s,
    }
}

/// What a search picks; it is checked against the sweep, and takes a third of it.
fn picked(wanted: Wanted) -> Option<u32> {
    let curves: Vec<Figures> = SWEEP.iter().map(figures).collect();
    let goal = wanted.goal(Some(&figures(&NONE))).unwrap();
    let few = search(&[SWEEP.len()], &curves, goal, 0.0);
    let all = sweep(&[SWEEP.len()], &curves, goal, 0.0);
    assert_eq!(few.pick(), all.pick(), "{wanted:?}");
    assert_eq!(few.nearest(), all.nearest(), "{wanted:?}");
    assert!(few.measured().len() * 3 <= SWEEP.len(), "{wanted:?}");
    assert_eq!(few.contradictions(), []);
    few.pick().map(|pick| SWEEP[pick].0)
}

#[test]
fn each_limit_is_found_from_a_third_of_the_sweep() {
    for percent in 1..=100 {
        let text = percent.to_string();
        let tail = picked(Wanted::MostThroughput(Limit::OfNone(text.parse().unwrap())));
        assert_eq!(tail.is_none(), percent < 28, "{percent} % of the tail");
        assert!(picked(Wanted::LeastTail(Limit::OfNone(text.parse().unwrap()))).is_some());
    }
    assert_eq!(picked(Wanted::MostThroughput(Limit::OfNone("50".parse().unwrap()))), Some(5));
    assert_eq!(picked(Wanted::LeastTail(Limit::OfNone("50".parse().unwrap()))), Some(3));
}

#[test]
fn without_a_pick_the_nearest_is_the_least_tail_or_the_most_throughput() {
    let curves: Vec<Figures> = SWEEP.iter().map(figures).collect();
    for (wanted, nearest) in [
        (Wanted::MostThroughput(Limit::Absolute(1_000)), Some(0)),
        (Wanted::LeastTail(Limit::Absolute(1_000.0)), Some(12)),
        (Wanted::LeastTail(Limit::Absolute(1.0)), None),
    ] {
        let goal = wanted.goal(None).unwrap();
        let found = search(&[SWEEP.len()], &curves, goal, 0.0);
        assert_eq!(found.nearest(), nearest, "{wanted:?}");
        assert_eq!(found.pick().is_none(), nearest.is_some());
    }
}
