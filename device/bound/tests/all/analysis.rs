// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bounds that can be computed by hand. A read of 4 KiB takes 116 us, of 16 KiB 164, of 64 KiB 356,
//! of 512 KiB 2148; a write of 16 KiB 328.

use steadyio_bound::advice::{Change, changes};
use steadyio_bound::declared::declarations;
use steadyio_bound::device::Device;
use steadyio_bound::tasks::TaskSet;

use super::{bounds_us, card, found, tasks, with_k2};

const READS: &str = "background = { op = \"read\", kib = 512 }";
const ONE: &str = "[[task]]\nname = \"a\"\nop = \"read\"\nkib = 4\nlevel = 0\nperiod_us = 10_000\n";
const LOWER: &str =
    "[[task]]\nname = \"b\"\nop = \"read\"\nkib = 64\nlevel = 1\nperiod_us = 10_000\n";
const SAME: &str =
    "[[task]]\nname = \"c\"\nop = \"read\"\nkib = 64\nlevel = 0\nperiod_us = 10_000\n";

#[test]
fn alone_it_takes_its_own_time() {
    assert_eq!(bounds_us(&card(""), &tasks(ONE)), [Some(116)]);
}

#[test]
fn a_piece_of_background_blocks_it() {
    assert_eq!(bounds_us(&card(""), &tasks(&format!("{READS}\n{ONE}"))), [Some(116 + 164)]);
}

#[test]
fn a_command_of_a_lane_blocks_it_once_whatever_the_background() {
    let lane = |kib: u64| format!("lane = {{ op = \"read\", kib = {kib}, level = 1 }}");
    let beside = |lane: &str| bounds_us(&card(""), &tasks(&format!("{lane}\n{READS}\n{ONE}")));
    assert_eq!(beside(&lane(64)), [Some(116 + 356)]);
    assert_eq!(beside(&lane(4)), [Some(116 + 164)]);
}

#[test]
fn a_command_of_a_lane_blocks_a_declared_task_as_a_whole() {
    let lane = "lane = { op = \"read\", kib = 512 }";
    let beside = |lane: &str| {
        let text =
            with_k2("inflight_max = 1\nrt_block_us = 440", &format!("{lane}\n{READS}\n{ONE}"));
        bounds_us(&card(""), &TaskSet::parse(&text).unwrap())
    };
    assert_eq!((beside(""), beside(lane)), (vec![Some(116 + 440)], vec![Some(116 + 2_148)]));
}

#[test]
fn calls_of_a_lane_that_go_before_a_task_are_refused() {
    let refused = |k2: &str, level: &str| {
        let lane = format!("lane = {{ op = \"read\", kib = 64{level} }}");
        TaskSet::parse(&with_k2(k2, &format!("{lane}\n{ONE}{LOWER}"))).unwrap_err().to_string()
    };
    let text = refused("inflight_max = 1", ", level = 1");
    assert!(text.contains("must be greater than that of every task, 1"), "{text}");
    let text = refused("inflight_max = 2", "");
    assert!(text.contains("inflight_max = 2: must be 1 with a lane"), "{text}");
}

#[test]
fn a_lane_lets_background_go_before_a_task_that_it_blocks() {
    let lane = "lane = { op = \"read\", kib = 512, level = 1 }";
    let next_to = |lane: &str| {
        let knobs = "inflight_max = 1\nsplit_kib = 16\nbackground_wait_ms_max = 20";
        let text = with_k2(knobs, &format!("{lane}\n{READS}\n{ONE}"));
        let found = found(&card(""), &TaskSet::parse(&text).unwrap());
        found[0].job.unwrap().background_wait
    };
    assert_eq!((next_to(""), next_to(lane)), (0, 164_000));
}

