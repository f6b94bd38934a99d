// SPDX-License-Identifier: MIT OR Apache-2.0
//! The framing of `docs/spec/record-framing-1.md`: whatever comes in whatever pieces.

use proptest::prelude::*;
use steadyio_recorder::stream::encode::{self, HEAD, begin_frame as begin};
use steadyio_recorder::stream::frames::{Frames, Topic};
use steadyio_recorder::stream::framing::{Problem, StreamError, StreamItem};

const MAGIC: &[u8] = &HEAD;

/// Any frame, right or wrong.
fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 1).unwrap();
    [&length.to_le_bytes()[..], &[kind], body].concat()
}

fn topic_frame(id: u16, topic: &Topic) -> Vec<u8> {
    encode::topic_frame(id, topic).unwrap()
}

fn record(id: u16, log_time_ns: u64, payload: &[u8]) -> Vec<u8> {
    encode::record_frame(id, log_time_ns, payload).unwrap()
}

fn published(id: u16, log_time_ns: u64, publish_time_ns: u64, payload: &[u8]) -> Vec<u8> {
    encode::published_frame(id, log_time_ns, publish_time_ns, payload).unwrap()
}

fn topic(name: &str, record_bytes_max: u32) -> Topic {
    Topic {
        topic: name.into(),
        message_encoding: "json".into(),
        schema_name: "Thing".into(),
        schema_encoding: "jsonschema".into(),
        schema_data: b"{}".to_vec(),
        metadata: Vec::new(),
        record_bytes_max,
        period_ns: 5_000_000,
    }
}

/// Identifier, log time and publish time, payload.
type Records = Vec<(u16, (u64, u64), Vec<u8>)>;

/// Decodes a stream that comes in pieces of these lengths; returns the records and the error.
fn decode(stream: &[u8], pieces: &[usize]) -> (Frames, Records, Result<(), StreamError>) {
    let mut frames = Frames::default();
    let mut pieces = pieces.iter().cycle();
    let (mut start, mut end, mut records) = (0, 0, Vec::new());
    loop {
        match frames.next(&stream[start..end], end == stream.len()) {
            Ok(Some(step)) => {
                assert!(step.bytes > 0 && step.bytes <= end - start);
                if let StreamItem::Record { id, times_ns, payload, .. } = step.what {
                    let data = stream[start..end][payload].to_vec();
                    records.push((id, times_ns.unwrap(), data));
                }
                start += step.bytes;
            }
            Ok(None) if end == stream.len() => return (frames, records, Ok(())),
            Ok(None) => end = (end + pieces.next().unwrap()).min(stream.len()),
            Err(error) => return (frames, records, Err(error)),
        }
    }
}

fn problem(parts: &[Vec<u8>]) -> (u64, Problem) {
    let (_, _, end) = decode(&parts.concat(), &[usize::MAX >> 1]);
    let error = end.unwrap_err();
    (error.offset, error.problem)
}

