// SPDX-License-Identifier: MIT OR Apache-2.0
//! A pool of segments from the first append to the official reader.

mod channels;
mod late;
mod left;
mod ram;
mod recording;
mod restarts;
mod size;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use steadyio_core::interrupt::Interrupt;
use steadyio_recorder::channel::Channel;
use steadyio_recorder::config::{
    ChannelConfig, EngineChoice, LateRoom, RecorderConfig, Retention, Schema, WhenFull,
    WriterConfig, defaults,
};
use steadyio_recorder::ledger::Account;
use steadyio_recorder::mcap::compression::Compression;
use steadyio_recorder::mcap::files::{examine_file, recover_file, recover_segment};
use steadyio_recorder::mcap::recover::State;
use steadyio_recorder::pool::meters::Ended;
use steadyio_recorder::pool::stage::buffer_sizes;
use steadyio_recorder::pool::{Recorder, resize_pool};
use steadyio_testing::recording::{messages, segments};

const RECORD_BYTES: usize = 4_000;
/// Blocks of data of one segment lie behind the head, the definitions and one block.
const IN_DATA: usize = 4 * 4_096;

fn channel(topic: &str) -> ChannelConfig {
    ChannelConfig {
        schema: Some(Schema { name: "block".into(), encoding: String::new(), data: Vec::new() }),
        ring_bytes: 1 << 20,
        ..ChannelConfig::new(topic, RECORD_BYTES as u64)
    }
}

fn config(dir: &Path) -> RecorderConfig {
    RecorderConfig {
        loss_window: Duration::from_millis(20),
        unit_bytes: 64 << 10,
        segment_bytes: 512 << 10,
        retention: Retention::Segments(3),
        lock_memory: false,
        ..RecorderConfig::new(dir.into(), vec![channel("/a"), channel("/b")])
    }
}

/// Appends `count` records in turn; waits when the rings fill, so that none is lost.
fn append(recorder: &Recorder, channels: &mut [Channel], count: u64) {
    for number in 0..count {
        let data = vec![number as u8; RECORD_BYTES - (number % 1_000) as usize];
        let turn = number as usize % channels.len();
        while recorder.stats().channels[turn].account.buffered.bytes > 500_000 {
            thread::sleep(Duration::from_millis(1));
        }
        channels[turn].append(1_000 + number, &data).unwrap();
    }
}

/// All records of all finished segments as (topic, log time, length, first byte), by log time.
fn read_all(dir: &Path) -> Vec<(String, u64, usize, u8)> {
    let record = |message: mcap::Message<'_>| {
        let first = message.data.first().copied().unwrap_or(0);
        (message.channel.topic.clone(), message.log_time, message.data.len(), first)
    };
    let mut records: Vec<_> = messages(dir).into_iter().map(record).collect();
    records.sort_by_key(|record| record.1);
    records
}

/// Checks every byte count and mark; returns the numbers of the records of a topic.
fn numbers(records: &[(String, u64, usize, u8)], topic: &str) -> Vec<u64> {
    let of_topic = records.iter().filter(|record| record.0 == topic);
    of_topic
        .map(|(_, log_time_ns, bytes, first)| {
            let number = log_time_ns - 1_000;
            assert_eq!(topic == "/a", number % 2 == 0);
            assert_eq!((*bytes, *first), (RECORD_BYTES - (number % 1_000) as usize, number as u8));
            number
        })
        .collect()
}

/// Channels are written one after the other, so a cut need not be at the same number in both.
fn assert_each(records: &[(String, u64, usize, u8)], expect: impl Fn(u64, usize) -> Vec<u64>) {
    for (first, topic) in [(0, "/a"), (1, "/b")] {
        let numbers = numbers(records, topic);
        assert_eq!(numbers, expect(first, numbers.len()), "{topic}");
    }
}

/// The first ones of each topic.
fn beginning(first: u64, count: usize) -> Vec<u64> {
    (0..count as u64).map(|i| first + 2 * i).collect()
}

/// The last ones of each topic, of `all` in both together.
fn end(all: u64, first: u64, count: usize) -> Vec<u64> {
    (0..count as u64).map(|i| all + first - 2 * (count as u64 - i)).collect()
}

fn total(recorder: &Recorder) -> (u64, u64, u64) {
    let accounts: Vec<Account> =
        recorder.stats().channels.into_iter().map(|channel| channel.account).collect();
    let sum = |of: fn(&Account) -> u64| accounts.iter().map(of).sum();
    (sum(|a| a.received.records), sum(|a| a.durable.records), sum(|a| a.lost().records))
}

fn wait_until_durable(recorder: &Recorder) {
    while total(recorder).0 > total(recorder).1 {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until the first segment has its name, which it gets a moment after its first record.
fn wait_until_named(dir: &Path) {
    while !dir.join("segment-00000.mcap").exists() {
        thread::sleep(Duration::from_millis(1));
    }
}

fn late_channel(topic: &str) -> ChannelConfig {
    let schema = Schema { name: topic.into(), encoding: "text".into(), data: vec![b's'; 500] };
    ChannelConfig { schema: Some(schema), ..channel(topic) }
}

/// Leaves the files of a running recording as a crash would, and completes them.
fn crashed(dir: &Path) -> tempfile::TempDir {
    crashed_with(dir, |_| ())
}

/// The same with damage in the segments that were recorded to.
fn crashed_with(dir: &Path, damage: impl Fn(&mut [u8])) -> tempfile::TempDir {
    let crashed = tempfile::tempdir().unwrap();
    wait_until_named(dir);
    for path in segments(dir) {
        let copy = crashed.path().join(path.file_name().unwrap());
        let mut bytes = fs::read(&path).unwrap();
        fs::write(&copy, &bytes).unwrap();
        if examine_file(&copy, false).unwrap().before != State::Unused {
            damage(&mut bytes);
            fs::write(&copy, bytes).unwrap();
        }
        recover_file(&copy, true).unwrap();
    }
    crashed
}