#[test]
fn a_call_of_a_lane_blocks_a_declared_task_as_a_whole_and_is_blocked_by_whole_requests() {
    let next_to = |lane: &str| {
        let call = LOWER.replace("64", "512") + lane;
        let text = with_k2("inflight_max = 1\nrt_block_us = 440", &format!("{READS}\n{ONE}{call}"));
        TaskSet::parse(&text).unwrap()
    };
    let (task, call) = (next_to(""), next_to("lane = true\n"));
    assert_eq!(bounds_us(&card(""), &task)[0], Some(116 + 440));
    assert_eq!(bounds_us(&card(""), &call), [Some(116 + 2_148), Some(2_148 + 2_148 + 116)]);
    let stated = |set: &TaskSet| declarations(&card(""), set, &found(&card(""), set)).unwrap();
    let is_stated = |set: &TaskSet| stated(set).iter().map(Option::is_some).collect::<Vec<_>>();
    assert_eq!((is_stated(&task), is_stated(&call)), (vec![true, true], vec![true, false]));
}

#[test]
fn what_is_computed_before_a_request_is_declared_as_jitter() {
    let task = format!("{ONE}jitter_us = 100\ncpu_us = 2_001\n");
    let text = with_k2("inflight_max = 1\nrt_block_us = 440", &format!("{READS}\n{task}"));
    let set = TaskSet::parse(&text).unwrap();
    let stated = declarations(&card(""), &set, &found(&card(""), &set)).unwrap()[0].unwrap();
    assert_eq!((stated.jitter_us, stated.think_us), (100 + 1_001, 1 + 2 * 2_001));
}

#[test]
fn each_command_in_flight_blocks_it() {
    let text = with_k2("inflight_max = 3\nsplit_kib = 16", &format!("{READS}\n{ONE}"));
    let set = TaskSet::parse(&text).unwrap();
    assert_eq!(bounds_us(&card(""), &set), [Some(116 + 3 * 164)]);
}

#[test]
fn without_splitting_a_whole_request_does() {
    let text = with_k2("inflight_max = 1", &format!("{READS}\n{ONE}"));
    let set = TaskSet::parse(&text).unwrap();
    assert_eq!(bounds_us(&card(""), &set), [Some(116 + 2_148)]);
}

#[test]
fn a_request_of_a_lower_level_is_not_split_and_blocks_as_a_whole() {
    let set = tasks(&format!("{READS}\n{ONE}{LOWER}"));
    assert_eq!(bounds_us(&card(""), &set), [Some(116 + 356), Some(356 + 164 + 116)]);
}

#[test]
fn who_shares_a_level_is_in_front_once() {
    let set = tasks(&format!("{ONE}{SAME}"));
    assert_eq!(bounds_us(&card(""), &set), [Some(116 + 356), Some(356 + 116)]);
}

#[test]
fn a_higher_level_comes_again_while_a_long_job_waits() {
    // 20 reads of 512 KiB take 43 ms; what comes every 10 ms can delay the first by its rest, and
    // comes in the 41 ms and 1 ms before.
    let long = "[[task]]\nname = \"long\"\nop = \"read\"\nkib = 512\nlevel = 5\n\
                period_us = 100_000\nios = 20\n";
    let set = tasks(&format!("{ONE}{long}"));
    let terms = found(&card(""), &set)[1].job.unwrap();
    assert_eq!(terms.own, 20 * 2_148_000);
    assert_eq!(terms.higher_levels, 5 * 116_000);
}

#[test]
fn work_without_end_has_no_bound() {
    let busy =
        "[[task]]\nname = \"busy\"\nop = \"read\"\nkib = 512\nlevel = 0\nperiod_us = 2_100\n";
    assert_eq!(bounds_us(&card(""), &tasks(&format!("{busy}{LOWER}"))), [None, None]);
}

