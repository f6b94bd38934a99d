// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recorded data is read back; records that do not fit are counted.

use super::*;

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
fn compressed_records_are_read_back_after_the_end_and_after_a_crash() {
    for compression in [Compression::Lz4, Compression::Zstd] {
        let dir = tempfile::tempdir().unwrap();
        let mut config = config(dir.path());
        config.writer.compression = Some(compression);
        let (mut recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
        append(&recorder, &mut channels, 300);
        wait_until_durable(&recorder);
        let after_a_crash = read_all(crashed(dir.path()).path());
        recorder.finish().unwrap();
        let device_bytes = recorder.meters().device_bytes.load(Ordering::Relaxed);
        assert!(device_bytes < 300 * RECORD_BYTES as u64 / 2, "{compression:?} {device_bytes}");
        for records in [after_a_crash, read_all(dir.path())] {
            assert_eq!(records.len(), 300);
            assert_each(&records, beginning);
        }
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

    // The next recording, of other topics, goes on with the oldest.
    let config = RecorderConfig { profile: "other".into(), ..config };
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
fn a_pool_that_is_not_recycled_keeps_what_earlier_recordings_left() {
    let dir = tempfile::tempdir().unwrap();
    let config = RecorderConfig { when_full: WhenFull::Stop, ..config(dir.path()) };
    let (mut recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    append(&recorder, &mut channels, 10);
    recorder.finish().unwrap();
    // The second one fills the pool, and the third finds no room.
    for profile in ["second", "third"] {
        let before = read_all(dir.path());
        let config = RecorderConfig { profile: profile.into(), ..config.clone() };
        let (mut recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
        append(&recorder, &mut channels, 1_000);
        assert_eq!(recorder.finish().unwrap().ended, Ended::Full);
        let (received, durable, lost) = total(&recorder);
        assert_eq!((received, durable + lost, durable > 0), (1_000, 1_000, profile == "second"));
        let after = read_all(dir.path());
        assert_eq!(after.len() as u64, before.len() as u64 + durable);
        assert!(before.iter().all(|record| after.contains(record)));
    }
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
