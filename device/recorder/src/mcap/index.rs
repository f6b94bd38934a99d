// SPDX-License-Identifier: MIT OR Apache-2.0
//! The summary at the end of a segment: chunk indexes and statistics. The encoder, or after a crash
//! the recovery, adds each block to it.
//!
//! All memory is allocated at construction. [`SegmentIndex::has_room`] must be checked before each
//! block.

use super::account::{GAPS_NAME, LEDGER_NAME};
use super::definitions::Definitions;
use super::layout::{SUMMARY_GROUPS, SUMMARY_OFFSET_BYTES, metadata_index_bytes, statistics_bytes};
use super::private::{BLOCK_RECORD_BYTES, LIFE_NAME};
use super::wire::{
    DATA_END_BYTES, FOOTER_BYTES, Get, MAGIC, MESSAGE_INDEX_ENTRY_BYTES, MESSAGE_INDEX_HEAD_BYTES,
    Put, RECORD_HEAD_BYTES, op,
};

/// The size of a channel in the index of a chunk: its id, and the place of its message index.
const CHANNEL_ENTRY_BYTES: usize = 2 + 8;

/// The place of a chunk in the file.
#[derive(Debug, Clone, Copy)]
pub struct ChunkPlace<'a> {
    /// The earliest log time.
    pub start_ns: u64,
    /// The latest log time.
    pub end_ns: u64,
    /// The offset of the chunk record in the file.
    pub offset: u64,
    /// The length of the chunk record, with its head.
    pub record_bytes: u64,
    /// The length of the message indexes after it.
    pub message_index_bytes: u64,
    /// The name of the compression, or empty.
    pub compression: &'a str,
    /// The compressed size of its records.
    pub compressed_bytes: u64,
    /// The uncompressed size of its records.
    pub uncompressed_bytes: u64,
}

/// The index's description of a block of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockSpan {
    /// The offset in the file.
    pub offset: u64,
    /// The size of its contents, without padding.
    pub bytes: u64,
    /// The earliest log time.
    pub start_ns: u64,
    /// The latest log time.
    pub end_ns: u64,
    /// The number of messages.
    pub messages: u64,
    /// Whether it repeats latched messages of an earlier segment.
    pub repeats: bool,
}

impl BlockSpan {
    /// Decodes the content of the index record of its chunk.
    pub(super) fn get(content: &[u8]) -> Option<BlockSpan> {
        let mut get = Get::new(content);
        let (start_ns, end_ns, offset, record_bytes) =
            (get.u64()?, get.u64()?, get.u64()?, get.u64()?);
        let channels = get.prefixed()?.len() / CHANNEL_ENTRY_BYTES;
        let index_bytes = get.u64()?;
        let heads = (channels * MESSAGE_INDEX_HEAD_BYTES) as u64;
        let messages = index_bytes.saturating_sub(heads) / MESSAGE_INDEX_ENTRY_BYTES as u64;
        let bytes =
            record_bytes.checked_add(index_bytes)?.checked_add(BLOCK_RECORD_BYTES as u64)?;
        let offset = offset.checked_sub(BLOCK_RECORD_BYTES as u64)?;
        Some(BlockSpan { offset, bytes, start_ns, end_ns, messages, repeats: false })
    }
}

/// Decodes the ids of the channels in a chunk from the content of its index record.
pub(super) fn channels_of_chunk(content: &[u8]) -> Option<Vec<u16>> {
    let mut get = Get::new(content);
    let _times_and_place = get.bytes(4 * 8)?;
    let map = get.prefixed()?;
    map.chunks_exact(CHANNEL_ENTRY_BYTES).map(|entry| Get::new(entry).u16()).collect()
}

/// The place of a metadata record in the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MetadataPlace {
    /// The offset in the file.
    pub offset: u64,
    /// The length, with its head.
    pub record_bytes: u64,
}

