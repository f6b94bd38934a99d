// SPDX-License-Identifier: MIT OR Apache-2.0
//! The append side of the recorder, for the application's real-time thread: copy the record, count
//! it, return.
//!
//! It makes no system call, takes no lock, and does not allocate, read a clock or wait. The number
//! of instructions depends only on the length of the record. `tests/append_path.rs` counts system
//! calls and allocations.

use std::sync::Arc;

use super::config::{ChannelConfig, bytes_in_memory};
use super::ledger::{Account, Ledger};
use super::ring::{Header, RingReader, RingWriter, ring};
use steadyio_core::memory::MemoryError;

/// The record was rejected, and is counted as lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// The ring is full.
    #[error("the ring is full")]
    RingFull,
    /// The record is longer than the configuration allows.
    #[error("the record is longer than the channel's record_bytes_max")]
    TooLong,
}

/// The caller's end of a channel with its own ring. One channel belongs to one thread.
#[derive(Debug)]
pub struct Channel {
    ring: RingWriter,
    producer: Producer,
}

/// The caller's end of channels that share a ring. It belongs to one thread.
#[derive(Debug)]
pub struct SharedChannels {
    ring: RingWriter,
    producers: Vec<Producer>,
}

/// A channel without its ring.
#[derive(Debug)]
struct Producer {
    ledger: Arc<Ledger>,
    record_bytes_max: usize,
}

/// The writer thread's end of a ring.
#[derive(Debug)]
pub struct Consumer {
    /// The appended records.
    pub ring: RingReader,
    /// The ledgers of its channels, shared with the callers.
    pub ledgers: Vec<Arc<Ledger>>,
    /// The position of its first channel in the recording.
    pub first: usize,
}

/// Makes both ends of a channel at position `at` of the recording. The configuration must have been
/// checked.
pub fn open(
    config: &ChannelConfig,
    at: usize,
    locked: bool,
) -> Result<(Channel, Consumer), MemoryError> {
    let (ring, reader) = ring(bytes_in_memory(config.ring_bytes), locked)?;
    let producer = Producer::new(config);
    let ledgers = vec![Arc::clone(&producer.ledger)];
    Ok((Channel { ring, producer }, Consumer { ring: reader, ledgers, first: at }))
}

/// Makes both ends of all channels of a recording, with one ring.
pub fn open_shared(
    channels: &[ChannelConfig],
    ring_bytes: u64,
    locked: bool,
) -> Result<(SharedChannels, Consumer), MemoryError> {
    let (ring, reader) = ring(bytes_in_memory(ring_bytes), locked)?;
    let producers: Vec<Producer> = channels.iter().map(Producer::new).collect();
    let ledgers = producers.iter().map(|producer| Arc::clone(&producer.ledger)).collect();
    Ok((SharedChannels { ring, producers }, Consumer { ring: reader, ledgers, first: 0 }))
}

/// A further channel of a shared ring; [`SharedChannels::add`] takes it.
#[derive(Debug)]
pub struct LateChannel(Producer);

impl LateChannel {
    /// Also returns the account, which the writer thread shares.
    pub(crate) fn new(config: &ChannelConfig) -> (LateChannel, Arc<Ledger>) {
        let producer = Producer::new(config);
        let ledger = Arc::clone(&producer.ledger);
        (LateChannel(producer), ledger)
    }
}

impl Channel {
    /// Takes a record, or counts it as lost.
    ///
    /// `log_time_ns` is on the caller's clock, and may go back.
    pub fn append(&mut self, log_time_ns: u64, data: &[u8]) -> Result<(), Lost> {
        self.append_published(log_time_ns, log_time_ns, data)
    }

    /// Like [`Channel::append`], for a record with a separate publish time.
    pub fn append_published(
        &mut self,
        log_time_ns: u64,
        publish_time_ns: u64,
        data: &[u8],
    ) -> Result<(), Lost> {
        self.producer.append(&mut self.ring, 0, (log_time_ns, publish_time_ns), data)
    }

    /// The account of this channel's records so far.
    pub fn account(&self) -> Account {
        self.producer.ledger.snapshot()
    }

    /// The number of bytes used in its ring.
    pub fn ring_used(&self) -> usize {
        self.ring.used()
    }
}

impl SharedChannels {
    /// Takes a record of the channel at this position, or counts it as lost.
    pub fn append(&mut self, channel: usize, log_time_ns: u64, data: &[u8]) -> Result<(), Lost> {
        self.append_published(channel, log_time_ns, log_time_ns, data)
    }

    /// Like [`SharedChannels::append`], for a record with a separate publish time.
    pub fn append_published(
        &mut self,
        channel: usize,
        log_time_ns: u64,
        publish_time_ns: u64,
        data: &[u8],
    ) -> Result<(), Lost> {
        let times_ns = (log_time_ns, publish_time_ns);
        // The number of channels fits into 16 bits.
        self.producers[channel].append(&mut self.ring, channel as u16, times_ns, data)
    }

    /// Adds a channel that was declared while recording, and returns its position. This allocates.
    pub fn add(&mut self, late: LateChannel) -> usize {
        self.producers.push(late.0);
        self.producers.len() - 1
    }

    /// The number of bytes used in the ring.
    pub fn ring_used(&self) -> usize {
        self.ring.used()
    }

    /// The size of the ring in bytes.
    pub fn ring_bytes(&self) -> usize {
        self.ring.capacity()
    }
}

impl Producer {
    fn new(config: &ChannelConfig) -> Producer {
        let record_bytes_max = bytes_in_memory(config.record_bytes_max);
        Producer { ledger: Arc::new(Ledger::default()), record_bytes_max }
    }

    fn append(
        &self,
        ring: &mut RingWriter,
        channel: u16,
        (log_time_ns, publish_time_ns): (u64, u64),
        data: &[u8],
    ) -> Result<(), Lost> {
        let bytes = data.len() as u64;
        let number = self.ledger.received(log_time_ns, bytes);
        let lost = match u32::try_from(data.len()) {
            Ok(bytes) if data.len() <= self.record_bytes_max => {
                // MCAP's sequence numbers have 32 bits and wrap.
                let sequence = number as u32;
                let header = Header { log_time_ns, publish_time_ns, sequence, bytes, channel };
                if ring.push(header, data) {
                    return Ok(());
                }
                Lost::RingFull
            }
            _ => Lost::TooLong,
        };
        self.ledger.lost(log_time_ns, bytes);
        Err(lost)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_full_ring_and_a_long_record_are_counted_as_lost() {
        let config = ChannelConfig {
            topic: "a".into(),
            message_encoding: String::new(),
            schema: None,
            metadata: Vec::new(),
            record_bytes_max: 1_000,
            period: None,
            ring_bytes: 4_000,
        };
        let (mut channel, mut consumer) = open(&config, 0, false).unwrap();
        let record = [5; 1_000];
        assert_eq!(channel.append(1, &[0; 1_001]), Err(Lost::TooLong));
        for i in 2..=5 {
            assert_eq!(
                channel.append(i, &record),
                if i < 5 { Ok(()) } else { Err(Lost::RingFull) }
            );
        }
        consumer.ring.next(|header, payload| {
            // The gap in the sequence shows the loss to readers of the file.
            assert_eq!((header.sequence, payload.concat()), (2, record.to_vec()));
            true
        });
        assert_eq!(channel.append(6, &record), Ok(()));
        let account = channel.account();
        assert_eq!((account.received.records, account.lost_ring_full.records), (6, 2));
        assert_eq!((account.first_lost_ns, account.last_lost_ns), (Some(1), Some(5)));
    }
}
