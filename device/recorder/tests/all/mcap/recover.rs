// SPDX-License-Identifier: MIT OR Apache-2.0
//! The contents of a segment after a power cut at any point, and after a second one.

use steadyio_recorder::mcap::layout::{HEAD_BYTES, LayoutConfig, Placement};
use steadyio_recorder::mcap::recover::State;

use super::segment::disk::{SECTOR_BYTES, recover, recover_and_cut};
use super::segment::doctor;
use super::segment::{GROWING, RECYCLED, Script, Sent, apply, read_indexed, read_linear};

const SMALL: LayoutConfig =
    LayoutConfig { segment_bytes: 64 << 10, block_bytes_max: 8 << 10, ..RECYCLED };

/// A life that fills its file; the same blocks in the same places for each sequence number, so
/// that the former life's blocks lie exactly where this one's will be.
fn life(config: LayoutConfig, sequence: u64) -> Script {
    let mut script = Script::begin(config, 2, sequence);
    for at in 0..u32::MAX {
        let payload = vec![sequence as u8; 100 + (at as usize * 331) % 2_500];
        if !script.push(Sent::new((at % 2) as u16, at + 1, payload)) {
            break;
        }
        if at % 3 == 2 {
            script.flush();
        }
    }
    script.finish();
    script
}

/// The file as the first writes and a part of the next one leave it.
fn cut(base: &[u8], script: &Script, writes: usize, bytes: usize) -> Vec<u8> {
    let mut image = base.to_vec();
    for write in &script.writes[..writes] {
        apply(&mut image, write, write.bytes.len());
    }
    if let Some(write) = script.writes.get(writes) {
        apply(&mut image, write, bytes);
    }
    image
}

fn durable(script: &Script, writes: usize) -> usize {
    script.writes[..writes].last().map_or(0, |write| write.durable)
}

/// All messages, found in both ways.
fn messages(image: &[u8]) -> Vec<Sent> {
    doctor::examine(image);
    let linear = read_linear(image).unwrap();
    assert_eq!(read_indexed(image).unwrap(), linear);
    linear
}

/// Recovers and checks everything that must hold for a life over a former one.
fn check(image: Vec<u8>, script: &Script, former: &[Sent], durable: usize) {
    let incomplete = image.clone();
    let (image, found) = recover(image).unwrap();
    if found.state == State::Blank {
        assert_eq!(durable, 0, "blank, but messages were reported durable");
        assert_eq!(image, incomplete, "a blank segment is not touched");
        return;
    }
    assert_eq!((found.state, found.damaged), (State::Finished, false));
    let messages = messages(&image);
    match found.identity().unwrap().sequence {
        1 => assert_eq!((&messages[..], durable), (former, 0), "the former life, all of it"),
        _ => {
            assert!(messages.len() >= durable, "{} of {durable} durable", messages.len());
            assert_eq!(messages, script.sent[..messages.len()], "a prefix of the sent messages");
        }
    }
    let counted: u64 = found.contents.unwrap().channels.iter().map(|c| c.messages).sum();
    assert_eq!(counted, messages.len() as u64);
    let (again, _) = recover(image.clone()).unwrap();
    assert_eq!(again, image, "nothing is left to do");
}

/// A finished segment with room left, and another recording that continues it.
fn continued() -> (Vec<u8>, Script) {
    let mut first = Script::begin(RECYCLED, 2, 1);
    for at in 0..20_u32 {
        assert!(first.push(Sent::new((at % 2) as u16, at + 1, vec![1; 100 + at as usize * 37])));
        if at % 3 == 2 {
            first.flush();
        }
    }
    first.finish();
    let mut image = first.image(Vec::new());
    image.resize(RECYCLED.segment_bytes as usize, 0);
    let mut script = first.resume(&image);
    for at in 20..50_u32 {
        assert!(script.push(Sent::new((at % 2) as u16, at + 1, vec![2; 100 + at as usize * 37])));
        if at % 3 == 2 {
            script.flush();
        }
    }
    script.finish();
    (image, script)
}

