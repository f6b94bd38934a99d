// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a card holds a rate. Its times are round: a block of 64 KiB takes 1 ms, which is 64,000
//! KiB/s.

use std::fs;

use proptest::prelude::*;
use steadyio_probe::claims::Claims;
use steadyio_probe::deleting::Deleting;
use steadyio_probe::profile::{Base, Profile, Slow};
use steadyio_probe::verdict::{Answer, Verdict, verdict};
use steadyio_probe::verify::Verified;

fn profile() -> Profile {
    let mut profile = Profile::parse(include_str!("../profile.toml")).unwrap();
    let write = profile.write.as_mut().unwrap();
    (write.cost.base_ns, write.cost.jump_ns, write.cost.per_kib_ns) = (360_000, 0, 10_000);
    (write.cost.slow_ns, write.pause_kib, write.pause_ns) = (0, 0, 0);
    let seen = profile.seen.write.as_mut().unwrap();
    (seen.pauses, seen.pause_kib_min, seen.pause_ns_max) = (None, None, None);
    seen.longest_ns = 1_000_000;
    profile.slow = None;
    profile
}

fn of(profile: &Profile, rate_kib_s: u64) -> Verdict {
    verdict(profile, rate_kib_s, 64).unwrap()
}

#[test]
fn a_card_without_stalls_holds_what_it_writes() {
    let card = profile();
    assert_eq!(of(&card, 60_000).answer, Answer::Holds);
    assert_eq!(of(&card, 64_001).answer, Answer::DoesNotHold);
    assert_eq!((of(&card, 1).usual_kib_s, of(&card, 1).least_kib_s), (64_000, 64_000));
}

#[test]
fn the_buffer_holds_what_comes_during_the_longest_stall() {
    let mut card = profile();
    card.seen.write.as_mut().unwrap().longest_ns = 4_000_000_000;
    let found = of(&card, 50);
    assert_eq!((found.answer, found.buffer_kib), (Answer::HoldsWithBuffer, 4 * 50 + 64));
}

#[test]
fn pauses_count_as_close_together_and_as_long_as_they_came() {
    let mut card = profile();
    let write = card.write.as_mut().unwrap();
    (write.pause_kib, write.pause_ns) = (640, 1_000_000);
    let seen = card.seen.write.as_mut().unwrap();
    (seen.pause_kib_min, seen.pause_ns_max) = (Some(320), Some(5_000_000));
    // A tenth of a pause per block; at worst a fifth of a longer one.
    let found = of(&card, 32_000);
    assert_eq!((found.usual_kib_s, found.least_kib_s), (58_181, 32_000));
    assert_eq!((found.longest_ns, found.answer), (6_000_000, Answer::HoldsWithBuffer));
    assert_eq!(of(&card, 32_001).answer, Answer::DoesNotHold);
}

#[test]
fn what_comes_faster_than_the_slow_state_writes_is_kept_until_it_ends() {
    let mut card = profile();
    card.write.as_mut().unwrap().cost.slow_ns = 1_000_000;
    card.slow = Some(Slow { period_us: 10_000_000, length_us: 1_000_000 });
    let found = of(&card, 40_000);
    assert_eq!((found.least_kib_s, found.answer), (60_800, Answer::HoldsWithBuffer));
    // 8,000 KiB/s more than 32,000 for a second, and two blocks' time of 2 ms.
    assert_eq!(found.buffer_kib, 8_000 + 80 + 64);
}

#[test]
fn a_cache_that_loses_data_needs_a_flush_per_block() {
    let mut card = profile();
    card.flush = Some(Base { base_ns: 1_000_000 });
    assert_eq!(of(&card, 1).usual_kib_s, 32_000);
}

/// The long time of a block, 1 ms, is that of one unit. With several it takes 60 % less at most.
fn striped(exact_kib: u64) -> Profile {
    let mut card = profile();
    let seen = card.seen.write.as_mut().unwrap();
    (seen.exact_kib, seen.faster_percent) = (Some(exact_kib), Some(60));
    card
}

