// SPDX-License-Identifier: MIT OR Apache-2.0
//! A pool of segments from the first append to the official reader.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use steadyio_recorder::channel::Channel;
use steadyio_recorder::config::{
    ChannelConfig, EngineChoice, OnFailure, RecorderConfig, Retention, Schema, WhenFull,
    WriterConfig,
};
use steadyio_recorder::ledger::Account;
use steadyio_recorder::mcap::files::examine_file;
use steadyio_recorder::mcap::recover::State;
use steadyio_recorder::pool::Recorder;
use steadyio_recorder::pool::meters::Ended;
use steadyio_testing::recording::{messages, segments};

const RECORD_BYTES: usize = 4_000;

fn channel(topic: &str) -> ChannelConfig {
    ChannelConfig {
        topic: topic.into(),
        message_encoding: "raw".into(),
        schema: Some(Schema { name: "block".into(), encoding: String::new(), data: Vec::new() }),
        record_bytes_max: RECORD_BYTES as u64,
        period: None,
        ring_bytes: 1 << 20,
    }
}

fn config(dir: &Path) -> RecorderConfig {
    RecorderConfig {
        dir: dir.into(),
        channels: vec![channel("/a"), channel("/b")],
        loss_window: Duration::from_millis(20),
        unit_bytes: 64 << 10,
        segment_bytes: 512 << 10,
        retention: Retention::Segments(3),
        when_full: WhenFull::Recycle,
        on_failure: OnFailure::Wait,
        writer: WriterConfig::default(),
        lock_memory: false,
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

#[test]
fn what_is_appended_is_read_back_by_the_official_reader() {
    for engine in [EngineChoice::Best, EngineChoice::Pwrite] {
        let dir = tempfile::tempdir().unwrap();
        let mut config = config(dir.path());
        config.writer.engine = engine;
        let (mut recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
        append(&recorder, &mut channels, 300);
        let report = recorder.finish().unwrap();
        assert_eq!(report.ended, Ended::Finished);
        assert_eq!(total(&recorder), (300, 300, 0));
        let records = read_all(dir.path());
        assert_eq!(records.len(), 300);
        assert_each(&records, beginning);
    }
}

#[test]
fn the_oldest_segment_is_recorded_over_and_no_file_comes_or_goes() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    let (mut recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    let before = segments(dir.path());
    // Some five times what the pool holds.
    append(&recorder, &mut channels, 2_000);
    recorder.finish().unwrap();
    assert_eq!(total(&recorder), (2_000, 2_000, 0));
    assert_eq!(segments(dir.path()), before);
    let records = read_all(dir.path());
    assert!(records.len() > 250, "two full segments and a part: {}", records.len());
    assert_each(&records, |first, count| end(2_000, first, count));

    // The next recording goes on with the oldest.
    let (mut recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    append(&recorder, &mut channels, 10);
    recorder.finish().unwrap();
    let after = read_all(dir.path());
    assert_each(&after[..10], beginning);
    assert_each(&after[10..], |first, count| end(2_000, first, count));
    assert!(after.len() > 150 && after.len() < records.len());
}

#[test]
fn a_segment_that_was_prepared_and_not_needed_is_used_first() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    let (mut recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    append(&recorder, &mut channels, 2_000);
    wait_until_durable(&recorder);
    let is_blank = |path: &PathBuf| examine_file(path, false).unwrap().found.state == State::Blank;
    let prepared = || segments(dir.path()).iter().any(is_blank);
    // One block each, and nothing left in the rings, so that the prepared segment is not in use
    // before it is seen, nor afterwards.
    while !prepared() {
        append(&recorder, &mut channels, 1);
        wait_until_durable(&recorder);
    }
    recorder.finish().unwrap();
    let before = read_all(dir.path()).len();
    assert!(prepared());
    let (mut recorder, _) = Recorder::start(&config, &mut |_| ()).unwrap();
    recorder.finish().unwrap();
    assert_eq!(read_all(dir.path()).len(), before);
}

#[test]
fn a_recording_that_was_cut_off_is_completed_when_the_next_one_starts() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    let (recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    append(&recorder, &mut channels, 40);
    while recorder.stats().channels.iter().any(|channel| channel.account.buffered.records > 0) {
        thread::sleep(Duration::from_millis(1));
    }
    // What a crash at this moment leaves: the files as they are.
    let crashed = tempfile::tempdir().unwrap();
    for path in segments(dir.path()) {
        fs::copy(&path, crashed.path().join(path.file_name().unwrap())).unwrap();
    }
    assert!(read_all(crashed.path()).is_empty());
    let config = RecorderConfig { dir: crashed.path().into(), ..config };
    let mut notes = Vec::new();
    let started = Recorder::start(&config, &mut |note| notes.push(note)).unwrap();
    assert!(notes.len() == 1 && notes[0].ends_with("was unfinished, and has been completed"));
    drop(started);
    let records = read_all(crashed.path());
    assert_eq!(records.len(), 40);
    assert_each(&records, beginning);
}

#[test]
fn records_become_durable_without_anything_else_coming() {
    let dir = tempfile::tempdir().unwrap();
    let (recorder, mut channels) = Recorder::start(&config(dir.path()), &mut |_| ()).unwrap();
    channels[1].append(7, b"once").unwrap();
    while recorder.stats().channels[1].account.durable.records == 0 {
        thread::sleep(Duration::from_millis(1));
    }
    let account = recorder.stats().channels[1].account;
    assert_eq!((account.last_durable_ns, account.buffered.records), (Some(7), 0));
}

#[test]
fn a_pool_that_is_not_recycled_ends_full_and_counts_what_comes_later() {
    let dir = tempfile::tempdir().unwrap();
    let config = RecorderConfig { when_full: WhenFull::Stop, ..config(dir.path()) };
    let (mut recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    append(&recorder, &mut channels, 2_000);
    let report = recorder.finish().unwrap();
    assert_eq!(report.ended, Ended::Full);
    let (received, durable, lost) = total(&recorder);
    assert_eq!((received, durable + lost), (2_000, 2_000));
    assert!(durable > 300 && lost > 1_000);
    let records = read_all(dir.path());
    assert_eq!(records.len() as u64, durable);
    assert_each(&records, beginning);
    assert_eq!(recorder.stats().meters.trouble().unwrap(), "all segments are full");
}

#[test]
fn a_full_ring_costs_records_and_shows_in_file_and_account() {
    let dir = tempfile::tempdir().unwrap();
    let (mut recorder, mut channels) = Recorder::start(&config(dir.path()), &mut |_| ()).unwrap();
    // Faster than the writer thread looks, until that was too late; how soon is the machine's
    // doing.
    let (mut appended, mut lost) = (0, 0);
    while lost < 100 && appended < 100_000 {
        lost += u64::from(channels[0].append(appended, &[0; RECORD_BYTES]).is_err());
        appended += 1;
    }
    recorder.finish().unwrap();
    let account = recorder.stats().channels[0].account;
    assert_eq!(lost, 100);
    assert_eq!(account.lost_ring_full.records, lost);
    assert_eq!(account.durable.records, appended - lost);
    assert!(account.ring_used_bytes_max > 500_000);
}
