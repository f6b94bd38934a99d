// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings that begin again and again in the same pool, and segments that are gone.

use super::*;

fn restart(config: &RecorderConfig, from: u64, count: u64) -> u64 {
    let (mut recorder, mut channels) = Recorder::start(config, &mut |_| ()).unwrap();
    for number in from..from + count {
        channels[number as usize % 2].append(number, &[number as u8; 100]).unwrap();
    }
    let report = recorder.finish().unwrap();
    assert_eq!(report.not_durable, 0);
    recorder.meters().missing_messages.load(Ordering::Relaxed)
}

fn log_times(dir: &Path) -> Vec<u64> {
    let mut times: Vec<u64> = messages(dir).iter().map(|message| message.log_time).collect();
    times.sort_unstable();
    times
}

#[test]
fn a_restart_loop_loses_nothing_older_than_what_came() {
    let dir = tempfile::tempdir().unwrap();
    // The new records take half of it: blocks of 4 KiB at least.
    let config = RecorderConfig {
        segment_bytes: 2 << 20,
        retention: Retention::Segments(4),
        ..config(dir.path())
    };
    let (mut recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    append(&recorder, &mut channels, 2_500);
    recorder.finish().unwrap();
    drop(channels);
    let before = messages(dir.path()).len() as u64;
    let mut came = 0;
    for number in 0..200_u64 {
        let count = 1 + number * 37 % 100;
        assert_eq!(restart(&config, 1_000_000 + came, count), 0);
        came += count;
    }
    let times = log_times(dir.path());
    let (new, old): (Vec<u64>, Vec<u64>) = times.iter().partition(|time| **time >= 1_000_000);
    assert!(new.iter().copied().eq(1_000_000..1_000_000 + came), "{} of {came}", new.len());
    // 200 sessions of 8 KiB on average are less than a segment, and one is prepared.
    assert!(old.len() as u64 >= before / 3, "{} of {before}", old.len());
}

#[test]
fn a_recording_that_is_continued_counts_on() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    for session in 0..3 {
        restart(&config, session * 10, 10);
    }
    let found = messages(dir.path());
    let of = |topic: &str| -> Vec<u32> {
        let of_topic = found.iter().filter(|message| message.channel.topic == topic);
        of_topic.map(|message| message.sequence).collect()
    };
    assert_eq!((of("/a"), of("/b")), ((1..16).collect(), (1..16).collect()));
    let path = &segments(dir.path())[0];
    let found = examine_file(path, true).unwrap().found;
    assert_eq!((found.state, found.damaged, found.messages()), (State::Finished, false, 30));
    let ledgers = found.contents.unwrap().channels.into_iter().map(|channel| channel.ledger);
    let counts: Vec<_> = ledgers.map(|one| (one.received, one.durable, one.lost)).collect();
    assert_eq!(counts, [(15, 15, 0); 2]);
}

#[test]
fn a_segment_without_compressed_blocks_gets_none() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    let mut compressed = config.clone();
    compressed.writer.compression = Some(Compression::Lz4);
    for (config, from, recorded) in [(&config, 0, 1), (&compressed, 10, 2), (&compressed, 20, 2)] {
        restart(config, from, 10);
        let is_recorded = |path: &&PathBuf| path.extension().unwrap() == "mcap";
        assert_eq!(segments(dir.path()).iter().filter(is_recorded).count(), recorded);
    }
    assert_eq!(log_times(dir.path()), (0..30).collect::<Vec<_>>());
}

#[test]
fn other_topics_begin_a_segment_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    restart(&config, 0, 10);
    let other = RecorderConfig { channels: vec![channel("/a"), channel("/c")], ..config };
    restart(&other, 10, 10);
    assert_eq!(log_times(dir.path()), (0..20).collect::<Vec<_>>());
    let recorded = segments(dir.path());
    let recorded = recorded.iter().filter(|path| path.extension().unwrap() == "mcap");
    assert_eq!(recorded.count(), 2);
}

