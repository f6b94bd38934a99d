// SPDX-License-Identifier: MIT OR Apache-2.0
//! Truncated MCAP files of any writer: keeps all whole records, and adds the missing end.
//!
//! Read from the start, record by record; checksums of chunks are checked. What follows the last
//! whole record is cut off before the summary is written, so that a second cut cannot make a torn
//! record look whole. Compressed chunks are not read; such a file gets no summary, and readers scan
//! it from the start.

use std::collections::BTreeMap;
use std::io;

use super::definitions::Definitions;
use super::index::{
    ChannelCount, ChunkPlace, MetadataPlace, Statistics, append_chunk_index, put_metadata_index,
    put_summary,
};
use super::layout::{metadata_index_bytes, statistics_bytes};
use super::recover::{ChannelFound, Contents};
use super::scan::chunk_place;
use super::sealed::{ENDING_BYTES, read_exactly, summary_start};
use super::storage::{Storage, WritableStorage};
use super::wire::{
    DATA_END_BYTES, Get, MAGIC, MESSAGE_HEAD_BYTES, MESSAGE_INDEX_ENTRY_BYTES, Put,
    RECORD_HEAD_BYTES, op,
};

/// Longer records count as damage.
const RECORD_BYTES_LIMIT: u64 = 1 << 30;
const ATTACHMENT: u8 = 0x09;
const ATTACHMENT_INDEX: u8 = 0x0a;

/// A chunk, and the message indexes found behind it.
#[derive(Debug)]
struct Chunk {
    place: ChunkPlace<'static>,
    compressed: bool,
    indexes: Vec<(u16, u64)>,
    /// Channel to (log time, offset in the chunk), as it should be.
    entries: BTreeMap<u16, Vec<(u64, u64)>>,
}

impl Chunk {
    fn is_indexed(&self) -> bool {
        self.entries.keys().all(|id| self.indexes.iter().any(|(found, _)| found == id))
    }
}

/// What was read of a plain file.
#[derive(Debug)]
pub struct Plain {
    definitions: Definitions,
    counts: BTreeMap<u16, u64>,
    times_ns: Option<(u64, u64)>,
    chunks: Vec<Chunk>,
    loose_messages: bool,
    attachments: Vec<u8>,
    attachment_count: u32,
    metadata: Vec<u8>,
    metadata_count: u32,
    /// Behind the last whole record.
    end: u64,
    reached_data_end: bool,
    ends_well: bool,
    damage: Option<u64>,
}

/// Reads a file that begins with the magic.
pub fn read(storage: &dyn Storage) -> io::Result<Plain> {
    let mut plain = Plain {
        definitions: Definitions::empty(),
        counts: BTreeMap::new(),
        times_ns: None,
        chunks: Vec::new(),
        loose_messages: false,
        attachments: Vec::new(),
        attachment_count: 0,
        metadata: Vec::new(),
        metadata_count: 0,
        end: MAGIC.len() as u64,
        reached_data_end: false,
        ends_well: ends_well(storage)?,
        damage: None,
    };
    let file_bytes = storage.bytes()?;
    while let Some((opcode, content_bytes)) = record_head(storage, plain.end, file_bytes)? {
        if opcode == op::DATA_END || opcode == op::FOOTER {
            plain.reached_data_end = true;
            break;
        }
        let head_only = opcode == op::MESSAGE || opcode >= 0x80;
        let wanted = if head_only { content_bytes.min(64) } else { content_bytes };
        let content_at = plain.end + RECORD_HEAD_BYTES as u64;
        let Some(content) = read_exactly(storage, content_at, wanted as usize)? else { break };
        if plain.take(opcode, &content, content_bytes).is_none() {
            let next = content_at + content_bytes;
            plain.damage = record_head(storage, next, file_bytes)?.map(|_| plain.end);
            break;
        }
        plain.end = content_at + content_bytes;
    }
    Ok(plain)
}

