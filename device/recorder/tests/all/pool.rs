// SPDX-License-Identifier: MIT OR Apache-2.0
//! A pool of segments from the first append to the official reader.

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
    ChannelConfig, EngineChoice, LateRoom, OnFailure, RecorderConfig, Retention, Schema, WhenFull,
    WriterConfig, defaults,
};
use steadyio_recorder::ledger::Account;
use steadyio_recorder::mcap::files::{examine_file, recover_file, recover_segment};
use steadyio_recorder::mcap::recover::State;
use steadyio_recorder::pool::meters::Ended;
use steadyio_recorder::pool::stage::buffer_sizes;
use steadyio_recorder::pool::{Recorder, resize_pool};
use steadyio_testing::recording::{messages, segments};

const RECORD_BYTES: usize = 4_000;

fn channel(topic: &str) -> ChannelConfig {
    ChannelConfig {
        topic: topic.into(),
        message_encoding: "raw".into(),
        schema: Some(Schema { name: "block".into(), encoding: String::new(), data: Vec::new() }),
        metadata: Vec::new(),
        record_bytes_max: RECORD_BYTES as u64,
        period: None,
        ring_bytes: 1 << 20,
    }
}

fn config(dir: &Path) -> RecorderConfig {
    RecorderConfig {
        dir: dir.into(),
        profile: String::new(),
        channels: vec![channel("/a"), channel("/b")],
        loss_window: Duration::from_millis(20),
        unit_bytes: 64 << 10,
        late: LateRoom::default(),
        longest_record_bytes: 0,
        shared_ring_bytes: None,
        segment_bytes: 512 << 10,
        retention: Retention::Segments(3),
        when_full: WhenFull::Recycle,
        discard_damaged: false,
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
    let inodes = || -> Vec<u64> {
        segments(dir.path()).iter().map(|path| fs::metadata(path).unwrap().ino()).collect()
    };
    let before = inodes();
    // Some five times what the pool holds.
    append(&recorder, &mut channels, 2_000);
    recorder.finish().unwrap();
    assert_eq!(total(&recorder), (2_000, 2_000, 0));
    assert_eq!(inodes(), before);
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

/// Blocks of data of one segment lie behind the head, the definitions and one block.
const IN_DATA: usize = 4 * 4_096;

#[test]
fn a_record_longer_than_a_unit_is_refused_or_recorded_as_the_configuration_says() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(&dir.path().join("new"));
    config.segment_bytes = 4 << 20;
    let limit = (64 << 10) - 658;
    config.channels[0].record_bytes_max = limit + 1;
    let refused = Recorder::start(&config, &mut |_| ()).unwrap_err().to_string();
    assert!(refused.contains(&format!("must be at most {limit}; raise longest_")), "{refused}");
    assert!(!config.dir.exists());
    config.channels[0].record_bytes_max = limit;
    append_one(&config, limit);

    config.longest_record_bytes = 1 << 20;
    config.channels[0].record_bytes_max = 1 << 20;
    config.channels[0].ring_bytes = 4 << 20;
    append_one(&config, 1 << 20);
    assert_eq!(read_all(&config.dir).len(), 2 + 2);
}

/// One of this length, and a short one.
fn append_one(config: &RecorderConfig, bytes: u64) {
    let (mut recorder, mut channels) = Recorder::start(config, &mut |_| ()).unwrap();
    channels[0].append(1, &vec![7; bytes as usize]).unwrap();
    channels[1].append(2, b"short").unwrap();
    recorder.finish().unwrap();
    assert_eq!(total(&recorder), (2, 2, 0));
}

#[test]
fn a_record_of_64_mib_fits_and_no_longer_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    config.channels.truncate(1);
    config.segment_bytes = 80 << 20;
    config.retention = Retention::Segments(2);
    config.longest_record_bytes = 64 << 20;
    config.channels[0].record_bytes_max = 64 << 20;
    config.channels[0].ring_bytes = 129 << 20;
    let (mut recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    channels[0].append(1, &vec![7; 64 << 20]).unwrap();
    recorder.finish().unwrap();
    assert_eq!(total(&recorder), (1, 1, 0));
    assert_eq!(read_all(dir.path())[0].2, 64 << 20);
    config.longest_record_bytes += 1;
    let refused = Recorder::start(&config, &mut |_| ()).unwrap_err().to_string();
    assert!(
        refused.contains("longest_record_bytes = 67108865: must be 0 to 67108864"),
        "{refused}"
    );
}

#[test]
fn a_segment_without_definitions_is_kept_unless_it_may_be_discarded() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    let (mut recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    append(&recorder, &mut channels, 40);
    recorder.finish().unwrap();
    let path = dir.path().join("segment-00000.mcap");
    let mut bytes = fs::read(&path).unwrap();
    let end = bytes.len();
    // The definitions, and the summary behind which their copy was.
    bytes[4_096 + 200] ^= 1;
    bytes[end - 100] ^= 1;
    fs::write(&path, &bytes).unwrap();
    assert_eq!(examine_file(&path, false).unwrap().found.state, State::Damaged);

    let mut notes = Vec::new();
    drop(Recorder::start(&config, &mut |note| notes.push(note)).unwrap());
    let aside = dir.path().join("segment-00000.mcap.damaged-1");
    assert!(notes[0].contains("holds data, but its definitions"), "{notes:?}");
    assert_eq!(fs::read(&aside).unwrap(), bytes);

    fs::remove_file(path.with_extension("unused")).unwrap();
    fs::rename(&aside, &path).unwrap();
    config.discard_damaged = true;
    drop(Recorder::start(&config, &mut |note| notes.push(note)).unwrap());
    assert!(notes.last().unwrap().ends_with("; it will be overwritten"), "{notes:?}");
    assert!(!aside.exists());
    assert_eq!(segments(dir.path()).len(), 3);
}

#[test]
fn a_damaged_block_costs_itself_and_is_told_when_the_next_recording_starts() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    let (recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    for _ in 0..10 {
        append(&recorder, &mut channels, 4);
        wait_until_durable(&recorder);
    }
    let crashed = tempfile::tempdir().unwrap();
    for path in segments(dir.path()) {
        fs::copy(&path, crashed.path().join(path.file_name().unwrap())).unwrap();
    }
    let path = crashed.path().join("segment-00000.mcap");
    let mut bytes = fs::read(&path).unwrap();
    bytes[IN_DATA + 2_000] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let config = RecorderConfig { dir: crashed.path().into(), ..config };
    let mut notes = Vec::new();
    drop(Recorder::start(&config, &mut |note| notes.push(note)).unwrap());
    assert!(notes.iter().any(|note| note.contains("is damaged: 1 blocks,")), "{notes:?}");
    let found = read_all(crashed.path()).len();
    assert!((30..40).contains(&found), "{found} of 40");
}

#[test]
fn a_segment_without_a_message_is_used_first() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    let (mut recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    append(&recorder, &mut channels, 300);
    recorder.finish().unwrap();
    let left = || {
        let (mut recorder, _) = Recorder::start(&config, &mut |_| ()).unwrap();
        recorder.finish().unwrap();
        read_all(dir.path()).len()
    };
    let after_the_first = left();
    assert_eq!([left(), left(), left()], [after_the_first; 3]);
}

/// Messages by name, as somebody finds them who takes all `*.mcap` files; and what else is there.
fn by_name(dir: &Path) -> (BTreeMap<String, usize>, Vec<String>) {
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    let (mcap, other): (Vec<_>, Vec<_>) =
        segments(dir).into_iter().partition(|path| path.extension().unwrap() == "mcap");
    let messages = |path: &PathBuf| {
        let bytes = fs::read(path).unwrap();
        assert!(mcap::Summary::read(&bytes).unwrap().is_some(), "{}", path.display());
        mcap::MessageStream::new(&bytes).unwrap().count()
    };
    (
        mcap.iter().map(|path| (name(path), messages(path))).collect(),
        other.iter().map(name).collect(),
    )
}

#[test]
fn only_segments_with_records_are_called_mcap() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    let (mut recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    assert_eq!(by_name(dir.path()).0.len(), 0);
    append(&recorder, &mut channels, 10);
    recorder.finish().unwrap();
    let (recorded, unused) = by_name(dir.path());
    assert_eq!(recorded, BTreeMap::from([("segment-00000.mcap".into(), 10)]));
    assert_eq!(unused, ["segment-00001.unused", "segment-00002.unused"]);

    // All are used; then the oldest is nearly filled again, and the next prepared and not needed.
    for (count, expected) in [(300, (3, 0)), (115, (2, 1))] {
        let (mut recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
        append(&recorder, &mut channels, count);
        // The next is prepared beside the writing, and called unused only at the end.
        wait_until_durable(&recorder);
        thread::sleep(Duration::from_millis(500));
        recorder.finish().unwrap();
        let (recorded, unused) = by_name(dir.path());
        assert_eq!((recorded.len(), unused.len()), expected, "{recorded:?} {unused:?}");
        assert!(recorded.values().all(|messages| *messages > 0), "{recorded:?}");
    }
}

#[test]
fn what_a_power_cut_left_gets_its_name_from_what_is_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    let (recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    append(&recorder, &mut channels, 150);
    wait_until_durable(&recorder);
    let left = tempfile::tempdir().unwrap();
    for path in segments(dir.path()) {
        // As if no new name had become durable.
        let name = path.with_extension("unused");
        fs::copy(&path, left.path().join(name.file_name().unwrap())).unwrap();
    }
    let named: Vec<PathBuf> =
        segments(left.path()).iter().map(|path| recover_segment(path, true).unwrap().0).collect();
    assert_eq!(named, segments(left.path()));
    let (recorded, unused) = by_name(left.path());
    assert_eq!((recorded.values().sum::<usize>(), unused.len()), (150, 1), "{recorded:?}");

    // And by the next start; an empty one may have the name of one with records.
    fs::rename(&named[0], named[0].with_extension("unused")).unwrap();
    fs::rename(&named[2], named[2].with_extension("mcap")).unwrap();
    let config = RecorderConfig { dir: left.path().into(), ..config };
    Recorder::start(&config, &mut |_| ()).unwrap().0.finish().unwrap();
    assert_eq!(by_name(left.path()), (recorded, unused));
}

#[test]
fn a_segment_whose_head_was_wiped_is_not_taken_for_unused() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    let (mut recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    append(&recorder, &mut channels, 40);
    recorder.finish().unwrap();
    let path = dir.path().join("segment-00000.mcap");
    let mut bytes = fs::read(&path).unwrap();
    let end = bytes.len();
    bytes[..3 * 4_096].fill(0);
    bytes[end - 4_096..].fill(0);
    fs::write(&path, &bytes).unwrap();
    let mut notes = Vec::new();
    drop(Recorder::start(&config, &mut |note| notes.push(note)).unwrap());
    assert!(notes[0].ends_with("segment-00000.mcap.damaged-1"), "{notes:?}");
}

#[test]
fn a_pool_grows_and_shrinks_without_losing_the_newest_records() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    let resized = |segments| {
        let retention = Retention::Segments(segments);
        let mut notes = Vec::new();
        let config = RecorderConfig { retention, ..config.clone() };
        let pool = resize_pool(&config, &mut |note| notes.push(note), &Interrupt::default());
        (pool.unwrap().changed(), notes)
    };
    assert_eq!(resized(3).0, (3, 0));
    let (mut recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    append(&recorder, &mut channels, 350);
    recorder.finish().unwrap();
    let all = read_all(dir.path());
    assert_eq!(resized(5).0, (2, 0));
    assert_eq!(read_all(dir.path()), all);

    let (changed, notes) = resized(3);
    assert!(changed == (0, 2) && read_all(dir.path()) == all);
    assert!(notes.iter().all(|note| note.ends_with("removed, with 0 messages")), "{notes:?}");

    let two = RecorderConfig { retention: Retention::Segments(2), ..config.clone() };
    let refused = Recorder::start(&two, &mut |_| ()).unwrap_err().to_string();
    assert!(refused.contains("(1 of them): steady record --prepare --dir "), "{refused}");
    let (changed, notes) = resized(2);
    assert_eq!((changed, segments(dir.path()).len()), ((0, 1), 2));
    let left = read_all(dir.path());
    assert!(left.len() > 200 && left.last() == all.last(), "{notes:?}");
    assert!(notes[0].ends_with(&format!(" {} messages", all.len() - left.len())), "{notes:?}");
}

#[test]
fn what_others_took_of_the_space_to_keep_free_is_told_and_recording_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    drop(Recorder::start(&config, &mut |_| ()).unwrap());
    config.retention = Retention::MinFreeBytes(u64::MAX / 2);
    let mut notes = Vec::new();
    let (mut recorder, mut channels) =
        Recorder::start(&config, &mut |note| notes.push(note)).unwrap();
    append(&recorder, &mut channels, 10);
    recorder.finish().unwrap();
    assert!(notes[0].contains("others have taken space"), "{notes:?}");
    assert_eq!((total(&recorder), segments(dir.path()).len()), ((10, 10, 0), 3));
}

#[test]
fn a_time_that_does_not_fit_is_refused_before_anything_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(&dir.path().join("new"));
    let period = Some(Duration::from_millis(100));
    config.channels.iter_mut().for_each(|channel| channel.period = period);
    for (time, says) in [(1 << 40, "there can be 10000"), (50_000, "only ")] {
        config.retention = Retention::Time(Duration::from_secs(time));
        if time < 1 << 40 {
            config.segment_bytes = 64 << 30;
            config.channels.iter_mut().for_each(|c| c.period = Some(Duration::from_micros(10)));
            config.channels.iter_mut().for_each(|c| c.ring_bytes = 512 << 20);
        }
        let refused = Recorder::start(&config, &mut |_| ()).unwrap_err().to_string();
        assert!(refused.contains("bytes per second with framing"), "{refused}");
        assert!(refused.contains(says), "{refused}");
    }
    assert!(!config.dir.exists());
}

