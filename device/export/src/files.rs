// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files of an export: one, or several of a limited size. Each contains all schemas and
//! channels known at its beginning, with the same ids. `export` writes through it.

use std::collections::BTreeMap;
use std::io::{self, Seek, Write};

use mcap::records::{MessageHeader, Metadata, Record, op};
use mcap::{Attachment, McapError, McapResult, WriteOptions, Writer, parse_record};
use steadyio_recorder::config::RECORD_KEY;
use steadyio_recorder::mcap::definitions::{ChannelSpec, SchemaSpec};

/// An MCAP record that is not a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Other {
    Metadata,
    Attachment,
}

impl Other {
    /// The kind of record from which a channel's messages were made; None for real messages.
    pub(crate) fn of(metadata: &[(String, String)]) -> Option<Other> {
        let (_, kind) = metadata.iter().find(|(key, _)| key == RECORD_KEY)?;
        match kind.as_str() {
            "metadata" => Some(Other::Metadata),
            "attachment" => Some(Other::Attachment),
            _ => None,
        }
    }
}

/// Makes further files.
pub trait Split<W> {
    /// The size of messages, before compression, after which another file begins.
    fn bytes_max(&self) -> u64;
    fn open(&mut self, number: usize) -> io::Result<W>;
    /// Takes a complete file.
    fn close(&mut self, file: W) -> io::Result<()>;
}

/// A complete file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileSummary {
    pub messages: u64,
    /// The earliest log time.
    pub start_ns: u64,
    pub end_ns: u64,
    pub bytes: u64,
}

pub(crate) struct Files<'a, W: Write + Seek> {
    options: WriteOptions,
    /// None only between two files.
    writer: Option<Writer<W>>,
    split: Option<&'a mut dyn Split<W>>,
    schemas: BTreeMap<u16, SchemaSpec>,
    channels: BTreeMap<u16, (u16, ChannelSpec)>,
    /// The file in progress.
    file: FileSummary,
    payload_bytes: u64,
    complete: Vec<FileSummary>,
}

impl<'a, W: Write + Seek> Files<'a, W> {
    pub(crate) fn new(
        options: WriteOptions,
        first: W,
        split: Option<&'a mut dyn Split<W>>,
    ) -> McapResult<Files<'a, W>> {
        Ok(Files {
            writer: Some(options.clone().create(first)?),
            options,
            split,
            schemas: BTreeMap::new(),
            channels: BTreeMap::new(),
            file: FileSummary::default(),
            payload_bytes: 0,
            complete: Vec::new(),
        })
    }

    fn writer(&mut self) -> McapResult<&mut Writer<W>> {
        let gone = || McapError::Io(io::Error::other("an earlier file could not be completed"));
        self.writer.as_mut().ok_or_else(gone)
    }

    pub(crate) fn add_schema(&mut self, schema: &SchemaSpec) -> McapResult<u16> {
        let id = self.writer()?.add_schema(&schema.name, &schema.encoding, &schema.data)?;
        self.schemas.entry(id).or_insert_with(|| schema.clone());
        Ok(id)
    }

    pub(crate) fn add_channel(&mut self, schema_id: u16, channel: ChannelSpec) -> McapResult<u16> {
        let metadata = channel.metadata.iter().cloned().collect();
        let (topic, encoding) = (&channel.topic, &channel.message_encoding);
        let id = self.writer()?.add_channel(schema_id, topic, encoding, &metadata)?;
        self.channels.entry(id).or_insert((schema_id, channel));
        Ok(id)
    }

    pub(crate) fn write(&mut self, header: &MessageHeader, payload: &[u8]) -> McapResult<()> {
        let bytes_max = self.split.as_ref().map_or(u64::MAX, |split| split.bytes_max());
        if self.file.messages > 0 && self.payload_bytes >= bytes_max {
            self.begin_another()?;
        }
        self.writer()?.write_to_known_channel(header, payload)?;
        let log_time = header.log_time;
        let first = self.file.messages == 0;
        self.file.start_ns = if first { log_time } else { self.file.start_ns.min(log_time) };
        self.file.end_ns = self.file.end_ns.max(log_time);
        self.file.messages += 1;
        self.payload_bytes += payload.len() as u64;
        Ok(())
    }

    pub(crate) fn write_metadata(&mut self, metadata: &Metadata) -> McapResult<()> {
        self.writer()?.write_metadata(metadata)
    }

    /// Writes a record that was not a message before the recording; false if it is malformed.
    pub(crate) fn write_other(&mut self, kind: Other, content: &[u8]) -> McapResult<bool> {
        let opcode = match kind {
            Other::Metadata => op::METADATA,
            Other::Attachment => op::ATTACHMENT,
        };
        match parse_record(opcode, content) {
            Ok(Record::Metadata(metadata)) => self.write_metadata(&metadata)?,
            Ok(Record::Attachment { header, data, .. }) => {
                self.writer()?.attach(&Attachment {
                    log_time: header.log_time,
                    create_time: header.create_time,
                    name: header.name,
                    media_type: header.media_type,
                    data,
                })?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn begin_another(&mut self) -> McapResult<()> {
        self.complete()?;
        let number = self.complete.len();
        let Some(split) = self.split.as_mut() else { return Ok(()) };
        let mut writer = self.options.clone().create(split.open(number)?)?;
        for (id, SchemaSpec { name, encoding, data }) in &self.schemas {
            writer.add_schema_with_id(*id, name, encoding, data)?;
        }
        for (id, (schema_id, channel)) in &self.channels {
            let metadata = channel.metadata.iter().cloned().collect();
            let (topic, encoding) = (&channel.topic, &channel.message_encoding);
            writer.add_channel_with_id(*id, *schema_id, topic, encoding, &metadata)?;
        }
        self.writer = Some(writer);
        Ok(())
    }

    fn complete(&mut self) -> McapResult<()> {
        let Some(mut writer) = self.writer.take() else { return Ok(()) };
        writer.finish()?;
        let mut out = writer.into_inner();
        self.file.bytes = out.stream_position()?;
        self.complete.push(std::mem::take(&mut self.file));
        self.payload_bytes = 0;
        if let Some(split) = self.split.as_mut() {
            split.close(out)?;
        }
        Ok(())
    }

    /// Returns all files, in order.
    pub(crate) fn finish(mut self) -> McapResult<Vec<FileSummary>> {
        self.complete()?;
        Ok(self.complete)
    }

    /// Drops the file without writing an end.
    pub(crate) fn abandon(mut self) {
        if let Some(writer) = self.writer.take() {
            writer.into_inner();
        }
    }
}
