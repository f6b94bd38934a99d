// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recorder that holds records in memory until an incident.

use super::*;
use steadyio_recorder::config::RamConfig;

const LONG: Duration = Duration::from_secs(3_600);

/// The ring of the latched topic is emptied first.
fn ram_config(dir: &Path) -> RecorderConfig {
    let after = Duration::from_millis(1);
    let ram = RamConfig { bytes: 100_000, before: LONG, after, incidents_max: Some(2) };
    RecorderConfig {
        channels: vec![channel("/map").latched(), channel("/a")],
        retention: Retention::Segments(6),
        writer: WriterConfig { ram: Some(ram), ..WriterConfig::default() },
        ..config(dir)
    }
}

#[test]
fn a_latched_message_that_left_the_memory_precedes_each_incident() {
    const MAPS: [&[u8]; 2] = [b"first", b"other"];
    let dir = tempfile::tempdir().unwrap();
    let (mut recorder, mut channels) =
        Recorder::start(&ram_config(dir.path()), &mut |_| ()).unwrap();
    let mut files = Vec::new();
    for (first, map) in [1_000, 2_000].into_iter().zip(MAPS) {
        channels[0].append(first, map).unwrap();
        // More than the memory holds.
        for time in first + 1..first + 41 {
            channels[1].append(time, &[1; RECORD_BYTES]).unwrap();
        }
        let kept = recorder.keeper().keep(&first.to_string(), LONG).unwrap();
        assert!(kept.durable && !kept.is_whole(), "{kept:?}");
        files.push(kept.incident.segments.last().unwrap().file.clone());
    }
    let third = recorder.keeper().keep("third", LONG).unwrap_err().to_string();
    assert_eq!(third, "incident third: the pool has 2 incidents, as many as allowed (release one)");
    let lost = total(&recorder).2;
    assert_eq!(recorder.finish().unwrap().not_durable, lost);
    assert_eq!(lost, 2 * (41 - 24), "24 records fit");
    for (file, map) in files.iter().zip(MAPS) {
        let bytes = fs::read(dir.path().join(format!("{file}.mcap"))).unwrap();
        let messages = mcap::MessageStream::new(&bytes).unwrap().map(Result::unwrap);
        let messages: Vec<_> = messages.collect();
        assert_eq!((&*messages[0].channel.topic, &*messages[0].data), ("/map", map));
        assert_eq!(messages[0].log_time, messages[1].log_time, "a copy");
        assert_eq!(messages.len(), 1 + 24);
    }
}

#[test]
fn a_memory_for_less_than_two_records_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = ram_config(&dir.path().join("recording"));
    let ram = config.writer.ram.unwrap();
    let with = |bytes| Some(RamConfig { bytes, ..ram });
    config.writer.ram = with(8_103);
    let error = config.check().unwrap_err().to_string();
    let says = "writer.ram.bytes = 8103: must be at least 8104, for two of the longest records";
    assert_eq!(error, says);
    config.writer.ram = with(8_104);
    config.check().unwrap();
    config.writer.ram = with(u64::MAX / 2);
    let error = config.check().unwrap_err().to_string();
    assert!(error.ends_with(" bytes of memory are available"), "{error}");
}
