// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses a stream or file of MCAP from any program. It does no I/O, and trusts no length.
//! [`super::framing`] calls it.
//!
//! Several files may follow each other. A whole chunk is decompressed and checked before any of its
//! messages counts. The summary is skipped, since the data section has everything. Metadata and
//! attachments become records of two topics, from which an export restores them.

mod chunk;
mod declared;

use std::ops::Range;

use crc32fast::Hasher;

use self::chunk::{CHUNK_BYTES_MAX, records};
use self::declared::Declared;
use super::frames::Topic;
use super::item::{Place, Problem, Step, StreamError, StreamItem};
use crate::mcap::private::PROFILE_BYTES_MAX;
use crate::mcap::wire::{Get, MAGIC, MESSAGE_HEAD_BYTES, RECORD_HEAD_BYTES, op};

/// The opcode of an attachment. No other record here has it.
const ATTACHMENT: u8 = 0x09;
/// Reserved by the specification.
const OPCODE_INVALID: u8 = 0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The magic of a file, at the start or after another file.
    Magic,
    Header,
    Data,
    Summary,
    EndMagic,
}

/// The parser.
#[derive(Debug)]
pub struct McapStream {
    offset: u64,
    phase: Phase,
    files: u64,
    /// The rest of a record to skip.
    skip_bytes: u64,
    begun: bool,
    declared: Declared,
    /// The records of the present chunk, and the position in them.
    chunk: Vec<u8>,
    chunk_at: usize,
    /// The checksum of the file from its first byte.
    data_crc: Hasher,
    last_times_ns: Option<(u64, u64)>,
    profile: String,
}

/// A record, and the place of its content.
struct Found<'a> {
    opcode: u8,
    content: &'a [u8],
    start: usize,
    place: Place,
}

impl McapStream {
    /// Parses channels whose records have at most this number of bytes.
    pub fn new(record_bytes_max: u32) -> McapStream {
        McapStream {
            offset: 0,
            phase: Phase::Magic,
            files: 0,
            skip_bytes: 0,
            begun: false,
            declared: Declared::new(record_bytes_max),
            chunk: Vec::new(),
            chunk_at: 0,
            data_crc: Hasher::new(),
            last_times_ns: None,
            profile: String::new(),
        }
    }

    /// The topics declared so far, by identifier.
    pub fn topics(&self) -> &std::collections::BTreeMap<u16, Topic> {
        self.declared.topics()
    }

    /// The profile of the first file.
    pub fn profile(&self) -> &str {
        &self.profile
    }

    /// The decompressed bytes with a record of [`Place::Framing`].
    pub fn own(&self) -> &[u8] {
        &self.chunk
    }

    pub fn error(&self, problem: Problem) -> StreamError {
        StreamError { offset: self.offset, problem }
    }

    /// See [`super::framing::Framing::next`].
    pub fn next(&mut self, data: &[u8], ended: bool) -> Result<Option<Step>, StreamError> {
        let found = self.step(data, ended).map_err(|problem| self.error(problem))?;
        if let Some(step) = &found {
            self.data_crc.update(&data[..step.bytes]);
            self.offset += step.bytes as u64;
        }
        Ok(found)
    }

    fn step(&mut self, data: &[u8], ended: bool) -> Result<Option<Step>, Problem> {
        if self.chunk_at < self.chunk.len() {
            return self.step_in_chunk().map(Some);
        }
        if self.skip_bytes > 0 && !data.is_empty() {
            let bytes = usize::try_from(self.skip_bytes).unwrap_or(usize::MAX).min(data.len());
            self.skip_bytes -= bytes as u64;
            return Ok(Some(Step { bytes, what: StreamItem::Other }));
        }
        let found = match self.phase {
            Phase::Magic | Phase::EndMagic => self.magic(data),
            Phase::Header | Phase::Data | Phase::Summary => self.record(data),
        }?;
        let between = self.phase == Phase::Magic && self.files > 0 && data.is_empty();
        match found {
            None if ended && !between && data.is_empty() => Err(Problem::NoFooter),
            None if ended && !between => Err(Problem::Truncated { have: data.len() as u64 }),
            found => Ok(found),
        }
    }

