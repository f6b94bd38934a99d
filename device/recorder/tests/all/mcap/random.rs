// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random recordings, random damage, and bytes that nobody wrote.

use proptest::prelude::*;
use steadyio_recorder::mcap::layout::LayoutConfig;
use steadyio_recorder::mcap::private::{BLOCK_RECORD_BYTES, BlockKind, BlockRecord, Life};
use steadyio_recorder::mcap::recover::{State, examine};
use steadyio_recorder::mcap::scan::Scanner;
use steadyio_recorder::mcap::wire::Put;

use super::segment::disk::{Disk, recover, recover_and_tear, tear};
use super::segment::doctor;
use super::segment::{
    GROWING, LATE_CHANNELS, RECYCLED, Script, Sent, apply, read_indexed, read_linear,
};

/// What an application and a writer thread may do.
#[derive(Debug, Clone)]
enum Act {
    Message {
        channel: u16,
        bytes: usize,
        fill: u8,
    },
    Flush,
    Lose {
        channel: u16,
    },
    /// A further one, of those that there is room for.
    AddChannel,
}

const CHANNELS: u16 = 3;

fn act() -> impl Strategy<Value = Act> {
    // Modulo those that there are.
    let channel = 0..CHANNELS + LATE_CHANNELS as u16;
    // Small ones, and those around the size of a block and of a sector in it.
    let bytes = prop_oneof![0..200usize, 3_500..4_200usize, 7_500..8_400usize];
    prop_oneof![
        8 => (channel.clone(), bytes, any::<u8>())
            .prop_map(|(channel, bytes, fill)| Act::Message { channel, bytes, fill }),
        2 => Just(Act::Flush),
        1 => channel.prop_map(|channel| Act::Lose { channel }),
        1 => Just(Act::AddChannel),
    ]
}

fn script(config: LayoutConfig, sequence: u64, acts: &[Act]) -> Script {
    let mut script = Script::begin(config, CHANNELS.into(), sequence);
    let bytes_max = script.encoder.largest_layout().payload_bytes_max();
    for (act, number) in acts.iter().zip(1..) {
        let channels = script.ledger.len();
        match act {
            Act::Message { channel, bytes, fill } => {
                let payload = vec![*fill; (*bytes).min(bytes_max)];
                let channel = channel % channels as u16;
                if !script.push(Sent::new(channel, number, payload)) {
                    break;
                }
            }
            Act::Flush => script.flush(),
            Act::Lose { channel } => script.ledger[*channel as usize % channels].lost += 1,
            Act::AddChannel if channels == usize::from(CHANNELS) + LATE_CHANNELS => {}
            Act::AddChannel => {
                if script.add_channel().is_none() {
                    break;
                }
            }
        }
    }
    script.finish();
    script
}

/// Reads a recovered file in both ways.
fn messages(image: &[u8]) -> Vec<Sent> {
    doctor::examine(image);
    let linear = read_linear(image).unwrap();
    assert_eq!(read_indexed(image).unwrap(), linear);
    linear
}

