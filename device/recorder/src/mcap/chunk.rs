// SPDX-License-Identifier: MIT OR Apache-2.0
//! The chunk in progress: message records at their place in a block, and then the records around
//! them. The encoder uses it.
//!
//! Compression happens when the chunk is closed, because only then its size is known.

use crc32fast::Hasher;

use super::compression::Compressor;
use super::index::{ChunkPlace, SegmentIndex};
use super::layout::{ALIGN_BYTES, align_up};
use super::private::BLOCK_RECORD_BYTES;
use super::wire::{
    CHUNK_HEAD_BYTES, MESSAGE_HEAD_BYTES, MESSAGE_INDEX_ENTRY_BYTES, MESSAGE_INDEX_HEAD_BYTES, Put,
    RECORD_HEAD_BYTES, op,
};

/// The offset of the first message record in a block.
const RECORDS_AT: usize = BLOCK_RECORD_BYTES + RECORD_HEAD_BYTES + CHUNK_HEAD_BYTES;

/// Writes a chunk record up to its records, which have this size and checksum uncompressed.
pub(super) fn put_head(
    put: &mut Put<'_>,
    (start_ns, end_ns): (u64, u64),
    (records_bytes, records_crc): (u64, u32),
    compression: &str,
    stored_bytes: u64,
) {
    let content_bytes = (CHUNK_HEAD_BYTES + compression.len()) as u64 + stored_bytes;
    put.record(op::CHUNK, content_bytes);
    put.u64(start_ns);
    put.u64(end_ns);
    put.u64(records_bytes);
    put.u32(records_crc);
    put.string(compression);
    put.u64(stored_bytes);
}

/// A message to write.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    /// The position of the channel in the definitions.
    pub channel: u16,
    /// The number of the message on its channel. Lost messages count too, so a gap shows a loss.
    pub sequence: u32,
    /// The time at which it was appended.
    pub log_time_ns: u64,
    /// The time at which it was made.
    pub publish_time_ns: u64,
    /// The payload in one or two pieces, as a ring returns it; the second may be empty.
    pub payload: [&'a [u8]; 2],
}

impl Message<'_> {
    pub(super) fn payload_bytes(&self) -> usize {
        self.payload[0].len() + self.payload[1].len()
    }
}

/// The message index entry of one message.
#[derive(Debug, Clone, Copy)]
struct Entry {
    slot: u16,
    offset: u32,
    log_time_ns: u64,
}

/// A channel's part of the chunk.
#[derive(Debug, Clone, Copy, Default)]
struct ChannelInChunk {
    messages: u32,
    /// The offset of its message index in the block.
    index_at: usize,
    /// The offset of the next entry in it.
    entry_at: usize,
    start_ns: u64,
    end_ns: u64,
}

/// A chunk in progress.
#[derive(Debug)]
pub(super) struct Chunk {
    /// The ids in the file, in the order of the definitions.
    ids: Vec<u16>,
    /// The end of the records in the block.
    at: usize,
    /// The size of the records, and the name of their compression, of a closed chunk.
    closed: (u64, &'static str),
    /// None without compression.
    pub(super) compressor: Option<Compressor>,
    records_crc: Hasher,
    entries: Vec<Entry>,
    slots: Vec<ChannelInChunk>,
    /// The number of channels with a message.
    channels: usize,
}

impl Chunk {
    /// Allocates all memory.
    pub(super) fn new(ids: &[u16], messages_max: usize) -> Chunk {
        Chunk {
            ids: ids.to_vec(),
            at: RECORDS_AT,
            closed: (0, ""),
            compressor: None,
            records_crc: Hasher::new(),
            entries: Vec::with_capacity(messages_max),
            slots: vec![ChannelInChunk::default(); ids.len()],
            channels: 0,
        }
    }

    /// Adds a channel.
    pub(super) fn add_channel(&mut self, id: u16) {
        self.ids.push(id);
        self.slots.push(ChannelInChunk::default());
    }

    /// Removes all channels but the first ones, and all messages.
    pub(super) fn truncate(&mut self, channels: usize) {
        self.clear();
        self.ids.truncate(channels);
        self.slots.truncate(channels);
    }

    pub(super) fn clear(&mut self) {
        self.at = RECORDS_AT;
        self.records_crc = Hasher::new();
        self.entries.clear();
        self.slots.fill(ChannelInChunk::default());
        self.channels = 0;
    }

    pub(super) fn messages(&self) -> usize {
        self.entries.len()
    }

    /// The number of channels with messages, if one of this channel were added.
    pub(super) fn channels_with(&self, channel: u16) -> usize {
        self.channels + usize::from(self.slots[channel as usize].messages == 0)
    }

    pub(super) fn channels(&self) -> usize {
        self.channels
    }

    /// Adds a message. The encoder must have checked that it fits.
    pub(super) fn push(&mut self, block: &mut [u8], message: &Message<'_>) {
        self.note(message);
        let start = self.at;
        let mut put = Put::new(&mut block[start..]);
        put.record(op::MESSAGE, (MESSAGE_HEAD_BYTES + message.payload_bytes()) as u64);
        put.u16(self.ids[message.channel as usize]);
        put.u32(message.sequence);
        put.u64(message.log_time_ns);
        put.u64(message.publish_time_ns);
        put.bytes(message.payload[0]);
        put.bytes(message.payload[1]);
        self.at += put.at();
        self.records_crc.update(&block[start..self.at]);
    }

