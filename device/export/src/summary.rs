// SPDX-License-Identifier: MIT OR Apache-2.0
//! The summary of an export, as JSON and as metadata in its file. `export` fills it, and `steady
//! export` prints it.

use std::collections::BTreeMap;

use serde::Serialize;
use steadyio_recorder::audit::Loss;
use steadyio_recorder::mcap::account::{ChannelLedger, Gaps};
use steadyio_recorder::mcap::index::BlockSpan;
use steadyio_recorder::mcap::private::Identity;
use steadyio_recorder::mcap::reading::Readable;
use steadyio_recorder::mcap::sectors::Unreadable;

use crate::selection::Selection;
use crate::survey::{Survey, UnreadableSegment};

pub use crate::survey::IncidentSummary;

pub const SCHEMA: &str = "steadyio.export/1";

/// Recorded data that is not in the export.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// The number of blocks missing between existing ones, or changed since they were written.
    pub blocks: u64,
    pub bytes: u64,
    /// The missing blocks that had been durable. The others were in flight when power failed.
    pub durable_blocks: u64,
    /// The number of messages in damaged blocks and in segments that are damaged or gone.
    pub messages: u64,
    /// Whether `messages` may be too high, because some counts are lost.
    pub messages_at_most: bool,
    /// The number of bytes that the device could not read, data or not.
    pub unreadable_bytes: u64,
    /// The number of blocks that a recorder overwrote during the export.
    pub overwritten_blocks: u64,
    /// The number of whole segments that a recorder overwrote during the export.
    pub overwritten_segments: u64,
}

impl Missing {
    pub(crate) fn add_gaps(&mut self, gaps: &Gaps) {
        self.blocks += gaps.blocks;
        self.bytes += gaps.bytes;
        self.durable_blocks += gaps.durable_blocks;
    }

    pub(crate) fn add_unreadable(&mut self, unreadable: Option<Unreadable>) {
        self.unreadable_bytes += unreadable.map_or(0, |unreadable| unreadable.bytes);
    }

    pub(crate) fn add_block(&mut self, block: &BlockSpan, overwritten: bool) {
        if overwritten {
            self.overwritten_blocks += 1;
        } else {
            // The block existed when the index was made.
            self.add_gaps(&Gaps { blocks: 1, bytes: block.bytes, durable_blocks: 1 });
            self.messages += block.messages;
        }
    }

    pub(crate) fn add_loss(&mut self, loss: &Loss) {
        self.messages += loss.messages;
        self.messages_at_most |= loss.at_most;
    }

    /// The missing data in words: one line per cause.
    pub fn damage(&self) -> Vec<String> {
        let &Missing { blocks, bytes, durable_blocks, unreadable_bytes, .. } = self;
        let &Missing { overwritten_blocks, overwritten_segments, .. } = self;
        let mut lines = Vec::new();
        if unreadable_bytes > 0 {
            lines.push(format!("the device cannot read {unreadable_bytes} bytes of the segments"));
        }
        if durable_blocks > 0 {
            lines.push(format!(
                "damaged: {blocks} blocks, {bytes} bytes, are missing; {durable_blocks} of the \
                 blocks had been durable"
            ));
        }
        if self.messages > 0 {
            let at_most = if self.messages_at_most { "at most " } else { "" };
            lines.push(format!("{at_most}{} recorded messages are missing", self.messages));
        }
        if overwritten_blocks + overwritten_segments > 0 {
            lines.push(format!(
                "a recorder has overwritten {overwritten_segments} segments and \
                 {overwritten_blocks} blocks meanwhile: the oldest messages are missing"
            ));
        }
        lines
    }

    /// Whether data is missing that was durable once.
    pub fn is_damage(&self) -> bool {
        let overwritten = self.overwritten_blocks + self.overwritten_segments;
        self.durable_blocks + self.messages + self.unreadable_bytes + overwritten > 0
    }
}

/// One recording in the pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecordingSummary {
    pub recording_id: String,
    /// The number of its segments that were read.
    pub segments: u64,
    pub first_sequence: u64,
    pub last_sequence: u64,
    /// The creation time of the first of these segments.
    pub created_ns: u64,
    /// The account of each topic, from the beginning to the last one in a segment.
    pub channels: BTreeMap<String, ChannelAccount>,
}

impl RecordingSummary {
    /// The summary as metadata: `TOPIC.lost` and so on for each channel.
    pub(crate) fn as_map(&self) -> BTreeMap<String, String> {
        let mut map = BTreeMap::from([
            ("recording_id".into(), self.recording_id.clone()),
            ("segments".into(), self.segments.to_string()),
            ("first_sequence".into(), self.first_sequence.to_string()),
            ("last_sequence".into(), self.last_sequence.to_string()),
            ("created_ns".into(), self.created_ns.to_string()),
        ]);
        for (topic, account) in &self.channels {
            let ChannelAccount { received, written, durable, lost } = account;
            for (name, count) in
                [("received", received), ("written", written), ("durable", durable), ("lost", lost)]
            {
                map.insert(format!("{topic}.{name}"), count.to_string());
            }
        }
        map
    }
}

