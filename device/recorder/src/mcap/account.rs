// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loss ledger in the file: as a private record in blocks, and as metadata for all readers.

use super::private::private_op;
use super::wire::{DIGITS_MAX, Get, Put, RECORD_HEAD_BYTES, op};

/// Name of the metadata record of the ledger.
pub const LEDGER_NAME: &str = "steadyio.ledger";

/// What became of the messages of a channel, counted by the recorder since the recording began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChannelLedger {
    /// Offered by the application.
    pub received: u64,
    /// Given to a file.
    pub written: u64,
    /// Known to survive a power cut.
    pub durable: u64,
    /// Lost, because the ring was full.
    pub lost: u64,
    pub lost_bytes: u64,
    /// Log time of the first lost one.
    pub lost_first_ns: u64,
    /// Log time of the last lost one.
    pub lost_last_ns: u64,
}

const LEDGER_FIELDS: [&str; 7] =
    ["received", "written", "durable", "lost", "lost_bytes", "lost_first_ns", "lost_last_ns"];

impl ChannelLedger {
    fn fields(&self) -> [u64; 7] {
        [
            self.received,
            self.written,
            self.durable,
            self.lost,
            self.lost_bytes,
            self.lost_first_ns,
            self.lost_last_ns,
        ]
    }
}

/// Length of a ledger record.
pub fn ledger_record_bytes(channels: usize) -> usize {
    RECORD_HEAD_BYTES + channels * 8 * LEDGER_FIELDS.len()
}

/// A ledger record: the counters of all channels in order of definition.
pub fn put_ledger(put: &mut Put<'_>, ledger: &[ChannelLedger]) {
    let bytes = ledger_record_bytes(ledger.len()) - RECORD_HEAD_BYTES;
    put.record(private_op::LEDGER, bytes as u64);
    for number in ledger.iter().flat_map(ChannelLedger::fields) {
        put.u64(number);
    }
}

/// Reads the content of a ledger record into as many channels.
pub fn get_ledger(content: &[u8], ledger: &mut [ChannelLedger]) -> Option<()> {
    let mut get = Get::new(content);
    for channel in ledger {
        *channel = ChannelLedger {
            received: get.u64()?,
            written: get.u64()?,
            durable: get.u64()?,
            lost: get.u64()?,
            lost_bytes: get.u64()?,
            lost_first_ns: get.u64()?,
            lost_last_ns: get.u64()?,
        };
    }
    Some(())
}

/// Who ended a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompletedBy {
    /// The recording continued in the next one, or ended.
    Recorder,
    /// Something else ended it; the ledger is the last one found.
    Recovery,
}

/// The ledger for the users of MCAP: a metadata record with keys such as `0.lost`.
pub fn put_ledger_metadata(
    put: &mut Put<'_>,
    by: CompletedBy,
    ids: &[u16],
    ledger: &[ChannelLedger],
) {
    let opened = put.open_record(op::METADATA);
    put.string(LEDGER_NAME);
    let map = put.open_u32();
    put.string("completed_by");
    put.string(match by {
        CompletedBy::Recorder => "recorder",
        CompletedBy::Recovery => "recovery",
    });
    for (id, channel) in ids.iter().zip(ledger) {
        for (name, value) in LEDGER_FIELDS.iter().zip(channel.fields()) {
            let key = put.open_u32();
            put.digits(u64::from(*id));
            put.bytes(b".");
            put.bytes(name.as_bytes());
            put.close_u32(key);
            put.decimal(value);
        }
    }
    put.close_u32(map);
    put.close_record(opened);
}

/// Room for the metadata of the ledger.
pub fn ledger_metadata_bytes_max(channels: usize) -> usize {
    let key = 4 + "65535.".len() + LEDGER_FIELDS[6].len().max(LEDGER_FIELDS[5].len());
    let entry = key + 4 + DIGITS_MAX;
    let head = RECORD_HEAD_BYTES + 4 + LEDGER_NAME.len() + 4 + 8 + "completed_by".len() + 8;
    head + channels * LEDGER_FIELDS.len() * entry
}
