// SPDX-License-Identifier: MIT OR Apache-2.0
//! Schemas and channels as encoded records. They are encoded once, because every segment has the
//! same bytes in its head and in its summary.

use std::collections::HashSet;

use super::wire::{Get, Put, RECORD_HEAD_BYTES, op};

/// The limit of channels per recording: the ledger of each segment has room for all of them.
pub const CHANNELS_MAX: usize = 16_384;
/// The limit of the size of all schemas and channels.
pub const DEFINITION_BYTES_MAX: usize = 16 << 20;

/// The schema of one or more channels' messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaSpec {
    /// The name of the type, for example `sensor_msgs/Imu`.
    pub name: String,
    /// `protobuf`, `ros2msg`, `jsonschema`, ...; empty if there is no description.
    pub encoding: String,
    /// The description.
    pub data: Vec<u8>,
}

/// One stream of messages. Its id in the file is its position in the list, from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelSpec {
    pub topic: String,
    /// `cdr`, `protobuf`, `json`, ...; empty if unknown.
    pub message_encoding: String,
    /// The position in the list of schemas.
    pub schema: Option<usize>,
    /// Metadata of the user.
    pub metadata: Vec<(String, String)>,
}

/// An error in schemas or channels.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    /// Too many channels, or none.
    #[error("{0} channels: must be 1 to {CHANNELS_MAX}")]
    Channels(usize),
    #[error("{0} schemas: must be at most {CHANNELS_MAX}")]
    Schemas(usize),
    #[error("schemas and channels take {0} bytes: must be at most {DEFINITION_BYTES_MAX}")]
    Bytes(usize),
    /// The schema is not in the list.
    #[error("channel {topic}: schema {schema} is not defined: there are {schemas}")]
    UnknownSchema {
        topic: String,
        schema: usize,
        /// The number of defined schemas.
        schemas: usize,
    },
    /// A key occurs twice. Readers reject such maps.
    #[error("channel {topic}: metadata key {key} is given twice")]
    KeyTwice { topic: String, key: String },
    /// A schema has data without an encoding, which the specification forbids.
    #[error("schema {0}: without an encoding its data must be empty")]
    DataWithoutEncoding(String),
}

/// A size of the definitions. They only grow, so a mark separates the first ones from those added
/// later.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mark {
    pub channels: usize,
    schema_bytes: usize,
    channel_bytes: usize,
}

impl Mark {
    /// The mark for this number of channels, with their schemas.
    pub fn of(channels: usize, bytes: usize) -> Mark {
        Mark { channels, schema_bytes: 0, channel_bytes: bytes }
    }

    /// The length of all records.
    pub fn bytes(&self) -> usize {
        self.schema_bytes + self.channel_bytes
    }
}

/// Schemas and channels of a recording, as records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definitions {
    profile: String,
    schemas: Vec<u8>,
    channels: Vec<u8>,
    schema_ids: Vec<u16>,
    channel_ids: Vec<u16>,
    topics: Vec<String>,
}

impl Definitions {
    /// Checks and encodes schemas and channels.
    pub fn new(
        schemas: &[SchemaSpec],
        channels: &[ChannelSpec],
    ) -> Result<Definitions, DefinitionError> {
        if channels.is_empty() {
            return Err(DefinitionError::Channels(0));
        }
        let mut definitions = Definitions::empty();
        schemas.iter().try_for_each(|schema| definitions.add_schema(schema))?;
        channels.iter().try_for_each(|channel| definitions.add_channel(channel))?;
        Ok(definitions)
    }

    /// Adds a channel, after its schema if that is new. After an error, nothing has changed.
    pub fn add(
        &mut self,
        schema: Option<&SchemaSpec>,
        channel: &ChannelSpec,
    ) -> Result<(), DefinitionError> {
        let (schemas, before) = (self.schema_ids.len(), self.schemas.len());
        let added = schema.map_or(Ok(()), |schema| self.add_schema(schema));
        added.and_then(|()| self.add_channel(channel)).inspect_err(|_| {
            self.schema_ids.truncate(schemas);
            self.schemas.truncate(before);
        })
    }

    /// Sets the profile of the recording.
    pub fn with_profile(self, profile: &str) -> Definitions {
        Definitions { profile: profile.into(), ..self }
    }

    /// MCAP's profile; empty if there is none.
    pub fn profile(&self) -> &str {
        &self.profile
    }