    /// Handles the magic at the beginning or the end of a file.
    fn magic(&mut self, data: &[u8]) -> Result<Option<Step>, Problem> {
        let known = data.len().min(MAGIC.len());
        if data[..known] != MAGIC[..known] {
            let mut found = [0; MAGIC.len()];
            found[..known].copy_from_slice(&data[..known]);
            return Err(Problem::McapMagic { found });
        }
        if known < MAGIC.len() {
            return Ok(None);
        }
        if self.phase == Phase::Magic {
            self.phase = Phase::Header;
            self.data_crc = Hasher::new();
            self.declared.begin_file();
        } else {
            self.phase = Phase::Magic;
            self.files += 1;
        }
        Ok(Some(Step { bytes: MAGIC.len(), what: StreamItem::Other }))
    }

    fn record(&mut self, data: &[u8]) -> Result<Option<Step>, Problem> {
        let mut get = Get::new(data);
        let (Some(opcode), Some(length)) = (get.u8(), get.u64()) else { return Ok(None) };
        if opcode == OPCODE_INVALID || (self.phase == Phase::Header && opcode != op::HEADER) {
            return Err(Problem::Opcode(opcode));
        }
        if !self.means_anything(opcode) {
            self.skip_bytes = length;
            return Ok(Some(Step { bytes: RECORD_HEAD_BYTES, what: StreamItem::Other }));
        }
        if length > CHUNK_BYTES_MAX {
            let (frame, min, max) = (name(opcode), 0, CHUNK_BYTES_MAX);
            return Err(Problem::Length { frame, length, min, max });
        }
        let Some(content) = get.bytes(length as usize) else { return Ok(None) };
        let (start, place) = (RECORD_HEAD_BYTES, Place::Input);
        let what = self.meaning(&Found { opcode, content, start, place })?;
        // A record that needs its topics to be known first is returned again then.
        let bytes = if self.is_held_back(&what, opcode) { 0 } else { start + content.len() };
        Ok(Some(Step { bytes, what }))
    }

    /// Whether the record is more than a list of other records.
    fn means_anything(&self, opcode: u8) -> bool {
        match self.phase {
            Phase::Summary => matches!(opcode, op::FOOTER | op::HEADER),
            _ => matches!(
                opcode,
                op::HEADER
                    | op::FOOTER
                    | op::SCHEMA
                    | op::CHANNEL
                    | op::MESSAGE
                    | op::CHUNK
                    | op::METADATA
                    | op::DATA_END
                    | ATTACHMENT
            ),
        }
    }

    /// Whether another item must be returned before this record.
    fn is_held_back(&self, what: &StreamItem, opcode: u8) -> bool {
        let is_record = matches!(opcode, op::MESSAGE | op::METADATA | ATTACHMENT);
        let ends = opcode == op::DATA_END && *what == StreamItem::Begin;
        ends || (is_record && !matches!(what, StreamItem::Record { .. }))
    }

    fn meaning(&mut self, found: &Found<'_>) -> Result<StreamItem, Problem> {
        match found.opcode {
            op::HEADER if self.phase == Phase::Header => self.header(found.content),
            op::SCHEMA => self.declared.schema(found.content).map(|()| StreamItem::Other),
            op::CHANNEL => {
                let added = self.declared.channel(found.content)?;
                Ok(added.filter(|_| self.begun).map_or(StreamItem::Other, StreamItem::Topic))
            }
            op::MESSAGE => self.message(found),
            op::METADATA => self.other_record(found, "metadata"),
            ATTACHMENT => self.other_record(found, "attachment"),
            op::CHUNK if found.place == Place::Input => self.begin_chunk(found.content),
            op::DATA_END if found.place == Place::Input => self.end_data(found.content),
            op::FOOTER if found.place == Place::Input => {
                self.phase = Phase::EndMagic;
                Ok(StreamItem::Other)
            }
            opcode => Err(Problem::Opcode(opcode)),
        }
    }

    fn header(&mut self, content: &[u8]) -> Result<StreamItem, Problem> {
        let profile = Get::new(content).string().ok_or(Problem::Field { field: "a header" })?;
        if self.files == 0 && profile.len() <= PROFILE_BYTES_MAX {
            self.profile = profile.into();
        }
        self.phase = Phase::Data;
        Ok(StreamItem::Other)
    }