fn is_prefix(found: &[Sent], sent: &[Sent]) -> bool {
    sent.starts_with(found)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]

    #[test]
    fn what_was_written_is_read(
        acts in prop::collection::vec(act(), 0..80),
        (growing, compressed) in any::<(bool, bool)>(),
        sequence in 1..3u64,
    ) {
        let config = if growing { GROWING } else { RECYCLED };
        let config = if compressed { config.compressed() } else { config };
        let script = script(config, sequence, &acts);
        prop_assert_eq!(messages(&script.image(Vec::new())), &script.sent[..]);
    }

    #[test]
    fn a_cut_leaves_a_prefix_with_all_that_was_durable(
        former in prop::collection::vec(act(), 0..60),
        acts in prop::collection::vec(act(), 0..60),
        (at, torn, power) in (any::<prop::sample::Index>(), any::<u64>(), 0..20_000usize),
        compressed: bool,
    ) {
        let former = script(RECYCLED, 1, &former);
        let config = if compressed { RECYCLED.compressed() } else { RECYCLED };
        let script = script(config, 2, &acts);
        let mut image = former.image(Vec::new());
        let writes = 3 + at.index(script.writes.len() - 2);
        script.writes[..writes].iter().for_each(|w| apply(&mut image, w, w.bytes.len()));
        if let Some(next) = script.writes.get(writes) {
            let place = next.offset as usize..next.offset as usize + next.bytes.len();
            let before = image[place.clone()].to_vec();
            apply(&mut image, next, next.bytes.len());
            tear(&mut image, place.start, &before, torn);
        }
        // A second cut; then again.
        let image = recover_and_tear(image.clone(), power, torn).unwrap_or(image);
        let (image, found) = recover(image).unwrap();
        prop_assert_eq!((found.state, found.damaged), (State::Finished, false));
        let messages = messages(&image);
        prop_assert!(messages.len() >= script.writes[writes - 1].durable);
        prop_assert!(is_prefix(&messages, &script.sent));
    }

    #[test]
    fn any_bytes_are_examined_without_panic(
        mut image in prop::collection::vec(any::<u8>(), 0..20_000),
        head_bytes in 0..9_000usize,
    ) {
        let whole = script(RECYCLED, 2, &[]).image(Vec::new());
        let head_bytes = head_bytes.min(image.len());
        image[..head_bytes].copy_from_slice(&whole[..head_bytes]);
        let disk = Disk::new(image.clone());
        let _ = examine(&disk, true);
        let mut disk = Disk::new(image);
        if let Ok(found) = examine(&disk, false) {
            found.complete(&mut disk).unwrap();
        }
    }

    #[test]
    fn blocks_with_right_checksums_and_any_content_do_no_harm(
        bodies in prop::collection::vec(
            (0..5u32, prop::collection::vec(record(), 0..12)), 1..6
        ),
    ) {
        let whole = script(RECYCLED, 2, &[]).image(Vec::new());
        let life = Life::get(&whole[4_096 + BLOCK_RECORD_BYTES..]).unwrap();
        let mut scanner = Scanner::new(life);
        let bytes = scanner.block_bytes(4_096, &whole[4_096..]).unwrap();
        scanner.accept(4_096, &whole[4_096..][..bytes]).unwrap();
        let mut number = 1;
        for (kind, records) in bodies {
            let offset = scanner.offset();
            let block = forged(&life, offset, number, kind, &records.concat());
            if scanner.accept(offset, &block).is_ok() {
                number += 1;
            }
        }
        let _ = scanner.finish();
    }
}

/// A record of an opcode that means something, with a length that may be a lie.
fn record() -> impl Strategy<Value = Vec<u8>> {
    let opcode = prop_oneof![1..0x10u8, 0xe0..0xe7u8];
    let content = prop::collection::vec(prop_oneof![Just(0u8), Just(1), any::<u8>()], 0..120);
    let lie = prop_oneof![6 => Just(0u64), 1 => 0..40u64, 1 => any::<u64>()];
    (opcode, content, lie).prop_map(|(opcode, content, lie)| {
        let mut record = vec![opcode];
        record.extend((content.len() as u64).wrapping_add(lie).to_le_bytes());
        record.extend(content);
        record
    })
}

fn forged(life: &Life, offset: u64, number: u32, kind: u32, body: &[u8]) -> Vec<u8> {
    let mut block = vec![0; (BLOCK_RECORD_BYTES + body.len()).next_multiple_of(4_096)];
    block[BLOCK_RECORD_BYTES..][..body.len()].copy_from_slice(body);
    let record = BlockRecord {
        identity: life.identity,
        offset,
        block_bytes: block.len() as u32,
        number,
        kind: match kind {
            0 => BlockKind::Definitions,
            1 => BlockKind::End,
            2 => BlockKind::Added,
            _ => BlockKind::Data,
        },
        durable: 0,
        body_crc: crc32fast::hash(&block[BLOCK_RECORD_BYTES..]),
    };
    record.put(&mut Put::new(&mut block));
    block
}
