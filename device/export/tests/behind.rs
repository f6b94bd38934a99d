// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a live view finds behind a running recorder.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use steadyio_export::behind::{Behind, Next};
use steadyio_recorder::config::{ChannelConfig, LateRoom, RecorderConfig, Retention, WriterConfig};
use steadyio_recorder::mcap::compression::Compression;
use steadyio_recorder::mcap::reading::messages;
use steadyio_recorder::pool::Recorder;

const LONG: Duration = Duration::from_secs(60);
const RECORD_BYTES: usize = 4_000;
/// More than a segment holds.
const MANY: u64 = 200;

fn channel(topic: &str) -> ChannelConfig {
    ChannelConfig { ring_bytes: 1 << 20, ..ChannelConfig::new(topic, RECORD_BYTES as u64) }
}

fn config(dir: &Path) -> RecorderConfig {
    RecorderConfig {
        loss_window: Duration::from_millis(20),
        unit_bytes: 16 << 10,
        late: LateRoom { channels: 1, definition_bytes: 4 << 10 },
        segment_bytes: 512 << 10,
        retention: Retention::Segments(8),
        lock_memory: false,
        ..RecorderConfig::new(dir.into(), vec![channel("/a"), channel("/map").latched()])
    }
}

/// A place behind a recorder, and the topics and log times of messages found there.
struct Found {
    behind: Behind,
    messages: Vec<(String, u64)>,
}

impl Found {
    fn new(dir: &Path) -> Found {
        Found { behind: Behind::new(dir), messages: Vec::new() }
    }

    /// Returns whether there was anything.
    fn step(&mut self) -> bool {
        let next = self.behind.step(true).unwrap();
        if let Some(Next::Block(block)) = &next {
            let definitions = self.behind.definitions().unwrap();
            let found = messages(block, definitions).unwrap();
            let topic = |slot: usize| definitions.topics()[slot].clone();
            self.messages.extend(found.map(|found| (topic(found.slot), found.log_time_ns)));
        }
        next.is_some()
    }

