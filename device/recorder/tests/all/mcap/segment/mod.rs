// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recorder's writes, one by one, so that a file can be rebuilt as a power cut would leave it.

pub mod disk;
pub mod doctor;

use std::borrow::Cow;

use steadyio_recorder::mcap::account::{ChannelLedger, CompletedBy};
use steadyio_recorder::mcap::compression::Compression;
use steadyio_recorder::mcap::definitions::{ChannelSpec, Definitions, Mark, SchemaSpec};
use steadyio_recorder::mcap::encoder::{ADDED_COPIES, Encoder, FileRange, Full, Message};
use steadyio_recorder::mcap::layout::{Layout, LayoutConfig, Placement};
use steadyio_recorder::mcap::private::Identity;
use steadyio_recorder::mcap::resume::resumable;

/// As written and as read back: topic, sequence, times, payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    pub channel: u16,
    pub sequence: u32,
    pub log_time_ns: u64,
    pub publish_time_ns: u64,
    pub payload: Vec<u8>,
}

impl Sent {
    pub fn new(channel: u16, sequence: u32, payload: Vec<u8>) -> Sent {
        let log_time_ns = 1_000_000 * u64::from(sequence) + u64::from(channel);
        Sent { channel, sequence, log_time_ns, publish_time_ns: log_time_ns - 1, payload }
    }

    /// In two pieces, as a ring hands it out when it wraps.
    fn message(&self) -> Message<'_> {
        let (first, second) = self.payload.split_at(self.payload.len() / 3);
        Message {
            channel: self.channel,
            sequence: self.sequence,
            log_time_ns: self.log_time_ns,
            publish_time_ns: self.publish_time_ns,
            payload: [first, second],
        }
    }
}

pub fn definitions(channels: usize) -> Definitions {
    let schema = |name: &str| SchemaSpec {
        name: name.into(),
        encoding: "jsonschema".into(),
        data: b"{\"type\":\"object\"}".to_vec(),
    };
    let channel = |at: usize| ChannelSpec {
        topic: format!("/topic/{at}"),
        message_encoding: "json".into(),
        schema: (at > 0).then_some(at % 2),
        metadata: vec![("unit".into(), "m/s".into()), ("rate".into(), at.to_string())],
    };
    let channels: Vec<_> = (0..channels).map(channel).collect();
    Definitions::new(&[schema("a"), schema("b")], &channels).unwrap()
}

pub const RECYCLED: LayoutConfig = LayoutConfig {
    placement: Placement::Recycled,
    segment_bytes: 128 << 10,
    block_bytes_max: 8 << 10,
    unit_bytes: 8 << 10,
    index_bytes: 4_000,
    is_compressed: false,
};

pub const GROWING: LayoutConfig = LayoutConfig { placement: Placement::Growing, ..RECYCLED };

/// A script has room for so many channels that are added.
pub const LATE_CHANNELS: usize = 6;

/// A write as the writer thread makes it; `durable` is how many messages are reported durable
/// once it is on the disk.
#[derive(Debug, Clone)]
pub struct Write {
    pub offset: u64,
    pub bytes: Vec<u8>,
    pub durable: usize,
}

/// One life of one file.
pub struct Script {
    pub encoder: Encoder,
    pub writes: Vec<Write>,
    pub sent: Vec<Sent>,
    pub ledger: Vec<ChannelLedger>,
    flushed: usize,
    /// Written so far: each is durable before the next is built.
    blocks: u32,
    late: usize,
    buffer: Vec<u8>,
}

