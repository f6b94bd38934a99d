// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses frames: a length, a type, and the fields of the type. It does no I/O, and trusts no
//! length. [`super::framing`] calls it.
//!
//! After a wrong length the next frame cannot be found, so the first error ends a stream.

use std::collections::{BTreeMap, HashSet};

use crate::config::Schema;

use super::item::{PERIOD_NS_MIN, Place, Problem, RATE_BYTES_S_MAX, Step, StreamError, StreamItem};

/// The beginning of every stream, followed by the version.
pub const MAGIC: [u8; 7] = *b"\x89STEADY";
/// The version of the framing.
pub const VERSION: u8 = 1;
/// The longest record that a topic may declare, as in the recorder.
pub const RECORD_BYTES_MAX: u32 = 64 << 20;
/// The longest topic frame: mostly its schema.
const TOPIC_BYTES_MAX: u64 = 1 << 20;
/// The longest metadata frame: two strings.
const METADATA_BYTES_MAX: u64 = METADATA_HEAD_BYTES as u64 + 2 * u16::MAX as u64;
/// The limit of all topics of a stream, with their schemas and metadata.
pub(super) const DECLARED_BYTES_MAX: u64 = 256 << 20;

const LENGTH_BYTES: usize = 4;
const TYPE_BYTES: usize = 1;
pub(super) const TYPE_TOPIC: u8 = 1;
pub(super) const TYPE_BEGIN: u8 = 2;
pub(super) const TYPE_RECORD: u8 = 3;
pub(super) const TYPE_PUBLISHED: u8 = 4;
pub(super) const TYPE_METADATA: u8 = 5;
/// Type, identifier and time.
pub(super) const RECORD_HEAD_BYTES: usize = TYPE_BYTES + 2 + 8;
/// Type, identifier and two times.
pub(super) const PUBLISHED_HEAD_BYTES: usize = RECORD_HEAD_BYTES + 8;
/// Type, identifier, and the lengths of two strings.
pub(super) const METADATA_HEAD_BYTES: usize = TYPE_BYTES + 2 + 2 * 2;
/// Type, identifier, longest record, period, and the lengths of four strings.
pub(super) const TOPIC_HEAD_BYTES: usize = TYPE_BYTES + 2 + 4 + 8 + 4 * 2;

/// A topic as declared in a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
// The fields have the same meaning as in the configuration of a channel.
pub struct Topic {
    pub topic: String,
    pub message_encoding: String,
    /// The name of the schema; empty if there is none.
    pub schema_name: String,
    pub schema_encoding: String,
    pub schema_data: Vec<u8>,
    /// Keys and values.
    pub metadata: Vec<(String, String)>,
    pub record_bytes_max: u32,
    /// The period; 0 if irregular.
    pub period_ns: u64,
}

/// The encoding of a topic that declares neither an encoding nor a schema.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Undeclared {
    pub message_encoding: String,
    pub schema: Option<Schema>,
}