#[test]
fn channels_of_one_thread_share_a_ring() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    config.shared_ring_bytes = Some(1 << 20);
    let (mut recorder, mut channels) =
        Recorder::start_shared(None, &Interrupt::default(), &config, &mut |_| ()).unwrap();
    for number in 0..100 {
        let data = vec![number as u8; RECORD_BYTES - (number % 1_000) as usize];
        channels.append(number as usize % 2, 1_000 + number, &data).unwrap();
    }
    recorder.finish().unwrap();
    assert_eq!(total(&recorder), (100, 100, 0));
    assert_each(&read_all(dir.path()), beginning);
    assert!(recorder.stats().channels[0].account.ring_used_bytes_max > 0);
}

#[test]
fn ten_thousand_topics_with_one_schema_take_64_mib_of_locked_memory() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    let schema =
        Schema { name: "imu".into(), encoding: "ros2msg".into(), data: vec![b' '; 10_000] };
    config.channels = (0..10_000)
        .map(|at| ChannelConfig {
            schema: Some(schema.clone()),
            record_bytes_max: 1_000,
            ring_bytes: 0,
            ..channel(&format!("/robot/topic_{at}"))
        })
        .collect();
    config.shared_ring_bytes = Some(defaults::shared_ring_bytes(&config.channels));
    config.unit_bytes = 1 << 20;
    config.segment_bytes = 64 << 20;
    config.retention = Retention::Segments(2);
    config.loss_window = Duration::from_millis(500);
    let definitions = config.definitions().unwrap();
    let layout = config.layout(&definitions).unwrap();
    let buffers: usize = buffer_sizes(&layout).iter().map(|(bytes, _)| bytes).sum();
    assert!(
        config.rings_bytes() + (buffers as u64) < 64 << 20,
        "{} {buffers}",
        config.rings_bytes()
    );
    assert_eq!(definitions.schema_count(), 1);

    let (mut recorder, mut channels) =
        Recorder::start_shared(None, &Interrupt::default(), &config, &mut |_| ()).unwrap();
    for at in 0..10_000 {
        channels.append(at, 1 + at as u64, &at.to_le_bytes()).unwrap();
    }
    recorder.finish().unwrap();
    assert_eq!(total(&recorder), (10_000, 10_000, 0));
    assert_eq!(read_all(dir.path()).len(), 10_000);
    // Each with a ring of its own: as large as its rate needs.
    defaults::fill_rings(&mut config.channels, u64::MAX);
    config.shared_ring_bytes = None;
    assert_eq!(config.rings_bytes(), 10_000 * 8_192);
}

