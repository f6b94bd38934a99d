// SPDX-License-Identifier: MIT OR Apache-2.0
use std::time::Duration;

use super::limits::*;
use super::*;

fn good() -> RecorderConfig {
    RecorderConfig {
        loss_window: Duration::from_millis(500),
        unit_bytes: 512 * KIB,
        segment_bytes: 16 * MIB,
        retention: Retention::Segments(4),
        lock_memory: false,
        ..RecorderConfig::new(
            "/tmp".into(),
            vec![ChannelConfig {
                period: Some(Duration::from_millis(5)),
                ring_bytes: MIB,
                ..ChannelConfig::new("a", 16 * KIB)
            }],
        )
    }
}

#[test]
fn retention_becomes_a_number_of_segments() {
    let with = |retention| RecorderConfig { retention, ..good() };
    assert_eq!(good().check().unwrap(), 4);
    assert_eq!(with(Retention::Bytes(100 * MIB)).check().unwrap(), 6);
    // 3.3 MB/s with framing and padding for a minute: 12.3 segments, the one in use, and the
    // oldest, which is given up when that is nearly full.
    assert_eq!(with(Retention::Time(Duration::from_secs(60))).check().unwrap(), 14);
    // Segments that incidents keep are not available to a recording.
    let time = with(Retention::Time(Duration::from_secs(60)));
    let cost = time.cost_of_kept(7, 14).unwrap();
    let says = "incidents keep 7 of 14 segments; 7 are recorded in, which hold 2";
    assert!(cost.starts_with(says) && cost.ends_with(" s of 60s"), "{cost}");
    assert_eq!(time.cost_of_kept(0, 14), None);
    let error = with(Retention::MinFreeBytes(u64::MAX)).check().unwrap_err();
    assert_eq!(error.to_string(), "number of segments = 0: must be 2 to 10000");
}

#[test]
fn channels_without_a_ring_share_what_may_be_locked() {
    let channel = |period| ChannelConfig { period, ring_bytes: 0, ..good().channels[0].clone() };
    let mut channels = vec![channel(Some(Duration::from_millis(100))), channel(None)];
    channels.push(channel(None));
    channels.push(ChannelConfig { ring_bytes: MIB, ..channel(None) });
    let rings = |room| {
        let mut channels = channels.clone();
        defaults::fill_rings(&mut channels, room);
        channels.iter().map(|channel| channel.ring_bytes / KIB).collect::<Vec<_>>()
    };
    assert_eq!(rings(u64::MAX), [164, 10_920, 10_920, 1_024]);
    assert_eq!(rings(4 * MIB), [164, 968, 968, 1_024]);
    // A ring is never smaller than its channel needs.
    assert_eq!(rings(0), [164, 68, 68, 1_024]);
    let late = |room| defaults::late_ring_bytes(16 * KIB, None, room) / KIB;
    assert_eq!([u64::MAX, 4 * MIB, 0].map(late), [1_024, 512, 68]);
}

#[test]
fn a_wrong_value_is_named_with_what_is_allowed() {
    type Break = fn(&mut RecorderConfig);
    let cases: [(Break, &str); 10] = [
        (|c| c.unit_bytes = 9_000, "unit_bytes = 9000: must be a multiple of 4096"),
        (|c| c.segment_bytes = MIB, "segment_bytes = 1048576: must be at least 4 times"),
        (|c| c.loss_window = Duration::ZERO, "loss_window (ms) = 0: must be 2 to"),
        (|c| c.channels.clear(), "number of channels = 0: must be 1 to 10000"),
        (|c| c.channels.push(c.channels[0].clone()), "topic = a: two channels"),
        (|c| c.channels[0].ring_bytes = 64 * KIB, "ring_bytes = 65536: must be at least 262560"),
        (
            |c| c.channels[0].record_bytes_max = 512 * KIB,
            "must be at most 523630; raise longest_record_bytes",
        ),
        (|c| c.channels[0].topic.clear(), "length of its topic = 0: must be 1 to 256"),
        (
            |c| c.channels[0].metadata.push((RECORD_KEY.into(), "metadata".into())),
            "metadata \"steadyio.record\" = metadata: an export would take",
        ),
        (|c| c.writer.fifo_priority = Some(100), "fifo_priority = 100: must be 1 to 99"),
    ];
    for (break_it, says) in cases {
        let mut config = good();
        break_it(&mut config);
        let said = config.check().unwrap_err().to_string();
        assert!(said.contains(says), "{says:?} is not in {said:?}");
    }
}

#[test]
fn sizes_at_the_limit_of_numbers_are_wrong_and_do_not_overflow() {
    let most = u64::MAX;
    let wrong: [fn(&mut RecorderConfig, u64); 5] = [
        |c, most| c.channels[0].record_bytes_max = most,
        |c, most| c.channels[0].ring_bytes = most,
        |c, most| c.unit_bytes = most,
        |c, most| c.segment_bytes = most,
        |c, most| c.late = LateRoom { channels: 9_999, definition_bytes: most },
    ];
    for set in wrong {
        let mut config = good();
        set(&mut config, most);
        config.fitting_ring_bytes(most);
        let text = config.check().unwrap_err().to_string();
        assert!(text.contains(&most.to_string()), "{text}");
        // Without channels that are known: only a size of theirs is no fault.
        let _ = config.check_pool();
    }
}