#[test]
fn a_rate_between_the_times_of_one_unit_and_of_several_is_unknown() {
    let card = striped(16);
    let found = of(&card, 100_000);
    assert_eq!((found.answer, found.least_kib_s), (Answer::Unknown, 64_000));
    assert_eq!(of(&card, 60_000).answer, Answer::Holds);
    // 64 KiB in 395 us; the percent are rounded.
    assert_eq!(found.most_kib_s, 162_025);
    assert_eq!(of(&card, 162_025).answer, Answer::Unknown);
    assert_eq!(of(&card, 162_026).answer, Answer::DoesNotHold);
}

#[test]
fn only_commands_above_the_exact_size_may_be_faster() {
    assert_eq!(of(&striped(64), 64_001).answer, Answer::DoesNotHold);
    assert_eq!(of(&striped(0), 64_001).answer, Answer::Unknown);
    let mut card = striped(32);
    card.limits.max_sectors_kb = 48;
    // One of 840 us at most, and one of 16 KiB, which takes 520 us.
    let found = of(&card, 64_000);
    assert_eq!((found.answer, found.least_kib_s), (Answer::Unknown, 47_058));
    assert_eq!(found.most_kib_s, (64.0 / (840e-6 * 0.395 + 520e-6)) as u64);
    card.limits.max_sectors_kb = 32;
    assert_eq!(of(&card, 64_000).answer, Answer::DoesNotHold);
}

/// While data were deleted, with writes at this rate.
fn deleting(longest_ns: u64, kib_s: u64) -> Profile {
    let found = Deleting { samples: 9, deleted_kib: 16_384, longest_ns, kib_s };
    Profile { deleting: Some(found), ..profile() }
}

#[test]
fn a_card_is_as_slow_as_while_data_were_deleted() {
    let card = deleting(2_000_000, 32_000);
    let found = of(&card, 15_000);
    assert_eq!((found.usual_kib_s, found.least_kib_s), (64_000, 32_000));
    assert_eq!((found.answer, found.longest_ns), (Answer::Holds, 2_000_000));
    assert_eq!(of(&card, 32_001).answer, Answer::DoesNotHold);
    assert_eq!(of(&deleting(1_000_000, 99_000), 1).least_kib_s, 64_000, "no card is faster by it");
}

#[test]
fn the_buffer_holds_what_comes_while_deletions_delay_writes() {
    // Each 16 MiB take 256 ms, and 1,024 ms more if all deletions are as the worst one.
    let card = deleting(1_025_000_000, 40_000);
    let found = of(&card, 12_000);
    assert_eq!((found.least_kib_s, found.answer), (12_800, Answer::HoldsWithBuffer));
    assert!((12_300..12_500).contains(&found.buffer_kib), "{found:?}");
    assert_eq!(of(&card, 12_801).answer, Answer::Unknown);
    assert_eq!(of(&card, 40_001).answer, Answer::DoesNotHold);
}

#[test]
fn a_card_that_lost_data_holds_no_rate() {
    let mut card = profile();
    let kept = |right_kib| {
        let (wrong_at_kib, belongs_at_kib) = (None, None);
        Some(Verified { written_kib: 1_024, right_kib, wrong_at_kib, belongs_at_kib })
    };
    card.verified = kept(1_024);
    assert_eq!(of(&card, 50).answer, Answer::Holds);
    card.verified = kept(1_020);
    assert_eq!(of(&card, 50).answer, Answer::LosesData);
}

#[test]
fn without_writes_there_is_no_verdict() {
    let mut card = profile();
    card.write = None;
    assert_eq!(verdict(&card, 50, 64), None);
}

/// A card pauses for `ns` after every `kib` KiB from `phase` on.
struct Pauses {
    kib: u64,
    ns: u64,
    phase: u64,
}

impl Pauses {
    fn ns(&self, written: u64, block: u64) -> u64 {
        let count = |written: u64| (written + self.phase) / self.kib;
        (count(written + block) - count(written)) * self.ns
    }
}

/// What a program holds at most, in KiB.
fn held_kib(rate: u64, block: u64, pauses: &[Pauses]) -> f64 {
    let (mut free_ns, mut most) = (0.0_f64, 0.0_f64);
    for number in 0..400_u64 {
        let full_ns = ((number + 1) * block) as f64 * 1e9 / rate as f64;
        let paused_ns: u64 = pauses.iter().map(|pauses| pauses.ns(number * block, block)).sum();
        // 64 KiB take 1 ms without a pause, as in `profile()`.
        let block_ns = (block as f64 / 64.0).mul_add(1e6, paused_ns as f64);
        free_ns = free_ns.max(full_ns) + block_ns;
        most = most.max(rate as f64 * free_ns / 1e9 - (number * block) as f64);
    }
    most
}

