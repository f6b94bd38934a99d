// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts the schemas and channels of MCAP files to topics. [`super`] calls it.
//!
//! Ids belong to one file; topics belong to the stream. The same channel of several files, or twice
//! in one, is one topic.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::config::{CHANNELS_MAX, RECORD_KEY, RECORD_PREFIX, Schema};
use crate::mcap::wire::Get;
use crate::stream::frames::{DECLARED_BYTES_MAX, Topic};
use crate::stream::item::Problem;

const ENCODING: &str = "mcap";
/// The name for an MCAP schema without one. A recorder takes an empty name for no schema.
const UNNAMED: &str = "unnamed";

#[derive(Debug)]
pub(super) struct Declared {
    schemas: HashMap<u16, Schema>,
    /// The channels of the present file: content of the record, and identifier of the topic.
    channels: HashMap<u16, (Vec<u8>, u16)>,
    topics: BTreeMap<u16, Topic>,
    names: HashMap<String, u16>,
    bytes: u64,
    record_bytes_max: u32,
}

impl Declared {
    pub(super) fn new(record_bytes_max: u32) -> Declared {
        Declared {
            schemas: HashMap::new(),
            channels: HashMap::new(),
            topics: BTreeMap::new(),
            names: HashMap::new(),
            bytes: 0,
            record_bytes_max,
        }
    }

    pub(super) fn topics(&self) -> &BTreeMap<u16, Topic> {
        &self.topics
    }

    /// Begins a file, in which ids begin again.
    pub(super) fn begin_file(&mut self) {
        self.schemas.clear();
        self.channels.clear();
    }

    /// The topic of a channel.
    pub(super) fn topic_of(&self, id: u16) -> Option<u16> {
        self.channels.get(&id).map(|(_, topic)| *topic)
    }

    fn count(&mut self, bytes: usize) -> Result<(), Problem> {
        self.bytes += bytes as u64;
        if self.bytes > DECLARED_BYTES_MAX {
            return Err(Problem::TooMuch(DECLARED_BYTES_MAX));
        }
        Ok(())
    }

    /// Takes a schema record.
    pub(super) fn schema(&mut self, content: &[u8]) -> Result<(), Problem> {
        let (id, schema) = get_schema(content).ok_or(Problem::Field { field: "a schema" })?;
        match self.schemas.get(&id) {
            Some(known) if *known == schema => return Ok(()),
            Some(_) => return Err(Problem::SchemaTwice(id)),
            None => {}
        }
        self.count(content.len())?;
        self.schemas.insert(id, schema);
        Ok(())
    }

    /// Takes a channel record; returns its topic if that is new.
    pub(super) fn channel(&mut self, content: &[u8]) -> Result<Option<u16>, Problem> {
        let channel = get_channel(content).ok_or(Problem::Field { field: "a channel" })?;
        let (id, schema_id, mut topic) = channel;
        match self.channels.get(&id) {
            Some((known, _)) if known == content => return Ok(None),
            Some(_) => return Err(Problem::Twice(id)),
            None => {}
        }
        if schema_id != 0 {
            let schema = self.schemas.get(&schema_id);
            let schema = schema.ok_or_else(|| Problem::NoSchema {
                topic: topic.topic.clone(),
                schema: schema_id,
            })?;
            topic.schema_name = schema.name.clone();
            topic.schema_encoding = schema.encoding.clone();
            topic.schema_data = schema.data.clone();
        }
        topic.record_bytes_max = self.record_bytes_max;
        self.count(content.len() + topic.schema_data.len())?;
        let (number, is_new) = self.topic(topic)?;
        self.channels.insert(id, (content.to_vec(), number));
        Ok(is_new.then_some(number))
    }

    /// The topic of such records, and whether it is new.
    pub(super) fn kind(&mut self, kind: &str) -> Result<(u16, bool), Problem> {
        self.topic(Topic {
            topic: format!("{RECORD_PREFIX}{kind}"),
            message_encoding: ENCODING.into(),
            schema_name: String::new(),
            schema_encoding: String::new(),
            schema_data: Vec::new(),
            metadata: vec![(RECORD_KEY.into(), kind.into())],
            record_bytes_max: self.record_bytes_max,
            period_ns: 0,
        })
    }

    fn topic(&mut self, topic: Topic) -> Result<(u16, bool), Problem> {
        if let Some(number) = self.names.get(&topic.topic) {
            let same = self.topics.get(number).is_some_and(|known| *known == topic);
            return if same { Ok((*number, false)) } else { Err(Problem::Differs(topic.topic)) };
        }
        let number = self.topics.len();
        if number as u64 >= CHANNELS_MAX {
            return Err(Problem::TooManyTopics(CHANNELS_MAX));
        }
        // At most 10,000.
        let number = number as u16;
        self.names.insert(topic.topic.clone(), number);
        self.topics.insert(number, topic);
        Ok((number, true))
    }
}

fn get_schema(content: &[u8]) -> Option<(u16, Schema)> {
    let mut get = Get::new(content);
    let id = get.u16().filter(|id| *id != 0)?;
    let (name, encoding) = (get.string()?.to_owned(), get.string()?.to_owned());
    let data = get.prefixed()?.to_vec();
    let name = if name.is_empty() { UNNAMED.into() } else { name };
    Some((id, Schema { name, encoding, data }))
}

fn get_channel(content: &[u8]) -> Option<(u16, u16, Topic)> {
    let mut get = Get::new(content);
    let (id, schema) = (get.u16()?, get.u16()?);
    let (topic, message_encoding) = (get.string()?.to_owned(), get.string()?.to_owned());
    let mut map = Get::new(get.prefixed()?);
    let mut metadata = Vec::new();
    while !map.rest().is_empty() {
        metadata.push((map.string()?.to_owned(), map.string()?.to_owned()));
    }
    let topic = Topic {
        topic,
        message_encoding,
        schema_name: String::new(),
        schema_encoding: String::new(),
        schema_data: Vec::new(),
        metadata,
        record_bytes_max: 0,
        period_ns: 0,
    };
    Some((id, schema, topic))
}

/// Checks that metadata, or an attachment, is well-formed. An export could not restore it otherwise.
pub(super) fn check(is_attachment: bool, content: &[u8]) -> Result<(), Problem> {
    if !is_attachment {
        return check_metadata(content).ok_or(Problem::Field { field: "metadata" });
    }
    let crc = attachment_crc(content).ok_or(Problem::Field { field: "an attachment" })?;
    let body = &content[..content.len() - size_of::<u32>()];
    if crc != 0 && crc != crc32fast::hash(body) {
        return Err(Problem::Crc { of: "an attachment" });
    }
    Ok(())
}

/// None also if a key comes twice.
fn check_metadata(content: &[u8]) -> Option<()> {
    let mut get = Get::new(content);
    let _name = get.string()?;
    let mut map = Get::new(get.prefixed()?);
    let mut keys = HashSet::new();
    while !map.rest().is_empty() {
        let (key, _value) = (map.string()?, map.string()?);
        keys.insert(key).then_some(())?;
    }
    Some(())
}

fn attachment_crc(content: &[u8]) -> Option<u32> {
    let mut get = Get::new(content);
    let _times = get.bytes(2 * 8)?;
    let _name_and_type = (get.string()?, get.string()?);
    let bytes = usize::try_from(get.u64()?).ok()?;
    let _data = get.bytes(bytes)?;
    let crc = get.u32()?;
    get.rest().is_empty().then_some(crc)
}
