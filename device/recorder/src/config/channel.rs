// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration of channels: their topics, schemas, and the rings for their records. `steady
//! record`, `capi` and `stream` make them.

use std::collections::HashMap;
use std::time::Duration;

use super::limits::{
    ConfigError, POLLS_PER_RING_MIN, RECORD_BYTES_MAX, RING_BYTES, RING_RECORDS_MIN,
    TOPIC_BYTES_MAX, within, wrong,
};
use crate::mcap::definitions::{ChannelSpec, SchemaSpec};
use crate::mcap::layout::single_overhead_bytes;
use crate::ring::HEADER_BYTES;

/// The schema of a channel's records, as in MCAP. Names may be empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Schema {
    /// The name of the type.
    pub name: String,
    /// The language of the definition, for example `jsonschema` or `protobuf`.
    pub encoding: String,
    pub data: Vec<u8>,
}

/// The schemas of a recording so far, without duplicates.
#[derive(Debug, Default)]
pub(crate) struct Schemas(HashMap<Schema, usize>);

impl Schemas {
    /// The position of a schema, and its definition if it is a new one.
    pub(crate) fn number_of(
        &mut self,
        schema: Option<&Schema>,
    ) -> (Option<usize>, Option<SchemaSpec>) {
        let Some(schema) = schema else { return (None, None) };
        if let Some(known) = self.0.get(schema) {
            return (Some(*known), None);
        }
        let number = self.0.len();
        self.0.insert(schema.clone(), number);
        let Schema { name, encoding, data } = schema.clone();
        (Some(number), Some(SchemaSpec { name, encoding, data }))
    }

    /// Removes a schema whose definition failed.
    pub(crate) fn forget(&mut self, schema: &Schema) {
        self.0.remove(schema);
    }
}

/// The metadata key of a latched channel, with the value `true`. The last message of such a channel
/// is repeated in each new segment.
pub const LATCHED_KEY: &str = "steadyio.latched";
const LATCHED_VALUE: &str = "true";

/// Whether this is the metadata of a latched channel.
pub fn is_latched(metadata: &[(String, String)]) -> bool {
    metadata.iter().any(|(key, value)| key == LATCHED_KEY && value == LATCHED_VALUE)
}

/// The metadata key of a channel whose messages were other records of an MCAP file: `metadata` or
/// `attachment`. An export makes them such records again.
pub const RECORD_KEY: &str = "steadyio.record";
/// The prefix of the topics of such channels.
pub const RECORD_PREFIX: &str = "/mcap/";

/// One stream of records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelConfig {
    /// The channel's name in the recording.
    pub topic: String,
    /// The encoding of the records: `json`, `cdr` or empty.
    pub message_encoding: String,
    /// The schema of the records, if known.
    pub schema: Option<Schema>,
    /// Metadata of the user. Each key occurs once.
    pub metadata: Vec<(String, String)>,
    pub record_bytes_max: u64,
    /// The time between records; None if irregular.
    pub period: Option<Duration>,
    /// The size of the ring between caller and writer thread. Ignored if the channels share a ring.
    pub ring_bytes: u64,
}

impl ChannelConfig {
    /// A channel without encoding, schema and period. The caller sets the size of its ring, unless
    /// the channels share one.
    pub fn new(topic: &str, record_bytes_max: u64) -> ChannelConfig {
        ChannelConfig {
            topic: topic.into(),
            message_encoding: String::new(),
            schema: None,
            metadata: Vec::new(),
            record_bytes_max,
            period: None,
            ring_bytes: 0,
        }
    }

    /// The same channel, latched: see [`LATCHED_KEY`].
    pub fn latched(mut self) -> ChannelConfig {
        self.metadata.retain(|(key, _)| key != LATCHED_KEY);
        self.metadata.push((LATCHED_KEY.into(), LATCHED_VALUE.into()));
        self
    }

    /// The number of bytes that a latched channel may add to each segment.
    pub(crate) fn latched_bytes(&self) -> u64 {
        if is_latched(&self.metadata) { self.record_bytes_max } else { 0 }
    }