#[test]
fn a_kill_while_a_segment_is_continued_costs_nothing_durable() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    restart(&config, 0, 10);
    let (mut recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    for number in 10..60 {
        channels[number as usize % 2].append(number, &[number as u8; 100]).unwrap();
        wait_until_durable(&recorder);
        if number % 10 == 0 {
            let left = crashed(dir.path());
            assert_eq!(log_times(left.path()), (0..=number).collect::<Vec<_>>());
            let config = RecorderConfig { dir: left.path().into(), ..config.clone() };
            assert_eq!(restart(&config, 100, 10), 0);
            assert_eq!(log_times(left.path()).len() as u64, number + 11);
        }
    }
    recorder.finish().unwrap();
}

#[test]
fn a_continued_segment_keeps_the_copy_of_the_definitions_with_which_it_began() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    config.late = LateRoom { channels: 1, definition_bytes: 6_000 };
    restart(&config, 0, 10);
    let (mut recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    // The definitions with this one, which comes before the first record, are a block longer.
    let data = vec![b's'; 4_500];
    let schema = Some(Schema { name: "late".into(), encoding: "text".into(), data });
    let late = ChannelConfig { schema, ..channel("/late") };
    let mut late = recorder.add_channel(&late).unwrap();
    for number in 10..20 {
        channels[number as usize % 2].append(number, b"more").unwrap();
    }
    late.append(20, b"late").unwrap();
    wait_until_durable(&recorder);
    let left = crashed_with(dir.path(), |bytes| bytes[4_096..8_192].fill(0));
    assert_eq!(log_times(left.path()), (0..21).collect::<Vec<_>>());
    recorder.finish().unwrap();
}

/// A session with two channels at the start, and late ones that get a record each. Records have
/// numbers from `from` on.
fn session(config: &RecorderConfig, from: u64, late: &[&str]) {
    let (mut recorder, mut channels) = Recorder::start(config, &mut |_| ()).unwrap();
    channels[0].append(from, b"first").unwrap();
    for (number, topic) in (from + 1..).zip(late) {
        let mut channel = recorder.add_channel(&late_channel(topic)).unwrap();
        channel.append(number, topic.as_bytes()).unwrap();
        wait_until_durable(&recorder);
    }
    assert_eq!(recorder.finish().unwrap().not_durable, 0);
    assert_eq!(recorder.meters().missing_messages.load(Ordering::Relaxed), 0);
}

/// Log times and sequence numbers by topic.
fn by_topic(dir: &Path) -> BTreeMap<String, Vec<(u64, u32)>> {
    let mut found: BTreeMap<String, Vec<(u64, u32)>> = BTreeMap::new();
    for message in messages(dir) {
        let topic = message.channel.topic.clone();
        if topic.starts_with("/late") {
            assert_eq!(*message.data, *topic.as_bytes());
        }
        found.entry(topic).or_default().push((message.log_time, message.sequence));
    }
    found.values_mut().for_each(|times| times.sort_unstable());
    found
}

fn recorded(dir: &Path) -> usize {
    segments(dir).iter().filter(|path| path.extension().unwrap() == "mcap").count()
}

fn with_late(dir: &Path) -> RecorderConfig {
    let late = LateRoom { channels: 4, definition_bytes: 4_000 };
    RecorderConfig { late, ..config(dir) }
}

#[test]
fn a_restart_loop_with_late_topics_stays_in_one_segment() {
    let dir = tempfile::tempdir().unwrap();
    let config = with_late(dir.path());
    let late = ["/late/a", "/late/b"];
    // A session may lack the last ones, or have more.
    for (number, count) in (0..).zip([2, 2, 1, 0, 2, 1]) {
        session(&config, 10 * number, &late[..count]);
        assert_eq!(recorded(dir.path()), 1);
    }
    session(&config, 60, &["/late/a", "/late/b", "/late/c"]);
    assert_eq!(recorded(dir.path()), 1);
    let found = by_topic(dir.path());
    let of = |times: &[u64]| times.iter().copied().zip(1..).collect::<Vec<(u64, u32)>>();
    assert_eq!(found["/a"], of(&[0, 10, 20, 30, 40, 50, 60]));
    assert_eq!(found["/late/a"], of(&[1, 11, 21, 41, 51, 61]));
    assert_eq!(found["/late/b"], of(&[2, 12, 42, 62]));
    assert_eq!(found["/late/c"], of(&[63]));
}

