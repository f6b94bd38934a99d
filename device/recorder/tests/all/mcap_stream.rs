// SPDX-License-Identifier: MIT OR Apache-2.0
//! MCAP as input: what writers write, and what nobody should.

use std::collections::BTreeMap;
use std::io::Cursor;

use mcap::records::MessageHeader;
use mcap::records::Metadata;
use mcap::{Attachment, Compression, WriteOptions, Writer};
use proptest::prelude::*;
use steadyio_recorder::stream::framing::{Place, Problem, StreamItem};
use steadyio_recorder::stream::mcap::McapStream;
use steadyio_testing::cases;

const MAGIC: &[u8] = b"\x89MCAP0\r\n";
const RECORD_BYTES_MAX: u32 = 1 << 20;

/// Topic, log time, publish time, payload.
type Message = (String, u64, u64, Vec<u8>);

#[derive(Debug, Default, PartialEq)]
struct Outcome {
    messages: Vec<Message>,
    /// Of the stream, when each of them came.
    consumed: Vec<usize>,
    problem: Option<Problem>,
}

/// Reads a stream that comes in pieces of so many bytes, as the recorder does.
fn read(bytes: &[u8], piece_bytes: usize) -> (Outcome, McapStream) {
    let mut stream = McapStream::new(RECORD_BYTES_MAX);
    let (mut outcome, mut at, mut end) = (Outcome::default(), 0, 0);
    loop {
        let step = match stream.next(&bytes[at..end], end == bytes.len()) {
            Ok(Some(step)) => step,
            Ok(None) if end == bytes.len() => return (outcome, stream),
            Ok(None) => {
                end = bytes.len().min(end + piece_bytes);
                continue;
            }
            Err(error) => {
                outcome.problem = Some(error.problem);
                return (outcome, stream);
            }
        };
        if let StreamItem::Record { id, times_ns, payload, place } = step.what {
            let (log_ns, publish_ns) = times_ns.unwrap_or((0, 0));
            let data = match place {
                Place::Input => bytes[at..][payload].to_vec(),
                Place::Framing => stream.own()[payload].to_vec(),
            };
            outcome.messages.push((stream.topics()[&id].topic.clone(), log_ns, publish_ns, data));
            outcome.consumed.push(at + step.bytes);
        }
        at += step.bytes;
    }
}

fn options(compression: Option<Compression>, chunked: bool) -> WriteOptions {
    let options = WriteOptions::new().compression(compression).chunk_size(Some(2_000));
    options.use_chunks(chunked).profile("ros2").library("test")
}

/// So many messages of two topics, by the official writer.
fn file(options: WriteOptions, count: u64) -> (Vec<u8>, Vec<Message>) {
    let mut out = Cursor::new(Vec::new());
    let mut writer = options.create(&mut out).unwrap();
    let schema = writer.add_schema("Thing", "jsonschema", b"{}").unwrap();
    let metadata = BTreeMap::from([("unit".into(), "m/s".into())]);
    let ids = [
        writer.add_channel(schema, "/a", "json", &metadata).unwrap(),
        writer.add_channel(0, "/b", "", &BTreeMap::new()).unwrap(),
    ];
    let mut messages = Vec::new();
    for number in 0..count {
        let turn = (number % 3 == 0) as usize;
        let data = vec![number as u8; (number * 37 % 300) as usize];
        let (log_time, publish_time) = (1_000 + number, 900 + number);
        let header = MessageHeader { channel_id: ids[turn], sequence: 0, log_time, publish_time };
        writer.write_to_known_channel(&header, &data).unwrap();
        messages.push((["/a", "/b"][turn].to_owned(), log_time, publish_time, data));
    }
    writer.finish().unwrap();
    drop(writer);
    (out.into_inner(), messages)
}

fn all_options() -> Vec<WriteOptions> {
    let chunked = [None, Some(Compression::Lz4), Some(Compression::Zstd)];
    let mut all: Vec<_> = chunked.into_iter().map(|one| options(one, true)).collect();
    all.push(options(None, false));
    all.push(
        options(Some(Compression::Zstd), true).emit_statistics(false).emit_summary_offsets(false),
    );
    all
}