/// The header's profile.
fn profile(path: &Path) -> String {
    let bytes = fs::read(path).unwrap();
    match mcap::read::LinearReader::new(&bytes).unwrap().next() {
        Some(Ok(mcap::records::Record::Header(header))) => header.profile,
        other => panic!("{other:?}"),
    }
}

#[test]
fn profile_metadata_and_publish_time_are_what_the_application_said() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    config.profile = "ros2".into();
    config.channels[0].metadata = vec![("offered_qos_profiles".into(), "- depth: 1\n".into())];
    config.late = LateRoom { channels: 1, definition_bytes: 1_000 };
    let (mut recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    channels[0].append_published(7, 3, b"made at 3").unwrap();
    channels[1].append(8, b"made at 8").unwrap();
    let mut late = late_channel("/late");
    late.metadata = vec![("a".into(), "1".into()), ("b".into(), "2".into())];
    recorder.add_channel(&late).unwrap().append_published(9, 10, b"made at 10").unwrap();
    wait_until_durable(&recorder);
    // A head that is lost before the recovery is made again with its profile.
    let crashed = crashed_with(dir.path(), |bytes| bytes[8..400].fill(0));
    recorder.finish().unwrap();
    for dir in [dir.path(), crashed.path()] {
        let found = messages(dir);
        let times: Vec<_> = found.iter().map(|one| (one.log_time, one.publish_time)).collect();
        assert_eq!(times, [(7, 3), (8, 8), (9, 10)]);
        let metadata = |at: usize| found[at].channel.metadata.clone();
        assert_eq!(metadata(0)["offered_qos_profiles"], "- depth: 1\n");
        assert_eq!((metadata(1).len(), metadata(2).len()), (0, 2));
        assert_eq!(profile(&dir.join("segment-00000.mcap")), "ros2");
    }
    // So is that of a finished segment.
    let path = dir.path().join("segment-00000.mcap");
    let mut bytes = fs::read(&path).unwrap();
    bytes[8..400].fill(0);
    fs::write(&path, &bytes).unwrap();
    recover_file(&path, true).unwrap();
    assert_eq!((profile(&path), messages(dir.path()).len()), ("ros2".into(), 3));
}

