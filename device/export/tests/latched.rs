// SPDX-License-Identifier: MIT OR Apache-2.0
//! Latched topics: the last message is in every segment, and counts once.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use mcap::{Message, MessageStream, Summary};
use proptest::prelude::*;
use steadyio_core::interrupt::Interrupt;
use steadyio_export::merge::{HELD_BYTES_MAX, Item, Merge};
use steadyio_export::selection::Selection;
use steadyio_export::survey::Survey;
use steadyio_recorder::channel::Channel;
use steadyio_recorder::config::{ChannelConfig, LateRoom, RecorderConfig, Retention, Schema};
use steadyio_recorder::mcap::files::{examine_file, recover_file};
use steadyio_recorder::mcap::private::{BlockKind, BlockRecord};
use steadyio_recorder::pool::Recorder;
use steadyio_testing::cases;
use steadyio_testing::recording::segments;

const RECORD_BYTES: usize = 4_000;

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

fn latched_config(dir: &Path) -> RecorderConfig {
    let map = ChannelConfig { record_bytes_max: 20_000, ..channel("/map") };
    RecorderConfig { channels: vec![channel("/a"), map.latched()], ..config(dir) }
}

/// Appends so many records of `/a`, without a loss.
fn fill(recorder: &Recorder, channels: &mut [Channel], times_ns: std::ops::Range<u64>) {
    for time_ns in times_ns {
        while recorder.stats().channels[0].account.buffered.bytes > 500_000 {
            thread::sleep(Duration::from_millis(1));
        }
        channels[0].append(time_ns, &[1; RECORD_BYTES]).unwrap();
    }
    let is_durable = |recorder: &Recorder| {
        let mut channels = recorder.stats().channels.into_iter();
        channels.all(|one| one.account.durable.records == one.account.received.records)
    };
    while !is_durable(recorder) {
        thread::sleep(Duration::from_millis(1));
    }
}

fn finish(mut recorder: Recorder) {
    assert_eq!(recorder.finish().unwrap().not_durable, 0);
}

/// The segments as a power cut leaves them, completed.
fn crashed(dir: &Path) -> tempfile::TempDir {
    let left = tempfile::tempdir().unwrap();
    for path in segments(dir) {
        let copy = left.path().join(path.file_name().unwrap());
        fs::copy(&path, &copy).unwrap();
        recover_file(&copy, true).unwrap();
    }
    left
}

/// Of each finished segment: its messages of the latched topic, then its first log time.
fn latched_in(dir: &Path) -> Vec<(Vec<Message<'static>>, u64)> {
    let mut found = Vec::new();
    for path in segments(dir) {
        let bytes = fs::read(path).unwrap();
        if Summary::read(&bytes).ok().flatten().is_none() {
            continue;
        }
        let all: Vec<_> = MessageStream::new(&bytes).unwrap().map(Result::unwrap).collect();
        let first_ns = all[0].log_time;
        let maps = all.into_iter().filter(|message| message.channel.topic == "/map");
        found.push((maps.collect(), first_ns));
    }
    found
}

/// Topic, sequence and log time of all that an export has.
fn exported(dir: &Path, times_ns: std::ops::Range<u64>) -> (Vec<(String, u32, u64)>, bool) {
    let survey = Survey::of(&[dir.into()], &Interrupt::default(), &mut |_, _| ()).unwrap();
    let selection = Selection { topics: Vec::new(), times_ns };
    let mut merge = Merge::new(&survey, selection, HELD_BYTES_MAX);
    let (mut topics, mut found) = (BTreeMap::new(), Vec::new());
    while let Some(item) = merge.step().unwrap() {
        match item {
            Item::Segment(at, readable) => {
                topics.insert(at, readable.definitions.topics().to_vec());
            }
            Item::Message(next) => {
                let topic = topics[&next.segment][next.slot].clone();
                found.push((topic, next.sequence, next.log_time_ns));
            }
            Item::Read(_) => {}
        }
    }
    (found, merge.missing.is_damage())
}

