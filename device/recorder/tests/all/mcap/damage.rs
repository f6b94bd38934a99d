// SPDX-License-Identifier: MIT OR Apache-2.0
//! Segments whose blocks were changed by something else than a power cut: what is whole is kept,
//! what is missing is counted, and nothing is written over what could be data.

use std::cell::Cell;
use std::io;

use proptest::prelude::*;
use steadyio_recorder::mcap::account::Gaps;
use steadyio_recorder::mcap::layout::{HEAD_BYTES, LayoutConfig};
use steadyio_recorder::mcap::private::{BlockKind, BlockRecord};
use steadyio_recorder::mcap::reading::{Found, read};
use steadyio_recorder::mcap::recover::{State, examine};
use steadyio_recorder::mcap::storage::Storage;

use super::segment::disk::{Disk, recover, recover_and_cut};
use super::segment::doctor;
use super::segment::{GROWING, RECYCLED, Script, Sent, Write, read_indexed, read_linear};

/// Of a record, in front of its content.
const RECORD_HEAD_BYTES: usize = 9;

/// Messages of one channel, three to a block, some blocks long.
pub fn script(config: LayoutConfig) -> Script {
    let mut script = Script::begin(config, 2, 7);
    for at in 0..30_u32 {
        let bytes = if at / 3 == 4 { 2_500 } else { 100 + 37 * at as usize };
        assert!(script.push(Sent::new((at % 2) as u16, at + 1, vec![at as u8; bytes])));
        if at % 3 == 2 {
            script.flush();
        }
    }
    script
}

/// The file as the writes so far leave it, over nothing.
pub fn image(script: &Script) -> Vec<u8> {
    let mut image = script.image(Vec::new());
    let config = script.encoder.layout().config();
    if config.placement == RECYCLED.placement {
        image.resize(config.segment_bytes as usize, 0);
    }
    image
}

fn flip(image: &mut [u8], at: u64) {
    image[at as usize] ^= 0x10;
}

/// Writes of blocks with messages, and which messages.
pub fn blocks(script: &Script) -> Vec<(&Write, &[Sent])> {
    let mut from = 0;
    let mut found = Vec::new();
    for write in script.writes.iter().filter(|write| write.durable > 0) {
        if write.durable > from {
            found.push((write, &script.sent[from..write.durable]));
            from = write.durable;
        }
    }
    found
}

fn messages(image: &[u8]) -> Vec<Sent> {
    doctor::examine(image);
    let linear = read_linear(image).unwrap();
    assert_eq!(read_indexed(image).unwrap(), linear);
    linear
}

/// All messages but those of these blocks.
pub fn without(script: &Script, lost: &[usize]) -> Vec<Sent> {
    let kept = blocks(script).into_iter().enumerate().filter(|(at, _)| !lost.contains(at));
    kept.flat_map(|(_, (_, messages))| messages.to_vec()).collect()
}

fn expect_same_after_any_cut(image: &[u8], expected: &[u8]) {
    for power in (0..).step_by(256) {
        let Some(cut) = recover_and_cut(image.to_vec(), power) else { return };
        assert!(recover(cut).unwrap().0 == expected, "cut after {power} bytes");
    }
}

#[test]
fn damaged_definitions_are_made_again_from_their_copy() {
    let scripts = [script(RECYCLED), script(RECYCLED.compressed())];
    let places = [HEAD_BYTES as u64, HEAD_BYTES as u64 + 300];
    for (script, at) in scripts.iter().flat_map(|script| places.map(|at| (script, at))) {
        let mut damaged = image(script);
        flip(&mut damaged, at);
        let (recovered, found) = recover(damaged.clone()).unwrap();
        assert_eq!((found.state, found.damaged), (State::Finished, false));
        assert_eq!(found.gaps, Gaps::default());
        assert_eq!(messages(&recovered), script.sent);
        expect_same_after_any_cut(&damaged, &recovered);
    }
}

/// The same with a channel that is added among the messages, and messages of it in each later block.
fn script_with_a_late_channel(config: LayoutConfig) -> Script {
    let mut script = script(config);
    let late = script.add_channel().unwrap();
    for at in 30..60_u32 {
        let channel = if at % 3 == 0 { late } else { (at % 2) as u16 };
        assert!(script.push(Sent::new(channel, at + 1, vec![at as u8; 100])));
        if at % 3 == 2 {
            script.flush();
        }
    }
    script
}