/// The number of messages of one channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelCount {
    /// The channel's id in the file.
    pub id: u16,
    /// The number of messages, without repeated ones.
    pub messages: u64,
    /// The number of repeated messages.
    pub repeated: u64,
}

impl ChannelCount {
    /// The number of messages in the file, as other readers count them.
    pub(super) fn all(&self) -> u64 {
        self.messages + self.repeated
    }
}

/// Chunk indexes and statistics of a segment.
#[derive(Debug)]
pub struct SegmentIndex {
    chunk_indexes: Vec<u8>,
    bytes_max: usize,
    chunk_count: u32,
    /// The number of chunks at the beginning that repeat messages.
    repeated_chunks: u32,
    channels: Vec<ChannelCount>,
    start_ns: u64,
    end_ns: u64,
    scratch: Vec<u8>,
    /// The places of the metadata of the segment's identity, of its ledger, and of its gaps, if
    /// any.
    pub metadata: [Option<MetadataPlace>; 3],
}

const METADATA_NAMES: [&str; 3] = [LIFE_NAME, LEDGER_NAME, GAPS_NAME];

impl SegmentIndex {
    /// Allocates all memory.
    pub fn new(definitions: &Definitions, index_bytes: usize) -> SegmentIndex {
        let count = |id: &u16| ChannelCount { id: *id, messages: 0, repeated: 0 };
        let channels: Vec<_> = definitions.channel_ids().iter().map(count).collect();
        let metadata_bytes = METADATA_NAMES.map(metadata_index_bytes).iter().sum::<usize>();
        let scratch = Vec::with_capacity(statistics_bytes(channels.len()) + metadata_bytes);
        SegmentIndex {
            chunk_indexes: Vec::with_capacity(index_bytes),
            bytes_max: index_bytes,
            chunk_count: 0,
            repeated_chunks: 0,
            channels,
            start_ns: 0,
            end_ns: 0,
            scratch,
            metadata: [None; 3],
        }
    }

    /// Adds the channels that were added to the definitions.
    pub(super) fn grow(&mut self, definitions: &Definitions) {
        let added = definitions.channel_ids().iter().skip(self.channels.len());
        let none = |id: &u16| ChannelCount { id: *id, messages: 0, repeated: 0 };
        self.channels.extend(added.map(none));
    }

    /// Removes all channels but the first ones, and all chunks.
    pub(super) fn truncate(&mut self, channels: usize) {
        self.clear();
        self.channels.truncate(channels);
    }

    /// Clears it for the next segment.
    pub fn clear(&mut self) {
        self.chunk_indexes.clear();
        (self.chunk_count, self.repeated_chunks) = (0, 0);
        let reset = |channel: &mut ChannelCount| (channel.messages, channel.repeated) = (0, 0);
        self.channels.iter_mut().for_each(reset);
        (self.start_ns, self.end_ns) = (0, 0);
        self.metadata = [None; 3];
    }

    /// The length of the chunk indexes.
    pub fn bytes(&self) -> usize {
        self.chunk_indexes.len()
    }

    /// Whether one more entry fits.
    pub fn has_room(&self, entry_bytes: usize) -> bool {
        self.bytes_max - self.chunk_indexes.len() >= entry_bytes
    }

    /// Adds a chunk, with the places of its channels' message indexes.
    pub fn add_chunk(
        &mut self,
        chunk: &ChunkPlace<'_>,
        message_indexes: impl Iterator<Item = (u16, u64)> + Clone,
    ) {
        append_chunk_index(&mut self.chunk_indexes, chunk, message_indexes);
        self.chunk_count += 1;
    }

    /// Counts messages of a channel (by its position), and their times.
    pub fn add_messages(
        &mut self,
        slot: usize,
        count: u64,
        (start_ns, end_ns): (u64, u64),
        repeats: bool,
    ) {
        if count == 0 {
            return;
        }
        let first = self.channels.iter().all(|channel| channel.all() == 0);
        self.start_ns = if first { start_ns } else { self.start_ns.min(start_ns) };
        self.end_ns = if first { end_ns } else { self.end_ns.max(end_ns) };
        let channel = &mut self.channels[slot];
        *(if repeats { &mut channel.repeated } else { &mut channel.messages }) += count;
    }

