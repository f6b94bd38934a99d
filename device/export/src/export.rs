// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the export: messages in order, compressed chunks, an index, and metadata of the
//! recordings. `steady export` calls it.

use std::collections::BTreeMap;
use std::io::{self, Seek, Write};
use std::rc::Rc;

use mcap::records::{MessageHeader, Metadata};
use mcap::write::NoSeek;
use mcap::{McapError, WriteOptions};
use steadyio_core::interrupt::Interrupt;
use steadyio_recorder::mcap::definitions::Definitions;

use crate::files::{FileSummary, Files, Other, Split};
use crate::merge::{Item, Merge, Next};
use crate::selection::Selection;
use crate::summary::{ChannelSummary, Damage, Recordings, SCHEMA, Summary};
use crate::survey::Survey;

const LIBRARY: &str = concat!("steadyio-export ", env!("CARGO_PKG_VERSION"));
/// The name of the export's metadata record.
const EXPORT_NAME: &str = "steadyio.export";
/// The name of each recording's metadata record.
const RECORDING_NAME: &str = "steadyio.recording";

/// The compression of chunks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Compression {
    #[default]
    Zstd,
    Lz4,
    None,
}

impl Compression {
    pub fn name(self) -> &'static str {
        match self {
            Compression::Zstd => "zstd",
            Compression::Lz4 => "lz4",
            Compression::None => "none",
        }
    }

    fn of_mcap(self) -> Option<mcap::Compression> {
        match self {
            Compression::Zstd => Some(mcap::Compression::Zstd),
            Compression::Lz4 => Some(mcap::Compression::Lz4),
            Compression::None => None,
        }
    }
}

/// The export is incomplete.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("cannot read: {0}")]
    Read(io::Error),
    /// Writing to the output failed.
    #[error("cannot write: {0}")]
    Write(io::Error),
    /// The MCAP writer rejected something.
    #[error("cannot be written as MCAP: {0}")]
    Mcap(McapError),
    #[error("{path}: its schemas or channels are malformed")]
    Definitions { path: String },
    #[error("interrupted")]
    Interrupted,
    #[error("no message was selected")]
    Nothing,
    /// None of the selected messages can be read any more.
    #[error("no message is left: {}", .0.lines().join("; "))]
    NothingLeft(Box<Damage>),
}

impl From<McapError> for ExportError {
    fn from(error: McapError) -> ExportError {
        match error {
            // The writer reports any failed write as one of compression, too.
            McapError::Io(error) => ExportError::Write(error),
            error => ExportError::Mcap(error),
        }
    }
}

/// The source and the options of an export.
pub struct Export<'a> {
    pub survey: &'a Survey,
    pub selection: &'a Selection,
    pub compression: Compression,
    /// None: the profile of the recordings.
    pub profile: Option<&'a str>,
    /// The memory limit for blocks.
    pub held_bytes_max: usize,
    pub stop: &'a Interrupt,
    /// Gets the number of bytes read, and of all bytes.
    pub progress: &'a mut dyn FnMut(u64, u64),
}

/// The targets in the export, by position in a segment's definitions; None for channels that are
/// not selected.
type Ids = Rc<Vec<Option<Target>>>;

/// The destination of a message.
#[derive(Debug, Clone, Copy)]
enum Target {
    /// A message of the channel with this id.
    Channel(u16),
    Other(Other),
}

struct Exporting<'a, W: Write + Seek> {
    writer: Files<'a, W>,
    /// The targets by position in the survey.
    ids: Vec<Option<Ids>>,
    /// The targets of the last opened segment; those of the next one are mostly the same.
    last: Option<(Definitions, Ids)>,
    channels: BTreeMap<u16, ChannelSummary>,
    recordings: Recordings,
    times_ns: Option<(u64, u64)>,
    messages: u64,
    /// The number of metadata records and attachments.
    others: u64,
}