#[test]
fn what_any_writer_writes_is_read() {
    for (at, options) in all_options().into_iter().enumerate() {
        let (bytes, messages) = file(options, 200);
        for piece_bytes in [1, 7, 1_000, bytes.len()] {
            let (outcome, stream) = read(&bytes, piece_bytes);
            assert_eq!(outcome.problem, None, "{at}");
            assert_eq!(outcome.messages, messages, "{at}");
            let topic = stream.topics().values().find(|topic| topic.topic == "/a").unwrap();
            assert_eq!((&*topic.schema_name, &*topic.schema_encoding), ("Thing", "jsonschema"));
            assert_eq!((&*topic.schema_data, &*topic.message_encoding), (&b"{}"[..], "json"));
            assert_eq!(topic.metadata, [("unit".to_owned(), "m/s".to_owned())]);
            assert_eq!(stream.profile(), "ros2");
        }
    }
}

#[test]
fn files_may_follow_each_other() {
    let (one, first) = file(options(None, false), 10);
    let (other, second) = file(options(Some(Compression::Lz4), true), 20);
    let (outcome, stream) = read(&[one, other].concat(), 100);
    assert_eq!((outcome.problem, outcome.messages), (None, [first, second].concat()));
    assert_eq!(stream.topics().len(), 2);
}

#[test]
fn metadata_and_attachments_are_records_of_topics_of_their_own() {
    let mut out = Cursor::new(Vec::new());
    let mut writer = Writer::new(&mut out).unwrap();
    let metadata = BTreeMap::from([("robot".into(), "r1".into())]);
    writer.write_metadata(&Metadata { name: "who".into(), metadata }).unwrap();
    let attachment = Attachment {
        log_time: 5,
        create_time: 6,
        name: "map.png".into(),
        media_type: "image/png".into(),
        data: vec![1; 5_000].into(),
    };
    writer.attach(&attachment).unwrap();
    writer.finish().unwrap();
    drop(writer);
    let (outcome, stream) = read(&out.into_inner(), 64);
    assert_eq!(outcome.problem, None);
    let topics: Vec<&str> = outcome.messages.iter().map(|message| &*message.0).collect();
    assert_eq!(topics, ["/mcap/metadata", "/mcap/attachment"]);
    assert_eq!(outcome.messages[1].3.len(), 8 + 8 + 4 + 7 + 4 + 9 + 8 + 5_000 + 4);
    let kinds: Vec<_> = stream.topics().values().map(|topic| topic.metadata[0].clone()).collect();
    let key = || "steadyio.record".to_owned();
    assert_eq!(kinds, [(key(), "metadata".into()), (key(), "attachment".into())]);
}

fn record(opcode: u8, content: &[u8]) -> Vec<u8> {
    [&[opcode][..], &(content.len() as u64).to_le_bytes(), content].concat()
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat()
}

fn header() -> Vec<u8> {
    record(1, &[text(""), text("x")].concat())
}

fn channel(id: u16, schema: u16, topic: &str) -> Vec<u8> {
    let ids = [id.to_le_bytes(), schema.to_le_bytes()].concat();
    record(4, &[ids, text(topic), text("raw"), 0u32.to_le_bytes().into()].concat())
}

fn message(id: u16, data: &[u8]) -> Vec<u8> {
    record(5, &[&id.to_le_bytes()[..], &[0; 20], data].concat())
}

fn chunk(compression: &str, length: u64, crc: u32, records: &[u8]) -> Vec<u8> {
    let head = [&[0; 16][..], &length.to_le_bytes(), &crc.to_le_bytes()].concat();
    let size = (records.len() as u64).to_le_bytes();
    record(6, &[&head[..], &text(compression), &size, records].concat())
}

fn metadata(pairs: &[&str]) -> Vec<u8> {
    let map: Vec<u8> = pairs.iter().flat_map(|one| text(one)).collect();
    record(12, &[text("name"), (map.len() as u32).to_le_bytes().into(), map].concat())
}

/// A good message, then this.
fn behind_a_message(more: &[u8]) -> Outcome {
    let good = [MAGIC.to_vec(), header(), channel(0, 0, "/a"), message(0, b"good")].concat();
    let (outcome, _) = read(&[&good, more].concat(), 50);
    assert_eq!(outcome.messages.first().map(|message| &*message.3), Some(&b"good"[..]));
    outcome
}

