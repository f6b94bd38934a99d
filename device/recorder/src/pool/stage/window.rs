// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records that come from the memory of [`crate::pool::ram`], window by window.
//!
//! Each window begins a segment, so latched messages precede its records, and ends one. Between two
//! windows no segment is in use.

use super::state::{Stage, Stop};
use crate::mcap::encoder::Message;
use crate::pool::ram::Destination;
use crate::ring::Header;
use crate::source::now_ns;

impl Destination for Stage {
    type Error = Stop;

    fn write(&mut self, header: Header, payload: [&[u8]; 2], begun_ns: u64) -> Result<(), Stop> {
        self.begun_ns = Some(begun_ns);
        // The loss window begins when a record leaves the memory.
        self.push(usize::from(header.channel), header, payload, now_ns())
    }

    fn pass_over(&mut self, header: Header, payload: [&[u8]; 2]) {
        let message = Message {
            channel: header.channel,
            sequence: header.sequence,
            log_time_ns: header.log_time_ns,
            publish_time_ns: header.publish_time_ns,
            payload,
        };
        self.parts.latches[usize::from(header.channel)].note(&message);
    }
}

impl Stage {
    /// Ends the segment in use, if any. Its records are durable afterwards.
    pub fn end_window(&mut self) -> Result<(), Stop> {
        if self.file.is_some() { self.end_segment() } else { Ok(()) }
    }
}