#[test]
fn cuts_in_any_sector_of_any_write_that_continues_a_segment_lose_nothing_durable() {
    let (base, script) = continued();
    assert_eq!(messages(&script.image(base.clone())), script.sent);
    for writes in 0..=script.writes.len() {
        let next = script.writes.get(writes).map_or(1, |write| write.bytes.len());
        for bytes in (0..next).step_by(SECTOR_BYTES) {
            let image = cut(&base, &script, writes, bytes);
            let durable = durable(&script, writes).max(20);
            let (image, found) = recover(image).unwrap();
            assert_eq!((found.state, found.damaged), (State::Finished, false));
            let messages = messages(&image);
            assert!(messages.len() >= durable, "{} of {durable} durable", messages.len());
            assert_eq!(messages, script.sent[..messages.len()]);
            let (again, _) = recover(image.clone()).unwrap();
            assert_eq!(again, image, "nothing is left to do");
        }
    }
}

#[test]
fn cuts_in_any_sector_of_any_write_over_a_former_life_lose_nothing_durable() {
    let former = life(SMALL, 1);
    let base = former.image(Vec::new());
    let script = life(SMALL, 2);
    for writes in 0..=script.writes.len() {
        let next = script.writes.get(writes).map_or(1, |write| write.bytes.len());
        for bytes in (0..next).step_by(SECTOR_BYTES) {
            let image = cut(&base, &script, writes, bytes);
            check(image, &script, &former.sent, durable(&script, writes));
        }
    }
}

#[test]
fn sectors_of_a_torn_write_may_arrive_in_any_order() {
    let former = life(SMALL, 1);
    let base = former.image(Vec::new());
    let script = life(SMALL, 2);
    for (writes, write) in script.writes.iter().enumerate() {
        for lost in (0..write.bytes.len()).step_by(SECTOR_BYTES) {
            let mut image = cut(&base, &script, writes + 1, 0);
            let at = write.offset as usize + lost;
            let before = cut(&base, &script, writes, 0);
            image[at..at + SECTOR_BYTES].copy_from_slice(&before[at..at + SECTOR_BYTES]);
            check(image, &script, &former.sent, durable(&script, writes));
        }
    }
}

#[test]
fn a_first_head_that_is_torn_is_an_unused_or_a_blank_segment() {
    let script = life(SMALL, 1);
    let head = script.writes.iter().find(|write| write.offset == 0).unwrap();
    assert_eq!(head.bytes.len(), HEAD_BYTES);
    for arrived in 0..1_usize << (HEAD_BYTES / SECTOR_BYTES) {
        let mut image = vec![0; SMALL.segment_bytes as usize];
        for sector in (0..HEAD_BYTES / SECTOR_BYTES).filter(|sector| arrived >> sector & 1 == 1) {
            let bytes = sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES;
            image[bytes.clone()].copy_from_slice(&head.bytes[bytes]);
        }
        let (left, found) = recover(image.clone()).unwrap();
        let expected = if arrived & 1 == 1 { State::Blank } else { State::Unused };
        assert_eq!((left, found.state), (image, expected), "sectors {arrived:#b} arrived");
    }
}

#[test]
fn a_head_that_is_there_before_the_old_footer_is_gone_hides_the_old_messages() {
    let base = life(SMALL, 1).image(Vec::new());
    let script = life(SMALL, 2);
    let mut image = base;
    apply(&mut image, &script.writes[1], HEAD_BYTES);
    assert!(read_linear(&image).is_err(), "the gate is closed");
    let (recovered, found) = recover(image.clone()).unwrap();
    assert_eq!(found.state, State::Blank);
    assert_eq!(recovered, image);
}

#[test]
fn readers_see_nothing_of_a_segment_that_is_not_finished() {
    let base = life(SMALL, 1).image(Vec::new());
    let script = life(SMALL, 2);
    // From the first block of the new life up to before the gate opens.
    for writes in 2..script.writes.len() {
        let image = cut(&base, &script, writes, 0);
        assert!(read_linear(&image).is_err(), "{writes} writes");
        let sealed = writes == script.writes.len() - 1;
        assert_eq!(mcap::Summary::read(&image).is_ok(), sealed, "{writes} writes");
    }
}

