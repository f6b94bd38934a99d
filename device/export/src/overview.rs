// SPDX-License-Identifier: MIT OR Apache-2.0
//! Describes a pool from the summaries of its segments, without reading messages. `steady info`
//! prints it.

use std::collections::BTreeMap;
use std::io;

use serde::Serialize;
use steadyio_recorder::incident::Incident;
use steadyio_recorder::mcap::reading::{Found, Readable, read};

use crate::copies::open;
use crate::selection::Selection;
use crate::summary::{Damage, Missing, RecordingSummary, Recordings};
use crate::survey::{Segment, Survey, is_list};

pub const SCHEMA: &str = "steadyio.info/1";

/// The overview. `docs/spec/info-1.schema.json` describes it.
#[derive(Debug, Clone, Serialize)]
pub struct Overview {
    pub schema: &'static str,
    pub tool: BTreeMap<&'static str, &'static str>,
    /// The common profile of all recordings, or empty.
    pub profile: String,
    pub segments: SegmentCounts,
    pub messages: u64,
    /// The size of the blocks with messages.
    pub bytes: u64,
    /// The first log time; None without messages.
    pub start_ns: Option<u64>,
    pub end_ns: Option<u64>,
    /// The channels by topic.
    pub channels: Vec<ChannelOverview>,
    pub recordings: Vec<RecordingSummary>,
    #[serde(flatten)]
    pub damage: Damage,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub struct SegmentCounts {
    pub with_messages: usize,
    pub empty: usize,
    pub unreadable: usize,
}

/// A channel of one or several recordings.
#[derive(Debug, Clone, Serialize)]
pub struct ChannelOverview {
    pub topic: String,
    pub encoding: String,
    /// Empty if there is no schema.
    pub schema_name: String,
    pub schema_encoding: String,
    pub messages: u64,
    /// The number of messages that the recorder lost, in all recordings of which a segment was
    /// read.
    pub lost: u64,
}

/// Topic, encoding, and name and encoding of the schema.
type Key = (String, String, String, String);

#[derive(Default)]
struct Sums {
    channels: BTreeMap<Key, u64>,
    recordings: Recordings,
    missing: Missing,
}

impl Overview {
    /// Describes the segments of a survey; the incidents are those of its directories.
    pub fn of(survey: &Survey, incidents: &[Incident]) -> io::Result<Overview> {
        let mut sums = Sums::default();
        for segment in &survey.segments {
            sums.add(segment)?;
        }
        let all = Selection { topics: Vec::new(), times_ns: 0..u64::MAX };
        survey.losses_in(&all).for_each(|loss| sums.missing.add_loss(loss));
        let recordings: Vec<_> = sums.recordings.summaries().cloned().collect();
        let channels: Vec<_> = sums
            .channels
            .into_iter()
            .map(|(key, messages)| channel(key, messages, &recordings))
            .collect();
        let times_ns = survey.times_ns();
        let incidents = incidents.iter().map(|incident| survey.incident(incident)).collect();
        Ok(Overview {
            schema: SCHEMA,
            tool: BTreeMap::from([("steady", env!("CARGO_PKG_VERSION"))]),
            profile: survey.profile().into(),
            segments: SegmentCounts {
                with_messages: survey.segments.len(),
                empty: survey.empty,
                unreadable: survey.unreadable.iter().filter(|one| !is_list(&one.path)).count(),
            },
            messages: channels.iter().map(|channel| channel.messages).sum(),
            bytes: survey.segments.iter().map(|segment| segment.bytes).sum(),
            start_ns: times_ns.map(|(start_ns, _)| start_ns),
            end_ns: times_ns.map(|(_, end_ns)| end_ns),
            channels,
            recordings,
            damage: Damage { incidents, ..Damage::of(survey, &all, sums.missing) },
        })
    }
}

impl Sums {
    /// Adds a segment. If a recorder has begun another life of it, the new life counts.
    fn add(&mut self, segment: &Segment) -> io::Result<()> {
        let file = match open(&segment.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened?.0,
        };
        let named = |error| io::Error::other(format!("{}: {error}", segment.path.display()));
        let Found::Messages(found) = read(&file).map_err(named)? else { return Ok(()) };
        self.recordings.note(&found);
        self.missing.add_gaps(&found.gaps);
        self.missing.add_unreadable(found.unreadable);
        self.add_channels(&found);
        Ok(())
    }

    fn add_channels(&mut self, found: &Readable) {
        let Some((schemas, channels)) = found.definitions.specs() else { return };
        for (channel, messages) in channels.into_iter().zip(&found.counts) {
            let schema = channel.schema.map(|at| &schemas[at]);
            let (name, encoding) = schema
                .map(|schema| (schema.name.clone(), schema.encoding.clone()))
                .unwrap_or_default();
            let key = (channel.topic, channel.message_encoding, name, encoding);
            *self.channels.entry(key).or_default() += messages;
        }
    }
}

fn channel(key: Key, messages: u64, recordings: &[RecordingSummary]) -> ChannelOverview {
    let (topic, encoding, schema_name, schema_encoding) = key;
    let accounts = recordings.iter().filter_map(|recording| recording.channels.get(&topic));
    let lost = accounts.map(|account| account.lost).sum();
    ChannelOverview { topic, encoding, schema_name, schema_encoding, messages, lost }
}