    /// Marks the last chunk as a repetition of latched messages. It must be one of the first.
    pub(super) fn mark_repeated(&mut self) {
        self.repeated_chunks += 1;
    }

    /// The number of chunks at the beginning that repeat messages.
    pub(super) fn repeated_chunks(&self) -> u32 {
        self.repeated_chunks
    }

    /// The number of messages, without repeated ones.
    pub fn messages(&self) -> u64 {
        self.channels.iter().map(|channel| channel.messages).sum()
    }

    pub fn chunks(&self) -> u32 {
        self.chunk_count
    }

    /// The blocks of its chunks, in the order of the file.
    pub fn blocks(&self) -> impl Iterator<Item = BlockSpan> {
        let mut records = Get::new(&self.chunk_indexes);
        let contents = std::iter::from_fn(move || records.record().map(|(_, content)| content));
        let repeated = self.repeated_chunks as usize;
        let spans = contents.filter_map(BlockSpan::get).enumerate();
        spans.map(move |(at, span)| BlockSpan { repeats: at < repeated, ..span })
    }

    /// The numbers of messages per channel, in the order of the definitions.
    pub fn channels(&self) -> &[ChannelCount] {
        &self.channels
    }

    /// The earliest and the latest log time; zero without messages.
    pub fn times_ns(&self) -> (u64, u64) {
        (self.start_ns, self.end_ns)
    }

    /// The length of the output of [`SegmentIndex::put_summary`].
    pub fn summary_bytes(&self, definitions: &Definitions) -> usize {
        let records = [
            definitions.records()[0].len(),
            definitions.records()[1].len(),
            statistics_bytes(self.channels.len()),
            self.chunk_indexes.len(),
            self.metadata_bytes(),
        ];
        let groups = records.iter().filter(|bytes| **bytes > 0).count();
        RECORD_HEAD_BYTES
            + DATA_END_BYTES
            + records.iter().sum::<usize>()
            + groups * SUMMARY_OFFSET_BYTES
            + RECORD_HEAD_BYTES
            + FOOTER_BYTES
            + MAGIC.len()
    }

    /// Writes data end, summary, footer and magic. `offset` is the place of the first byte in the
    /// file.
    pub fn put_summary(&mut self, put: &mut Put<'_>, offset: u64, definitions: &Definitions) {
        let statistics_bytes = statistics_bytes(self.channels.len());
        self.scratch.clear();
        self.scratch.resize(statistics_bytes + self.metadata_bytes(), 0);
        let mut scratch = std::mem::take(&mut self.scratch);
        let (statistics, metadata) = scratch.split_at_mut(statistics_bytes);
        let counts = Statistics {
            schemas: definitions.schema_count(),
            attachments: 0,
            metadata: self.metadata_places().count() as u32,
            chunks: self.chunk_count,
            times_ns: self.times_ns(),
            channels: &self.channels,
        };
        counts.put(&mut Put::new(statistics));
        let mut index = Put::new(metadata);
        for (place, name) in self.metadata_places() {
            put_metadata_index(&mut index, place, name);
        }
        let groups: [(u8, &[u8]); SUMMARY_GROUPS] = [
            (op::SCHEMA, definitions.records()[0]),
            (op::CHANNEL, definitions.records()[1]),
            (op::STATISTICS, statistics),
            (op::CHUNK_INDEX, &self.chunk_indexes),
            (op::METADATA_INDEX, metadata),
        ];
        put_summary(put, offset, &groups);
        self.scratch = scratch;
    }

    fn metadata_places(&self) -> impl Iterator<Item = (MetadataPlace, &'static str)> {
        let named = self.metadata.iter().zip(METADATA_NAMES);
        named.filter_map(|(place, name)| place.map(|place| (place, name)))
    }