#[test]
fn a_late_job_delays_the_next() {
    // 2264 us with the piece that blocks, every 2400 us +- 500: two jobs may come 1400 us apart.
    let text = "[[task]]\nname = \"a\"\nop = \"read\"\nkib = 512\nlevel = 0\nperiod_us = 2_400\n\
                jitter_us = 500\n";
    let set = tasks(&format!("{READS}\n{text}"));
    let terms = found(&card(""), &set)[0].job.unwrap();
    assert_eq!(terms.later % 2_400_000, 1_400_000);
    assert!(terms.sum() > 2_312_000);
}

#[test]
fn background_that_has_waited_goes_first() {
    let knobs = "inflight_max = 1\nsplit_kib = 16\nbackground_wait_ms_max = 20";
    let first_us = |tasks: &str| {
        let set = TaskSet::parse(&with_k2(knobs, &format!("{READS}\n{tasks}"))).unwrap();
        bounds_us(&card(""), &set)[0]
    };
    // The piece that blocks it, or one that has waited behind other real-time: not both,
    assert_eq!(first_us(ONE), Some(116 + 164));
    // unless a lower level blocks it, here with 4 KiB.
    let lower = "[[task]]\nname = \"low\"\nop = \"read\"\nkib = 4\nlevel = 7\nperiod_us = 50_000\n";
    assert_eq!(first_us(&format!("{ONE}{lower}")), Some(116 + 164 + 164));
}

#[test]
fn background_between_the_pieces_of_a_request_makes_it_jump_again() {
    let device = card("write = { base_ns = 200_000, per_kib_ns = 8_000, jump_ns = 300_000 }");
    let written = LOWER.replace("read", "write");
    let last = "[[task]]\nname = \"last\"\nop = \"read\"\nkib = 4\nlevel = 7\nperiod_us = 50_000\n";
    let forced_us = |wait_ms: u64| {
        let knobs =
            format!("inflight_max = 1\nrt_block_us = 1_000\nbackground_wait_ms_max = {wait_ms}");
        let small = "background = { op = \"read\", kib = 4, merges = false }";
        let text = with_k2(&knobs, &format!("{small}\n{ONE}{written}{last}"));
        found(&device, &TaskSet::parse(&text).unwrap())[1].job.unwrap().background_wait / 1_000
    };
    assert_eq!((forced_us(0), forced_us(20)), (0, 116 + 300));
}

#[test]
fn a_flush_bypasses_k2() {
    let flush = "flush = { base_ns = 700_000 }";
    let bound_us = |distance_us: u64| {
        let flushes = format!("flush_distance_us_min = {distance_us}");
        let text = format!("background = {{ op = \"read\", kib = 512, {flushes} }}\n{ONE}");
        bounds_us(&card(flush), &tasks(&text))[0].unwrap()
    };
    assert_eq!(bound_us(5_000), 116 + 164 + 700);
    // One that waits behind the piece, and those that come in the 2.3 ms until the read starts.
    assert_eq!(bound_us(1_500), 116 + 164 + 3 * 700);
}

#[test]
fn a_plug_makes_a_large_request_of_small_ones() {
    let background = "background = { op = \"read\", kib = 4 }";
    let text = with_k2("inflight_max = 1", &format!("{background}\n{ONE}"));
    assert_eq!(bounds_us(&card(""), &TaskSet::parse(&text).unwrap()), [Some(116 + 2_148)]);
    let text = text.replace("kib = 4 }", "kib = 4, merges = false }");
    assert_eq!(bounds_us(&card(""), &TaskSet::parse(&text).unwrap()), [Some(116 + 116)]);
}

#[test]
fn a_write_may_meet_a_pause_of_the_flash() {
    let write =
        "write = { base_ns = 200_000, per_kib_ns = 8_000, pause_kib = 1024, pause_ns = 3_000_000 }";
    let set = tasks(&format!("background = {{ op = \"readwrite\", kib = 512 }}\n{ONE}"));
    assert_eq!(bounds_us(&card(write), &set), [Some(116 + 328 + 3_000)]);
}