#[test]
fn hostile_records_end_the_stream_with_a_reason_and_keep_what_came_before() {
    let inner = message(0, b"in a chunk");
    let length = inner.len() as u64;
    let many: Vec<u8> = (1..=10_001).flat_map(|id| channel(id, 0, &format!("/{id}"))).collect();
    let long = [&[5][..], &u64::MAX.to_le_bytes()].concat();
    let short = [&[5][..], &100u64.to_le_bytes(), b"short"].concat();
    let nested = chunk("", length, 0, &inner);
    let overlong = [&[5][..], &u64::MAX.to_le_bytes(), b"x"].concat();
    let zeros = zstd::encode_all(&vec![0; 1 << 20][..], 1).unwrap();
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("length", long, "must be 0 to 268435456"),
        ("cut", short, "ends within a frame"),
        ("no footer", Vec::new(), "ends without its footer"),
        ("opcode 0", record(0, b"x"), "opcode 0x00"),
        ("nested", chunk("", nested.len() as u64, 0, &nested), "opcode 0x06"),
        ("crc", chunk("", length, 1, &inner), "checksum of a chunk"),
        ("size", chunk("", length + 1, 0, &inner), "does not have the"),
        ("less than it is", chunk("", length - 1, 0, &inner), "does not have the"),
        ("huge", chunk("zstd", u64::MAX, 0, &zeros), "must be 0 to 268435456"),
        ("bomb", chunk("zstd", 10, 0, &zeros), "does not have the 10 bytes"),
        ("garbage", chunk("zstd", 10, 0, b"garbage"), "cannot be decompressed"),
        ("garbage", chunk("lz4", 10, 0, b"garbage"), "cannot be decompressed"),
        ("other", chunk("brotli", length, 0, &inner), "\"brotli\""),
        ("in chunk", chunk("", overlong.len() as u64, 0, &overlong), "a record of a chunk"),
        ("short message", record(5, &[0; 10]), "a message of a frame is longer"),
        ("unknown channel", message(7, b"x"), "topic 7 has a record"),
        ("unknown schema", channel(1, 9, "/c"), "schema 9, which is not defined"),
        ("channel twice", channel(0, 0, "/other"), "topic 0 is declared twice"),
        ("topics", many, "more than 10000 topics"),
        ("data crc", record(15, &1u32.to_le_bytes()), "checksum of the data section"),
        ("attachment", record(9, &[0; 5]), "an attachment of a frame"),
        ("metadata", record(12, &[255; 4]), "metadata of a frame"),
        // An export could not write these as metadata again.
        ("half a pair", metadata(&["key"]), "metadata of a frame"),
        ("key twice", metadata(&["key", "1", "key", "2"]), "metadata of a frame"),
        (
            "footer",
            [record(15, &[0; 4]), record(2, &[0; 20]), b"no magic".to_vec()].concat(),
            "not an MCAP stream",
        ),
    ];
    for (name, more, expected) in cases {
        let problem = behind_a_message(&more).problem.expect(name).to_string();
        assert!(problem.contains(expected), "{name}: {problem}");
    }
}

#[test]
fn unknown_records_are_skipped_however_long_they_are() {
    let unknown = record(0x90, &vec![1; 100_000]);
    let inner = [record(0x91, b"x"), message(0, b"last")].concat();
    let end = [record(15, &[0; 4]), record(2, &[0; 20]), MAGIC.to_vec()].concat();
    let chunk = chunk("", inner.len() as u64, 0, &inner);
    let outcome = behind_a_message(&[unknown, chunk, end].concat());
    assert_eq!(outcome.problem, None);
    assert_eq!(outcome.messages.last().unwrap().3, b"last");
}

#[test]
fn another_format_is_told_by_its_first_bytes() {
    let (outcome, _) = read(b"#ROSBAG V2.0\n", 3);
    assert!(outcome.problem.unwrap().to_string().starts_with("not an MCAP stream"));
}

fn damage() -> impl Strategy<Value = (usize, u8, usize, u8)> {
    // Where, what kind, how many bytes, which.
    (0usize..1 << 20, 0u8..4, 1usize..200, any::<u8>())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(600), ..ProptestConfig::default() })]
    // Whatever happens to a file: no panic, and all messages in front of the damage are there.
    #[test]
    fn damage_costs_nothing_in_front_of_it(
        kind in 0usize..5,
        piece_bytes in 1usize..5_000,
        (at, how, count, byte) in damage(),
    ) {
        let (bytes, messages) = file(all_options().swap_remove(kind), 60);
        let (whole, _) = read(&bytes, bytes.len());
        let at = at % bytes.len();
        let end = bytes.len().min(at + count);
        let mut damaged = bytes.clone();
        match how {
            0 => damaged[at..end].iter_mut().for_each(|old| *old ^= byte | 1),
            1 => damaged.truncate(at),
            2 => drop(damaged.splice(at..at, vec![byte; count])),
            _ => drop(damaged.drain(at..end)),
        }
        let (outcome, _) = read(&damaged, piece_bytes);
        let before = whole.consumed.iter().filter(|end| **end <= at).count();
        prop_assert!(outcome.messages.len() >= before);
        prop_assert_eq!(&outcome.messages[..before], &messages[..before]);
    }
}