/// Offsets of the two blocks of added definitions, and of the first behind them.
fn added(script: &Script) -> [u64; 3] {
    let kind = |write: &&Write| BlockRecord::get(&write.bytes).map(|record| record.kind);
    let first = script.writes.iter().position(|write| kind(&write) == Some(BlockKind::Added));
    let at = first.unwrap();
    assert_eq!(kind(&&script.writes[at + 1]), Some(BlockKind::Added));
    [0, 1, 2].map(|number| script.writes[at + number].offset)
}

#[test]
fn channels_that_were_added_are_there_without_an_end() {
    for config in [RECYCLED, GROWING] {
        let script = script_with_a_late_channel(config);
        let (recovered, found) = recover(image(&script)).unwrap();
        assert_eq!((found.state, found.damaged), (State::Finished, false));
        assert_eq!(found.gaps, Gaps::default());
        assert_eq!(messages(&recovered), script.sent);
        expect_same_after_any_cut(&image(&script), &recovered);
    }
}

#[test]
fn either_copy_of_added_definitions_is_enough() {
    let script = script_with_a_late_channel(RECYCLED);
    let [first, second, behind] = added(&script);
    for (at, next) in [(first, second), (second, behind)] {
        let mut damaged = image(&script);
        flip(&mut damaged, at + 80);
        let (recovered, found) = recover(damaged.clone()).unwrap();
        assert_eq!(found.gaps, Gaps { blocks: 1, bytes: next - at, durable_blocks: 1 });
        assert_eq!(messages(&recovered), script.sent);
        expect_same_after_any_cut(&damaged, &recovered);
    }
}

#[test]
fn without_added_definitions_only_blocks_with_their_channels_are_missing() {
    let mut script = script_with_a_late_channel(RECYCLED);
    // A block without a message of it.
    for at in 60..63_u32 {
        script.push(Sent::new(0, at + 1, vec![at as u8; 100]));
    }
    script.flush();
    let [first, second, _] = added(&script);
    let mut damaged = image(&script);
    flip(&mut damaged, first + 80);
    flip(&mut damaged, second + 80);
    let (recovered, found) = recover(damaged).unwrap();
    assert_eq!(found.gaps.blocks, 2 + 10);
    let expected = [&script.sent[..30], &script.sent[60..]].concat();
    assert_eq!(messages(&recovered), expected);
}

#[test]
fn damaged_definitions_are_made_again_without_what_was_added_later() {
    let script = script_with_a_late_channel(RECYCLED);
    let mut damaged = image(&script);
    flip(&mut damaged, HEAD_BYTES as u64 + 300);
    let (recovered, found) = recover(damaged).unwrap();
    assert_eq!((found.state, found.gaps), (State::Finished, Gaps::default()));
    assert_eq!(messages(&recovered), script.sent);
}

#[test]
fn head_and_definitions_are_made_again_from_the_copy() {
    let script = script(RECYCLED);
    let mut damaged = image(&script);
    damaged[..HEAD_BYTES + 100].fill(0);
    let (recovered, found) = recover(damaged).unwrap();
    assert_eq!(found.state, State::Finished);
    assert_eq!(messages(&recovered), script.sent);
}

#[test]
fn data_without_definitions_is_damaged_and_not_blank() {
    let script = script(RECYCLED);
    let mut damaged = image(&script);
    flip(&mut damaged, HEAD_BYTES as u64 + 300);
    flip(&mut damaged, RECYCLED.segment_bytes - 1_000);
    let (left, found) = recover(damaged.clone()).unwrap();
    assert_eq!((found.state, found.damaged), (State::Damaged, true));
    assert_eq!(left, damaged, "it is not changed");
}