#[test]
fn wrong_metadata_and_a_long_profile_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    config.profile = "x".repeat(65);
    let refused = |config: &RecorderConfig, says: &str| {
        let said = Recorder::start(config, &mut |_| ()).unwrap_err().to_string();
        assert!(said.contains(says), "{said}");
    };
    refused(&config, "length of profile = 65: must be 0 to 64");
    config.profile.clear();
    config.channels[1].metadata = vec![("k".into(), "1".into()), ("k".into(), "2".into())];
    refused(&config, "channel /b: metadata key k is given twice");
}

fn late_channel(topic: &str) -> ChannelConfig {
    let schema = Schema { name: topic.into(), encoding: "text".into(), data: vec![b's'; 500] };
    ChannelConfig { schema: Some(schema), ..channel(topic) }
}

/// By topic, with the schema's name: log times in order.
fn times_ns(dir: &Path) -> BTreeMap<(String, String), Vec<u64>> {
    let mut found: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    for message in messages(dir) {
        let schema = message.channel.schema.as_ref().unwrap().name.clone();
        found.entry((message.channel.topic.clone(), schema)).or_default().push(message.log_time);
    }
    found.values_mut().for_each(|times| times.sort_unstable());
    found
}

/// Leaves the files of a running recording as a crash would, and completes them.
fn crashed(dir: &Path) -> tempfile::TempDir {
    crashed_with(dir, |_| ())
}

