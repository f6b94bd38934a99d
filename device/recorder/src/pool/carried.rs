// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the latched messages in the newest segments when a recording starts. The start and
//! `registry` use it.
//!
//! A program publishes a latched topic once. A restart has to carry the message over, because it
//! would otherwise be lost with its segment.

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;

use super::latch::{Held, Latch};
use crate::config::{ChannelConfig, Schema, is_latched};
use crate::mcap::definitions::{ChannelSpec, SchemaSpec};
use crate::mcap::index::BlockSpan;
use crate::mcap::reading::{Found, MessageInBlock, Readable, messages, read, read_block};

/// The number of segments to search. A topic that is declared late is repeated from the next
/// segment on, so its message may be in an older one.
const SEGMENTS_MAX: usize = 4;
/// The limit of reading per segment at the start. Repeated messages at its beginning are always
/// read.
const READ_BYTES_MAX: u64 = 256 << 20;

/// The properties that identify a channel.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Kind {
    topic: String,
    message_encoding: String,
    schema: Option<Schema>,
}

/// The latched messages by channel.
#[derive(Debug, Default)]
pub(super) struct Carried(HashMap<Kind, Held>);

impl Carried {
    /// Searches segments, the newest first. Sequence numbers are used only if this recording is
    /// continued.
    pub(super) fn find(newest_first: &[PathBuf], recording_id: [u8; 16]) -> Carried {
        let mut carried = Carried::default();
        for path in newest_first.iter().take(SEGMENTS_MAX) {
            // The start of the pool has reported unreadable files.
            let Ok(file) = File::open(path) else { continue };
            let Ok(Found::Messages(found)) = read(&file) else { continue };
            let goes_on = found.life.identity.recording_id == recording_id;
            for (kind, held) in last_messages(&file, &found) {
                let sequence = if goes_on { held.sequence } else { 0 };
                carried.0.entry(kind).or_insert(Held { sequence, ..held });
            }
        }
        carried
    }

    /// The initial state of a channel.
    pub(super) fn latch(&self, config: &ChannelConfig) -> Latch {
        if !is_latched(&config.metadata) {
            return Latch::Off;
        }
        let kind = Kind {
            topic: config.topic.clone(),
            message_encoding: config.message_encoding.clone(),
            schema: config.schema.clone(),
        };
        let held = self.0.get(&kind).filter(|held| {
            u64::try_from(held.payload.len()).is_ok_and(|bytes| bytes <= config.record_bytes_max)
        });
        held.map_or(Latch::Empty, |held| Latch::Holds(held.clone()))
    }
}

/// The last message of each latched channel of a segment.
fn last_messages(file: &File, found: &Readable) -> Vec<(Kind, Held)> {
    let Some((schemas, channels)) = found.definitions.specs() else { return Vec::new() };
    let latched = |channel: &ChannelSpec| is_latched(&channel.metadata);
    let mut last: HashMap<usize, Held> = HashMap::new();
    let mut left = channels.iter().filter(|channel| latched(channel)).count();
    let mut read_bytes = 0;
    for span in found.blocks.iter().rev() {
        if left == 0 {
            break;
        }
        read_bytes += span.bytes;
        if read_bytes > READ_BYTES_MAX && !span.repeats {
            continue;
        }
        let of_block = last_of_block(file, found, span, |slot| latched(&channels[slot]));
        for (slot, held) in of_block {
            last.entry(slot).or_insert_with(|| {
                left -= 1;
                held
            });
        }
    }
    let kind = |channel: &ChannelSpec| Kind {
        topic: channel.topic.clone(),
        message_encoding: channel.message_encoding.clone(),
        schema: channel.schema.map(|at| schema(&schemas[at])),
    };
    last.into_iter().map(|(slot, held)| (kind(&channels[slot]), held)).collect()
}

fn schema(spec: &SchemaSpec) -> Schema {
    let SchemaSpec { name, encoding, data } = spec.clone();
    Schema { name, encoding, data }
}

/// The last message of each requested channel, by its position in the definitions.
fn last_of_block(
    file: &File,
    found: &Readable,
    span: &BlockSpan,
    wants: impl Fn(usize) -> bool,
) -> HashMap<usize, Held> {
    let mut last = HashMap::new();
    let Ok(Some(block)) = read_block(file, &found.life, span) else { return last };
    let Some(messages) = messages(&block, &found.definitions) else { return last };
    for message in messages.filter(|message| wants(message.slot)) {
        let MessageInBlock { slot, sequence, publish_time_ns, payload, .. } = message;
        let payload = block[payload].to_vec();
        last.insert(slot, Held { sequence, publish_time_ns, payload });
    }
    last
}
