// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an earlier recording left: damaged, unused or unnamed segments.

use super::*;

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
    assert!(notes.iter().any(|note| note.ends_with("; it will be overwritten")), "{notes:?}");
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
    wait_until_named(dir.path());
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
        // No recording continues one with another profile.
        let config = RecorderConfig { profile: count.to_string(), ..config.clone() };
        let (mut recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
        append(&recorder, &mut channels, count);
        // The recorder prepares the next segment while it writes, and names it unused only at the
        // end.
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
fn a_finished_segment_without_a_whole_block_keeps_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    let (mut recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    append(&recorder, &mut channels, 10);
    recorder.finish().unwrap();
    let path = dir.path().join("segment-00000.mcap");
    let mut bytes = fs::read(&path).unwrap();
    for block in bytes[8_192..100_000].chunks_mut(4_096) {
        block[200] ^= 1;
    }
    fs::write(&path, &bytes).unwrap();
    let (named, recovered) = recover_segment(&path, true).unwrap();
    assert_eq!(
        (named, recovered.found.damaged, recovered.found.messages()),
        (path.clone(), true, 0)
    );
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn what_is_no_segment_any_more_does_not_stop_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    let (mut recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    append(&recorder, &mut channels, 300);
    recorder.finish().unwrap();
    let all = segments(dir.path());
    let bytes = fs::metadata(&all[0]).unwrap().len();
    fs::remove_file(&all[0]).unwrap();
    fs::create_dir(&all[0]).unwrap();
    fs::File::options().write(true).open(&all[1]).unwrap().set_len(bytes + 4_096).unwrap();
    let mut notes = Vec::new();
    let (mut recorder, mut channels) =
        Recorder::start(&config, &mut |note| notes.push(note.to_string())).unwrap();
    append(&recorder, &mut channels, 10);
    assert_eq!(recorder.finish().unwrap().not_durable, 0);
    for (path, why) in all.iter().zip(["not a regular file", "longer"]) {
        let name = path.display().to_string();
        let is_it = |note: &String| note.starts_with(&name) && note.contains(why);
        assert!(notes.iter().any(is_it), "{name}: {why}: {notes:#?}");
    }
}

#[test]
fn no_recovery_changes_a_segment_in_use_under_another_name() {
    let dir = tempfile::tempdir().unwrap();
    let (mut recorder, mut channels) = Recorder::start(&config(dir.path()), &mut |_| ()).unwrap();
    append(&recorder, &mut channels, 10);
    wait_until_durable(&recorder);
    wait_until_named(dir.path());
    let segment = dir.path().join("segment-00000.mcap");
    let elsewhere = tempfile::tempdir().unwrap();
    let (hard, soft) = (elsewhere.path().join("hard.mcap"), elsewhere.path().join("soft.mcap"));
    fs::hard_link(&segment, &hard).unwrap();
    std::os::unix::fs::symlink(&segment, &soft).unwrap();
    for link in [&hard, &soft] {
        let error = recover_file(link, false).unwrap_err().to_string();
        assert!(error.contains("in use by a recorder"), "{error}");
    }
    append(&recorder, &mut channels, 10);
    recorder.finish().unwrap();
    assert_eq!(read_all(dir.path()).len(), 20);
    assert_eq!(recover_file(&hard, false).unwrap().found.state, State::Finished);
}

#[test]
fn a_segment_that_was_cut_to_a_few_bytes_does_not_stop_a_recording() {
    for left in [0, 1, 7, 8, 9, 20, 511, 512] {
        let dir = tempfile::tempdir().unwrap();
        let config = config(dir.path());
        let (mut recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
        append(&recorder, &mut channels, 10);
        recorder.finish().unwrap();
        let path = &segments(dir.path())[0];
        fs::File::options().write(true).open(path).unwrap().set_len(left).unwrap();
        let mut notes = Vec::new();
        Recorder::start(&config, &mut |note| notes.push(note)).unwrap().0.finish().unwrap();
        assert!(notes.iter().any(|note| note.contains("10 messages are missing")), "{notes:?}");
        let aside = fs::metadata(format!("{}.damaged-1", path.display())).unwrap();
        assert_eq!(aside.len(), left);
    }
}

#[test]
fn damaged_unused_segments_and_names_given_twice_do_not_stop_a_recording() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    let (mut recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    append(&recorder, &mut channels, 10);
    recorder.finish().unwrap();
    let all = segments(dir.path());
    fs::copy(&all[0], all[0].with_extension("unused")).unwrap();
    fs::File::options().write(true).open(&all[1]).unwrap().set_len(4_096).unwrap();
    // The head of another recording.
    let mut bytes = fs::read(&all[2]).unwrap();
    bytes[..4_096].copy_from_slice(&fs::read(&all[0]).unwrap()[..4_096]);
    fs::write(&all[2], bytes).unwrap();
    let (mut recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    append(&recorder, &mut channels, 10);
    assert_eq!(recorder.finish().unwrap().not_durable, 0);
    let set_aside = |path: &PathBuf| path.to_string_lossy().contains(".damaged-1");
    assert_eq!(segments(dir.path()).iter().filter(|path| set_aside(path)).count(), 3);
}

#[test]
fn the_recovery_leaves_the_name_of_a_segment_that_was_wiped() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    let (mut recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    append(&recorder, &mut channels, 10);
    recorder.finish().unwrap();
    let path = dir.path().join("segment-00000.mcap");
    let bytes = fs::metadata(&path).unwrap().len();
    fs::write(&path, vec![0; bytes as usize]).unwrap();
    let (named, recovered) = recover_segment(&path, true).unwrap();
    assert_eq!((named, recovered.wiped), (path.clone(), true));
    // A recorder reports it, and uses it again.
    let mut notes = Vec::new();
    Recorder::start(&config, &mut |note| notes.push(note)).unwrap().0.finish().unwrap();
    assert!(notes.iter().any(|note| note.contains("10 messages are missing")), "{notes:?}");
    assert!(!path.exists() && path.with_extension("unused").exists());
}