/// Opcode and length of a record that lies in the file as a whole.
fn record_head(storage: &dyn Storage, at: u64, file_bytes: u64) -> io::Result<Option<(u8, u64)>> {
    let Some(head) = read_exactly(storage, at, RECORD_HEAD_BYTES)? else { return Ok(None) };
    let mut get = Get::new(&head);
    let whole = |bytes: &u64| {
        let left = file_bytes - at - RECORD_HEAD_BYTES as u64;
        *bytes <= left && *bytes <= RECORD_BYTES_LIMIT
    };
    let known = |opcode: &u8| (op::HEADER..=op::DATA_END).contains(opcode) || *opcode >= 0x80;
    Ok(get.u8().filter(known).zip(get.u64().filter(whole)))
}

/// Whether footer and magic are there, and the summary is as it was written.
fn ends_well(storage: &dyn Storage) -> io::Result<bool> {
    let Some(start) = summary_start(storage)? else { return Ok(false) };
    let file_bytes = storage.bytes()?;
    let footer = file_bytes - ENDING_BYTES as u64;
    let start = if start == 0 { footer } else { start };
    let summed = (file_bytes - (MAGIC.len() + 4) as u64).checked_sub(start);
    let Some(summed) = summed.filter(|bytes| *bytes <= RECORD_BYTES_LIMIT) else {
        return Ok(false);
    };
    let Some(bytes) = read_exactly(storage, start, summed as usize + 4)? else { return Ok(false) };
    let (summed, crc) = bytes.split_at(summed as usize);
    let crc = Get::new(crc).u32().unwrap_or(0);
    Ok(crc == 0 || crc == crc32fast::hash(summed))
}

impl Plain {
    /// Whether it has its end, and the data reaches it.
    pub fn is_finished(&self) -> bool {
        self.ends_well
    }

    /// Position of an invalid record that others follow; such files are not changed.
    pub fn damage(&self) -> Option<u64> {
        self.damage.or((self.ends_well && !self.reached_data_end).then_some(self.end))
    }

    /// For reports.
    pub fn contents(&self) -> Contents {
        let ids = self.definitions.channel_ids().iter();
        let channels = ids.enumerate().map(|(at, id)| ChannelFound {
            id: *id,
            topic: self.definitions.topics()[at].clone(),
            messages: self.counts.get(id).copied().unwrap_or(0),
            digest: None,
            ledger: None,
        });
        Contents {
            channels: channels.collect(),
            times_ns: self.times_ns.unwrap_or_default(),
            chunks: self.chunks.len() as u64,
            data_end: self.end,
        }
    }

    /// One record; `None` if it is invalid.
    fn take(&mut self, opcode: u8, content: &[u8], content_bytes: u64) -> Option<()> {
        let offset = self.end;
        let record_bytes = RECORD_HEAD_BYTES as u64 + content_bytes;
        match opcode {
            op::SCHEMA | op::CHANNEL => self.definitions.add_record(opcode, content)?,
            op::MESSAGE => {
                let (id, log_time_ns) = message_head(content)?;
                self.count(id, 1, log_time_ns);
                self.loose_messages = true;
            }
            op::CHUNK => self.take_chunk(offset, content)?,
            op::MESSAGE_INDEX => self.take_message_index(offset, content)?,
            ATTACHMENT => {
                append_attachment_index(&mut self.attachments, offset, content)?;
                self.attachment_count += 1;
            }
            op::METADATA => {
                let name = Get::new(content).string()?;
                let start = self.metadata.len();
                self.metadata.resize(start + metadata_index_bytes(name), 0);
                let place = MetadataPlace { offset, record_bytes };
                put_metadata_index(&mut Put::new(&mut self.metadata[start..]), place, name);
                self.metadata_count += 1;
            }
            _ => {}
        }
        Some(())
    }