impl Script {
    pub fn begin(config: LayoutConfig, channels: usize, sequence: u64) -> Script {
        let definitions = definitions(channels);
        let layout = Layout::new(config, &definitions).unwrap();
        let more = Mark::of(channels + LATE_CHANNELS, definitions.bytes() + 200 * LATE_CHANNELS);
        let largest = Layout::checked(config, more).unwrap();
        let buffer = vec![0xa5; largest.buffer_bytes()];
        let encoder = compressing(Encoder::with_room(layout, definitions, largest), sequence);
        let ledger = vec![ChannelLedger::default(); channels];
        let (writes, sent) = (Vec::new(), Vec::new());
        let mut script =
            Script { encoder, writes, sent, ledger, flushed: 0, blocks: 1, late: 0, buffer };
        let (identity, created_ns) = (identity(sequence), 77 + sequence);
        let place = script.encoder.definitions_copy(&mut script.buffer, identity, created_ns);
        if let Some(place) = place {
            script.write(place);
        }
        let place = script.encoder.head(&mut script.buffer, identity, created_ns);
        script.write(place);
        script.encoder.begin(identity, created_ns);
        let place = script.encoder.definitions(&mut script.buffer, &script.ledger);
        script.write(place);
        script
    }

    /// Continues the life of this image with what another recording would write first.
    pub fn resume(&self, image: &[u8]) -> Script {
        let config = *self.encoder.layout().config();
        let definitions = definitions(self.ledger.len());
        let layout = Layout::new(config, &definitions).unwrap();
        let disk = disk::Disk::new(image.to_vec());
        let found = resumable(&disk, &definitions, &layout, &layout).unwrap();
        let found = found.expect("a whole segment with room");
        let base = found.base();
        assert_eq!(base.iter().map(|one| one.durable).sum::<u64>(), self.sent.len() as u64);
        let encoder = Encoder::new(layout, definitions);
        let encoder = compressing(encoder, found.life.identity.sequence);
        let buffer = vec![0xa5; encoder.layout().buffer_bytes()];
        let mut script = Script {
            encoder,
            writes: Vec::new(),
            sent: self.sent.clone(),
            ledger: base,
            flushed: self.sent.len(),
            blocks: 0,
            late: 0,
            buffer,
        };
        let (identity, created_ns) = (found.life.identity, found.life.created_ns);
        let copy = script.encoder.definitions_copy(&mut script.buffer, identity, created_ns);
        script.write(copy.unwrap());
        let head = script.encoder.head(&mut script.buffer, identity, created_ns);
        script.write(head);
        let end = found.end_block();
        script.buffer[..end.bytes].fill(0);
        script.write(end);
        let ledger = script.ledger.clone();
        script.encoder.resume_life(found, &ledger);
        script.blocks = script.encoder.next_block();
        script
    }

    fn write(&mut self, place: FileRange) {
        let bytes = self.buffer[..place.bytes].to_vec();
        self.writes.push(Write { offset: place.offset, bytes, durable: self.flushed });
    }

    /// Returns the channel, or None if the segment is full.
    pub fn add_channel(&mut self) -> Option<u16> {
        let at = self.ledger.len();
        let schema = SchemaSpec {
            name: format!("late {at}"),
            encoding: "jsonschema".into(),
            data: b"{}".to_vec(),
        };
        let channel = ChannelSpec {
            topic: format!("/late/{at}"),
            message_encoding: "json".into(),
            // Behind the two of the beginning.
            schema: Some(2 + self.late),
            metadata: Vec::new(),
        };
        self.flush();
        let bytes = Definitions::bytes_of(Some(&schema), &channel);
        if !self.encoder.has_room_for(1, bytes) {
            return None;
        }
        self.encoder.add(Some(&schema), &channel).unwrap();
        self.ledger.push(ChannelLedger::default());
        for _ in 0..ADDED_COPIES {
            let place = self.encoder.added(&mut self.buffer).unwrap();
            self.write(place);
            self.blocks += 1;
        }
        self.encoder.end_added();
        self.late += 1;
        Some(at as u16)
    }

    /// Returns false if the segment is full.
    pub fn push(&mut self, sent: Sent) -> bool {
        loop {
            match self.encoder.push(&mut self.buffer, &sent.message()) {
                Ok(()) => break,
                Err(Full::Block) => self.flush(),
                Err(Full::Segment) => return false,
                Err(error) => panic!("{error}"),
            }
        }
        self.ledger[sent.channel as usize].received += 1;
        self.sent.push(sent);
        true
    }