/// The recordings of which a segment was read.
#[derive(Debug, Default)]
pub struct Recordings(BTreeMap<[u8; 16], RecordingSummary>);

impl Recordings {
    /// Adds a segment to its recording.
    pub fn note(&mut self, found: &Readable) {
        let identity = found.life.identity;
        let recording = self.0.entry(identity.recording_id).or_insert_with(|| RecordingSummary {
            recording_id: recording_id(&identity),
            segments: 0,
            first_sequence: identity.sequence,
            last_sequence: 0,
            created_ns: found.life.created_ns,
            channels: BTreeMap::new(),
        });
        recording.segments += 1;
        if identity.sequence < recording.first_sequence {
            recording.first_sequence = identity.sequence;
            recording.created_ns = found.life.created_ns;
        }
        // An account covers the whole recording until then.
        if identity.sequence > recording.last_sequence {
            recording.last_sequence = identity.sequence;
            let accounts = found.definitions.topics().iter().zip(&found.ledger);
            let account = |(topic, ledger): (&String, &ChannelLedger)| {
                let &ChannelLedger { received, written, durable, lost, .. } = ledger;
                (topic.clone(), ChannelAccount { received, written, durable, lost })
            };
            recording.channels = accounts.map(account).collect();
        }
    }

    pub fn summaries(&self) -> impl Iterator<Item = &RecordingSummary> {
        self.0.values()
    }
}

/// The counts of a channel's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ChannelAccount {
    pub received: u64,
    pub written: u64,
    pub durable: u64,
    pub lost: u64,
}

/// A channel of the export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChannelSummary {
    /// The id in the file.
    pub id: u16,
    pub topic: String,
    pub messages: u64,
    /// The name of the schema.
    #[serde(skip)]
    pub type_name: String,
    #[serde(skip)]
    pub metadata: Vec<(String, String)>,
}

/// The summary. `docs/spec/export-1.schema.json` describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    pub schema: &'static str,
    pub tool: BTreeMap<&'static str, &'static str>,
    /// The name of the compression, or `none`.
    pub compression: &'static str,
    /// The first requested log time.
    pub from_ns: Option<u64>,
    /// The first log time after the requested ones.
    pub to_ns: Option<u64>,
    pub messages: u64,
    /// The first log time of the messages.
    pub start_ns: u64,
    pub end_ns: u64,
    /// The size of the file.
    pub bytes: u64,
    /// The number of messages that come after later ones.
    pub out_of_order: u64,
    pub channels: Vec<ChannelSummary>,
    pub recordings: Vec<RecordingSummary>,
    #[serde(flatten)]
    pub damage: Damage,
}

/// All missing data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Damage {
    pub missing: Missing,
    /// The places of missing messages, except damaged blocks of finished segments.
    pub losses: Vec<LossSummary>,
    /// The requested incidents of each directory.
    pub incidents: Vec<IncidentSummary>,
    pub unreadable: Vec<UnreadableSummary>,
}

impl Damage {
    /// Combines the survey with the part that was counted while reading.
    pub fn of(survey: &Survey, selection: &Selection, missing: Missing) -> Damage {
        Damage {
            missing,
            losses: survey.losses_in(selection).map(LossSummary::of).collect(),
            incidents: survey.incidents.clone(),
            unreadable: survey.unreadable.iter().map(UnreadableSummary::of).collect(),
        }
    }

    /// Whether data is missing that was durable once.
    pub fn is_any(&self) -> bool {
        let is_missing = |incident: &IncidentSummary| incident.missing_segments > 0;
        self.missing.is_damage()
            || !self.unreadable.is_empty()
            || self.incidents.iter().any(is_missing)
    }

    /// The damage in words.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = self.missing.damage();
        for LossSummary { place, messages, at_most } in &self.losses {
            let at_most = if *at_most { "at most " } else { "" };
            lines.push(format!("{place}: {at_most}{messages} messages are missing"));
        }
        for IncidentSummary { name, segments, missing_segments } in &self.incidents {
            if *missing_segments > 0 {
                lines.push(format!(
                    "incident {name}: {missing_segments} of {segments} segments are missing"
                ));
            }
        }
        for UnreadableSummary { path, why } in &self.unreadable {
            lines.push(format!("{path}: {why}; it is left out"));
        }
        lines
    }
}

/// Messages missing in a segment, or with whole segments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LossSummary {
    pub place: String,
    pub messages: u64,
    /// Whether there may be fewer.
    pub at_most: bool,
}

impl LossSummary {
    pub(crate) fn of(Loss { place, messages, at_most, .. }: &Loss) -> LossSummary {
        LossSummary { place: place.clone(), messages: *messages, at_most: *at_most }
    }
}

/// A segment that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnreadableSummary {
    pub path: String,
    pub why: String,
}

impl UnreadableSummary {
    pub(crate) fn of(found: &UnreadableSegment) -> UnreadableSummary {
        UnreadableSummary { path: found.path.display().to_string(), why: found.why.clone() }
    }
}

/// The id as 32 hexadecimal digits.
pub fn recording_id(identity: &Identity) -> String {
    identity.recording_id.iter().map(|byte| format!("{byte:02x}")).collect()
}
