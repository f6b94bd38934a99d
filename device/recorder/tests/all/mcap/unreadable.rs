// SPDX-License-Identifier: MIT OR Apache-2.0
//! Segments on a device that cannot read some of their sectors: what lies around them is read, they
//! are counted, and the file is left as it is.

use steadyio_recorder::mcap::layout::HEAD_BYTES;
use steadyio_recorder::mcap::reading::{Found, messages, read, read_block};
use steadyio_recorder::mcap::recover::{Examined, RecoverError, State, examine};
use steadyio_recorder::mcap::sectors::Unreadable;

use super::damage::{blocks, image, script, without};
use super::segment::disk::{Disk, unreadable};
use super::segment::{GROWING, RECYCLED, Script, Sent};

const BLOCK_BYTES: u64 = 4_096;

/// Sequence numbers of the messages that a reader gets, by channel, and the lengths of payloads.
fn read_all(disk: &Disk) -> Vec<(usize, u32, usize)> {
    let Found::Messages(found) = read(disk).unwrap() else { panic!("no messages") };
    let mut sequences = Vec::new();
    for span in &found.blocks {
        let block = read_block(disk, &found.life, span).unwrap().unwrap();
        let messages = messages(&block, &found.definitions).unwrap();
        sequences.extend(messages.map(|message| {
            let payload = &block[message.payload];
            // The fill of each message is its number.
            assert!(payload.iter().all(|byte| u32::from(*byte) + 1 == message.sequence));
            (message.slot, message.sequence, payload.len())
        }));
    }
    sequences
}

fn expected(script: &Script, lost: &[usize]) -> Vec<(usize, u32, usize)> {
    let left = without(script, lost);
    let found = |sent: &Sent| (usize::from(sent.channel), sent.sequence, sent.payload.len());
    left.iter().map(found).collect()
}

/// Examined and asked to be completed, which changes nothing.
fn left_as_it_is(disk: &mut Disk) -> Examined {
    examine(disk, false).unwrap().complete(disk).unwrap();
    assert_eq!(disk.writes, []);
    examine(disk, false).unwrap()
}

#[test]
fn blocks_around_an_unreadable_one_are_there_and_nothing_is_written() {
    for config in [RECYCLED, GROWING, RECYCLED.compressed()] {
        let script = script(config);
        let blocks = blocks(&script);
        for (lost, (write, _)) in blocks.iter().enumerate().take(blocks.len() - 1) {
            // Some bytes are enough for the block of the device to be unreadable.
            let (start, end) = (write.offset, write.offset + write.bytes.len() as u64);
            let mut disk = unreadable(image(&script), start + 10..start + 20);
            let found = left_as_it_is(&mut disk);
            assert_eq!((found.state, found.damaged), (State::Unfinished, true));
            let first = Unreadable { bytes: BLOCK_BYTES, first_offset: start };
            assert_eq!(found.unreadable, Some(first));
            assert_eq!((found.gaps.blocks, found.gaps.bytes), (1, end - start));
            assert_eq!(read_all(&disk), expected(&script, &[lost]));
        }
    }
}

#[test]
fn with_an_unreadable_head_or_tail_all_messages_are_there() {
    let mut script = script(RECYCLED);
    script.finish();
    let file_bytes = RECYCLED.segment_bytes;
    let head = HEAD_BYTES as u64;
    for place in [0..head, head..head + BLOCK_BYTES, file_bytes - BLOCK_BYTES..file_bytes] {
        let mut disk = unreadable(image(&script), place.clone());
        let found = left_as_it_is(&mut disk);
        assert!(found.damaged && found.holds_data(), "{place:?}");
        assert_eq!(read_all(&disk), expected(&script, &[]), "{place:?}");
    }
}

#[test]
fn a_finished_segment_that_is_verified_tells_what_is_unreadable() {
    let mut script = script(RECYCLED);
    script.finish();
    let disk = unreadable(image(&script), blocks(&script)[2].0.offset..u64::MAX / 2);
    assert!(examine(&disk, false).unwrap().damaged, "its tail cannot be read");
    let place = blocks(&script)[2].0.offset;
    let disk = unreadable(image(&script), place..place + 1);
    assert_eq!(examine(&disk, false).unwrap().unreadable, None);
    let found = examine(&disk, true).unwrap();
    assert_eq!((found.damaged, found.messages()), (true, 27));
}

#[test]
fn what_cannot_be_read_is_neither_empty_nor_unused() {
    let begun = image(&Script::begin(RECYCLED, 1, 7));
    assert!(!examine(&Disk::new(begun.clone()), false).unwrap().holds_data());
    assert!(left_as_it_is(&mut unreadable(begun, 32_768..36_864)).holds_data());

    let nothing = vec![0; RECYCLED.segment_bytes as usize];
    assert_eq!(examine(&Disk::new(nothing.clone()), false).unwrap().state, State::Unused);
    let error = examine(&unreadable(nothing, 0..4_096), false).unwrap_err();
    assert!(matches!(error, RecoverError::Unreadable(Unreadable { bytes: 4_096, .. })), "{error}");
    let said = "4096 bytes cannot be read, the first at byte 0, and the rest does not identify";
    assert!(error.to_string().starts_with(said), "{error}");
}
