// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loss ledger in a segment: as a private record in blocks, and as metadata for all MCAP
//! readers. The encoder writes it, and the recovery reads it.

use super::private::private_op;
use super::wire::{DIGITS_MAX, Get, Put, RECORD_HEAD_BYTES, op};

/// The name of the ledger's metadata record.
pub const LEDGER_NAME: &str = "steadyio.ledger";

/// The counts of a channel's messages since the recording began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChannelLedger {
    /// Messages that the application appended.
    pub received: u64,
    /// Messages written to a file.
    pub written: u64,
    /// Messages known to survive a power cut.
    pub durable: u64,
    /// Messages lost because the ring was full.
    pub lost: u64,
    pub lost_bytes: u64,
    /// The log time of the first lost message.
    pub lost_first_ns: u64,
    /// The log time of the last lost message.
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

/// The size of one channel in a ledger record: its position in the definitions, and the counters.
pub const LEDGER_ENTRY_BYTES: usize = 2 + 8 * LEDGER_FIELDS.len();

/// The length of a ledger record.
pub const fn ledger_record_bytes(channels: usize) -> usize {
    RECORD_HEAD_BYTES + channels * LEDGER_ENTRY_BYTES
}

/// Writes a ledger record with all channels.
pub fn put_ledger(put: &mut Put<'_>, ledger: &[ChannelLedger]) {
    let opened = put.open_record(private_op::LEDGER);
    for (at, channel) in ledger.iter().enumerate() {
        put_ledger_entry(put, at, channel);
    }
    put.close_record(opened);
}

/// Writes one channel of a ledger record, with its position in the definitions.
pub fn put_ledger_entry(put: &mut Put<'_>, at: usize, channel: &ChannelLedger) {
    // The limit of definitions fits into 16 bits.
    put.u16(at as u16);
    channel.fields().into_iter().for_each(|number| put.u64(number));
}

/// Reads a ledger record into the channels that it contains.
pub fn get_ledger(content: &[u8], ledger: &mut [ChannelLedger]) -> Option<()> {
    let mut get = Get::new(content);
    while !get.rest().is_empty() {
        let channel = ledger.get_mut(usize::from(get.u16()?))?;
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

/// The name of the metadata record that counts missing blocks.
pub const GAPS_NAME: &str = "steadyio.gaps";

/// The blocks that are missing in a damaged segment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gaps {
    /// The number of missing data blocks.
    pub blocks: u64,
    /// The number of bytes between the existing blocks.
    pub bytes: u64,
    /// The missing blocks that had been durable. The others were in flight when power failed.
    pub durable_blocks: u64,
}

const GAPS_FIELDS: [&str; 3] = ["blocks", "bytes", "durable_blocks"];
/// The room for the gaps in every tail, so that the recovery can add them.
pub const GAPS_ROOM_BYTES: usize = 192;
const _: () = {
    let entry = 4 + GAPS_FIELDS[2].len() + 4 + DIGITS_MAX;
    let record = RECORD_HEAD_BYTES + 4 + GAPS_NAME.len() + 4 + GAPS_FIELDS.len() * entry;
    // Next to the gaps: the number of blocks at the beginning that repeat latched messages.
    let repeated = RECORD_HEAD_BYTES + 4;
    assert!(record + repeated + RECORD_HEAD_BYTES <= GAPS_ROOM_BYTES);
};

/// Writes the number of repeated blocks, if there are any.
pub(super) fn put_repeated(put: &mut Put<'_>, blocks: u32) {
    if blocks > 0 {
        put.record(private_op::REPEATED, 4);
        put.u32(blocks);
    }
}

impl Gaps {
    pub fn put_metadata(&self, put: &mut Put<'_>) {
        let opened = put.open_record(op::METADATA);
        put.string(GAPS_NAME);
        let map = put.open_u32();
        for (name, value) in
            GAPS_FIELDS.into_iter().zip([self.blocks, self.bytes, self.durable_blocks])
        {
            put.number(name, value);
        }
        put.close_u32(map);
        put.close_record(opened);
    }

    /// Decodes a metadata record; None if it is another one.
    pub fn get_metadata(content: &[u8]) -> Option<Gaps> {
        let mut get = Get::new(content);
        get.string().filter(|name| *name == GAPS_NAME)?;
        let mut map = Get::new(get.prefixed()?);
        let mut number = |name: &str| {
            map.string().filter(|key| *key == name)?;
            map.string()?.parse().ok()
        };
        let [blocks, bytes, durable_blocks] = GAPS_FIELDS.map(&mut number);
        Some(Gaps { blocks: blocks?, bytes: bytes?, durable_blocks: durable_blocks? })
    }
}

/// The author of a segment's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompletedBy {
    /// The recorder: the recording continued in the next segment, or ended.
    Recorder,
    /// Another program. The ledger is the last one in the segment.
    Recovery,
}

/// Writes the ledger as a metadata record for MCAP readers, with keys such as `0.lost`.
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

/// The room for the metadata of the ledger.
pub fn ledger_metadata_bytes_max(channels: usize) -> usize {
    let key = 4 + "65535.".len() + LEDGER_FIELDS[6].len().max(LEDGER_FIELDS[5].len());
    let entry = key + 4 + DIGITS_MAX;
    let head = RECORD_HEAD_BYTES + 4 + LEDGER_NAME.len() + 4 + 8 + "completed_by".len() + 8;
    head + channels * LEDGER_FIELDS.len() * entry
}