    fn message(&mut self, found: &Found<'_>) -> Result<StreamItem, Problem> {
        if !std::mem::replace(&mut self.begun, true) {
            return Ok(StreamItem::Begin);
        }
        let field = || Problem::Field { field: "a message" };
        let mut get = Get::new(found.content);
        let (id, _sequence) = (get.u16().ok_or_else(field)?, get.u32().ok_or_else(field)?);
        let times_ns = (get.u64().ok_or_else(field)?, get.u64().ok_or_else(field)?);
        let id = self.declared.topic_of(id).ok_or(Problem::NoTopic(id))?;
        self.last_times_ns = Some(times_ns);
        let payload = found.start + MESSAGE_HEAD_BYTES..found.start + found.content.len();
        Ok(StreamItem::Record { id, times_ns: Some(times_ns), payload, place: found.place })
    }

    /// A record of metadata or an attachment, with the time of the previous message.
    fn other_record(&mut self, found: &Found<'_>, kind: &str) -> Result<StreamItem, Problem> {
        if found.place == Place::Framing {
            return Err(Problem::Opcode(found.opcode));
        }
        declared::check(found.opcode == ATTACHMENT, found.content)?;
        let (id, is_new) = self.declared.kind(kind)?;
        if !std::mem::replace(&mut self.begun, true) {
            return Ok(StreamItem::Begin);
        }
        if is_new {
            return Ok(StreamItem::Topic(id));
        }
        let payload = found.start..found.start + found.content.len();
        Ok(StreamItem::Record { id, times_ns: self.last_times_ns, payload, place: found.place })
    }

    fn end_data(&mut self, content: &[u8]) -> Result<StreamItem, Problem> {
        if !std::mem::replace(&mut self.begun, true) {
            return Ok(StreamItem::Begin);
        }
        let crc = Get::new(content).u32().ok_or(Problem::Field { field: "a data end" })?;
        if crc != 0 && crc != self.data_crc.clone().finalize() {
            return Err(Problem::Crc { of: "the data section" });
        }
        self.phase = Phase::Summary;
        Ok(StreamItem::Other)
    }

    /// Begins a chunk. Before the recording begins, all channels of a chunk count as known.
    fn begin_chunk(&mut self, content: &[u8]) -> Result<StreamItem, Problem> {
        let records = records(content)?;
        let mut get = Get::new(&records);
        while let Some((opcode, content)) = get.record().filter(|_| !self.begun) {
            match opcode {
                op::SCHEMA => self.declared.schema(content)?,
                op::CHANNEL => self.declared.channel(content).map(drop)?,
                _ => {}
            }
        }
        (self.chunk, self.chunk_at) = (records, 0);
        Ok(StreamItem::Other)
    }

    fn step_in_chunk(&mut self) -> Result<Step, Problem> {
        let chunk = std::mem::take(&mut self.chunk);
        let found = self.next_in_chunk(&chunk);
        self.chunk = chunk;
        let (what, bytes) = found?;
        self.chunk_at += bytes;
        Ok(Step { bytes: 0, what })
    }

    /// The next item, and the number of bytes of the chunk that it takes.
    fn next_in_chunk(&mut self, chunk: &[u8]) -> Result<(StreamItem, usize), Problem> {
        let record = Get::new(&chunk[self.chunk_at..]).record();
        let (opcode, content) = record.ok_or(Problem::Field { field: "a record of a chunk" })?;
        let (start, bytes) = (self.chunk_at + RECORD_HEAD_BYTES, RECORD_HEAD_BYTES + content.len());
        if opcode == OPCODE_INVALID {
            return Err(Problem::Opcode(opcode));
        }
        if !is_of_specification(opcode) {
            return Ok((StreamItem::Other, bytes));
        }
        let found = Found { opcode, content, start, place: Place::Framing };
        let what = self.meaning(&found)?;
        let bytes = if self.is_held_back(&what, opcode) { 0 } else { bytes };
        Ok((what, bytes))
    }

    /// The place of a record's payload.
    pub(super) fn payload(&self, payload: &Range<usize>) -> &[u8] {
        &self.chunk[payload.clone()]
    }
}

fn is_of_specification(opcode: u8) -> bool {
    opcode <= op::DATA_END
}

fn name(opcode: u8) -> &'static str {
    match opcode {
        op::CHUNK => "chunk",
        op::MESSAGE => "message",
        ATTACHMENT => "attachment",
        _ => "record",
    }
}