    /// Empty definitions of an existing file, to be filled by [`Definitions::add_record`].
    pub(super) fn empty() -> Definitions {
        Definitions {
            profile: String::new(),
            schemas: Vec::new(),
            channels: Vec::new(),
            schema_ids: Vec::new(),
            channel_ids: Vec::new(),
            topics: Vec::new(),
        }
    }

    /// The number of bytes that [`Definitions::add`] adds.
    pub fn bytes_of(schema: Option<&SchemaSpec>, channel: &ChannelSpec) -> usize {
        schema.map_or(0, schema_bytes) + channel_bytes(channel)
    }

    fn add_schema(&mut self, schema: &SchemaSpec) -> Result<(), DefinitionError> {
        let count = self.schema_ids.len() + 1;
        if count > CHANNELS_MAX {
            return Err(DefinitionError::Schemas(count));
        }
        if schema.encoding.is_empty() && !schema.data.is_empty() {
            return Err(DefinitionError::DataWithoutEncoding(schema.name.clone()));
        }
        let bytes = self.room_for(schema_bytes(schema))?;
        let start = self.schemas.len();
        self.schemas.resize(start + bytes, 0);
        let mut put = Put::new(&mut self.schemas[start..]);
        let opened = put.open_record(op::SCHEMA);
        // From 1, because 0 means no schema.
        put.u16(count as u16);
        put.string(&schema.name);
        put.string(&schema.encoding);
        put.u32(schema.data.len() as u32);
        put.bytes(&schema.data);
        put.close_record(opened);
        self.schema_ids.push(count as u16);
        Ok(())
    }

    fn add_channel(&mut self, channel: &ChannelSpec) -> Result<(), DefinitionError> {
        let (id, schemas) = (self.channel_ids.len(), self.schema_ids.len());
        if id >= CHANNELS_MAX {
            return Err(DefinitionError::Channels(id + 1));
        }
        let topic = channel.topic.clone();
        if let Some(schema) = channel.schema.filter(|schema| *schema >= schemas) {
            return Err(DefinitionError::UnknownSchema { topic, schema, schemas });
        }
        let mut keys = HashSet::with_capacity(channel.metadata.len());
        if let Some((key, _)) = channel.metadata.iter().find(|(key, _)| !keys.insert(key)) {
            return Err(DefinitionError::KeyTwice { topic, key: key.clone() });
        }
        let bytes = self.room_for(channel_bytes(channel))?;
        let start = self.channels.len();
        self.channels.resize(start + bytes, 0);
        let mut put = Put::new(&mut self.channels[start..]);
        let opened = put.open_record(op::CHANNEL);
        put.u16(id as u16);
        put.u16(channel.schema.map_or(0, |schema| schema as u16 + 1));
        put.string(&channel.topic);
        put.string(&channel.message_encoding);
        let map = put.open_u32();
        for (key, value) in &channel.metadata {
            put.string(key);
            put.string(value);
        }
        put.close_u32(map);
        put.close_record(opened);
        self.channel_ids.push(id as u16);
        self.topics.push(topic);
        Ok(())
    }

    /// Checks that this number of bytes fits.
    fn room_for(&self, bytes: usize) -> Result<usize, DefinitionError> {
        match self.bytes() + bytes {
            all if all > DEFINITION_BYTES_MAX => Err(DefinitionError::Bytes(all)),
            _ => Ok(bytes),
        }
    }

    /// Adds a schema or channel record from a file; repeated ones are ignored. `None` if it is
    /// malformed.
    pub(super) fn add_record(&mut self, opcode: u8, content: &[u8]) -> Option<()> {
        let mut get = Get::new(content);
        let id = get.u16()?;
        match opcode {
            op::SCHEMA if id != 0 && !self.schema_ids.contains(&id) => {
                append_record(&mut self.schemas, opcode, content);
                self.schema_ids.push(id);
            }
            op::CHANNEL if !self.channel_ids.contains(&id) => {
                let _schema = get.u16()?;
                self.topics.push(get.string()?.to_owned());
                append_record(&mut self.channels, opcode, content);
                self.channel_ids.push(id);
            }
            _ => {}
        }
        Some(())
    }

    /// Whether these are the first of others.
    pub fn begin(&self, others: &Definitions) -> bool {
        self.profile == others.profile
            && others.schemas.starts_with(&self.schemas)
            && others.channels.starts_with(&self.channels)
    }

    /// Removes all channels and schemas but the first ones.
    pub(super) fn truncate(&mut self, channels: usize, schemas: usize) {
        self.schemas.truncate(end_of(&self.schemas, schemas));
        self.schema_ids.truncate(schemas);
        self.channels.truncate(end_of(&self.channels, channels));
        self.channel_ids.truncate(channels);
        self.topics.truncate(channels);
    }