proptest! {
    #[test]
    fn the_buffer_suffices_whatever_the_pauses(
        block in 1_u64..160, kib in 32_u64..8_192, pause_ns in 0_u64..300_000_000,
        percent in 50_u64..=100, phase in 0_u64..8_192, wait_ns in 0_u64..300_000_000,
    ) {
        let block = 64 * block;
        let mut card = profile();
        card.limits.max_sectors_kb = block;
        let write = card.write.as_mut().unwrap();
        (write.pause_kib, write.pause_ns) = (kib, pause_ns);
        // A block takes 1 ms per 64 KiB.
        (write.cost.base_ns, write.cost.per_kib_ns) = (0, 15_625);
        let seen = card.seen.write.as_mut().unwrap();
        (seen.pause_kib_min, seen.pause_ns_max, seen.longest_ns) = (Some(kib), Some(pause_ns), 0);
        let longest_ns = 1_000_000 + pause_ns * 64 / kib + wait_ns + 1;
        card.deleting =
            Some(Deleting { samples: 9, deleted_kib: 16_384, longest_ns, kib_s: 1 << 30 });
        let rate = (verdict(&card, 1, block).unwrap().least_kib_s * percent / 100).max(1);
        let found = verdict(&card, rate, block).unwrap();
        let deletions = Pauses { kib: 16_384, ns: wait_ns, phase };
        let most = held_kib(rate, block, &[Pauses { kib, ns: pause_ns, phase }, deletions]);
        let buffer = if found.answer == Answer::Holds { 2 * block } else { found.buffer_kib };
        prop_assert!(most <= buffer as f64 + 1.0, "{most} {buffer} {found:?}");
    }

    #[test]
    fn a_faster_program_never_needs_less(
        rate in 1_u64..200_000, block in 1_u64..2_048, stall_ns in 0_u64..10_000_000_000,
    ) {
        let mut card = profile();
        card.seen.write.as_mut().unwrap().longest_ns = stall_ns;
        let [slower, faster] = [rate, rate + 1].map(|rate| verdict(&card, rate, block).unwrap());
        prop_assert!(slower.buffer_kib <= faster.buffer_kib);
        prop_assert!(slower.answer != Answer::DoesNotHold || faster.answer == Answer::DoesNotHold);
        prop_assert!(slower.answer != Answer::Unknown && slower.least_kib_s == slower.most_kib_s);
    }
}

/// A card of class 10, U3, V30, A2, with units of 4 MiB.
fn card(files: &[(&str, &str)]) -> Option<Claims> {
    let disk = tempfile::tempdir().unwrap();
    fs::create_dir(disk.path().join("device")).unwrap();
    for (name, text) in files {
        fs::write(disk.path().join("device").join(name), format!("{text}\n")).unwrap();
    }
    Claims::read(disk.path())
}

#[test]
fn an_sd_card_claims_its_classes() {
    let mut status = [0_u8; 64];
    (status[8], status[10], status[14], status[15], status[21]) = (4, 0x90, 0x30, 30, 2);
    let digits: String = status.iter().map(|byte| format!("{byte:02x}")).collect();
    let claims = card(&[("type", "SD"), ("date", "03/2019"), ("ssr", &digits)]).unwrap();
    assert_eq!(
        claims.words().join(", "),
        "SD, made 03/2019, class 10, U3, V30, A2, allocation unit 4096 KiB"
    );
    assert_eq!(claims.written_kib_s(), Some(29_296));
}

#[test]
fn what_a_card_does_not_say_is_no_claim() {
    let emmc = [("type", "MMC"), ("life_time", "0x01 0x02"), ("pre_eol_info", "0x01")];
    let claims = card(&emmc).unwrap();
    assert_eq!(claims.words(), ["MMC", "life time 0x01 0x02", "end of life 0x01"]);
    assert_eq!(claims.written_kib_s(), None);
    assert_eq!(card(&[("type", "SD"), ("ssr", "no digits")]).unwrap().words(), ["SD"]);
    assert_eq!(card(&[("model", "SSD")]), None);
}
