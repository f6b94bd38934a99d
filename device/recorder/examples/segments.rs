// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes recordings as a recorder leaves them when its power goes off: for the tests of the
//! readers, and as an example of the encoder's use.
//!
//! `segments DIR` makes in DIR, each with three channels:
//! - `segment-00000.mcap`: finished, over a finished former life
//! - `segment-00001.mcap`: cut off in a block, over a finished former life
//! - `segment-00002.mcap`: begun, nothing recorded yet
//! - `growing.mcap`: a file that grew, cut off in a block
//! - `compressed-lz4.mcap`, `compressed-zstd.mcap`: as `segment-00001.mcap`, with compressed blocks
//!
//! Message N (from 0) of all is on channel N % 3, has sequence N / 3, log time 1 s + N ms and a
//! payload of (N * 37) % 4000 bytes, each of them N % 251.

use std::error::Error;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use steadyio_recorder::mcap::account::{ChannelLedger, CompletedBy};
use steadyio_recorder::mcap::compression::Compression;
use steadyio_recorder::mcap::definitions::{ChannelSpec, Definitions, SchemaSpec};
use steadyio_recorder::mcap::encoder::{Encoder, FileRange, Full, Message};
use steadyio_recorder::mcap::layout::{Layout, LayoutConfig, Placement};
use steadyio_recorder::mcap::private::Identity;

const CHANNELS: u16 = 3;
const SEGMENT_BYTES: u64 = 1 << 20;
const BLOCK_BYTES: usize = 64 << 10;
const PAYLOAD_MAX: usize = 4_000;

/// How a recording ends.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Finished,
    /// After so many messages, with half of the next block.
    Cut(u64),
    Begun,
}

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::args_os().nth(1).ok_or("usage: segments DIR")?;
    let directory = Path::new(&directory);
    let config = LayoutConfig::recycled(SEGMENT_BYTES, BLOCK_BYTES, PAYLOAD_MAX, CHANNELS.into());
    for (name, end) in [
        ("segment-00000.mcap", End::Finished),
        ("segment-00001.mcap", End::Cut(195)),
        ("segment-00002.mcap", End::Begun),
    ] {
        let file = create(&directory.join(name))?;
        record(&file, (config, None), 1, End::Finished)?;
        record(&file, (config, None), 2, end)?;
    }
    let growing = LayoutConfig { placement: Placement::Growing, ..config };
    record(&create(&directory.join("growing.mcap"))?, (growing, None), 3, End::Cut(195))?;
    for compression in [Compression::Lz4, Compression::Zstd] {
        let name = format!("compressed-{}.mcap", compression.name());
        let file = create(&directory.join(name))?;
        let config = (config.compressed(), Some(compression));
        record(&file, config, 1, End::Finished)?;
        record(&file, config, 2, End::Cut(195))?;
    }
    Ok(())
}

fn create(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).open(path)
}

fn definitions() -> Result<Definitions, Box<dyn Error>> {
    let schema = SchemaSpec {
        name: "steadyio.Bytes".into(),
        encoding: "jsonschema".into(),
        data: b"{}".to_vec(),
    };
    let channel = |at: u16| ChannelSpec {
        topic: format!("/bytes/{at}"),
        message_encoding: "bytes".into(),
        schema: Some(0),
        metadata: vec![("at".into(), at.to_string())],
    };
    let channels: Vec<ChannelSpec> = (0..CHANNELS).map(channel).collect();
    Ok(Definitions::new(&[schema], &channels)?)
}

fn record(
    file: &File,
    (config, compression): (LayoutConfig, Option<Compression>),
    sequence: u64,
    end: End,
) -> Result<(), Box<dyn Error>> {
    let definitions = definitions()?;
    let layout = Layout::new(config, &definitions)?;
    let mut buffer = vec![0; layout.buffer_bytes()];
    let mut encoder = Encoder::new(layout, definitions);
    if let Some(compression) = compression {
        encoder = encoder.compressing(compression)?;
    }
    let mut ledger = vec![ChannelLedger::default(); CHANNELS.into()];
    let put =
        |place: FileRange, bytes: &[u8]| file.write_all_at(&bytes[..place.bytes], place.offset);
    let identity = Identity { recording_id: *b"steadyio-example", sequence };
    let created_ns = 1_000_000_000;
    if let Some(place) = encoder.definitions_copy(&mut buffer, identity, created_ns) {
        put(place, &buffer)?;
    }
    put(encoder.head(&mut buffer, identity, created_ns), &buffer)?;
    if end == End::Begun {
        return Ok(());
    }
    encoder.begin(identity, created_ns);
    put(encoder.definitions(&mut buffer, &ledger), &buffer)?;
    let mut number = 0;
    loop {
        if end == End::Cut(number) {
            let torn = encoder.flush(&mut buffer, &ledger);
            return Ok(
                torn.map_or(Ok(()), |at| put(FileRange { bytes: at.bytes / 2, ..at }, &buffer))?
            );
        }
        match push(&mut encoder, &mut buffer, number) {
            Ok(()) => {
                ledger[(number % u64::from(CHANNELS)) as usize].received += 1;
                number += 1;
            }
            Err(Full::Block) => {
                let place = encoder.flush(&mut buffer, &ledger);
                place.map_or(Ok(()), |place| put(place, &buffer))?;
            }
            Err(Full::Segment) => break,
            Err(error) => return Err(error.into()),
        }
    }
    put(encoder.end_block(&mut buffer, &ledger, CompletedBy::Recorder), &buffer)?;
    put(encoder.tail(&mut buffer), &buffer)?;
    Ok(encoder.open_gate(&mut buffer).map_or(Ok(()), |place| put(place, &buffer))?)
}

fn push(encoder: &mut Encoder, buffer: &mut [u8], number: u64) -> Result<(), Full> {
    let payload = vec![(number % 251) as u8; (number * 37 % 4_000) as usize];
    let log_time_ns = 1_000_000_000 + number * 1_000_000;
    let message = Message {
        channel: (number % u64::from(CHANNELS)) as u16,
        sequence: (number / u64::from(CHANNELS)) as u32,
        log_time_ns,
        publish_time_ns: log_time_ns,
        payload: [&payload, &[]],
    };
    encoder.push(buffer, &message)
}
