// SPDX-License-Identifier: MIT OR Apache-2.0
//! Selects the messages of latched topics: drops repeated ones, and adds those that are valid at
//! the beginning of a selection. `merge` calls it.
//!
//! A recorder repeats the last message of a latched topic at the beginning of each segment. Such a
//! copy is dropped if the message itself has been exported before. If a selection begins later than
//! the recording, the message valid at that time comes first, with the time of the beginning.
//! Otherwise that topic could not be replayed.

use std::collections::HashMap;

use steadyio_recorder::config::is_latched;
use steadyio_recorder::mcap::definitions::Definitions;
use steadyio_recorder::mcap::private::Identity;

use crate::selection::Selection;
use crate::survey::Segment;

/// The latest exported message of a topic.
#[derive(Debug, Clone, Copy)]
struct Given {
    recording_id: [u8; 16],
    sequence: u32,
    publish_time_ns: u64,
    bytes: usize,
}

/// The exported messages of latched topics so far.
#[derive(Debug, Default)]
pub(crate) struct Latched {
    topics: HashMap<String, usize>,
    given: Vec<Option<Given>>,
}

/// A message of a latched topic.
pub(crate) struct LatchedMessage {
    /// The number of its topic, from [`Latched::topics_of`].
    pub(crate) topic: usize,
    pub(crate) identity: Identity,
    pub(crate) sequence: u32,
    pub(crate) publish_time_ns: u64,
    pub(crate) bytes: usize,
    /// Whether it is a copy, or replaces one.
    pub(crate) repeats: bool,
}

impl Latched {
    /// The numbers of the latched topics, by position in the definitions.
    pub(crate) fn topics_of(&mut self, definitions: &Definitions) -> Vec<Option<usize>> {
        let Some((_, channels)) = definitions.specs() else { return Vec::new() };
        let numbers = channels.into_iter().map(|channel| {
            is_latched(&channel.metadata).then(|| {
                let next = self.topics.len();
                *self.topics.entry(channel.topic).or_insert(next)
            })
        });
        let numbers = numbers.collect();
        self.given.resize(self.topics.len(), None);
        numbers
    }

    /// Whether to export a message.
    pub(crate) fn is_news(&mut self, message: &LatchedMessage) -> bool {
        let &LatchedMessage { topic, identity, sequence, publish_time_ns, bytes, .. } = message;
        let Identity { recording_id, .. } = identity;
        let is_known = self.given[topic].is_some_and(|given| {
            // Numbers wrap: a number that is behind by less than half of the range is older.
            let counted = given.recording_id == recording_id
                && given.sequence.wrapping_sub(sequence) <= u32::MAX / 2;
            let same = given.publish_time_ns == publish_time_ns && given.bytes == bytes;
            counted || same
        });
        if message.repeats && is_known {
            return false;
        }
        self.given[topic] = Some(Given { recording_id, sequence, publish_time_ns, bytes });
        true
    }
}

/// The positions of the segments with the messages valid at the beginning of the selection: for
/// each recording that continues there, the newest segment that began before.
pub(crate) fn standing(segments: &[Segment], selection: &Selection) -> Vec<usize> {
    let from_ns = selection.times_ns.start;
    let mut newest: HashMap<[u8; 16], usize> = HashMap::new();
    for (at, segment) in segments.iter().enumerate() {
        let Identity { recording_id, sequence } = segment.life.identity;
        let is_newer = |known: &usize| segments[*known].life.identity.sequence < sequence;
        if segment.times_ns.0 < from_ns && newest.get(&recording_id).is_none_or(is_newer) {
            newest.insert(recording_id, at);
        }
    }
    let goes_on = |at: &usize| {
        let of = segments[*at].life.identity.recording_id;
        let same = |segment: &&Segment| segment.life.identity.recording_id == of;
        segments.iter().filter(same).any(|segment| selection.wants_some_of(segment.times_ns))
    };
    newest.into_values().filter(goes_on).collect()
}
