// SPDX-License-Identifier: MIT OR Apache-2.0
//! A pool whose size changes.

use super::*;

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