#[test]
fn late_topics_in_another_order_begin_a_segment_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let config = with_late(dir.path());
    session(&config, 0, &["/late/a", "/late/b"]);
    session(&config, 10, &["/late/b", "/late/a"]);
    assert_eq!(recorded(dir.path()), 2);
    session(&config, 20, &["/late/b", "/late/c"]);
    let found = by_topic(dir.path());
    let times = |topic: &str| found[topic].iter().map(|(time, _)| *time).collect::<Vec<_>>();
    assert_eq!(times("/a"), [0, 10, 20]);
    assert_eq!((times("/late/a"), times("/late/b")), (vec![1, 12], vec![2, 11, 21]));
    assert_eq!(times("/late/c"), [22]);
    for path in segments(dir.path()) {
        assert!(!examine_file(&path, true).unwrap().found.damaged);
    }
}

#[test]
fn topics_of_an_earlier_session_pass_through_rotations() {
    let dir = tempfile::tempdir().unwrap();
    let config = with_late(dir.path());
    session(&config, 0, &["/late/a"]);
    let (mut recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    append(&recorder, &mut channels, 300);
    let mut late = recorder.add_channel(&late_channel("/late/a")).unwrap();
    late.append(5_000, b"/late/a").unwrap();
    append(&recorder, &mut channels, 10);
    recorder.finish().unwrap();
    assert_eq!(by_topic(dir.path())["/late/a"].last(), Some(&(5_000, 2)));
    let crashed = crashed(dir.path());
    assert_eq!(by_topic(crashed.path()), by_topic(dir.path()));
}

#[test]
fn a_segment_that_is_removed_does_not_stop_the_recording() {
    let dir = tempfile::tempdir().unwrap();
    let config = RecorderConfig { retention: Retention::Segments(4), ..config(dir.path()) };
    let (mut recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    append(&recorder, &mut channels, 300);
    wait_until_durable(&recorder);
    let oldest =
        segments(dir.path()).into_iter().find(|path| path.ends_with("segment-00003.unused"));
    let gone = oldest.unwrap_or_else(|| segments(dir.path())[0].clone());
    fs::remove_file(gone).unwrap();
    for _ in 0..4 {
        append(&recorder, &mut channels, 300);
    }
    assert_eq!(recorder.finish().unwrap().not_durable, 0);
    assert_eq!(recorder.meters().failed_segments.load(Ordering::Relaxed), 1);
    assert!(recorder.meters().trouble().unwrap().contains("recording goes on without"));
    assert!(messages(dir.path()).len() > 200);
}

#[test]
fn the_segment_in_use_that_is_removed_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    let (mut recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    append(&recorder, &mut channels, 10);
    wait_until_durable(&recorder);
    wait_until_named(dir.path());
    fs::remove_file(dir.path().join("segment-00000.mcap")).unwrap();
    recorder.finish().unwrap();
    assert_eq!(recorder.meters().missing_messages.load(Ordering::Relaxed), 10);
    assert_eq!(restart(&config, 0, 1), 10);
}

#[test]
fn the_sequence_of_a_segment_that_is_gone_is_not_used_again() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    let newest = || {
        let of =
            |path: &PathBuf| Some(examine_file(path, false).unwrap().found.identity()?.sequence);
        let paths = segments(dir.path());
        paths.into_iter().map(|path| (of(&path), path)).max().unwrap()
    };
    let mut last = None;
    // After the first start the list has the life, and after the second what is gone.
    for profile in ["first", "second", "third"] {
        let config = RecorderConfig { profile: profile.into(), ..config.clone() };
        restart(&config, 0, 10);
        let (sequence, path) = newest();
        assert!(sequence > last, "{sequence:?} {last:?}");
        last = sequence;
        fs::remove_file(path).unwrap();
    }
}
