// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exports of pools that a recorder has just written, by the library.

#![allow(clippy::unwrap_used)]

use std::io::Cursor;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use steadyio_core::interrupt::Interrupt;
use steadyio_export::export::{Compression, Export, ExportError};
use steadyio_export::merge::HELD_BYTES_MAX;
use steadyio_export::overview::Overview;
use steadyio_export::selection::Selection;
use steadyio_export::summary::Summary;
use steadyio_export::survey::Survey;
use steadyio_recorder::config::{ChannelConfig, LateRoom, RecorderConfig, Retention};
use steadyio_recorder::mcap::names::named;
use steadyio_recorder::pool::Recorder;
use steadyio_recorder::pool::flush::Flushed;
use steadyio_testing::cases;

const RECORD_BYTES: usize = 4_000;

fn config(dir: &Path) -> RecorderConfig {
    RecorderConfig {
        loss_window: Duration::from_millis(20),
        unit_bytes: 16 << 10,
        segment_bytes: 256 << 10,
        retention: Retention::Segments(4),
        lock_memory: false,
        ..RecorderConfig::new(
            dir.into(),
            vec![ChannelConfig {
                ring_bytes: 1 << 20,
                ..ChannelConfig::new("/a", RECORD_BYTES as u64)
            }],
        )
    }
}

/// A recording of its own: none continues one with another profile.
fn record(dir: &Path, times_ns: impl IntoIterator<Item = u64>) {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let profile = NUMBER.fetch_add(1, Ordering::Relaxed).to_string();
    let config = RecorderConfig { profile, ..config(dir) };
    let (mut recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    for time_ns in times_ns {
        while recorder.stats().channels[0].account.buffered.bytes > 500_000 {
            thread::sleep(Duration::from_millis(1));
        }
        channels[0].append(time_ns, &[time_ns as u8; RECORD_BYTES]).unwrap();
    }
    assert_eq!(recorder.finish().unwrap().not_durable, 0);
}

fn survey(dir: &Path) -> Survey {
    Survey::of(&[dir.into()], &Interrupt::default(), &mut |_, _| ()).unwrap()
}

fn export(survey: &Survey, held_bytes_max: usize) -> Result<(Summary, Vec<u8>), ExportError> {
    export_with(survey, held_bytes_max, &mut |_, _| ())
}

fn export_with(
    survey: &Survey,
    held_bytes_max: usize,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(Summary, Vec<u8>), ExportError> {
    let mut out = Cursor::new(Vec::new());
    let export = Export {
        survey,
        selection: &Selection { topics: Vec::new(), times_ns: 0..u64::MAX },
        compression: Compression::Lz4,
        profile: None,
        held_bytes_max,
        stop: &Interrupt::default(),
        progress,
    };
    Ok((export.write(&mut out)?, out.into_inner()))
}

/// Log times in the order of the file.
fn times_ns(file: &[u8]) -> Vec<u64> {
    let messages = mcap::MessageStream::new(file).unwrap().map(Result::unwrap);
    messages.map(|message| message.log_time).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(12), ..ProptestConfig::default() })]
    // Of any disorder: with enough memory in order, without it complete.
    #[test]
    fn all_messages_come_out(jitter in 1u64..100_000, seed in any::<u64>()) {
        let dir = tempfile::tempdir().unwrap();
        let mut state = seed | 1;
        let mut noise = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % jitter
        };
        let mut sent: Vec<u64> = (0..150).map(|number| number * 1_000 + noise()).collect();
        record(dir.path(), sent.iter().copied());
        sent.sort_unstable();
        let survey = survey(dir.path());
        let (summary, file) = export(&survey, HELD_BYTES_MAX).unwrap();
        prop_assert_eq!(summary.out_of_order, 0);
        prop_assert_eq!(&times_ns(&file), &sent);

        let (summary, file) = export(&survey, 1).unwrap();
        let mut found = times_ns(&file);
        let late = found.iter().scan(0, |last, time_ns| {
            let late = time_ns < last;
            *last = (*last).max(*time_ns);
            Some(u64::from(late))
        });
        prop_assert_eq!(summary.out_of_order, late.sum::<u64>());
        found.sort_unstable();
        prop_assert_eq!(&found, &sent);
    }
}

#[test]
fn what_a_recorder_overwrites_meanwhile_is_told() {
    let dir = tempfile::tempdir().unwrap();
    record(dir.path(), 0..200);
    let survey = survey(dir.path());
    let segments = survey.segments.len() as u64;
    assert!(segments >= 3);
    // Some one and a half segments.
    record(dir.path(), 1_000..1_080);
    let (summary, file) = export(&survey, HELD_BYTES_MAX).unwrap();
    assert!(summary.damage.is_any());
    let overwritten = summary.damage.missing.overwritten_segments;
    assert!(overwritten > 0 && overwritten < segments, "{:?}", summary.damage.missing);
    // The rest is whole, and nothing of the new recording is among it.
    let found = times_ns(&file);
    let first = 200 - found.len() as u64;
    assert_eq!(found, (first..200).collect::<Vec<_>>());
    // All of it.
    record(dir.path(), 2_000..2_300);
    assert!(matches!(export(&survey, HELD_BYTES_MAX), Err(ExportError::NothingLeft(_))));
}