    fn note(&mut self, message: &Message<'_>) {
        let log_time_ns = message.log_time_ns;
        let offset = (self.at - RECORDS_AT) as u32;
        self.entries.push(Entry { slot: message.channel, offset, log_time_ns });
        let slot = &mut self.slots[message.channel as usize];
        let first = slot.messages == 0;
        slot.start_ns = if first { log_time_ns } else { slot.start_ns.min(log_time_ns) };
        slot.end_ns = if first { log_time_ns } else { slot.end_ns.max(log_time_ns) };
        slot.messages += 1;
        self.channels += usize::from(first);
    }

    /// Writes the chunk head before the records and the message indexes after them. Returns the end
    /// of those.
    pub(super) fn close(&mut self, block: &mut [u8]) -> usize {
        let records_bytes = (self.at - RECORDS_AT) as u64;
        let compression = self.compress(block);
        self.closed = (records_bytes, compression);
        let mut put = Put::new(&mut block[BLOCK_RECORD_BYTES..]);
        let crc = self.records_crc.clone().finalize();
        put_head(&mut put, self.times_ns(), (records_bytes, crc), compression, self.stored_bytes());
        self.put_message_indexes(block)
    }

    /// Replaces the records if the block then needs fewer bytes of the file. Returns the name of
    /// the compression.
    fn compress(&mut self, block: &mut [u8]) -> &'static str {
        let Some(compressor) = &mut self.compressor else { return "" };
        let behind = self.entries.len() * MESSAGE_INDEX_ENTRY_BYTES
            + self.channels * MESSAGE_INDEX_HEAD_BYTES
            + RECORD_HEAD_BYTES;
        let block_bytes = align_up(self.at + behind) - ALIGN_BYTES;
        let records_at = RECORDS_AT + compressor.name().len();
        let bytes_max = block_bytes.saturating_sub(records_at + behind);
        let name = compressor.name();
        let Some(records) = compressor.compress(&block[RECORDS_AT..self.at], bytes_max) else {
            return "";
        };
        self.at = records_at + records.len();
        block[records_at..self.at].copy_from_slice(records);
        name
    }

    /// The size of the records of a closed chunk in the file.
    fn stored_bytes(&self) -> u64 {
        (self.at - RECORDS_AT - self.closed.1.len()) as u64
    }

    fn times_ns(&self) -> (u64, u64) {
        let used = || self.slots.iter().filter(|slot| slot.messages > 0);
        let start_ns = used().map(|slot| slot.start_ns).min().unwrap_or(0);
        let end_ns = used().map(|slot| slot.end_ns).max().unwrap_or(0);
        (start_ns, end_ns)
    }

    /// Writes the heads of all message indexes, then each message into the index of its channel.
    fn put_message_indexes(&mut self, block: &mut [u8]) -> usize {
        let mut at = self.at;
        for (slot, id) in self.slots.iter_mut().zip(&self.ids) {
            if slot.messages > 0 {
                let bytes = slot.messages as usize * MESSAGE_INDEX_ENTRY_BYTES;
                let mut put = Put::new(&mut block[at..]);
                put.record(op::MESSAGE_INDEX, (2 + 4 + bytes) as u64);
                put.u16(*id);
                put.u32(bytes as u32);
                (slot.index_at, slot.entry_at) = (at, at + put.at());
                at = slot.entry_at + bytes;
            }
        }
        for entry in &self.entries {
            let slot = &mut self.slots[entry.slot as usize];
            let mut put = Put::new(&mut block[slot.entry_at..]);
            put.u64(entry.log_time_ns);
            put.u64(u64::from(entry.offset));
            slot.entry_at += MESSAGE_INDEX_ENTRY_BYTES;
        }
        at
    }

    /// The checksum of everything in a closed block after its block record. Each payload was summed
    /// when it was copied; without compression, this joins the sums.
    pub(super) fn body_crc(&self, block: &[u8]) -> u32 {
        if !self.closed.1.is_empty() {
            return crc32fast::hash(&block[BLOCK_RECORD_BYTES..]);
        }
        let mut crc = Hasher::new();
        crc.update(&block[BLOCK_RECORD_BYTES..RECORDS_AT]);
        crc.combine(&self.records_crc);
        let mut rest_crc = Hasher::new();
        rest_crc.update(&block[self.at..]);
        crc.combine(&rest_crc);
        crc.finalize()
    }

    /// Adds a closed chunk to the index. Its block lies at this offset of the file.
    pub(super) fn add_to(
        &self,
        index: &mut SegmentIndex,
        block_offset: u64,
        indexes_end: usize,
        repeats: bool,
    ) {
        let (start_ns, end_ns) = self.times_ns();
        let (uncompressed_bytes, compression) = self.closed;
        let chunk = ChunkPlace {
            start_ns,
            end_ns,
            offset: block_offset + BLOCK_RECORD_BYTES as u64,
            record_bytes: (self.at - BLOCK_RECORD_BYTES) as u64,
            message_index_bytes: (indexes_end - self.at) as u64,
            compression,
            compressed_bytes: self.stored_bytes(),
            uncompressed_bytes,
        };
        let used = self.slots.iter().zip(&self.ids).filter(|(slot, _)| slot.messages > 0);
        let places = used.map(|(slot, id)| (*id, block_offset + slot.index_at as u64));
        index.add_chunk(&chunk, places);
        for (at, slot) in self.slots.iter().enumerate() {
            let times_ns = (slot.start_ns, slot.end_ns);
            index.add_messages(at, u64::from(slot.messages), times_ns, repeats);
        }
        if repeats {
            index.mark_repeated();
        }
    }
}