#[test]
fn a_write_that_finds_the_cache_full_waits_for_it() {
    let more = "cache = { kib = 512, base_ns = 20_000, per_kib_ns = 1_000 }";
    let background = "background = { op = \"write\", kib = 512, durable = false }";
    let set = tasks(&format!("{background}\n{ONE}"));
    // The piece into the cache, a flush, and 512 KiB.
    assert_eq!(bounds_us(&card(more), &set), [Some(116 + 36 + 200 + 4_096)]);
}

#[test]
fn a_write_that_the_cache_takes_may_block_longer_than_a_larger_one() {
    let more = "cache = { kib = 128, base_ns = 20_000, per_kib_ns = 1_000 }\nflush = { base_ns = 20_000_000 }";
    let background = "background = { op = \"write\", kib = 512, merges = false, durable = false }";
    let rare = ONE.replace("10_000", "100_000");
    let text = with_k2("inflight_max = 1", &format!("{background}\n{rare}"));
    let bounds = bounds_us(&card(more), &TaskSet::parse(&text).unwrap());
    assert_eq!(bounds, [Some(116 + 148 + 20_000 + 128 * 8)]);
}

#[test]
fn writes_larger_than_the_cache_do_not_keep_it_from_filling() {
    let more = "cache = { kib = 64, base_ns = 20_000, per_kib_ns = 1_000 }";
    let large =
        ONE.replace("\"a\"", "\"large\"").replace("kib = 4\nlevel = 0", "kib = 128\nlevel = 1");
    let large = large.replace("\"read\"", "\"write\"");
    let small = ONE.replace("\"read\"", "\"write\"").replace("kib = 4", "kib = 32\nios = 5");
    let stalls = |text: &str| {
        let terms = found(&card(more), &tasks(text))[0].job.unwrap();
        terms.stalls / 1_000
    };
    // 160 KiB, 32 at a time: full at most five times. The large write bypasses the cache.
    assert_eq!(stalls(&small), 5 * 200 + (64 + 160) * 8);
    assert_eq!(stalls(&format!("{small}{large}")), stalls(&small));
}

#[test]
fn a_rare_large_request_counts_as_often_as_it_comes() {
    let text = "[[task]]\nname = \"burst\"\nop = \"read\"\nkib = 4\nlevel = 0\nios = 20\nperiod_us = 50_000\n\
                [[task]]\nname = \"map\"\nop = \"read\"\nkib = 512\nlevel = 0\nperiod_us = 1_000_000\n";
    assert_eq!(bounds_us(&card(""), &tasks(text)), [Some(20 * 116 + 2_148), Some(2_148 + 116)]);
    let lower = text.replace("kib = 512\nlevel = 0", "kib = 512\nlevel = 1");
    assert_eq!(bounds_us(&card(""), &tasks(&lower))[0], Some(20 * 116 + 2_148));
}

#[test]
fn what_is_submitted_together_waits_once() {
    let batch = |at_once: u64| {
        let task = ONE.replace("kib = 4", &format!("kib = 4\nios = 4\nat_once = {at_once}"));
        bounds_us(&card(""), &tasks(&format!("{READS}\n{task}")))[0].unwrap()
    };
    assert_eq!(batch(1), 4 * (116 + 164));
    assert_eq!(batch(2), 4 * 116 + 2 * 164);
    assert_eq!(batch(4), 4 * 116 + 164);
}

const CACHE: &str = "cache = { kib = 512, base_ns = 20_000, per_kib_ns = 1_000 }";
const DURABLE: &str = "[[task]]\nname = \"log\"\nop = \"write\"\ndurable = true\nkib = 16\nlevel = 0\n\
                       period_us = 100_000\n";

#[test]
fn behind_a_durable_write_comes_a_flush() {
    assert_eq!(bounds_us(&card(CACHE), &tasks(DURABLE)), [Some(328 + 200)]);
    assert_eq!(bounds_us(&card(""), &tasks(DURABLE)), [Some(328)]);
}