    pub fn flush(&mut self) {
        for (at, channel) in self.ledger.iter_mut().enumerate() {
            channel.written = self.sent.iter().filter(|m| m.channel as usize == at).count() as u64;
        }
        self.encoder.note_durable(self.blocks);
        self.flush_unsynced();
    }

    /// The same before any sync has ended.
    pub fn flush_unsynced(&mut self) {
        self.flushed = self.sent.len();
        if let Some(place) = self.encoder.flush(&mut self.buffer, &self.ledger) {
            self.write(place);
            self.blocks += 1;
        }
    }

    pub fn finish(&mut self) {
        self.flush();
        let by = CompletedBy::Recorder;
        let place = self.encoder.end_block(&mut self.buffer, &self.ledger, by);
        self.write(place);
        let place = self.encoder.tail(&mut self.buffer);
        self.write(place);
        let place = self.encoder.open_gate(&mut self.buffer);
        if let Some(place) = place {
            self.write(place);
        }
    }

    /// The file after all writes, over what was there.
    pub fn image(&self, mut image: Vec<u8>) -> Vec<u8> {
        self.writes.iter().for_each(|write| apply(&mut image, write, write.bytes.len()));
        image
    }
}

/// Lives with even sequences use lz4, if the layout says that chunks may be compressed.
fn compressing(encoder: Encoder, sequence: u64) -> Encoder {
    let compression = if sequence % 2 == 0 { Compression::Lz4 } else { Compression::Zstd };
    match encoder.layout().config().is_compressed {
        true => encoder.compressing(compression).unwrap(),
        false => encoder,
    }
}

pub fn identity(sequence: u64) -> Identity {
    Identity { recording_id: *b"0123456789abcdef", sequence }
}

/// The first bytes of a write.
pub fn apply(image: &mut Vec<u8>, write: &Write, bytes: usize) {
    let start = write.offset as usize;
    if image.len() < start + bytes {
        image.resize(start + bytes, 0);
    }
    image[start..start + bytes].copy_from_slice(&write.bytes[..bytes]);
}

/// What the official reader finds from the first byte to the last.
pub fn read_linear(image: &[u8]) -> mcap::McapResult<Vec<Sent>> {
    mcap::MessageStream::new(image)?.map(|message| message.map(sent)).collect()
}

/// What the official reader finds through the summary, in the order of the file.
pub fn read_indexed(image: &[u8]) -> mcap::McapResult<Vec<Sent>> {
    let summary = mcap::Summary::read(image)?.expect("a summary");
    let mut found = Vec::new();
    for chunk in &summary.chunk_indexes {
        let mut by_index = Vec::new();
        for (channel, entries) in summary.read_message_indexes(image, chunk)? {
            for entry in entries {
                let message = summary.seek_message(image, chunk, &entry)?;
                assert_eq!((message.channel.id, message.log_time), (channel.id, entry.log_time));
                by_index.push((entry.offset, sent(message)));
            }
        }
        by_index.sort_by_key(|(offset, _)| *offset);
        let streamed = summary.stream_chunk(image, chunk)?.map(|message| message.map(sent));
        let streamed: Vec<Sent> = streamed.collect::<mcap::McapResult<_>>()?;
        assert_eq!(streamed, by_index.into_iter().map(|(_, sent)| sent).collect::<Vec<_>>());
        found.extend(streamed);
    }
    Ok(found)
}

fn sent(message: mcap::Message<'_>) -> Sent {
    let payload: Cow<'_, [u8]> = message.data;
    Sent {
        channel: message.channel.id,
        sequence: message.sequence,
        log_time_ns: message.log_time,
        publish_time_ns: message.publish_time,
        payload: payload.into_owned(),
    }
}