    /// The schema records, then the channel records.
    pub fn records(&self) -> [&[u8]; 2] {
        [&self.schemas, &self.channels]
    }

    /// The records up to the mark: schema records, then channel records.
    pub fn records_before(&self, mark: Mark) -> [&[u8]; 2] {
        [&self.schemas[..mark.schema_bytes], &self.channels[..mark.channel_bytes]]
    }

    /// The records added since the mark.
    pub fn records_since(&self, mark: Mark) -> [&[u8]; 2] {
        [&self.schemas[mark.schema_bytes..], &self.channels[mark.channel_bytes..]]
    }

    /// The present mark.
    pub fn mark(&self) -> Mark {
        Mark {
            channels: self.channel_ids.len(),
            schema_bytes: self.schemas.len(),
            channel_bytes: self.channels.len(),
        }
    }

    /// The length of [`Definitions::records`].
    pub fn bytes(&self) -> usize {
        self.schemas.len() + self.channels.len()
    }

    pub fn schema_count(&self) -> u16 {
        // Schema ids have 16 bits and are not 0.
        self.schema_ids.len() as u16
    }

    /// The ids in the file, in the order of the definitions.
    pub fn channel_ids(&self) -> &[u16] {
        &self.channel_ids
    }

    /// The position of the channel with an id.
    pub fn slot_of(&self, id: u16) -> Option<usize> {
        // Other programs may number channels differently.
        let same = usize::from(id);
        match self.channel_ids.get(same) {
            Some(found) if *found == id => Some(same),
            _ => self.channel_ids.iter().position(|known| *known == id),
        }
    }

    /// The topics, in the same order.
    pub fn topics(&self) -> &[String] {
        &self.topics
    }

    /// Decodes the records, in the same order; `None` if one is malformed.
    pub fn specs(&self) -> Option<(Vec<SchemaSpec>, Vec<ChannelSpec>)> {
        let schemas = contents(&self.schemas).map(schema_spec).collect::<Option<_>>()?;
        let channel = |content| channel_spec(content, &self.schema_ids);
        let channels = contents(&self.channels).map(channel).collect::<Option<_>>()?;
        Some((schemas, channels))
    }
}

/// The end of so many records.
fn end_of(records: &[u8], count: usize) -> usize {
    let mut get = Get::new(records);
    for _ in 0..count {
        let _ = get.record();
    }
    records.len() - get.rest().len()
}

fn contents(records: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut get = Get::new(records);
    std::iter::from_fn(move || get.record().map(|(_, content)| content))
}

fn schema_spec(content: &[u8]) -> Option<SchemaSpec> {
    let mut get = Get::new(content);
    let _id = get.u16()?;
    let (name, encoding) = (get.string()?.to_owned(), get.string()?.to_owned());
    Some(SchemaSpec { name, encoding, data: get.prefixed()?.to_vec() })
}

fn channel_spec(content: &[u8], schema_ids: &[u16]) -> Option<ChannelSpec> {
    let mut get = Get::new(content);
    let (_id, schema_id) = (get.u16()?, get.u16()?);
    let schema = match schema_id {
        0 => None,
        id => Some(schema_ids.iter().position(|known| *known == id)?),
    };
    let (topic, message_encoding) = (get.string()?.to_owned(), get.string()?.to_owned());
    let mut map = Get::new(get.prefixed()?);
    let mut metadata = Vec::new();
    while !map.rest().is_empty() {
        metadata.push((map.string()?.to_owned(), map.string()?.to_owned()));
    }
    Some(ChannelSpec { topic, message_encoding, schema, metadata })
}

fn append_record(records: &mut Vec<u8>, opcode: u8, content: &[u8]) {
    records.push(opcode);
    records.extend_from_slice(&(content.len() as u64).to_le_bytes());
    records.extend_from_slice(content);
}

fn schema_bytes(schema: &SchemaSpec) -> usize {
    RECORD_HEAD_BYTES + 2 + 12 + schema.name.len() + schema.encoding.len() + schema.data.len()
}

fn channel_bytes(channel: &ChannelSpec) -> usize {
    let map: usize = channel.metadata.iter().map(|(key, value)| 8 + key.len() + value.len()).sum();
    RECORD_HEAD_BYTES + 4 + 12 + channel.topic.len() + channel.message_encoding.len() + map
}