    fn metadata_bytes(&self) -> usize {
        self.metadata_places().map(|(_, name)| metadata_index_bytes(name)).sum()
    }
}

/// Appends a chunk index record, with the places of the channels' message indexes.
pub(super) fn append_chunk_index(
    records: &mut Vec<u8>,
    chunk: &ChunkPlace<'_>,
    message_indexes: impl Iterator<Item = (u16, u64)> + Clone,
) {
    let map_bytes = message_indexes.clone().count() * (2 + 8);
    let bytes = 4 * 8 + 4 + map_bytes + 8 + 4 + chunk.compression.len() + 2 * 8;
    let start = records.len();
    records.resize(start + RECORD_HEAD_BYTES + bytes, 0);
    let mut put = Put::new(&mut records[start..]);
    put.record(op::CHUNK_INDEX, bytes as u64);
    for number in [chunk.start_ns, chunk.end_ns, chunk.offset, chunk.record_bytes] {
        put.u64(number);
    }
    put.u32(map_bytes as u32);
    for (id, offset) in message_indexes {
        put.u16(id);
        put.u64(offset);
    }
    put.u64(chunk.message_index_bytes);
    put.string(chunk.compression);
    put.u64(chunk.compressed_bytes);
    put.u64(chunk.uncompressed_bytes);
}

/// The counts of a statistics record.
pub(super) struct Statistics<'a> {
    pub(super) schemas: u16,
    pub(super) attachments: u32,
    pub(super) metadata: u32,
    pub(super) chunks: u32,
    pub(super) times_ns: (u64, u64),
    pub(super) channels: &'a [ChannelCount],
}

impl Statistics<'_> {
    pub(super) fn put(&self, put: &mut Put<'_>) {
        let opened = put.open_record(op::STATISTICS);
        put.u64(self.channels.iter().map(ChannelCount::all).sum());
        put.u16(self.schemas);
        put.u32(self.channels.len() as u32);
        put.u32(self.attachments);
        put.u32(self.metadata);
        put.u32(self.chunks);
        put.u64(self.times_ns.0);
        put.u64(self.times_ns.1);
        let map = put.open_u32();
        for channel in self.channels {
            put.u16(channel.id);
            put.u64(channel.all());
        }
        put.close_u32(map);
        put.close_record(opened);
    }
}

/// Writes a metadata index record.
pub fn put_metadata_index(put: &mut Put<'_>, place: MetadataPlace, name: &str) {
    let opened = put.open_record(op::METADATA_INDEX);
    put.u64(place.offset);
    put.u64(place.record_bytes);
    put.string(name);
    put.close_record(opened);
}

/// Writes data end, these groups of records, their offsets, footer and magic.
pub fn put_summary(put: &mut Put<'_>, offset: u64, groups: &[(u8, &[u8])]) {
    let base = offset - put.at() as u64;
    put.record(op::DATA_END, DATA_END_BYTES as u64);
    // No checksum of the data section, because it includes old data between end block and tail.
    put.u32(0);
    let summary = put.at();
    for (_, records) in groups {
        put.bytes(records);
    }
    let offsets = put.at();
    let mut at = base + summary as u64;
    for (opcode, records) in groups.iter().filter(|(_, records)| !records.is_empty()) {
        put.record(op::SUMMARY_OFFSET, (SUMMARY_OFFSET_BYTES - RECORD_HEAD_BYTES) as u64);
        put.u8(*opcode);
        put.u64(at);
        put.u64(records.len() as u64);
        at += records.len() as u64;
    }
    let any = put.at() > summary;
    put.record(op::FOOTER, FOOTER_BYTES as u64);
    put.u64(if any { base + summary as u64 } else { 0 });
    put.u64(if any { base + offsets as u64 } else { 0 });
    let crc = crc32fast::hash(put.written(summary..put.at()));
    put.u32(crc);
    put.bytes(&MAGIC);
}