/// The example of the specification, byte for byte.
#[test]
fn the_bytes_are_those_of_the_specification() {
    let topic = Topic {
        topic: "/a".into(),
        message_encoding: String::new(),
        schema_name: String::new(),
        schema_encoding: String::new(),
        schema_data: Vec::new(),
        metadata: Vec::new(),
        record_bytes_max: 16,
        period_ns: 0,
    };
    let stream = [MAGIC, &topic_frame(7, &topic), &begin(), &record(7, 1, b"hi")].concat();
    let hex: Vec<String> = stream.iter().map(|byte| format!("{byte:02x}")).collect();
    let page = include_str!("../../../../docs/spec/record-framing-1.md");
    let example: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("    "))
        .filter_map(|line| line.split('|').next())
        .flat_map(str::split_whitespace)
        .collect();
    assert_eq!(hex, example);
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let magic = || MAGIC.to_vec();
    let a = || topic_frame(7, &topic("/a", 10));
    let length = |frame, length, min, max| Problem::Length { frame, length, min, max };
    let after_magic = 8;
    let meta = |id: u16, key: &str| {
        let text = |text: &str| [&[text.len() as u8, 0], text.as_bytes()].concat();
        frame(5, &[&id.to_le_bytes()[..], &text(key), &text("v")].concat())
    };
    let twice = |id| Problem::Metadata { id, key: "k".into() };
    let after_a = after_magic + a().len() as u64;
    let cases: Vec<(Vec<Vec<u8>>, u64, Problem)> = vec![
        (
            vec![b"{\"a\":".to_vec()],
            0,
            Problem::Magic { found: *b"{\"a\":\0\0", wanted: *b"\x89STEADY" },
        ),
        (vec![b"\x89STEADY\x02".to_vec()], 0, Problem::Version(2)),
        (vec![magic(), frame(9, &[])], after_magic, Problem::Type(9)),
        (vec![magic(), meta(1, "k"), begin()], after_magic + 13, Problem::NoTopic(1)),
        (vec![magic(), meta(1, "k"), meta(1, "k")], after_magic + 13, twice(1)),
        (vec![magic(), a(), meta(7, "k")], after_a, twice(7)),
        (
            vec![magic(), a(), begin(), published(7, 1, 2, &[0; 11])],
            after_a + 5,
            length("record", 30, 19, 29),
        ),
        (vec![magic(), vec![0; 4]], after_magic, length("untyped", 0, 1, 11)),
        (vec![magic(), frame(1, &[0; 10])], after_magic, length("topic", 11, 23, 1 << 20)),
        (
            vec![magic(), vec![0xff, 0xff, 0xff, 0xff, 1]],
            after_magic,
            length("topic", 0xffff_ffff, 23, 1 << 20),
        ),
        (vec![magic(), a(), a()], after_a, Problem::Twice(7)),
        (vec![magic(), a(), record(7, 1, b"x")], after_a, Problem::BeforeBegin),
        (vec![magic(), a(), begin(), begin()], after_a + 5, Problem::BeginTwice),
        (vec![magic(), a(), begin(), record(8, 1, b"x")], after_a + 5, Problem::NoTopic(8)),
        (
            vec![magic(), a(), begin(), record(7, 1, &[0; 11])],
            after_a + 5,
            length("record", 22, 11, 21),
        ),
        (
            vec![magic(), a(), begin(), record(7, 1, b"x"), record(7, 1, b"y")[..15].to_vec()],
            after_a + 5 + 16,
            Problem::Truncated { have: 15 },
        ),
        (
            vec![magic(), topic_frame(1, &Topic { schema_name: String::new(), ..topic("/a", 1) })],
            after_magic,
            Problem::Schema,
        ),
        (
            vec![magic(), topic_frame(1, &topic("/a", (64 << 20) + 1))],
            after_magic,
            length("record", (64 << 20) + 1, 0, 64 << 20),
        ),
    ];
    for (parts, offset, expected) in cases {
        assert_eq!(problem(&parts), (offset, expected));
    }
}

#[test]
fn a_name_longer_than_its_frame_and_a_name_that_is_no_text_are_refused() {
    let mut long = topic_frame(1, &topic("/a", 1));
    // The length of the name, after length, type, identifier, longest record and period.
    long[19] = 0xff;
    assert_eq!(problem(&[MAGIC.to_vec(), long]), (8, Problem::Field { field: "name" }));
    let mut no_text = topic_frame(1, &topic("/a", 1));
    no_text[21] = 0xff;
    assert_eq!(problem(&[MAGIC.to_vec(), no_text]), (8, Problem::Utf8 { field: "name" }));
}

