// SPDX-License-Identifier: MIT OR Apache-2.0
//! The channels of all producers, by topic. [`super::input`] adds and finds them.

use std::collections::HashMap;
use std::time::Duration;

use super::frames::Topic;
use super::item::Problem;
use crate::config::{ChannelConfig, Schema};

/// The channels in the order of the recording. One producer may declare thousands, while others
/// wait, so a topic is not searched in a list.
#[derive(Debug, Default)]
pub(super) struct Channels {
    all: Vec<ChannelConfig>,
    positions: HashMap<String, usize>,
}

impl Channels {
    pub(super) fn all(&self) -> &[ChannelConfig] {
        &self.all
    }

    /// Adds a channel of a new topic, and returns its position.
    pub(super) fn push(&mut self, channel: ChannelConfig) -> usize {
        let position = self.all.len();
        self.positions.insert(channel.topic.clone(), position);
        self.all.push(channel);
        position
    }

    /// Removes all channels after the first `count`.
    pub(super) fn truncate(&mut self, count: usize) {
        for channel in self.all.drain(count..) {
            self.positions.remove(&channel.topic);
        }
    }

    /// Sorts the channels by topic, and returns the new position of each.
    pub(super) fn sort(&mut self) -> Vec<usize> {
        let before: Vec<String> = self.all.iter().map(|one| one.topic.clone()).collect();
        self.all.sort_by(|one, other| one.topic.cmp(&other.topic));
        let topics = self.all.iter().map(|one| one.topic.clone());
        self.positions = topics.zip(0..).collect();
        before.iter().map(|topic| self.positions[topic]).collect()
    }

    /// The position of a topic's channel, if there is one.
    pub(super) fn find(&self, wanted: &ChannelConfig) -> Result<Option<usize>, Problem> {
        let Some(&at) = self.positions.get(&wanted.topic) else { return Ok(None) };
        let known = &self.all[at];
        let differs = |field| Err(Problem::Other { topic: wanted.topic.clone(), field });
        match () {
            () if known.message_encoding != wanted.message_encoding => differs("message encoding"),
            () if known.schema != wanted.schema => differs("schema"),
            () if known.metadata != wanted.metadata => differs("metadata"),
            () if known.record_bytes_max != wanted.record_bytes_max => differs("longest record"),
            () => Ok(Some(at)),
        }
    }
}

/// The configuration of a topic, without a ring. The caller knows all channels, and divides the
/// memory.
pub(super) fn config_of(topic: &Topic, latched: &[String]) -> ChannelConfig {
    let schema = Schema {
        name: topic.schema_name.clone(),
        encoding: topic.schema_encoding.clone(),
        data: topic.schema_data.clone(),
    };
    let config = ChannelConfig {
        topic: topic.topic.clone(),
        message_encoding: topic.message_encoding.clone(),
        schema: (!topic.schema_name.is_empty()).then_some(schema),
        metadata: topic.metadata.clone(),
        record_bytes_max: topic.record_bytes_max.into(),
        period: (topic.period_ns > 0).then(|| Duration::from_nanos(topic.period_ns)),
        ring_bytes: 0,
    };
    if latched.contains(&config.topic) { config.latched() } else { config }
}
