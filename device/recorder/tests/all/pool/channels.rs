// SPDX-License-Identifier: MIT OR Apache-2.0
//! Many channels in one recording.

use super::*;

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