fn any_topic() -> impl Strategy<Value = Topic> {
    (
        "[a-z/]{1,9}",
        any::<bool>(),
        prop::collection::vec(any::<u8>(), 0..30),
        prop::collection::btree_map("[a-z]{1,4}", "[a-z]{0,4}", 0..3),
        0u32..50,
        any::<u64>(),
    )
        .prop_map(|(name, schema, data, metadata, record_bytes_max, period_ns)| Topic {
            schema_name: if schema { "S".into() } else { String::new() },
            schema_encoding: String::new(),
            schema_data: if schema { data } else { Vec::new() },
            metadata: metadata.into_iter().collect(),
            period_ns,
            ..topic(&name, record_bytes_max)
        })
}

proptest! {
    #[test]
    fn frames_are_read_as_they_were_written_in_whatever_pieces(
        topics in prop::collection::btree_map(any::<u16>(), any_topic(), 1..5),
        picks in prop::collection::vec(
            (any::<prop::sample::Index>(), any::<(u64, u64)>(), 0u32..50, any::<u8>()), 0..40
        ),
        publish in any::<bool>(),
        pieces in prop::collection::vec(1usize..70, 1..20),
    ) {
        let ids: Vec<u16> = topics.keys().copied().collect();
        let records: Records = picks.into_iter().map(|(pick, times, bytes, fill)| {
            let id = *pick.get(&ids);
            let times = if publish { times } else { (times.0, times.0) };
            (id, times, vec![fill; bytes.min(topics[&id].record_bytes_max) as usize])
        }).collect();
        let mut stream = MAGIC.to_vec();
        topics.iter().for_each(|(id, topic)| stream.extend(topic_frame(*id, topic)));
        stream.extend(begin());
        records.iter().for_each(|(id, (log, made), data)| stream.extend(match publish {
            true => published(*id, *log, *made, data),
            false => record(*id, *log, data),
        }));
        let (frames, read, end) = decode(&stream, &pieces);
        prop_assert_eq!(frames.topics(), &topics);
        prop_assert_eq!(read, records);
        prop_assert_eq!(end, Ok(()));
    }

    /// One byte of a good stream is changed, and the stream cut. All frames before the change are
    /// read, and the error lies at or after the frame with the change.
    #[test]
    fn a_damaged_stream_is_read_up_to_the_damage(
        at in any::<prop::sample::Index>(), flip in 1u8.., cut in any::<prop::sample::Index>(),
        pieces in prop::collection::vec(1usize..70, 1..20),
    ) {
        let head = [MAGIC.to_vec(), topic_frame(1, &topic("/a", 20)), begin()].concat();
        let one = record(1, 3, b"payload");
        let good = [&head[..], &one, &one, &one].concat();
        let mut stream = good.clone();
        let at = at.index(stream.len());
        stream[at] ^= flip;
        stream.truncate(cut.index(stream.len()) + 1);
        let (_, read, end) = decode(&stream, &pieces);
        let damage = at.min(stream.len());
        let whole = damage.saturating_sub(head.len()) / one.len();
        prop_assert!(read.len() >= whole);
        prop_assert!(read[..whole].iter().all(|record| *record == (1, (3, 3), b"payload".to_vec())));
        if let Err(error) = end {
            let frame = match damage {
                0..8 => 0,
                damage if damage < head.len() => MAGIC.len(),
                _ => head.len() + whole * one.len(),
            };
            prop_assert!(error.offset >= frame as u64 && error.offset < stream.len() as u64);
        }
    }

    #[test]
    fn garbage_ends_in_an_error_within_it(
        garbage in prop::collection::vec(any::<u8>(), 1..300),
        start in 0usize..3,
        pieces in prop::collection::vec(1usize..70, 1..20),
    ) {
        let head = [MAGIC.to_vec(), topic_frame(1, &topic("/a", 20)), begin()].concat();
        let head = [&head[..0], MAGIC, &head][start];
        let stream = [head, &garbage].concat();
        let (_, _, end) = decode(&stream, &pieces);
        if let Err(error) = end {
            let from = if start == 0 { 0 } else { head.len() as u64 };
            prop_assert!(error.offset >= from && error.offset < stream.len() as u64);
        }
    }
}