/// The same with damage in the segments that were recorded to.
fn crashed_with(dir: &Path, damage: impl Fn(&mut [u8])) -> tempfile::TempDir {
    let crashed = tempfile::tempdir().unwrap();
    for path in segments(dir) {
        let copy = crashed.path().join(path.file_name().unwrap());
        let mut bytes = fs::read(&path).unwrap();
        if examine_file(&path, false).unwrap().before != State::Unused {
            damage(&mut bytes);
        }
        fs::write(&copy, bytes).unwrap();
        recover_file(&copy, true).unwrap();
    }
    crashed
}

#[test]
fn a_channel_that_is_declared_while_recording_is_recorded_through_rotations_and_crashes() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    config.late = LateRoom { channels: 3, definition_bytes: 4_000 };
    let (mut recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    append(&recorder, &mut channels, 20);
    let mut late = Vec::new();
    for (number, topic) in ["/late/a", "/late/b", "/late/c"].into_iter().enumerate() {
        late.push(recorder.add_channel(&late_channel(topic)).unwrap());
        for (at, channel) in late.iter_mut().enumerate() {
            channel.append(1_000_000 * at as u64 + number as u64, b"first").unwrap();
        }
        wait_until_durable(&recorder);
        let there = times_ns(crashed(dir.path()).path());
        for (at, topic) in ["/late/a", "/late/b", "/late/c"].into_iter().enumerate() {
            let times = there.get(&(topic.into(), topic.into())).cloned().unwrap_or_default();
            let expected: Vec<u64> =
                (at..=number).map(|n| 1_000_000 * at as u64 + n as u64).collect();
            assert_eq!(times, expected, "{topic}");
        }
    }
    // Through several segments: the definitions are in each.
    append(&recorder, &mut channels, 600);
    late[1].append(5_000_000, b"in another segment").unwrap();
    recorder.finish().unwrap();
    assert!(recorder.stats().meters.rotations.load(Ordering::Relaxed) >= 3);
    assert_eq!(times_ns(dir.path())[&("/late/b".into(), "/late/b".into())], [5_000_000]);
    let accounts = recorder.stats().channels;
    let durable: Vec<u64> = accounts.iter().map(|one| one.account.durable.records).collect();
    assert_eq!(durable, [310, 310, 3, 3, 1]);
}