impl Undeclared {
    fn complete(&self, topic: &mut Topic) {
        if !topic.message_encoding.is_empty() || !topic.schema_name.is_empty() {
            return;
        }
        topic.message_encoding = self.message_encoding.clone();
        if let Some(Schema { name, encoding, data }) = self.schema.clone() {
            (topic.schema_name, topic.schema_encoding, topic.schema_data) = (name, encoding, data);
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Magic,
    Declaring,
    Recording,
}

/// The parser of frames.
#[derive(Debug)]
pub struct Frames {
    offset: u64,
    phase: Phase,
    topics: BTreeMap<u16, Topic>,
    /// The metadata of topics that are not declared yet.
    metadata: BTreeMap<u16, Vec<(String, String)>>,
    metadata_keys: HashSet<(u16, String)>,
    declared_bytes: u64,
    /// The longest record of any topic.
    record_bytes_max: u32,
    undeclared: Undeclared,
}

impl Default for Frames {
    fn default() -> Frames {
        Frames {
            offset: 0,
            phase: Phase::Magic,
            topics: BTreeMap::new(),
            metadata: BTreeMap::new(),
            metadata_keys: HashSet::new(),
            declared_bytes: 0,
            record_bytes_max: 0,
            undeclared: Undeclared::default(),
        }
    }
}

impl Frames {
    pub fn new(undeclared: Undeclared) -> Frames {
        Frames { undeclared, ..Frames::default() }
    }

    /// The topics declared so far, by identifier.
    pub fn topics(&self) -> &BTreeMap<u16, Topic> {
        &self.topics
    }

    /// An error at the current offset of the stream.
    pub fn error(&self, problem: Problem) -> StreamError {
        StreamError { offset: self.offset, problem }
    }

    /// See [`super::framing::Framing::next`].
    pub fn next(&mut self, data: &[u8], ended: bool) -> Result<Option<Step>, StreamError> {
        let step = match self.phase {
            Phase::Magic => self.magic(data),
            _ => self.frame(data),
        };
        let step = step.map_err(|problem| self.error(problem))?;
        match &step {
            Some(step) => self.offset += step.bytes as u64,
            None if ended && !data.is_empty() => {
                return Err(self.error(Problem::Truncated { have: data.len() as u64 }));
            }
            None => {}
        }
        Ok(step)
    }

    fn magic(&mut self, data: &[u8]) -> Result<Option<Step>, Problem> {
        let known = MAGIC.len().min(data.len());
        if data[..known] != MAGIC[..known] {
            let mut found = [0; MAGIC.len()];
            found[..known].copy_from_slice(&data[..known]);
            return Err(Problem::Magic { found, wanted: MAGIC });
        }
        match data.get(MAGIC.len()) {
            None => Ok(None),
            Some(&VERSION) => {
                self.phase = Phase::Declaring;
                Ok(Some(Step { bytes: MAGIC.len() + 1, what: StreamItem::Other }))
            }
            Some(&version) => Err(Problem::Version(version)),
        }
    }

    fn frame(&mut self, data: &[u8]) -> Result<Option<Step>, Problem> {
        let mut fields = Fields { data };
        let Some(length) = fields.u32() else { return Ok(None) };
        // The length is checked before the frame has arrived, because it may be four gigabytes of
        // garbage.
        let Some(kind) = fields.u8() else {
            return match length {
                0 => Err(Problem::Length {
                    frame: "untyped",
                    length: 0,
                    min: 1,
                    max: self.longest(),
                }),
                _ => Ok(None),
            };
        };
        let length = u64::from(length);
        let within = |frame, min: usize, max: u64| {
            if (min as u64..=max).contains(&length) {
                Ok(())
            } else {
                Err(Problem::Length { frame, length, min: min as u64, max })
            }
        };
        match kind {
            TYPE_TOPIC => within("topic", TOPIC_HEAD_BYTES, TOPIC_BYTES_MAX)?,
            TYPE_BEGIN => within("begin", TYPE_BYTES, TYPE_BYTES as u64)?,
            TYPE_RECORD => within("record", RECORD_HEAD_BYTES, self.longest())?,
            TYPE_PUBLISHED => within("record", PUBLISHED_HEAD_BYTES, self.longest() + 8)?,
            TYPE_METADATA => within("metadata", METADATA_HEAD_BYTES, METADATA_BYTES_MAX)?,
            other => return Err(Problem::Type(other)),
        }
        let bytes = LENGTH_BYTES + length as usize;
        if kind == TYPE_RECORD || kind == TYPE_PUBLISHED {
            return self.record(data, bytes, kind == TYPE_PUBLISHED);
        }
        let Some(body) = data.get(LENGTH_BYTES + TYPE_BYTES..bytes) else { return Ok(None) };
        self.declared_bytes += bytes as u64;
        if self.declared_bytes > DECLARED_BYTES_MAX {
            return Err(Problem::TooMuch(DECLARED_BYTES_MAX));
        }
        let what = match (kind, self.phase) {
            (TYPE_METADATA, _) => self.add_metadata(body)?,
            (TYPE_TOPIC, Phase::Recording) => StreamItem::Topic(self.declare(body)?),
            (TYPE_TOPIC, _) => self.declare(body).map(|_| StreamItem::Other)?,
            (_, Phase::Recording) => return Err(Problem::BeginTwice),
            _ => {
                if let Some(id) = self.metadata.keys().next() {
                    return Err(Problem::NoTopic(*id));
                }
                self.phase = Phase::Recording;
                StreamItem::Begin
            }
        };
        Ok(Some(Step { bytes, what }))
    }

    /// The longest record frame that any topic allows.
    fn longest(&self) -> u64 {
        RECORD_HEAD_BYTES as u64 + u64::from(self.record_bytes_max)
    }

    fn record(
        &mut self,
        data: &[u8],
        bytes: usize,
        published: bool,
    ) -> Result<Option<Step>, Problem> {
        if self.phase != Phase::Recording {
            return Err(Problem::BeforeBegin);
        }
        let mut fields = Fields { data: &data[LENGTH_BYTES + TYPE_BYTES..] };
        let (Some(id), Some(log_time_ns)) = (fields.u16(), fields.u64()) else { return Ok(None) };
        let publish_time_ns = if published { fields.u64() } else { Some(log_time_ns) };
        let Some(publish_time_ns) = publish_time_ns else { return Ok(None) };
        let head = if published { PUBLISHED_HEAD_BYTES } else { RECORD_HEAD_BYTES };
        let topic = self.topics.get(&id).ok_or(Problem::NoTopic(id))?;
        let length = bytes - LENGTH_BYTES;
        let max = head as u64 + u64::from(topic.record_bytes_max);
        if length as u64 > max {
            let (length, min) = (length as u64, head as u64);
            return Err(Problem::Length { frame: "record", length, min, max });
        }
        if data.len() < bytes {
            return Ok(None);
        }
        let payload = LENGTH_BYTES + head..bytes;
        let times_ns = Some((log_time_ns, publish_time_ns));
        let what = StreamItem::Record { id, times_ns, payload, place: Place::Input };
        Ok(Some(Step { bytes, what }))
    }

    /// Declares a topic, and returns its identifier.
    fn declare(&mut self, body: &[u8]) -> Result<u16, Problem> {
        let mut fields = Fields { data: body };
        let missing = |field| Problem::Field { field };
        let id = fields.u16().ok_or(missing("identifier"))?;
        let record_bytes_max = fields.u32().ok_or(missing("longest record"))?;
        let period_ns = fields.u64().ok_or(missing("period"))?;
        let mut topic = Topic {
            topic: fields.string("name")?,
            message_encoding: fields.string("message encoding")?,
            schema_name: fields.string("schema name")?,
            schema_encoding: fields.string("schema encoding")?,
            schema_data: fields.data.to_vec(),
            metadata: self.metadata.remove(&id).unwrap_or_default(),
            record_bytes_max,
            period_ns,
        };
        if record_bytes_max > RECORD_BYTES_MAX {
            let (length, max) = (record_bytes_max.into(), RECORD_BYTES_MAX.into());
            return Err(Problem::Length { frame: "record", length, min: 0, max });
        }
        if period_ns > 0 {
            let rate = u128::from(record_bytes_max) * 1_000_000_000 / u128::from(period_ns);
            if period_ns < PERIOD_NS_MIN || rate > u128::from(RATE_BYTES_S_MAX) {
                return Err(Problem::Rate {
                    topic: topic.topic,
                    bytes: record_bytes_max,
                    period_ns,
                });
            }
        }
        let has_schema = !topic.schema_encoding.is_empty() || !topic.schema_data.is_empty();
        if topic.schema_name.is_empty() && has_schema {
            return Err(Problem::Schema);
        }
        self.undeclared.complete(&mut topic);
        self.record_bytes_max = self.record_bytes_max.max(record_bytes_max);
        match self.topics.insert(id, topic) {
            None => Ok(id),
            Some(_) => Err(Problem::Twice(id)),
        }
    }
}

impl Frames {
    fn add_metadata(&mut self, body: &[u8]) -> Result<StreamItem, Problem> {
        let mut fields = Fields { data: body };
        let id = fields.u16().ok_or(Problem::Field { field: "identifier" })?;
        let (key, value) = (fields.string("key")?, fields.string("value")?);
        if self.topics.contains_key(&id) || !self.metadata_keys.insert((id, key.clone())) {
            return Err(Problem::Metadata { id, key });
        }
        self.metadata.entry(id).or_default().push((key, value));
        Ok(StreamItem::Other)
    }
}

/// Little-endian fields in sequence.
struct Fields<'a> {
    data: &'a [u8],
}

impl<'a> Fields<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.data.split_at_checked(bytes)?;
        self.data = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn string(&mut self, field: &'static str) -> Result<String, Problem> {
        let bytes = self.u16().and_then(|bytes| self.take(bytes.into()));
        let bytes = bytes.ok_or(Problem::Field { field })?;
        let text = std::str::from_utf8(bytes).map_err(|_| Problem::Utf8 { field })?;
        Ok(text.to_string())
    }
}
