// SPDX-License-Identifier: MIT OR Apache-2.0
//! Latched topics: the stage repeats the last message of each at the beginning of every new
//! segment.
//!
//! A pool that has wrapped, or a single segment of it, can therefore be replayed. Only the writer
//! thread keeps a copy, so an append costs the same as for other topics.

use super::state::{Stage, Stop};
use crate::mcap::encoder::{FileRange, Full, Message};
use crate::pool::latch::Latch;

impl Stage {
    /// Repeats all latched messages before the first message of a segment, with its log time.
    pub(super) fn repeat_latched(&mut self, log_time_ns: u64) -> Result<(), Stop> {
        self.repeats_due = false;
        for channel in 0..self.parts.latches.len() {
            self.repeat(channel, log_time_ns)?;
        }
        self.flush_repeated()
    }

    fn repeat(&mut self, channel: usize, log_time_ns: u64) -> Result<(), Stop> {
        loop {
            let Latch::Holds(held) = &self.parts.latches[channel] else { return Ok(()) };
            let message = Message {
                // At most 10,000 channels; the configuration was checked.
                channel: channel as u16,
                sequence: held.sequence,
                log_time_ns,
                publish_time_ns: held.publish_time_ns,
                payload: [&held.payload, &[]],
            };
            let pushed = self.parts.encoder.push(self.parts.disk.buffer(self.slot), &message);
            match pushed {
                Ok(()) => return Ok(()),
                Err(Full::Block) => self.flush_repeated()?,
                // All together take at most a quarter of a segment; the configuration was checked.
                Err(error) => {
                    self.parts.meters.set_trouble(format!("a latched message: {error}"));
                    return Ok(());
                }
            }
        }
    }

    fn flush_repeated(&mut self) -> Result<(), Stop> {
        self.snapshot();
        let buffer = self.parts.disk.buffer(self.slot);
        let place: Option<FileRange> = self.parts.encoder.flush_repeated(buffer, &self.accounts);
        let Some(place) = place else { return Ok(()) };
        self.send(place)?;
        self.take_free_slot()
    }
}