    fn until(&mut self, is_done: impl Fn(&Found) -> bool) {
        let started = Instant::now();
        while !is_done(self) {
            if !self.step() {
                assert!(started.elapsed() < LONG, "{:?}", self.messages);
                thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

fn times_of(found: &Found, topic: &str) -> Vec<u64> {
    found.messages.iter().filter(|(name, _)| name == topic).map(|(_, time)| *time).collect()
}

fn each_message_comes_once(compression: Option<Compression>) {
    let dir = tempfile::tempdir().unwrap();
    let mut found = Found::new(&dir.path().join("recording"));
    assert!(!found.step());
    let writer = WriterConfig { compression, ..WriterConfig::default() };
    let config = RecorderConfig { writer, ..config(&dir.path().join("recording")) };
    let (mut recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    channels[0].append(0, b"before").unwrap();
    found.until(|found| found.behind.definitions().is_some());
    for time_ns in 1..=MANY {
        // No page of zeros: each record differs.
        channels[0].append(time_ns, &[time_ns as u8; RECORD_BYTES]).unwrap();
        if time_ns % 20 == 0 {
            found.until(|found| times_of(found, "/a").last() == Some(&time_ns));
        }
    }
    assert_eq!(recorder.finish().unwrap().not_durable, 0);
    let times = times_of(&found, "/a");
    // The first record was there, or came while the place was found.
    assert!(times.iter().filter(|time| **time > 0).eq(&(1..=MANY).collect::<Vec<u64>>()));
    assert_eq!(found.behind.skipped_segments, 0);
}

#[test]
fn each_message_comes_once_across_rotations() {
    each_message_comes_once(None);
}

#[test]
fn each_message_comes_once_from_compressed_segments() {
    each_message_comes_once(Some(Compression::Lz4));
}

#[test]
fn added_channels_and_latched_messages_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let (mut recorder, mut channels) = Recorder::start(&config(dir.path()), &mut |_| ()).unwrap();
    channels[1].append(7, b"map").unwrap();
    let mut found = Found::new(dir.path());
    found.until(|found| found.behind.last_of("/map").unwrap().is_some());
    let (mut late, _) = recorder.registry().add(&channel("/late")).unwrap();
    late.append(8, b"late").unwrap();
    found.until(|found| times_of(found, "/late") == [8]);
    for time_ns in 10..10 + MANY {
        channels[0].append(time_ns, &[1; RECORD_BYTES]).unwrap();
        found.until(|found| times_of(found, "/a").last() == Some(&time_ns));
    }
    let (message, payload) = found.behind.last_of("/map").unwrap().unwrap();
    assert_eq!((message.publish_time_ns, payload.as_slice()), (7, b"map".as_slice()));
    assert!(found.behind.last_of("/other").unwrap().is_none());
    recorder.finish().unwrap();
}

#[test]
fn who_is_far_behind_goes_on_in_the_newest_segment() {
    let dir = tempfile::tempdir().unwrap();
    let (mut recorder, mut channels) = Recorder::start(&config(dir.path()), &mut |_| ()).unwrap();
    channels[0].append(0, b"first").unwrap();
    let mut found = Found::new(dir.path());
    found.until(|found| found.behind.definitions().is_some());
    for time_ns in 1..=5 * MANY {
        while recorder.stats().channels[0].account.buffered.bytes > 500_000 {
            thread::sleep(Duration::from_millis(1));
        }
        channels[0].append(time_ns, &[1; RECORD_BYTES]).unwrap();
    }
    recorder.finish().unwrap();
    found.until(|found| times_of(found, "/a").last() == Some(&(5 * MANY)));
    assert!(found.behind.skipped_segments > 2, "{}", found.behind.skipped_segments);
    let times = times_of(&found, "/a");
    assert!(times.len() < 3 * MANY as usize, "{}", times.len());
}

#[test]
fn who_is_in_a_segment_that_begins_another_life_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let retention = Retention::Segments(2);
    let config = RecorderConfig { segment_bytes: 8 << 20, retention, ..config(dir.path()) };
    let (mut recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    channels[0].append(0, b"first").unwrap();
    let mut found = Found::new(dir.path());
    found.until(|found| found.behind.definitions().is_some());
    let mut time_ns = 0;
    while recorder.meters().rotations.load(Ordering::Relaxed) < 2 {
        while recorder.stats().channels[0].account.buffered.bytes > 500_000 {
            thread::sleep(Duration::from_millis(1));
        }
        time_ns += 1;
        channels[0].append(time_ns, &[1; RECORD_BYTES]).unwrap();
    }
    let (begun_ns, started) = (time_ns, Instant::now());
    // The file goes on changing: a segment takes more blocks than come in LONG.
    while times_of(&found, "/a").last() <= Some(&begun_ns) {
        assert!(started.elapsed() < LONG);
        time_ns += 1;
        channels[0].append(time_ns, b"more").unwrap();
        found.step();
        thread::sleep(Duration::from_millis(50));
    }
    recorder.finish().unwrap();
}

#[test]
fn blocks_may_be_passed_unread() {
    let dir = tempfile::tempdir().unwrap();
    let (mut recorder, mut channels) = Recorder::start(&config(dir.path()), &mut |_| ()).unwrap();
    channels[0].append(0, b"first").unwrap();
    let mut behind = Behind::new(dir.path());
    let started = Instant::now();
    let mut passed = 0;
    for time_ns in 1.. {
        assert!(started.elapsed() < LONG);
        channels[0].append(time_ns, b"more").unwrap();
        match behind.step(false).unwrap() {
            Some(Next::Block(block)) => {
                assert!(block.is_empty(), "read {} bytes", block.len());
                passed += 1;
            }
            Some(Next::Definitions) | None => thread::sleep(Duration::from_millis(1)),
        }
        if passed == 3 {
            break;
        }
    }
    recorder.finish().unwrap();
}