    pub(super) fn check(&self, longest: u64, poll: Option<Duration>) -> Result<(), ConfigError> {
        let key = |field: &str| format!("channel {:?}: {field}", self.topic);
        within(&key("length of its topic"), self.topic.len() as u64, (1, TOPIC_BYTES_MAX))?;
        within(&key("record_bytes_max"), self.record_bytes_max, (1, RECORD_BYTES_MAX))?;
        if self.record_bytes_max > longest {
            let reason = format!("must be at most {longest}; raise longest_record_bytes");
            return Err(wrong(key("record_bytes_max"), self.record_bytes_max, reason));
        }
        let is_other = |(key, kind): &(String, String)| {
            key == RECORD_KEY && self.topic.strip_prefix(RECORD_PREFIX) != Some(kind.as_str())
        };
        if let Some((_, kind)) = self.metadata.iter().find(|pair| is_other(pair)) {
            let reason =
                "an export would take the records for those of an MCAP file: give another key";
            return Err(wrong(key(&format!("metadata {RECORD_KEY:?}")), kind, reason));
        }
        if self.period.is_some_and(|period| period.is_zero()) {
            return Err(wrong(
                key("period"),
                "0",
                "must be longer than 0; omit it if there is none",
            ));
        }
        poll.map_or(Ok(()), |poll| {
            let need = self.comes_in_polls(poll).max(RING_RECORDS_MIN * self.slot_bytes());
            check_ring(&key("ring_bytes"), self.ring_bytes, need, poll)
        })
    }

    /// The channel as segments describe it.
    pub(crate) fn spec(&self, schema: Option<usize>) -> ChannelSpec {
        ChannelSpec {
            topic: self.topic.clone(),
            message_encoding: self.message_encoding.clone(),
            schema,
            metadata: self.metadata.clone(),
        }
    }

    /// Checks a channel that is declared while the recorder runs. `ring_bytes` is the size of the
    /// shared ring.
    pub(crate) fn check_late(&self, limits: &LateLimits) -> Result<(), ConfigError> {
        let own = limits.shared_ring_bytes.is_none().then_some(limits.poll);
        self.check(limits.longest, own)?;
        limits.shared_ring_bytes.map_or(Ok(()), |bytes| {
            let need = RING_RECORDS_MIN * self.slot_bytes();
            check_ring("all channels: ring_bytes", bytes, need, limits.poll)
        })
    }

    /// The size of a record in a ring.
    pub(super) fn slot_bytes(&self) -> u64 {
        self.record_bytes_max.saturating_add(HEADER_BYTES as u64)
    }

    /// The number of bytes that the channel appends during the polls that a ring must cover.
    pub(super) fn comes_in_polls(&self, poll: Duration) -> u64 {
        let polls = u128::from(POLLS_PER_RING_MIN) * poll.as_nanos();
        let records = self.period.map_or(0, |period| polls.div_ceil(period.as_nanos()));
        self.slot_bytes().saturating_mul(u64::try_from(records).unwrap_or(u64::MAX))
    }
}

/// The limits for channels that are declared later.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LateLimits {
    pub(super) longest: u64,
    pub(super) poll: Duration,
    pub(crate) shared_ring_bytes: Option<u64>,
    /// The limit for the sum of the latched channels' longest records.
    pub(crate) latched_bytes_max: u64,
}

/// Checks that the latched channels, with this one, leave enough room in each segment.
pub(crate) fn check_latched(topic: &str, bytes: u64, bytes_max: u64) -> Result<(), ConfigError> {
    if bytes <= bytes_max {
        return Ok(());
    }
    let reason = format!(
        "the longest records of latched topics have {bytes} bytes together: must be at most \
         {bytes_max}, a quarter of a segment; raise segment_bytes"
    );
    Err(wrong("latched topic", topic, reason))
}

pub(super) fn check_ring(
    key: &str,
    bytes: u64,
    need: u64,
    poll: Duration,
) -> Result<(), ConfigError> {
    within(key, bytes, RING_BYTES)?;
    if bytes >= need {
        return Ok(());
    }
    let reason = format!(
        "must be at least {need}: the writer thread polls every {poll:?}, and the ring must last \
         for {POLLS_PER_RING_MIN} polls"
    );
    Err(wrong(key, bytes, reason))
}

/// The longest record that a channel may have, independent of the number of channels.
pub fn record_bytes_max(unit_bytes: u64, longest_record_bytes: u64) -> u64 {
    let fits = unit_bytes.saturating_sub(single_overhead_bytes(usize::MAX) as u64);
    fits.max(longest_record_bytes)
}