#[test]
fn a_durable_write_waits_twice_and_for_what_the_cache_holds() {
    let background = "background = { op = \"write\", kib = 512, durable = false }";
    let terms = found(&card(CACHE), &tasks(&format!("{background}\n{DURABLE}")))[0].job.unwrap();
    assert_eq!((terms.own, terms.blocking), (528_000, 2 * 36_000));
    // The first piece may find the cache full; all that is written back is what it held, and the two pieces.
    assert_eq!(terms.stalls, 200_000 + (512 + 2 * 16) * 8_000);
}

#[test]
fn a_durable_write_delays_lower_levels_with_its_flush() {
    let set = tasks(&format!("{DURABLE}{LOWER}"));
    assert_eq!(found(&card(CACHE), &set)[1].job.unwrap().higher_levels, 528_000);
}

#[test]
fn while_a_thread_computes_others_bring_the_next_pause_near() {
    let write =
        "write = { base_ns = 200_000, per_kib_ns = 8_000, pause_kib = 1024, pause_ns = 3_000_000 }";
    let stalls_us = |cpu_us: u64| {
        let task = ONE.replace("10_000", &format!("100_000\nios = 2\ncpu_us = {cpu_us}"));
        let set = tasks(&format!("background = {{ op = \"write\", kib = 512 }}\n{task}"));
        found(&card(write), &set)[0].job.unwrap().stalls / 1_000
    };
    // Each I/O may meet one, but only if there is time to write 1024 KiB between them.
    assert_eq!((stalls_us(10), stalls_us(4_500)), (3_000, 6_000));
}

#[test]
fn a_slow_episode_counts_for_each_command() {
    let more = "slow = { period_us = 1_000_000, length_us = 50_000 }\n\
                write = { base_ns = 200_000, per_kib_ns = 8_000, slow_ns = 500_000 }";
    let set = tasks(&format!("background = {{ op = \"write\", kib = 512 }}\n{ONE}"));
    assert_eq!(bounds_us(&card(more), &set), [Some(116 + 328 + 500)]);
}

fn advice(device: &Device, set: &TaskSet, task: usize) -> Option<Change> {
    changes(device, set, &found(device, set)).nth(task).unwrap()
}

#[test]
fn no_level_is_advised_that_another_task_of_the_service_lacks() {
    let advised = |service: &str| {
        let twice = ONE.replace("10_000", "10_000\nios = 2");
        let lower = format!("{LOWER}{service}");
        let other = lower.replace("\"b\"", "\"c\"");
        advice(&card(""), &tasks(&format!("{twice}{lower}{other}")), 1).map(|change| change.what)
    };
    assert_eq!(advised(""), Some("level = 0".into()));
    assert_eq!(advised("service = \"b.service\"\n"), None);
}

#[test]
fn where_stalls_are_most_of_a_bound_no_change_is_advised() {
    let more = "write = { base_ns = 1, per_kib_ns = 1, pause_kib = 65536, pause_ns = 7_000_000 }";
    let writes = format!("{READS}\n{}", ONE.replace("read", "write"));
    assert_eq!(advice(&card(more), &tasks(&writes), 0), None);
}

#[test]
fn the_change_that_helps_most_is_found() {
    let (device, set) = (card(""), tasks(&format!("{READS}\n{ONE}{LOWER}")));
    let best = advice(&device, &set, 0);
    assert!(best.is_none(), "a request of a lower level blocks it, whatever the pieces");
    let best = advice(&device, &set, 1).unwrap();
    assert_eq!((best.what.as_str(), best.bound_ns), ("split_kib = 8", 356_000 + 132_000 + 116_000));
}

/// As the advice says: the knobs of `with_k2`, then what follows them.
fn changed_k2(knobs: &str) -> String {
    let urgent = ONE.replace("10_000", "10_000\ndeadline_us = 300");
    with_k2(knobs, &format!("{READS}\n{urgent}"))
}