impl Export<'_> {
    /// Writes the whole export into a file, and returns its summary.
    pub fn write(self, out: impl Write + Seek) -> Result<Summary, ExportError> {
        self.write_with(WriteOptions::new(), out, None).map(|(summary, _)| summary)
    }

    /// Writes the whole export into a pipe. A reader gets each chunk when it is complete.
    pub fn stream(self, out: impl Write) -> Result<Summary, ExportError> {
        let options = WriteOptions::new().disable_seeking(true);
        self.write_with(options, NoSeek::new(out), None).map(|(summary, _)| summary)
    }

    /// Writes the export into several files, and also returns a summary of each.
    pub fn split<W: Write + Seek>(
        self,
        split: &mut dyn Split<W>,
    ) -> Result<(Summary, Vec<FileSummary>), ExportError> {
        let first = split.open(0).map_err(ExportError::Write)?;
        self.write_with(WriteOptions::new(), first, Some(split))
    }

    fn write_with<W: Write + Seek>(
        mut self,
        options: WriteOptions,
        out: W,
        split: Option<&mut dyn Split<W>>,
    ) -> Result<(Summary, Vec<FileSummary>), ExportError> {
        let options = options
            .compression(self.compression.of_mcap())
            // A running recorder needs the other CPUs.
            .compression_threads(0)
            .profile(self.profile.unwrap_or(self.survey.profile()))
            .library(LIBRARY);
        let mut exporting = Exporting {
            writer: Files::new(options, out, split)?,
            ids: vec![None; self.survey.segments.len()],
            last: None,
            channels: BTreeMap::new(),
            recordings: Recordings::default(),
            times_ns: None,
            messages: 0,
            others: 0,
        };
        let mut merge = Merge::new(self.survey, self.selection.clone(), self.held_bytes_max);
        if let Err(error) = self.copy(&mut merge, &mut exporting) {
            // Dropping the writer would write an end, and the incomplete file would look complete.
            exporting.writer.abandon();
            return Err(error);
        }
        let mut summary = self.summary(&merge, &exporting);
        exporting.put_metadata(&summary)?;
        let files = exporting.writer.finish()?;
        summary.bytes = files.iter().map(|file| file.bytes).sum();
        Ok((summary, files))
    }

    fn copy<W: Write + Seek>(
        &mut self,
        merge: &mut Merge,
        exporting: &mut Exporting<'_, W>,
    ) -> Result<(), ExportError> {
        let (mut done, all) = (0, merge.bytes());
        while let Some(item) = merge.step().map_err(ExportError::Read)? {
            match item {
                Item::Message(message) => {
                    let is_written = exporting.put(&message, merge.payload(&message))?;
                    merge.missing.messages += u64::from(!is_written);
                }
                Item::Segment(at, found) => {
                    let ids = exporting.add_channels(&found.definitions, self.selection)?;
                    exporting.ids[at] = Some(ids.ok_or_else(|| ExportError::Definitions {
                        path: self.survey.segments[at].path.display().to_string(),
                    })?);
                    exporting.recordings.note(&found);
                }
                Item::Read(bytes) => {
                    done += bytes;
                    (self.progress)(done, all);
                    if self.stop.requested() {
                        return Err(ExportError::Interrupted);
                    }
                }
            }
        }
        if exporting.messages + exporting.others > 0 {
            return Ok(());
        }
        let damage = Damage::of(self.survey, self.selection, merge.missing);
        Err(match damage.is_any() {
            true => ExportError::NothingLeft(Box::new(damage)),
            false => ExportError::Nothing,
        })
    }

    fn summary<W: Write + Seek>(&self, merge: &Merge, exporting: &Exporting<'_, W>) -> Summary {
        let times_ns = &self.selection.times_ns;
        let (start_ns, end_ns) = exporting.times_ns.unwrap_or_default();
        Summary {
            schema: SCHEMA,
            tool: BTreeMap::from([("steady", env!("CARGO_PKG_VERSION"))]),
            compression: self.compression.name(),
            from_ns: (times_ns.start > 0).then_some(times_ns.start),
            to_ns: (times_ns.end < u64::MAX).then_some(times_ns.end),
            messages: exporting.messages,
            start_ns,
            end_ns,
            bytes: 0,
            out_of_order: merge.late,
            channels: exporting.channels.values().cloned().collect(),
            recordings: exporting.recordings.summaries().cloned().collect(),
            damage: Damage::of(self.survey, self.selection, merge.missing),
        }
    }
}