#[test]
fn a_second_cut_at_any_sector_during_recovery_is_harmless() {
    let base = life(SMALL, 1).image(Vec::new());
    let script = life(SMALL, 2);
    let writes = script.writes.len() / 2;
    let image = cut(&base, &script, writes, 1_024);
    let (expected, _) = recover(image.clone()).unwrap();
    let mut cuts = 0;
    for power in (0..).step_by(SECTOR_BYTES) {
        let Some(cut) = recover_and_cut(image.clone(), power) else { break };
        assert_eq!(recover(cut).unwrap().0, expected, "cut after {power} bytes");
        cuts += 1;
    }
    assert!(cuts >= 24, "end block, tail and head: {cuts}");
}

#[test]
fn growing_files_cut_at_any_byte_keep_all_whole_blocks() {
    let script = life(LayoutConfig { placement: Placement::Growing, ..SMALL }, 2);
    let whole = script.image(Vec::new());
    for bytes in (0..whole.len()).step_by(97) {
        let image = whole[..bytes].to_vec();
        let complete =
            script.writes.iter().filter(|w| w.offset as usize + w.bytes.len() <= bytes).count();
        if complete < 2 {
            continue;
        }
        let (image, found) = recover(image).unwrap();
        assert_eq!((found.state, found.damaged), (State::Finished, false));
        assert_eq!(messages(&image), script.sent[..durable(&script, complete)]);
    }
}

#[test]
fn a_second_cut_of_a_growing_file_is_harmless() {
    let script = life(GROWING, 2);
    let whole = script.image(Vec::new());
    let image = whole[..whole.len() / 2].to_vec();
    let (expected, _) = recover(image.clone()).unwrap();
    for power in (0..).step_by(211) {
        let Some(cut) = recover_and_cut(image.clone(), power) else { break };
        assert_eq!(recover(cut).unwrap().0, expected, "cut after {power} bytes");
    }
}

#[test]
fn a_lost_head_is_made_again_from_the_definitions() {
    let script = life(SMALL, 2);
    for writes in [script.writes.len() / 2, script.writes.len()] {
        let mut image = cut(&[], &script, writes, 0);
        image.resize(SMALL.segment_bytes as usize, 0);
        image[..4_096].fill(0xff);
        let (image, found) = recover(image).unwrap();
        assert_eq!(found.state, State::Finished);
        assert!(messages(&image).len() >= durable(&script, writes));
    }
}

#[test]
fn losses_before_the_cut_are_in_the_ledger() {
    let mut script = Script::begin(SMALL, 2, 1);
    script.push(Sent::new(0, 1, vec![1; 10]));
    script.flush();
    script.ledger[1].lost = 5;
    script.push(Sent::new(0, 2, vec![1; 10]));
    script.flush();
    let mut image = cut(&[], &script, script.writes.len(), 0);
    image.resize(SMALL.segment_bytes as usize, 0);
    let (image, found) = recover(image).unwrap();
    let contents = found.contents.unwrap();
    assert_eq!(contents.channels[1].ledger.lost, 5);
    let summary = mcap::Summary::read(&image).unwrap().unwrap();
    let ledger = mcap::read::metadata(&image, &summary.metadata_indexes[1]).unwrap();
    assert_eq!(ledger.metadata["completed_by"], "recovery");
    assert_eq!(ledger.metadata["1.lost"], "5");
}

#[test]
fn digests_tell_what_survived() {
    let script = life(SMALL, 2);
    let (_, found) = recover(script.image(Vec::new())).unwrap();
    for channel in found.contents.unwrap().channels {
        let sent: Vec<&Sent> = script.sent.iter().filter(|s| s.channel == channel.id).collect();
        let payloads: Vec<u8> = sent.iter().flat_map(|s| s.payload.clone()).collect();
        let digest = channel.digest.unwrap();
        assert_eq!(digest.messages, sent.len() as u64);
        assert_eq!(digest.payload_bytes, payloads.len() as u64);
        assert_eq!(digest.payload_crc32, crc32fast::hash(&payloads));
        let sequences = (digest.sequence_first, digest.sequence_last);
        assert_eq!(sequences, (sent[0].sequence, sent.last().unwrap().sequence));
        assert_eq!(digest.sequence_gaps, sent.len() as u64 - 1, "every other number");
    }
}
