// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a card that has less than it reports has kept.

use proptest::prelude::*;
use steadyio_core::interrupt::Interrupt;
use steadyio_probe::place::Keeps;
use steadyio_probe::place::ProbeError;
use steadyio_probe::verify::{Pattern, Verified, fill, read_back};

const SECTOR: usize = 512;

/// Has so many bytes. Writes beyond them start again in front, or are lost.
struct Card {
    bytes: Vec<u8>,
    wraps: bool,
}

impl Card {
    fn new(kib: u64, wraps: bool) -> Card {
        Card { bytes: vec![0; (kib << 10) as usize], wraps }
    }

    fn sector(&mut self, offset: u64) -> Option<&mut [u8]> {
        let offset = offset as usize;
        let at = if self.wraps { offset % self.bytes.len() } else { offset };
        self.bytes.get_mut(at..at + SECTOR)
    }
}

impl Keeps for Card {
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), ProbeError> {
        for (at, new) in (offset..).step_by(SECTOR).zip(data.chunks(SECTOR)) {
            if let Some(sector) = self.sector(at) {
                sector.copy_from_slice(new);
            }
        }
        Ok(())
    }

    fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<(), ProbeError> {
        for (at, out) in (offset..).step_by(SECTOR).zip(data.chunks_mut(SECTOR)) {
            match self.sector(at) {
                Some(sector) => out.copy_from_slice(sector),
                None => out.fill(0),
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ProbeError> {
        Ok(())
    }
}

/// Of a card that says that it has so much.
fn verified(card: &mut Card, kib: u64) -> Verified {
    let (pattern, stop) = (Pattern::new(7), Interrupt::default());
    fill(card, kib << 10, pattern, &stop, &mut |_| {}).unwrap();
    read_back(card, kib << 10, pattern, &stop, &mut |_| {}).unwrap()
}

fn kept(right_kib: u64, wrong_at_kib: Option<u64>, belongs_at_kib: Option<u64>) -> Verified {
    Verified { written_kib: 1_300, right_kib, wrong_at_kib, belongs_at_kib }
}

#[test]
fn a_card_that_keeps_all_is_right() {
    let found = verified(&mut Card::new(1_300, false), 1_300);
    assert_eq!((found.lost_data(), found), (false, kept(1_300, None, None)));
}

#[test]
fn a_card_that_starts_again_in_front_holds_what_was_written_last() {
    let found = verified(&mut Card::new(400, true), 1_300);
    assert_eq!((found.lost_data(), found), (true, kept(400, Some(0), Some(1_200))));
}

#[test]
fn a_card_that_loses_what_lies_beyond_its_end_is_right_up_to_there() {
    let found = verified(&mut Card::new(400, false), 1_300);
    assert_eq!((found.lost_data(), found), (true, kept(400, Some(400), None)));
}

#[test]
fn a_torn_block_is_wrong_and_belongs_nowhere() {
    let mut card = Card::new(1_300, false);
    let (pattern, stop) = (Pattern::new(7), Interrupt::default());
    fill(&mut card, 1_300 << 10, pattern, &stop, &mut |_| {}).unwrap();
    card.bytes[(640 << 10) + 4_095] ^= 1;
    let found = read_back(&mut card, 1_300 << 10, pattern, &stop, &mut |_| {}).unwrap();
    assert_eq!(found, kept(1_296, Some(640), None));
}

#[test]
fn the_data_of_an_earlier_run_are_wrong() {
    let mut card = Card::new(1_300, false);
    let stop = Interrupt::default();
    fill(&mut card, 1_300 << 10, Pattern::new(6), &stop, &mut |_| {}).unwrap();
    let found = read_back(&mut card, 1_300 << 10, Pattern::new(7), &stop, &mut |_| {}).unwrap();
    assert_eq!(found, kept(0, Some(0), None));
}

#[test]
fn a_signal_ends_the_filling() {
    let (mut card, stop) = (Card::new(1_300, false), Interrupt::default());
    let mut ends_early = |bytes: u64| {
        assert_eq!(bytes, 512 << 10);
        stop.request();
    };
    let ended = fill(&mut card, 1_300 << 10, Pattern::new(7), &stop, &mut ends_early);
    assert!(matches!(ended, Err(ProbeError::Interrupted)));
}

proptest! {
    #[test]
    fn what_is_right_is_the_true_capacity(
        blocks in 1_u64..300, reported in 1_u64..300, wraps: bool,
    ) {
        let (kib, written_kib) = (4 * blocks, 4 * reported);
        let found = verified(&mut Card::new(kib, wraps), written_kib);
        prop_assert_eq!(found.right_kib, kib.min(written_kib));
        prop_assert_eq!(found.written_kib, written_kib);
        prop_assert_eq!(found.lost_data(), kib < written_kib);
    }
}
