// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whatever the tasks: more to do never gives a shorter bound, and no input makes it panic.

use proptest::prelude::*;
use steadyio_bound::device::Device;
use steadyio_bound::tasks::TaskSet;

use super::{bounds_us, card, with_k2};

#[derive(Debug, Clone)]
struct Made {
    kib: u64,
    level: u64,
    period_us: u64,
    ios: u64,
}

fn made() -> impl Strategy<Value = Made> {
    (1_u64..2_000, 0_u64..8, 1_u64..100_000, 1_u64..5)
        .prop_map(|(kib, level, period_us, ios)| Made { kib, level, period_us, ios })
}

fn set(tasks: &[Made], knobs: &str) -> TaskSet {
    let mut text = "background = { op = \"readwrite\", kib = 512 }\n".to_string();
    for (index, task) in tasks.iter().enumerate() {
        let Made { kib, level, period_us, ios } = task;
        text += &format!(
            "[[task]]\nname = \"t{index}\"\nop = \"write\"\nkib = {kib}\nlevel = {level}\n\
             period_us = {period_us}\nios = {ios}\n"
        );
    }
    let text = with_k2(knobs, &text).replace("nr_requests = 64", "nr_requests = 1024");
    TaskSet::parse(&text).unwrap()
}

/// None is no bound: longer than any.
fn longer_or_equal(longer: Option<u64>, shorter: Option<u64>) -> bool {
    longer.is_none_or(|longer| shorter.is_some_and(|shorter| shorter <= longer))
}

proptest! {
    #[test]
    fn one_more_task_shortens_no_bound(tasks in prop::collection::vec(made(), 2..6)) {
        let knobs = "inflight_max = 1\nsplit_kib = 16";
        let all = bounds_us(&card(""), &set(&tasks, knobs));
        let fewer = bounds_us(&card(""), &set(&tasks[..tasks.len() - 1], knobs));
        for (more, less) in all.into_iter().zip(fewer) {
            prop_assert!(longer_or_equal(more, less), "{more:?} {less:?}");
        }
    }

    #[test]
    fn larger_pieces_and_more_in_flight_shorten_no_bound(
        tasks in prop::collection::vec(made(), 1..5),
        split_kib in 1_u64..512,
        inflight_max in 1_u64..8,
    ) {
        let knobs = |inflight_max, split_kib| {
            format!("inflight_max = {inflight_max}\nsplit_kib = {split_kib}")
        };
        let now = bounds_us(&card(""), &set(&tasks, &knobs(inflight_max, split_kib)));
        let larger = bounds_us(&card(""), &set(&tasks, &knobs(inflight_max, split_kib + 64)));
        let more = bounds_us(&card(""), &set(&tasks, &knobs(inflight_max + 1, split_kib)));
        for index in 0..tasks.len() {
            prop_assert!(longer_or_equal(larger[index], now[index]));
            prop_assert!(longer_or_equal(more[index], now[index]));
        }
    }
}

/// Whole numbers of any size, often near a limit.
fn hostile() -> impl Strategy<Value = i128> {
    let limits = vec![0, 1, 16, 1_000_000_000, 600_000_000_000, i64::MAX.into(), u64::MAX.into()];
    let near = prop::sample::select(limits).prop_flat_map(|limit: i128| limit - 1..=limit + 1);
    prop_oneof![
        near,
        (0_u64..700_000_000_000).prop_map(i128::from),
        any::<i64>().prop_map(i128::from)
    ]
}

/// The text with another number in one of the lines that have one, `chosen` by a share of them.
fn with_number(text: &str, chosen: f64, number: i128) -> String {
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    let is_number = |line: &String| {
        line.split_once(" = ")
            .is_some_and(|(_, value)| value.replace('_', "").parse::<u64>().is_ok())
    };
    let numbers: Vec<usize> = (0..lines.len()).filter(|at| is_number(&lines[*at])).collect();
    let line = &mut lines[numbers[(chosen * numbers.len() as f64) as usize]];
    let key = line.split_once(" = ").map_or("", |(key, _)| key).to_string();
    *line = format!("{key} = {number}");
    lines.join("\n")
}

fn file(path: &str) -> String {
    std::fs::read_to_string(path).unwrap()
}

proptest! {
    #[test]
    fn a_hostile_file_has_a_bound_or_an_error_with_a_line(
        in_profile in any::<bool>(),
        changes in prop::collection::vec((0.0..1.0, hostile()), 1..4),
    ) {
        let (mut profile, mut tasks) =
            (file("../probe/tests/profile.toml"), file("../../docs/examples/robot.toml"));
        let changed = if in_profile { &mut profile } else { &mut tasks };
        for (chosen, number) in changes {
            *changed = with_number(changed, chosen, number);
        }
        match (Device::parse(&profile), TaskSet::parse(&tasks)) {
            (Ok(device), Ok(set)) => drop(bounds_us(&device, &set)),
            (Err(error), _) | (_, Err(error)) => {
                prop_assert!(error.to_string().contains("line "), "{error}");
            }
        }
    }
}