    fn count(&mut self, id: u16, messages: u64, log_time_ns: u64) {
        *self.counts.entry(id).or_default() += messages;
        let (start, end) = self.times_ns.unwrap_or((log_time_ns, log_time_ns));
        self.times_ns = Some((start.min(log_time_ns), end.max(log_time_ns)));
    }

    fn take_chunk(&mut self, offset: u64, content: &[u8]) -> Option<()> {
        let mut get = Get::new(content);
        let (start_ns, end_ns, uncompressed_bytes) = (get.u64()?, get.u64()?, get.u64()?);
        let _crc = get.u32()?;
        let compressed = !get.string()?.is_empty();
        let compressed_bytes = get.u64()?;
        let mut place = ChunkPlace {
            start_ns,
            end_ns,
            offset,
            record_bytes: (RECORD_HEAD_BYTES + content.len()) as u64,
            message_index_bytes: 0,
            compression: "",
            compressed_bytes,
            uncompressed_bytes,
        };
        let mut entries = BTreeMap::new();
        if !compressed {
            let (found, records) = chunk_place(content)?;
            place = ChunkPlace { offset, ..found };
            entries = self.take_records(records)?;
        } else if get.rest().len() as u64 != compressed_bytes {
            return None;
        }
        self.chunks.push(Chunk { place, compressed, indexes: Vec::new(), entries });
        Some(())
    }

    fn take_records(&mut self, records: &[u8]) -> Option<BTreeMap<u16, Vec<(u64, u64)>>> {
        let mut entries: BTreeMap<u16, Vec<(u64, u64)>> = BTreeMap::new();
        let mut get = Get::new(records);
        while !get.rest().is_empty() {
            let at = (records.len() - get.rest().len()) as u64;
            let (opcode, content) = get.record()?;
            match opcode {
                op::SCHEMA | op::CHANNEL => self.definitions.add_record(opcode, content)?,
                op::MESSAGE => {
                    let (id, log_time_ns) = message_head(content)?;
                    self.count(id, 1, log_time_ns);
                    entries.entry(id).or_default().push((log_time_ns, at));
                }
                _ => {}
            }
        }
        Some(entries)
    }

    fn take_message_index(&mut self, offset: u64, content: &[u8]) -> Option<()> {
        let mut get = Get::new(content);
        let id = get.u16()?;
        let mut entries = Get::new(get.prefixed()?);
        let chunk = self.chunks.last_mut()?;
        chunk.indexes.push((id, offset));
        chunk.place.message_index_bytes += (RECORD_HEAD_BYTES + content.len()) as u64;
        if chunk.compressed {
            while let (Some(log_time_ns), Some(_offset)) = (entries.u64(), entries.u64()) {
                self.count(id, 1, log_time_ns);
            }
        }
        Some(())
    }

    /// Cuts off what is not whole, and writes what is missing.
    pub fn complete(mut self, storage: &mut dyn WritableStorage) -> io::Result<()> {
        let mut ending = self.complete_last_index();
        let start = self.end + ending.len() as u64;
        let (statistics, chunk_indexes) = (self.statistics(), self.chunk_indexes());
        let [schemas, channels] = self.definitions.records();
        let all: [(u8, &[u8]); 6] = [
            (op::SCHEMA, schemas),
            (op::CHANNEL, channels),
            (op::STATISTICS, &statistics),
            (op::CHUNK_INDEX, &chunk_indexes),
            (ATTACHMENT_INDEX, &self.attachments),
            (op::METADATA_INDEX, &self.metadata),
        ];
        let compressed = self.chunks.iter().any(|chunk| chunk.compressed);
        let groups = if compressed { &all[..0] } else { &all[..] };
        let group_bytes = |(_, records): &(u8, &[u8])| records.len() + 26;
        let room = RECORD_HEAD_BYTES
            + DATA_END_BYTES
            + groups.iter().map(group_bytes).sum::<usize>()
            + ENDING_BYTES;
        let mut buffer = vec![0; room];
        let mut put = Put::new(&mut buffer);
        put_summary(&mut put, start, groups);
        let bytes = put.at();
        ending.extend_from_slice(&buffer[..bytes]);
        storage.truncate(self.end)?;
        storage.sync()?;
        storage.write(self.end, &ending)?;
        storage.sync()
    }

