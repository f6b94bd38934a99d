// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several producers, and some that declare thousands of topics. Time that grows with the square of
//! their number would be minutes here, in which no other producer is read.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;

use steadyio_core::interrupt::Interrupt;
use steadyio_recorder::config::ChannelConfig;
use steadyio_recorder::source::Source;
use steadyio_recorder::stream::encode::{HEAD, begin_frame, record_frame, topic_frame};
use steadyio_recorder::stream::filter::{TopicFilter, TopicPattern};
use steadyio_recorder::stream::frames::{Topic, Undeclared};
use steadyio_recorder::stream::input::{Input, InputFraming, StreamSource};

const RECORD_BYTES: u32 = 100;
const MANY: u16 = 20_000;

/// Topics of equal length, and a record of the last one.
fn stream(topics: std::ops::Range<u16>) -> Vec<u8> {
    let mut stream = HEAD.to_vec();
    for id in topics.clone() {
        let topic = Topic {
            topic: format!("/a/topic/with/a/long/name/{id:05}"),
            message_encoding: String::new(),
            schema_name: String::new(),
            schema_encoding: String::new(),
            schema_data: Vec::new(),
            metadata: Vec::new(),
            record_bytes_max: RECORD_BYTES,
            period_ns: 0,
        };
        stream.extend(topic_frame(id, &topic).unwrap());
    }
    stream.extend(begin_frame());
    stream.extend(record_frame(topics.end - 1, 7, b"record").unwrap());
    stream
}

fn open(input: &Input, filter: TopicFilter) -> StreamSource {
    let framing = InputFraming::Frames(Undeclared::default());
    let source = StreamSource::open(input, framing, RECORD_BYTES.into(), Box::new(|_| ())).unwrap();
    source.filtering(filter)
}

fn declare(source: &mut StreamSource) -> usize {
    declare_by(source, 1).len()
}

fn declare_by(source: &mut StreamSource, producers: usize) -> Vec<ChannelConfig> {
    source.declare(producers, &|_| Ok(()), &Interrupt::default()).unwrap().unwrap()
}

fn connect(socket: &Path, topics: std::ops::Range<u16>) -> thread::JoinHandle<UnixStream> {
    let mut producer = UnixStream::connect(socket).unwrap();
    thread::spawn(move || {
        producer.write_all(&stream(topics)).unwrap();
        producer
    })
}

#[test]
fn the_order_in_which_producers_come_does_not_order_their_channels() {
    let mut seen = Vec::new();
    for turn in 0..2 {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("socket");
        let mut source = open(&Input::Socket(socket.clone()), TopicFilter::default());
        let mut topics = [3..5, 0..2];
        topics.rotate_left(turn);
        let producers = topics.map(|topics| connect(&socket, topics).join().unwrap());
        let channels = declare_by(&mut source, 2);
        let mut records = Vec::new();
        while records.len() < 2 {
            match source.next() {
                Ok(record) => records.push(channels[record.unwrap().channel].topic.clone()),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Interrupted),
            }
        }
        records.sort();
        seen.push((channels, records));
        drop(producers);
    }
    assert_eq!(seen[0], seen[1]);
    assert!(seen[0].1[0].ends_with("00001") && seen[0].1[1].ends_with("00004"));
}

#[test]
fn thousands_of_topics_of_one_producer_are_declared_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("frames");
    fs::write(&path, stream(0..MANY)).unwrap();
    let mut source = open(&Input::Path(path), TopicFilter::default());
    assert_eq!(declare(&mut source), usize::from(MANY));
    let record = source.next().unwrap().unwrap();
    assert_eq!((record.channel, record.log_time_ns), (usize::from(MANY) - 1, 7));
}

#[test]
fn thousands_of_topics_of_a_later_producer_are_added_one_after_the_other() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("socket");
    let mut source = open(&Input::Socket(socket.clone()), TopicFilter::default());
    let first = connect(&socket, 0..1);
    assert_eq!(declare(&mut source), 1);
    let later = connect(&socket, 1..MANY);
    let (mut channels, mut records) = (1, Vec::new());
    while records.len() < 2 {
        match source.next() {
            Ok(record) => records.push(record.unwrap().channel),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Interrupted),
        }
        if source.declares().is_some() {
            source.is_declared(Ok(channels)).unwrap();
            channels += 1;
        }
    }
    assert_eq!((channels, records), (usize::from(MANY), vec![0, usize::from(MANY) - 1]));
    drop((first.join().unwrap(), later.join().unwrap()));
}

#[test]
fn topics_that_nobody_wants_cost_no_record_of_another_producer() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("socket");
    let included = vec![TopicPattern::new("*00000")];
    let filter = TopicFilter { included, excluded: Vec::new() };
    let mut source = open(&Input::Socket(socket.clone()), filter);
    let unwanted = connect(&socket, 1..MANY);
    let wanted = connect(&socket, 0..1);
    assert_eq!(declare(&mut source), 1);
    let mut wanted = wanted.join().unwrap();
    let records = 20_000;
    let more = thread::spawn(move || {
        for number in 1..records {
            wanted.write_all(&record_frame(0, number, b"record").unwrap()).unwrap();
        }
    });
    let mut count = 0;
    while count < records {
        match source.next() {
            Ok(record) => count += u64::from(record.is_some()),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Interrupted),
        }
    }
    more.join().unwrap();
    // Not all of its topics need be read by now.
    drop(unwanted);
}