#[test]
fn a_channel_declared_when_a_segment_is_nearly_full_is_in_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    config.late = LateRoom { channels: 40, definition_bytes: 40 * 700 };
    let (mut recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    // In all places of a segment, the prepared next one and the change of segment among them.
    let mut late = Vec::new();
    for number in 0..40 {
        append(&recorder, &mut channels, 12);
        let topic = format!("/late/{number}");
        late.push(recorder.add_channel(&late_channel(&topic)).unwrap());
        late[number].append(number as u64, b"first").unwrap();
        wait_until_durable(&recorder);
        let there = times_ns(crashed(dir.path()).path());
        assert_eq!(there[&(topic.clone(), topic)], [number as u64]);
    }
    recorder.finish().unwrap();
    assert!(recorder.stats().meters.rotations.load(Ordering::Relaxed) >= 3);
    assert_eq!(total(&recorder), (480 + 40, 480 + 40, 0));
}

#[test]
fn channels_that_share_a_ring_can_be_added_to() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    config.late = LateRoom { channels: 200, definition_bytes: 200_000 };
    config.segment_bytes = 2 << 20;
    config.shared_ring_bytes = Some(1 << 20);
    let (mut recorder, mut channels) =
        Recorder::start_shared(None, &Interrupt::default(), &config, &mut |_| ()).unwrap();
    for number in 0..200 {
        let at = recorder.add_shared(&mut channels, &late_channel(&number.to_string())).unwrap();
        channels.append(at, number, b"first").unwrap();
        channels.append(0, number, b"of the beginning").unwrap();
    }
    recorder.finish().unwrap();
    assert_eq!(total(&recorder), (400, 400, 0));
    let found = times_ns(dir.path());
    for number in 0..200 {
        assert_eq!(found[&(number.to_string(), number.to_string())], [number]);
    }
}

#[test]
fn what_has_no_room_or_is_wrong_is_refused_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    config.late = LateRoom { channels: 2, definition_bytes: 1_300 };
    let (mut recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    let refused = |config: &ChannelConfig, says: &str| {
        let said = recorder.add_channel(config).unwrap_err().to_string();
        assert!(said.contains(says), "{said}");
    };
    refused(&late_channel("/a"), "topic = /a: another channel has this topic");
    refused(
        &ChannelConfig { record_bytes_max: 1 << 20, ..late_channel("/x") },
        "record_bytes_max = 1048576: must be at most",
    );
    refused(
        &ChannelConfig { ring_bytes: 4096, ..late_channel("/x") },
        "ring_bytes = 4096: must be",
    );
    let long = Schema { name: "x".into(), encoding: "text".into(), data: vec![1; 2_000] };
    let long = ChannelConfig { schema: Some(long), ..channel("/x") };
    refused(&long, "late.definition_bytes = 1300: 1300 are left, 20");
    recorder.add_channel(&late_channel("/x")).unwrap();
    refused(&late_channel("/x"), "another channel has this topic");
    recorder.add_channel(&late_channel("/y")).unwrap();
    refused(&late_channel("/z"), "late.channels = 2: all are taken");
    append(&recorder, &mut channels, 10);
    recorder.finish().unwrap();
    let said = recorder.add_channel(&late_channel("/z")).unwrap_err().to_string();
    assert!(said.contains("late.channels"), "{said}");
    assert_eq!(read_all(dir.path()).len(), 10);
}

#[test]
fn a_time_that_is_kept_leaves_no_room_for_channels_that_come_later() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    for channel in &mut config.channels {
        channel.period = Some(Duration::from_millis(10));
    }
    config.retention = Retention::Time(Duration::from_secs(1));
    config.late.channels = 1;
    let refused = Recorder::start(&config, &mut |_| ()).unwrap_err().to_string();
    assert!(refused.contains("no room may be left for channels that come later"), "{refused}");
}
