// SPDX-License-Identifier: MIT OR Apache-2.0
//! The last message of a latched channel, which each new segment repeats. `registry` and the stage
//! use it.

use crate::mcap::encoder::Message;

/// The last message of a latched channel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Held {
    pub sequence: u32,
    pub publish_time_ns: u64,
    pub payload: Vec<u8>,
}

/// The state of a channel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Latch {
    /// The channel is not latched.
    #[default]
    Off,
    /// The channel is latched, and has no message yet.
    Empty,
    Holds(Held),
}

impl Latch {
    /// Keeps a copy of a message.
    pub fn note(&mut self, message: &Message<'_>) {
        if matches!(self, Latch::Off) {
            return;
        }
        // The memory of the previous message is reused.
        let mut held = match std::mem::take(self) {
            Latch::Holds(held) => held,
            Latch::Off | Latch::Empty => Held::default(),
        };
        held.sequence = message.sequence;
        held.publish_time_ns = message.publish_time_ns;
        held.payload.clear();
        message.payload.iter().for_each(|part| held.payload.extend_from_slice(part));
        *self = Latch::Holds(held);
    }
}