#[test]
fn several_changes_are_advised_where_one_is_not_enough_and_the_deadline_holds_with_them() {
    let set = TaskSet::parse(&changed_k2("inflight_max = 2\nsplit_kib = 64")).unwrap();
    let device = card("");
    let change = advice(&device, &set, 0).unwrap();
    assert_eq!(change.what, "inflight_max = 1, split_kib = 16");
    assert!(change.meets);
    let changed = TaskSet::parse(&changed_k2("inflight_max = 1\nsplit_kib = 16")).unwrap();
    assert_eq!(bounds_us(&device, &changed), [Some(change.bound_ns / 1_000)]);
    assert_eq!(change.bound_ns, 280_000);
}

#[test]
fn knobs_and_a_higher_level_are_advised_together() {
    let twice = ONE.replace("10_000", "10_000\nios = 2");
    let urgent = LOWER.replace("10_000", "10_000\ndeadline_us = 600");
    let text = with_k2("inflight_max = 1\nsplit_kib = 64", &format!("{READS}\n{twice}{urgent}"));
    let (device, set) = (card(""), TaskSet::parse(&text).unwrap());
    let change = advice(&device, &set, 1).unwrap();
    assert_eq!((change.what.as_str(), change.meets), ("split_kib = 4, level = 0", true));
}

#[test]
fn a_change_that_is_not_enough_says_so() {
    let urgent = ONE.replace("10_000", "10_000\ndeadline_us = 200");
    let (device, set) = (card(""), tasks(&format!("{READS}\n{urgent}")));
    let change = advice(&device, &set, 0).unwrap();
    // Two reads of 4 KiB.
    assert_eq!((change.what.as_str(), change.bound_ns), ("split_kib = 4", 232_000));
    assert!(!change.meets);
}

#[test]
fn no_change_is_advised_with_which_another_task_misses_its_deadline() {
    let three = |deadline_us: u64, level: u64| {
        let twice = ONE.replace("10_000", &format!("10_000\nios = 2\ndeadline_us = {deadline_us}"));
        let middle = LOWER.replace("level = 1", &format!("level = {level}"));
        let lowest = LOWER.replace("\"b\"", "\"c\"").replace("level = 1", "level = 2");
        tasks(&format!("{twice}{middle}{lowest}{}", lowest.replace("\"c\"", "\"d\"")))
    };
    let device = card("");
    let advised = |deadline_us: u64| {
        let set = three(deadline_us, 1);
        advice(&device, &set, 1).map(|change| change.what)
    };
    let [now_us, with_us] =
        [1, 0].map(|level| bounds_us(&device, &three(10_000, level))[0].unwrap());
    assert!(now_us < with_us, "{now_us} {with_us}");
    assert_eq!(advised(with_us), Some("level = 0".into()));
    assert_eq!(advised(with_us - 1), None);
}

#[test]
fn a_profile_splits_a_write_between_flash_and_bus_and_writes_back_at_their_sum() {
    let stalls_us = |schema: &str| {
        let text = format!(
            "schema = \"steadyio.{schema}/1\"\nname = \"card\"\n\
             card = {{ units = 2, bus_per_kib_ns = 7_000 }}\nqueue = {{ depth = 16 }}\n\
             cache = {{ kib = 64, base_ns = 20_000, per_kib_ns = 4_000 }}\n\
             flush = {{ base_ns = 200_000 }}\n\
             read = {{ base_ns = 100_000, per_kib_ns = 4_000 }}\n\
             write = {{ base_ns = 200_000, per_kib_ns = 8_000 }}"
        );
        let set = tasks(&ONE.replace("read", "write"));
        found(&Device::parse(&text).unwrap(), &set)[0].job.unwrap().stalls / 1_000
    };
    // The cache is found full once, and written back.
    assert_eq!((stalls_us("device"), stalls_us("profile")), (200 + 64 * 8, 200 + 64 * 15));
}
