// SPDX-License-Identifier: MIT OR Apache-2.0
//! A digest of each channel's messages, to compare the surviving messages with those that were
//! sent. The recovery computes it.

use crc32fast::Hasher;

/// The digest of one channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelDigest {
    pub messages: u64,
    /// The size of all payloads.
    pub payload_bytes: u64,
    /// The sequence number of the first message.
    pub sequence_first: u32,
    /// The sequence number of the last message.
    pub sequence_last: u32,
    /// How often a message's sequence number was not one more than that of the previous message.
    pub sequence_gaps: u64,
    /// The checksum of all payloads, in the order of the file.
    pub payload_crc32: u32,
}

/// A digest in progress.
#[derive(Debug, Clone, Default)]
pub(super) struct Digesting {
    messages: u64,
    sequence_first: u32,
    sequence_last: u32,
    sequence_gaps: u64,
    payload_bytes: u64,
    payload_crc: Hasher,
}

impl Digesting {
    pub(super) fn add(&mut self, sequence: u32, payload: &[u8]) {
        match self.messages {
            0 => self.sequence_first = sequence,
            _ if sequence == self.sequence_last.wrapping_add(1) => {}
            _ => self.sequence_gaps += 1,
        }
        self.messages += 1;
        self.sequence_last = sequence;
        self.payload_bytes += payload.len() as u64;
        self.payload_crc.update(payload);
    }

    pub(super) fn digest(&self) -> ChannelDigest {
        ChannelDigest {
            messages: self.messages,
            payload_bytes: self.payload_bytes,
            sequence_first: self.sequence_first,
            sequence_last: self.sequence_last,
            sequence_gaps: self.sequence_gaps,
            payload_crc32: self.payload_crc.clone().finalize(),
        }
    }
}
