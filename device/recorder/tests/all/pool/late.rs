// SPDX-License-Identifier: MIT OR Apache-2.0
//! Channels that are declared while recording.

use super::*;

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