    /// The message indexes of a last chunk that was written without all of them.
    fn complete_last_index(&mut self) -> Vec<u8> {
        let mut records = Vec::new();
        let Some(chunk) = self.chunks.last_mut() else { return records };
        if chunk.compressed || chunk.is_indexed() {
            return records;
        }
        self.end = chunk.place.offset + chunk.place.record_bytes;
        chunk.indexes.clear();
        for (id, entries) in &chunk.entries {
            chunk.indexes.push((*id, self.end + records.len() as u64));
            let bytes = entries.len() * MESSAGE_INDEX_ENTRY_BYTES;
            let start = records.len();
            records.resize(start + RECORD_HEAD_BYTES + 2 + 4 + bytes, 0);
            let mut put = Put::new(&mut records[start..]);
            put.record(op::MESSAGE_INDEX, (2 + 4 + bytes) as u64);
            put.u16(*id);
            put.u32(bytes as u32);
            for (log_time_ns, offset) in entries {
                put.u64(*log_time_ns);
                put.u64(*offset);
            }
        }
        chunk.place.message_index_bytes = records.len() as u64;
        records
    }

    /// None if they would hide messages from readers that trust the index.
    fn chunk_indexes(&self) -> Vec<u8> {
        let mut records = Vec::new();
        if !self.loose_messages && self.chunks.iter().all(Chunk::is_indexed) {
            for chunk in &self.chunks {
                append_chunk_index(&mut records, &chunk.place, chunk.indexes.iter().copied());
            }
        }
        records
    }

    fn statistics(&self) -> Vec<u8> {
        let count = |id: &u16| self.counts.get(id).copied().unwrap_or(0);
        let ids = self.definitions.channel_ids().iter();
        let channels: Vec<_> =
            ids.map(|id| ChannelCount { id: *id, messages: count(id) }).collect();
        let statistics = Statistics {
            schemas: self.definitions.schema_count(),
            attachments: self.attachment_count,
            metadata: self.metadata_count,
            chunks: self.chunks.len() as u32,
            times_ns: self.times_ns.unwrap_or_default(),
            channels: &channels,
        };
        let mut record = vec![0; statistics_bytes(channels.len())];
        statistics.put(&mut Put::new(&mut record));
        record
    }
}

/// Channel and log time.
fn message_head(content: &[u8]) -> Option<(u16, u64)> {
    let mut get = Get::new(content.get(..MESSAGE_HEAD_BYTES)?);
    let (id, _sequence) = (get.u16()?, get.u32()?);
    Some((id, get.u64()?))
}

fn append_attachment_index(records: &mut Vec<u8>, offset: u64, content: &[u8]) -> Option<()> {
    let mut get = Get::new(content);
    let (log_time_ns, create_time_ns) = (get.u64()?, get.u64()?);
    let (name, media_type) = (get.string()?, get.string()?);
    let data_bytes = get.u64()?;
    get.bytes(usize::try_from(data_bytes).ok()?)?;
    let summed = content.len() - get.rest().len();
    let crc = get.u32()?;
    if crc != 0 && crc != crc32fast::hash(&content[..summed]) {
        return None;
    }
    let start = records.len();
    let bytes = 5 * 8 + 4 + name.len() + 4 + media_type.len();
    records.resize(start + RECORD_HEAD_BYTES + bytes, 0);
    let mut put = Put::new(&mut records[start..]);
    put.record(ATTACHMENT_INDEX, bytes as u64);
    put.u64(offset);
    put.u64((RECORD_HEAD_BYTES + content.len()) as u64);
    put.u64(log_time_ns);
    put.u64(create_time_ns);
    put.u64(data_bytes);
    put.string(name);
    put.string(media_type);
    Some(())
}