#[test]
fn blocks_that_a_recorder_overwrites_meanwhile_are_told_as_such() {
    let dir = tempfile::tempdir().unwrap();
    record(dir.path(), 0..200);
    let survey = survey(dir.path());
    let mut recorded = false;
    let mut after_the_first_block = |_, _| {
        if !std::mem::replace(&mut recorded, true) {
            record(dir.path(), 1_000..1_080);
        }
    };
    let (summary, file) = export_with(&survey, 1, &mut after_the_first_block).unwrap();
    let missing = summary.damage.missing;
    assert!(missing.overwritten_blocks > 0 && missing.durable_blocks == 0, "{missing:?}");
    assert!(times_ns(&file).iter().all(|time_ns| *time_ns < 200));
}

#[test]
fn a_channel_that_was_added_is_exported_while_the_recorder_runs() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    config.late = LateRoom { channels: 1, definition_bytes: 1_000 };
    let (recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    channels[0].append(1, b"first").unwrap();
    let late = ChannelConfig { topic: "/late".into(), ..config.channels.remove(0) };
    recorder.add_channel(&late).unwrap().append(2, b"second").unwrap();
    assert_eq!(recorder.flush(Duration::from_secs(60)), Flushed::Durable);
    let (summary, file) = export(&survey(dir.path()), HELD_BYTES_MAX).unwrap();
    assert_eq!(times_ns(&file), [1, 2]);
    let topics: Vec<&str> = summary.channels.iter().map(|one| one.topic.as_str()).collect();
    assert_eq!(topics, ["/a", "/late"]);
}

#[test]
fn a_segment_that_a_recorder_renames_meanwhile_is_exported() {
    let dir = tempfile::tempdir().unwrap();
    record(dir.path(), 0..10);
    let recorded = dir.path().join("segment-00000.mcap");
    let unused = named(&recorded, false);
    std::fs::rename(&recorded, &unused).unwrap();
    let survey = survey(dir.path());
    std::fs::rename(&unused, &recorded).unwrap();
    let (summary, file) = export(&survey, HELD_BYTES_MAX).unwrap();
    assert_eq!(times_ns(&file), (0..10).collect::<Vec<_>>());
    assert!(!summary.damage.is_any(), "{:?}", summary.damage);
    assert_eq!(Overview::of(&survey, &[]).unwrap().messages, 10);
}

#[test]
fn an_earlier_copy_of_a_segment_does_not_double_its_messages() {
    let (dir, copies) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    record(dir.path(), 0..100);
    for name in ["segment-00000.mcap", "segment-00001.mcap"] {
        std::fs::copy(dir.path().join(name), copies.path().join(name)).unwrap();
    }
    let paths = [dir.path().into(), copies.path().into()];
    let survey = Survey::of(&paths, &Interrupt::default(), &mut |_, _| ()).unwrap();
    let (_, file) = export(&survey, HELD_BYTES_MAX).unwrap();
    assert_eq!(times_ns(&file), (0..100).collect::<Vec<_>>());
}

#[test]
fn more_segments_of_the_same_time_than_files_may_be_open_come_out() {
    let dir = tempfile::tempdir().unwrap();
    let times = |first: u64| (first..6_000).step_by(40);
    let others: Vec<_> = (0..40).map(|number| dir.path().join(number.to_string())).collect();
    others.iter().zip(0..).for_each(|(dir, first)| record(dir, times(first)));
    let survey = Survey::of(&others, &Interrupt::default(), &mut |_, _| ()).unwrap();
    let before = getrlimit(Resource::Nofile);
    let lowest = rustix::io::dup(rustix::stdio::stdin()).unwrap().as_raw_fd() as u64;
    setrlimit(Resource::Nofile, Rlimit { current: Some(lowest + 8), ..before }).unwrap();
    let exported = export(&survey, HELD_BYTES_MAX);
    setrlimit(Resource::Nofile, before).unwrap();
    assert_eq!(times_ns(&exported.unwrap().1), (0..6_000).collect::<Vec<_>>());
}

#[test]
fn the_last_time_is_the_one_before_which_the_clock_went_back() {
    let dir = tempfile::tempdir().unwrap();
    let two_hours_ns = 7_200 * 1_000_000_000;
    record(dir.path(), two_hours_ns + 5_000..two_hours_ns + 5_020);
    record(dir.path(), 1_000..1_020);
    assert_eq!(survey(dir.path()).last_ns(), Some(1_019));
    // Later recordings go on with the clock of the first one.
    record(dir.path(), two_hours_ns + 6_000..two_hours_ns + 6_020);
    assert_eq!(survey(dir.path()).last_ns(), Some(two_hours_ns + 6_019));
}
