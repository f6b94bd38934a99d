// SPDX-License-Identifier: MIT OR Apache-2.0
//! Once it is made, the encoder allocates nothing: not in a block, not when a segment ends, not in
//! the next one. Alone in its program: its allocator counts.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

#[allow(dead_code, reason = "a part of it is needed here")]
#[path = "all/mcap/segment/mod.rs"]
mod segment;

use steadyio_recorder::mcap::account::{ChannelLedger, CompletedBy};
use steadyio_recorder::mcap::encoder::{Encoder, Full, Message};
use steadyio_recorder::mcap::layout::Layout;
use steadyio_testing::CountingAllocator;

use segment::{RECYCLED, definitions, identity};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const CHANNELS: u16 = 3;

/// A whole segment of the smallest and other messages; returns how many blocks it took.
fn record_segment(encoder: &mut Encoder, buffer: &mut [u8], sequence: u64) -> u64 {
    let mut ledger = [ChannelLedger::default(); CHANNELS as usize];
    let _ = encoder.definitions_copy(buffer, identity(sequence), 1);
    let _ = encoder.head(buffer, identity(sequence), 1);
    encoder.begin(identity(sequence), 1);
    let _ = encoder.definitions(buffer, &ledger);
    let payload = [7; 900];
    let mut blocks = 0;
    for number in 0.. {
        let bytes = (number as usize * 150) % 900;
        let message = Message {
            channel: (number % u32::from(CHANNELS)) as u16,
            sequence: number,
            log_time_ns: number.into(),
            publish_time_ns: number.into(),
            payload: [&payload[..bytes], &[]],
        };
        loop {
            match encoder.push(buffer, &message) {
                Ok(()) => break,
                Err(Full::Block) => {
                    ledger[0].lost += blocks % 2;
                    let _ = encoder.flush(buffer, &ledger);
                    blocks += 1;
                }
                Err(_) => {
                    let _ = encoder.end_block(buffer, &ledger, CompletedBy::Recorder);
                    let _ = encoder.tail(buffer);
                    let _ = encoder.open_gate(buffer);
                    return blocks;
                }
            }
        }
    }
    0
}

#[test]
fn the_encoder_allocates_only_when_it_is_made() {
    let definitions = definitions(CHANNELS.into());
    let layout = Layout::new(RECYCLED, &definitions).unwrap();
    let mut buffer = vec![0; layout.buffer_bytes()];
    let before = CountingAllocator::calls();
    let mut encoder = Encoder::new(layout, definitions);
    let made = CountingAllocator::calls();
    assert!(made > before, "the count works");
    for sequence in 1..4 {
        assert!(record_segment(&mut encoder, &mut buffer, sequence) > 8);
    }
    assert_eq!(CountingAllocator::calls() - made, 0, "allocations in three segments");
}
