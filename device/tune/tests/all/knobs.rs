// SPDX-License-Identifier: MIT OR Apache-2.0
//! The knobs that can be chosen, and mistakes that are rejected before any measurement.

use steadyio_tune::grid::Grid;
use steadyio_tune::knob::{Choice, Choices};

fn choices(texts: &[&str]) -> Result<Choices, String> {
    Choices::new(texts.iter().map(|text| text.parse::<Choice>()).collect::<Result<_, _>>()?)
}

#[test]
fn a_wrong_list_of_values_is_named() {
    for (texts, says) in [
        (&["queue_depth"][..], "must be one of inflight_max, split_kib, rt_block_us"),
        (&["inflight_max=0,1"], "inflight_max = 0: must be 1 to 1024"),
        (&["inflight_max=1,1025"], "inflight_max = 1025: must be 1 to 1024"),
        (&["inflight_max=1,x"], "inflight_max = x: must be"),
        (&["inflight_max="], "inflight_max = : must be"),
        (&["inflight_max=4,2,4"], "4 is given twice"),
        (&["inflight_max", "inflight_max=1"], "inflight_max is given twice"),
        (&["split_kib=0,4"], "0 turns it off"),
        (&["split_kib", "rt_block_us"], "rt_block_us has no effect"),
        (&["inflight_max=1"], "only one candidate"),
    ] {
        let said = choices(texts).err().unwrap_or_default();
        assert!(said.contains(says), "{texts:?}: {said}");
    }
}

#[test]
fn candidates_are_all_combinations_and_0_is_off_where_it_is_alone() {
    let choices = choices(&["split_kib=0", "inflight_max=4,1", "rt_block_us=440,880"]).unwrap();
    let all: Vec<String> = (0..4).map(|candidate| choices.at(candidate).to_string()).collect();
    assert_eq!(
        all,
        [
            "split_kib=0 inflight_max=1 rt_block_us=440",
            "split_kib=0 inflight_max=1 rt_block_us=880",
            "split_kib=0 inflight_max=4 rt_block_us=440",
            "split_kib=0 inflight_max=4 rt_block_us=880",
        ]
    );
    assert_eq!(choices.at(1).variant_name(), "split_kib-0.inflight_max-1.rt_block_us-880");
}

#[test]
fn without_a_list_a_third_of_the_values_is_enough() {
    for name in ["inflight_max", "split_kib", "rt_block_us"] {
        let count = choices(&[name]).unwrap().grid.candidates();
        // With the measurement without a scheduler on both sides.
        assert!(3 * (count.ilog2() as usize + 1 + 1) <= count + 1, "{name}: {count}");
    }
    assert_eq!(choices(&[]).unwrap().all[0].knob.name, "inflight_max");
}

#[test]
fn a_candidate_is_below_another_if_no_knob_is_higher() {
    let grid = Grid::new(vec![2, 3]);
    let below: Vec<(usize, usize)> = (0..6)
        .flat_map(|a| (0..6).map(move |b| (a, b)))
        .filter(|&(a, b)| a != b && grid.is_below(a, b))
        .collect();
    assert_eq!(
        below,
        [
            (0, 1),
            (0, 2),
            (0, 3),
            (0, 4),
            (0, 5),
            (1, 2),
            (1, 4),
            (1, 5),
            (2, 5),
            (3, 4),
            (3, 5),
            (4, 5)
        ]
    );
}