fn sequences(found: &[(String, u32, u64)], topic: &str) -> Vec<u32> {
    found.iter().filter(|(of, ..)| of == topic).map(|(_, sequence, _)| *sequence).collect()
}

/// A recording of `/map` once and of `/a`, in which the copies of `/map` in these segments are
/// damaged; and the first log time of each segment.
fn damaged_copies(segments_of: &[usize]) -> (tempfile::TempDir, Vec<u64>) {
    let dir = tempfile::tempdir().unwrap();
    let config = latched_config(dir.path());
    let config = RecorderConfig { retention: Retention::Segments(5), ..config };
    let (recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    channels[1].append(6, &[2; 100]).unwrap();
    fill(&recorder, &mut channels, 1_000..1_480);
    finish(recorder);
    let firsts = latched_in(dir.path()).iter().map(|(_, first_ns)| *first_ns).collect();
    for at in segments_of {
        let path = &segments(dir.path())[*at];
        let mut bytes = fs::read(path).unwrap();
        let is_copy = |at: &usize| {
            BlockRecord::get(&bytes[*at..]).is_some_and(|block| block.kind == BlockKind::Repeated)
        };
        let copy = (4_096..bytes.len()).step_by(4_096).find(is_copy).unwrap();
        bytes[copy + 200] ^= 1;
        fs::write(path, bytes).unwrap();
    }
    (dir, firsts)
}

fn missing(dir: &Path, times_ns: std::ops::Range<u64>) -> (u64, u64) {
    let survey = Survey::of(&[dir.into()], &Interrupt::default(), &mut |_, _| ()).unwrap();
    let selection = Selection { topics: Vec::new(), times_ns };
    let mut merge = Merge::new(&survey, selection, HELD_BYTES_MAX);
    while merge.step().unwrap().is_some() {}
    (merge.missing.blocks, merge.missing.messages)
}

#[test]
fn a_damaged_copy_of_an_exported_message_is_no_missing_message() {
    let (dir, firsts) = damaged_copies(&[2]);
    assert!(firsts.len() >= 4, "{firsts:?}");
    let (found, is_damage) = exported(dir.path(), 0..u64::MAX);
    assert_eq!((sequences(&found, "/map"), is_damage), (vec![1], true));
    assert_eq!(missing(dir.path(), 0..u64::MAX), (1, 0));
    // Without the segment before, it may be the only one.
    fs::remove_file(&segments(dir.path())[1]).unwrap();
    let (blocks, messages) = missing(dir.path(), 0..u64::MAX);
    assert!(blocks == 1 && messages > 100, "{blocks} {messages}");
}

#[test]
fn a_damaged_copy_does_not_hide_the_message_that_is_valid_at_the_beginning() {
    let (dir, firsts) = damaged_copies(&[2, 3]);
    for from_ns in [firsts[3] - 10, firsts[3] + 10] {
        let (found, _) = exported(dir.path(), from_ns..u64::MAX);
        assert_eq!(sequences(&found, "/map"), [1], "from {from_ns}");
        assert_eq!(found[0].2, from_ns);
    }
    // If no segment has it any more, it is missing.
    for _ in 0..2 {
        fs::remove_file(&segments(dir.path())[0]).unwrap();
    }
    let (found, is_damage) = exported(dir.path(), firsts[3] + 10..u64::MAX);
    assert_eq!((sequences(&found, "/map"), is_damage), (vec![], true));
    assert!(missing(dir.path(), firsts[3] + 10..u64::MAX).1 >= 1);
}

#[test]
fn each_new_segment_begins_with_the_last_message() {
    let dir = tempfile::tempdir().unwrap();
    let (recorder, mut channels) =
        Recorder::start(&latched_config(dir.path()), &mut |_| ()).unwrap();
    channels[1].append_published(5, 3, &[1; 10]).unwrap();
    channels[1].append_published(6, 4, &[2; 20_000]).unwrap();
    fill(&recorder, &mut channels, 1_000..1_600);
    let account = recorder.stats().channels[1].account;
    assert_eq!((account.received.records, account.durable.records), (2, 2));
    finish(recorder);
    let found = latched_in(dir.path());
    assert!(found.len() >= 2);
    for (maps, first_ns) in found {
        let [map] = &maps[..] else { panic!("{} messages", maps.len()) };
        assert_eq!((map.sequence, map.publish_time, map.log_time), (2, 4, first_ns));
        assert_eq!(*map.data, [2; 20_000]);
    }
}

#[test]
fn an_export_has_it_once() {
    let dir = tempfile::tempdir().unwrap();
    let (recorder, mut channels) =
        Recorder::start(&latched_config(dir.path()), &mut |_| ()).unwrap();
    channels[1].append(900, &[1; 10]).unwrap();
    fill(&recorder, &mut channels, 1_000..1_150);
    channels[1].append(1_500, &[2; 10]).unwrap();
    fill(&recorder, &mut channels, 2_000..2_100);
    finish(recorder);
    let (found, is_damage) = exported(dir.path(), 0..u64::MAX);
    assert_eq!(sequences(&found, "/map"), [1, 2]);
    assert_eq!(sequences(&found, "/a"), (1..251).collect::<Vec<_>>());
    assert!(!is_damage);
}

#[test]
fn an_export_of_a_part_begins_with_what_held_then() {
    let dir = tempfile::tempdir().unwrap();
    let (recorder, mut channels) =
        Recorder::start(&latched_config(dir.path()), &mut |_| ()).unwrap();
    for (number, from_ns) in [(1, 1_000), (2, 2_000), (3, 3_000)] {
        channels[1].append(from_ns, &[number; 10]).unwrap();
        fill(&recorder, &mut channels, from_ns + 1..from_ns + 80);
    }
    finish(recorder);
    for (from_ns, expected) in [
        (1_050, [(1, 1_050), (2, 2_000), (3, 3_000)].as_slice()),
        (2_000, &[(1, 2_000), (2, 2_000), (3, 3_000)]),
        (2_500, &[(2, 2_500), (3, 3_000)]),
        (3_070, &[(3, 3_070)]),
    ] {
        let (found, _) = exported(dir.path(), from_ns..u64::MAX);
        let maps: Vec<(u32, u64)> = found
            .iter()
            .filter(|(topic, ..)| topic == "/map")
            .map(|(_, sequence, log_time_ns)| (*sequence, *log_time_ns))
            .collect();
        assert_eq!(maps, expected, "from {from_ns}");
        assert_eq!(found[0].0, "/map");
    }
    assert_eq!(exported(dir.path(), 5_000..6_000).0, []);
}

#[test]
fn a_restart_carries_it_over() {
    let dir = tempfile::tempdir().unwrap();
    let config = latched_config(dir.path());
    let (recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    channels[1].append_published(900, 800, &[7; 100]).unwrap();
    fill(&recorder, &mut channels, 1_000..1_010);
    finish(recorder);
    drop(channels);
    // The first goes on in the same segment, the second is another recording.
    for (profile, times_ns) in [("", 2_000..2_600), ("other", 3_000..3_600)] {
        let config = RecorderConfig { profile: profile.into(), ..config.clone() };
        let (recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
        fill(&recorder, &mut channels, times_ns);
        finish(recorder);
        let found = latched_in(dir.path());
        assert!(found.len() >= 2, "{profile}");
        for (maps, _) in found {
            let [map] = &maps[..] else { panic!("{profile}: {} messages", maps.len()) };
            assert_eq!((map.publish_time, &*map.data), (800, &[7; 100][..]), "{profile}");
        }
        // The ring has wrapped: only copies are there, and an export has one of them.
        let (found, is_damage) = exported(dir.path(), 0..u64::MAX);
        assert_eq!((sequences(&found, "/map").len(), is_damage), (1, false), "{profile}");
    }
}

#[test]
fn a_late_channel_is_latched_and_carried_over() {
    let dir = tempfile::tempdir().unwrap();
    let config = RecorderConfig {
        late: LateRoom { channels: 2, definition_bytes: 4_000 },
        ..config(dir.path())
    };
    let map = channel("/map").latched();
    for (session, times_ns) in [(0, 1_000..1_600), (1, 2_000..2_600)] {
        let (recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
        let mut late = recorder.add_channel(&map).unwrap();
        if session == 0 {
            late.append(900, &[7; 100]).unwrap();
        }
        fill(&recorder, &mut channels, times_ns);
        finish(recorder);
        let found = latched_in(dir.path());
        assert!(found.iter().filter(|(maps, _)| maps.len() == 1).count() >= 2, "{session}");
    }
}

#[test]
fn a_segment_that_is_gone_is_counted_to_the_message() {
    let dir = tempfile::tempdir().unwrap();
    let config = RecorderConfig { retention: Retention::Segments(4), ..latched_config(dir.path()) };
    let (recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    channels[1].append(900, &[7; 100]).unwrap();
    fill(&recorder, &mut channels, 1_000..1_300);
    finish(recorder);
    let mut gone = 0;
    for path in segments(dir.path()) {
        gone += examine_file(&path, false).unwrap().found.messages();
    }
    assert_eq!(gone, 301);
    let second = &segments(dir.path())[1];
    let messages = examine_file(second, true).unwrap().found.messages();
    fs::remove_file(second).unwrap();
    let survey = Survey::of(&[dir.path().into()], &Interrupt::default(), &mut |_, _| ()).unwrap();
    let losses: Vec<_> = survey.losses.iter().map(|loss| (loss.messages, loss.at_most)).collect();
    assert_eq!(losses, [(messages, false)]);
}

#[test]
fn too_many_bytes_of_latched_topics_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let long = |topic| ChannelConfig { record_bytes_max: 40_000, ..channel(topic) }.latched();
    let channels = (0..4).map(|at| long(["/a", "/b", "/c", "/d"][at])).collect();
    let config = RecorderConfig { channels, ..config(dir.path()) };
    let error = config.check().unwrap_err().to_string();
    assert_eq!(
        error,
        "latched topic = /d: the longest records of latched topics have 160000 bytes together: \
         must be at most 131072, a quarter of a segment; raise segment_bytes"
    );
    let late = LateRoom { channels: 2, definition_bytes: 4_000 };
    let config =
        RecorderConfig { channels: vec![long("/a"), long("/b"), long("/c")], late, ..config };
    let (recorder, _channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    let error = recorder.add_channel(&long("/d")).unwrap_err().to_string();
    assert!(error.contains("a quarter of a segment"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(12), ..ProptestConfig::default() })]
    // Whenever the power fails: what was durable is in the newest segment with messages.
    #[test]
    fn after_a_power_cut_the_newest_segment_has_it(count in 1u64..500, at in 0u64..300) {
        let dir = tempfile::tempdir().unwrap();
        let config = latched_config(dir.path());
        let (recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
        fill(&recorder, &mut channels, 1_000..1_000 + at);
        channels[1].append(2_000, &[7; 100]).unwrap();
        fill(&recorder, &mut channels, 2_001..2_000 + count);
        let left = crashed(dir.path());
        drop(recorder);
        drop(channels);
        let newest = latched_in(left.path()).into_iter().max_by_key(|(_, first_ns)| *first_ns);
        prop_assert_eq!(newest.unwrap().0.len(), 1);
        let config = RecorderConfig { dir: left.path().into(), ..config };
        let (recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
        prop_assert_eq!(recorder.meters().missing_messages.load(Ordering::Relaxed), 0);
        fill(&recorder, &mut channels, 5_000..5_600);
        finish(recorder);
        prop_assert!(latched_in(left.path()).iter().all(|(maps, _)| maps.len() == 1));
    }
}