#[test]
fn blocks_behind_a_damaged_one_are_kept_and_the_gap_is_counted() {
    for config in [RECYCLED, GROWING, RECYCLED.compressed()] {
        let script = script(config);
        let blocks = blocks(&script);
        for (lost, (write, _)) in blocks.iter().enumerate().take(blocks.len() - 1) {
            for at in [0, 40, 200, write.bytes.len() as u64 - 1] {
                let mut damaged = image(&script);
                flip(&mut damaged, write.offset + at);
                let (recovered, found) = recover(damaged.clone()).unwrap();
                assert_eq!((found.state, found.damaged), (State::Finished, false));
                let bytes = write.bytes.len() as u64;
                assert_eq!(found.gaps, Gaps { blocks: 1, bytes, durable_blocks: 1 });
                assert_eq!(messages(&recovered), without(&script, &[lost]));
                let (start, end) = (write.offset as usize, write.offset as usize + bytes as usize);
                let content = start + RECORD_HEAD_BYTES..end;
                assert_eq!(recovered[content.clone()], damaged[content], "an expert may need it");
                assert_eq!(recover(recovered.clone()).unwrap().0, recovered);
            }
        }
    }
}

#[test]
fn a_lost_compressed_block_counts_at_least_the_messages_that_it_had() {
    let mut script = Script::begin(RECYCLED.compressed(), 1, 7);
    for number in 1..600 {
        assert!(script.push(Sent::new(0, number, vec![1; 10])));
    }
    script.flush();
    let mut damaged = image(&script);
    let lost = blocks(&script)[1].0;
    damaged[lost.offset as usize..][..lost.bytes.len()].fill(0);
    let found = examine(&Disk::new(damaged), true).unwrap();
    let gone = script.sent.len() as u64 - found.messages();
    assert_eq!((found.gaps.blocks, lost.bytes.len()), (1, 4_096));
    // The smallest message of an uncompressed block has 47 bytes.
    assert!(gone > 4_096 / 47, "{gone}");
    assert!(found.evidence.missing_at_most >= gone, "{:?}", found.evidence);
}

#[test]
fn the_end_goes_behind_the_last_block_that_is_there() {
    for config in [RECYCLED, GROWING, RECYCLED.compressed()] {
        let script = script(config);
        let blocks = blocks(&script);
        let mut damaged = image(&script);
        for lost in [1, 2, 5] {
            flip(&mut damaged, blocks[lost].0.offset + 70);
        }
        let (recovered, found) = recover(damaged.clone()).unwrap();
        assert_eq!((found.gaps.blocks, found.gaps.durable_blocks), (3, 3));
        let last = blocks.last().unwrap().0;
        let end = last.offset + last.bytes.len() as u64;
        assert_eq!(found.contents.unwrap().data_end, end);
        assert_eq!(messages(&recovered), without(&script, &[1, 2, 5]));
        expect_same_after_any_cut(&damaged, &recovered);
    }
}

#[test]
fn the_recorders_own_end_stays_as_it_is_behind_a_gap() {
    let mut script = script(RECYCLED);
    script.ledger[1].lost = 9;
    script.finish();
    let lost = blocks(&script)[3].0.offset;
    let end = script.writes.iter().rev().nth(2).unwrap();
    // Tail and gate did not make it.
    let mut damaged = vec![0; RECYCLED.segment_bytes as usize];
    for write in &script.writes[..script.writes.len() - 2] {
        damaged[write.offset as usize..][..write.bytes.len()].copy_from_slice(&write.bytes);
    }
    flip(&mut damaged, lost + 500);
    let (recovered, found) = recover(damaged.clone()).unwrap();
    assert_eq!(found.gaps.durable_blocks, 1);
    assert_eq!(recovered[end.offset as usize..][..end.bytes.len()], end.bytes);
    assert_eq!(messages(&recovered), without(&script, &[3]));
    assert_eq!(found.contents.unwrap().channels[1].ledger.lost, 9);
    expect_same_after_any_cut(&damaged, &recovered);
}

#[test]
fn gaps_are_metadata_for_everybody() {
    let script = script(RECYCLED);
    let mut damaged = image(&script);
    flip(&mut damaged, blocks(&script)[4].0.offset);
    let (recovered, _) = recover(damaged).unwrap();
    let summary = mcap::Summary::read(&recovered).unwrap().unwrap();
    let gaps = mcap::read::metadata(&recovered, &summary.metadata_indexes[2]).unwrap();
    assert_eq!(gaps.name, "steadyio.gaps");
    let number = |key: &str| gaps.metadata[key].parse::<u64>().unwrap();
    assert_eq!([number("blocks"), number("bytes"), number("durable_blocks")], [1, 8_192, 1]);
    // Without reading the blocks, too.
    assert_eq!(examine(&Disk::new(recovered), false).unwrap().gaps.blocks, 1);
}