impl<W: Write + Seek> Exporting<'_, W> {
    /// Writes a message; false if it should be a record of another kind, and is malformed.
    fn put(&mut self, message: &Next, payload: &[u8]) -> Result<bool, McapError> {
        let id = self.ids[message.segment].as_ref().and_then(|ids| ids[message.slot]);
        let channel_id = match id {
            Some(Target::Channel(id)) => id,
            Some(Target::Other(kind)) => {
                let is_written = self.writer.write_other(kind, payload)?;
                self.others += u64::from(is_written);
                return Ok(is_written);
            }
            // Only selected channels come here.
            None => return Ok(true),
        };
        let header = MessageHeader {
            channel_id,
            sequence: message.sequence,
            log_time: message.log_time_ns,
            publish_time: message.publish_time_ns,
        };
        self.writer.write(&header, payload)?;
        self.messages += 1;
        let (start_ns, end_ns) =
            self.times_ns.unwrap_or((message.log_time_ns, message.log_time_ns));
        self.times_ns = Some((start_ns.min(message.log_time_ns), end_ns.max(message.log_time_ns)));
        if let Some(channel) = self.channels.get_mut(&channel_id) {
            channel.messages += 1;
        }
        Ok(true)
    }

    /// Adds a segment's channels. The same channel of several segments and recordings is one. None
    /// if a record is malformed.
    fn add_channels(
        &mut self,
        definitions: &Definitions,
        selection: &Selection,
    ) -> Result<Option<Ids>, McapError> {
        if let Some((_, ids)) = self.last.as_ref().filter(|(known, _)| known == definitions) {
            return Ok(Some(Rc::clone(ids)));
        }
        let Some((schemas, channels)) = definitions.specs() else { return Ok(None) };
        let mut ids = Vec::with_capacity(channels.len());
        for channel in channels {
            if !selection.wants_topic(&channel.topic) {
                ids.push(None);
                continue;
            }
            if let Some(other) = Other::of(&channel.metadata) {
                ids.push(Some(Target::Other(other)));
                continue;
            }
            let schema_id = match channel.schema.map(|at| &schemas[at]) {
                Some(schema) => self.writer.add_schema(schema)?,
                None => 0,
            };
            let summary = ChannelSummary {
                id: 0,
                topic: channel.topic.clone(),
                messages: 0,
                type_name: channel.schema.map(|at| schemas[at].name.clone()).unwrap_or_default(),
                metadata: channel.metadata.clone(),
            };
            let id = self.writer.add_channel(schema_id, channel)?;
            self.channels.entry(id).or_insert(ChannelSummary { id, ..summary });
            ids.push(Some(Target::Channel(id)));
        }
        let ids = Rc::new(ids);
        self.last = Some((definitions.clone(), Rc::clone(&ids)));
        Ok(Some(ids))
    }

    fn put_metadata(&mut self, summary: &Summary) -> Result<(), McapError> {
        let Damage { missing, unreadable, .. } = &summary.damage;
        let mut map = BTreeMap::from([
            ("recordings".into(), summary.recordings.len().to_string()),
            ("missing_blocks".into(), missing.blocks.to_string()),
            ("missing_bytes".into(), missing.bytes.to_string()),
            ("missing_durable_blocks".into(), missing.durable_blocks.to_string()),
            ("missing_messages".into(), missing.messages.to_string()),
            ("unreadable_bytes".into(), missing.unreadable_bytes.to_string()),
            ("overwritten_blocks".into(), missing.overwritten_blocks.to_string()),
            ("overwritten_segments".into(), missing.overwritten_segments.to_string()),
            ("unreadable_segments".into(), unreadable.len().to_string()),
        ]);
        for (name, ns) in [("from_ns", summary.from_ns), ("to_ns", summary.to_ns)] {
            map.extend(ns.map(|ns| (name.to_string(), ns.to_string())));
        }
        self.writer.write_metadata(&Metadata { name: EXPORT_NAME.into(), metadata: map })?;
        for recording in &summary.recordings {
            let metadata = Metadata { name: RECORDING_NAME.into(), metadata: recording.as_map() };
            self.writer.write_metadata(&metadata)?;
        }
        Ok(())
    }
}
