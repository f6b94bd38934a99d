// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a queue overlaps, from the time per read with 16 reads at a time.

use std::time::Duration;

use steadyio_probe::fit::Times;
use steadyio_probe::line::Line;
use steadyio_probe::queue::{Queue, from_times};
use steadyio_probe::states::States;
use steadyio_probe::tail::Unknown;

fn reads(base: f64, per_kib: f64) -> Times {
    let line = Line { base, per_kib };
    let states = States::default();
    let tail = Err(Unknown::Wide);
    Times {
        line,
        faster: None,
        jump_ns: 0.0,
        states,
        samples: 0,
        disturbed: 0,
        length: Duration::ZERO,
        longest_ns: 0,
        beyond_ns: 0.0,
        tail,
    }
}

#[test]
fn reads_that_take_their_time_one_after_the_other_show_no_queue() {
    let alone = reads(100_000.0, 1_000.0);
    assert_eq!(from_times(&alone, 104_000.0, 612_000.0, 64), None);
}

/// Times of the lab's card, from a simulation of it: a read of 4 KiB takes 146 us on its unit.
#[test]
fn units_and_bus_are_those_of_a_card_that_takes_as_long() {
    let alone = reads(138_000.0, 3_150.0);
    for (small_ns, units) in
        [(76_800.0, 2), (44_200.0, 4), (28_400.0, 8), (23_100.0, 12), (20_300.0, 16)]
    {
        let found = from_times(&alone, small_ns, 512.0 * 1_150.0, 32);
        assert_eq!(found, Some(Queue { depth: 32, units, bus_per_kib_ns: 1_150.0 }));
    }
}

#[test]
fn a_bus_is_never_slower_than_a_read_by_itself() {
    let found = from_times(&reads(100_000.0, 1_000.0), 30_000.0, 900_000.0, 8).unwrap();
    assert!(found.bus_per_kib_ns <= 1_000.0);
    assert_eq!(found.depth, 8);
}