#[test]
fn blocks_that_were_in_flight_leave_a_gap_that_is_no_damage() {
    let script = script(RECYCLED);
    let blocks = blocks(&script);
    // The last one says that those up to the one before it were durable.
    let mut torn = image(&script);
    let last = blocks.len() - 1;
    flip(&mut torn, blocks[last].0.offset + 1_000);
    let (recovered, found) = recover(torn).unwrap();
    assert_eq!((found.gaps, messages(&recovered)), (Gaps::default(), without(&script, &[last])));
    // As if nothing had been durable yet.
    let mut script = Script::begin(RECYCLED, 1, 7);
    for at in 1..4 {
        script.push(Sent::new(0, at, vec![1; 100]));
        script.flush_unsynced();
    }
    let mut torn = image(&script);
    flip(&mut torn, self::blocks(&script)[1].0.offset);
    let (recovered, found) = recover(torn).unwrap();
    assert_eq!(found.gaps, Gaps { blocks: 1, bytes: 4_096, durable_blocks: 0 });
    assert_eq!(messages(&recovered), without(&script, &[1]));
}

#[test]
fn a_finished_segment_with_damaged_blocks_is_told_and_left() {
    let mut script = script(RECYCLED);
    script.finish();
    for at in [HEAD_BYTES as u64 + 200, blocks(&script)[2].0.offset + 100] {
        let mut damaged = image(&script);
        flip(&mut damaged, at);
        let (left, found) = recover(damaged.clone()).unwrap();
        assert_eq!((found.state, found.damaged), (State::Finished, true));
        assert_eq!(left, damaged);
        let found: u64 = found.contents.unwrap().channels.iter().map(|c| c.messages).sum();
        let lost = if at < 8_192 { 0 } else { 3 };
        assert_eq!(found, 30 - lost);
    }
}

#[test]
fn without_its_end_block_a_finished_segment_has_the_account_of_its_last_block() {
    let mut script = script(RECYCLED);
    script.ledger[1].lost = 9;
    assert!(script.push(Sent::new(1, 31, vec![1; 100])));
    script.finish();
    let end = script.writes.iter().rev().nth(2).unwrap().offset;
    let mut damaged = image(&script);
    flip(&mut damaged, end + 100);
    let Ok(Found::Messages(found)) = read(&Disk::new(damaged)) else { panic!("no messages") };
    assert_eq!((found.ledger[1].lost, found.evidence.present), (9, 31));
    assert_eq!((found.gaps.blocks, found.gaps.durable_blocks), (1, 1));
}

#[test]
fn a_finished_segment_without_added_definitions_has_those_of_its_summary() {
    let mut script = script_with_a_late_channel(RECYCLED);
    script.finish();
    let [first, second, _] = added(&script);
    let mut damaged = image(&script);
    flip(&mut damaged, first + 80);
    flip(&mut damaged, second + 80);
    let found = examine(&Disk::new(damaged), true).unwrap();
    assert_eq!((found.damaged, found.gaps.blocks, found.messages()), (true, 2, 60));
}

/// A file of which a block lands while it is read.
struct Landing {
    before: Disk,
    after: Disk,
    looks: Cell<u32>,
}

impl Storage for Landing {
    fn bytes(&self) -> io::Result<u64> {
        self.before.bytes()
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.looks.set(self.looks.get() + u32::from(offset == 0));
        if self.looks.get() < 6 { &self.before } else { &self.after }.read(offset, buffer)
    }
}

#[test]
fn a_block_that_is_on_its_way_is_no_gap_for_a_reader() {
    let mut script = Script::begin(RECYCLED, 2, 7);
    for at in 0..12_u32 {
        assert!(script.push(Sent::new((at % 2) as u16, at + 1, vec![at as u8; 100])));
        if at % 3 == 2 {
            script.flush_unsynced();
        }
    }
    let whole = image(&script);
    let (write, _) = blocks(&script)[1];
    let mut missing = whole.clone();
    missing[write.offset as usize..][..write.bytes.len()].fill(0);
    let (before, after) = (Disk::new(missing), Disk::new(whole));
    let landing = Landing { before, after, looks: Cell::new(0) };
    let Ok(Found::Messages(found)) = read(&landing) else { panic!("no messages") };
    assert_eq!((found.gaps, found.evidence.present), (Gaps::default(), 12));
    // One that does not land is a gap.
    let Ok(Found::Messages(found)) = read(&landing.before) else { panic!("no messages") };
    assert_eq!((found.gaps.blocks, found.evidence.present), (1, 9));
}

/// Where something is changed, and how.
#[derive(Debug, Clone)]
enum Damage {
    Bit(prop::sample::Index, u8),
    /// Blocks of a disk, by what.
    Overwrite(prop::sample::Index, usize, u8),
    /// A block of the file to another place.
    Move(prop::sample::Index, prop::sample::Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        4 => (at(), 0..8u8).prop_map(|(at, bit)| Damage::Bit(at, bit)),
        2 => (at(), 1..9usize, any::<u8>())
            .prop_map(|(at, blocks, by)| Damage::Overwrite(at, blocks, by)),
        1 => (at(), at()).prop_map(|(from, to)| Damage::Move(from, to)),
    ]
}

fn apply(image: &mut [u8], damage: &Damage) {
    match damage {
        Damage::Bit(at, bit) => {
            let at = at.index(image.len());
            image[at] ^= 1 << bit;
        }
        Damage::Overwrite(at, blocks, by) => {
            let start = at.index(image.len() / 512) * 512;
            let end = image.len().min(start + blocks * 512);
            image[start..end].fill(*by);
        }
        Damage::Move(from, to) => {
            let blocks = image.len() / 4_096;
            let (from, to) = (from.index(blocks) * 4_096, to.index(blocks) * 4_096);
            image.copy_within(from..from + 4_096, to);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_damage_costs_the_blocks_that_it_hits_and_nothing_else(
        messages_bytes in prop::collection::vec((0..3u16, 0..2_600usize, any::<bool>()), 1..70),
        ends: bool,
        growing: bool,
        damages in prop::collection::vec(damage(), 1..6),
    ) {
        let mut script = Script::begin(if growing { GROWING } else { RECYCLED }, 3, 7);
        for (number, (channel, bytes, flush)) in (1..).zip(messages_bytes) {
            if !script.push(Sent::new(channel, number, vec![number as u8; bytes])) {
                break;
            }
            if flush {
                script.flush();
            }
        }
        script.flush();
        if ends {
            script.finish();
        }
        let whole = image(&script);
        let mut damaged = whole.clone();
        damages.iter().for_each(|damage| apply(&mut damaged, damage));
        let is_whole = |offset: u64, bytes: usize| {
            let place = offset as usize..offset as usize + bytes;
            whole[place.clone()] == damaged[place]
        };
        let kept: Vec<Sent> = blocks(&script)
            .iter()
            .filter(|(write, _)| is_whole(write.offset, write.bytes.len()))
            .flat_map(|(_, messages)| messages.to_vec())
            .collect();
        let definitions_bytes = script.encoder.layout().definitions_bytes();
        let defined = is_whole(HEAD_BYTES as u64, definitions_bytes);
        let copied = !ends && !growing && is_whole(
            RECYCLED.segment_bytes - definitions_bytes as u64, definitions_bytes,
        );
        let Ok((recovered, found)) = recover(damaged.clone()) else {
            prop_assert!(!defined && !copied, "somebody could still say what it is");
            return Ok(());
        };
        if !defined && !copied && found.state != State::Finished {
            prop_assert!(kept.is_empty() || found.state == State::Damaged, "{:?}", found.state);
            prop_assert_eq!(recovered, damaged);
            return Ok(());
        }
        if found.state == State::Blank {
            prop_assert!(kept.is_empty());
            return Ok(());
        }
        if found.state == State::Unfinished {
            prop_assert!(ends && found.damaged, "only what had an end is left without one");
            prop_assert_eq!(&recovered, &damaged);
        } else {
            prop_assert_eq!(found.state, State::Finished);
        }
        let channels = found.contents.iter().flat_map(|contents| &contents.channels);
        let counted: u64 = channels.map(|channel| channel.messages).sum();
        prop_assert_eq!(counted, kept.len() as u64);
        if !found.damaged {
            prop_assert_eq!(messages(&recovered), kept);
        }
    }
}
