// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the encoder writes, as the official reader reads it.

use steadyio_recorder::mcap::layout::{HEAD_BYTES, Layout, LayoutConfig};

use super::segment::doctor;
use super::segment::{GROWING, RECYCLED, Script, Sent, read_indexed, read_linear};

/// Messages of three channels until the segment is full, the loss window ending now and then.
fn full_script(config: LayoutConfig) -> Script {
    let mut script = Script::begin(config, 3, 1);
    for at in 0.. {
        let bytes = (at as usize * 37) % 3_000;
        let payload = (0..bytes).map(|byte| (byte as u32 ^ at) as u8).collect();
        if !script.push(Sent::new((at % 3) as u16, at + 1, payload)) {
            break;
        }
        if at % 7 == 0 {
            script.flush();
        }
    }
    script.finish();
    script
}

#[test]
fn finished_segments_read_the_same_from_the_start_and_by_index() {
    for config in [RECYCLED, GROWING, RECYCLED.compressed(), GROWING.compressed()] {
        let script = full_script(config);
        let image = script.image(Vec::new());
        doctor::examine(&image);
        assert_eq!(read_linear(&image).unwrap(), script.sent, "{config:?}");
        assert_eq!(read_indexed(&image).unwrap(), script.sent, "{config:?}");
        assert!(script.sent.len() > 40, "{}", script.sent.len());
    }
}

#[test]
fn all_checksums_are_right() {
    use mcap::sans_io::linear_reader::{LinearReadEvent, LinearReader, LinearReaderOptions};
    for config in [RECYCLED, GROWING, RECYCLED.compressed(), GROWING.compressed()] {
        let image = full_script(config).image(Vec::new());
        let options = LinearReaderOptions::default()
            .with_check_finishes_after_end_magic(true)
            .with_prevalidate_chunk_crcs(true)
            .with_validate_data_section_crc(true)
            .with_validate_summary_section_crc(true);
        let mut reader = LinearReader::new_with_options(options);
        let mut left = &image[..];
        while let Some(event) = reader.next_event() {
            if let LinearReadEvent::ReadRequest(need) = event.unwrap() {
                let count = need.min(left.len());
                reader.insert(count).copy_from_slice(&left[..count]);
                reader.notify_read(count);
                left = &left[count..];
            }
        }
        assert!(left.is_empty(), "{} bytes were not read", left.len());
    }
}

#[test]
fn blocks_are_compressed_if_they_then_need_less_of_the_file() {
    let names = |image: &[u8]| -> Vec<String> {
        let summary = mcap::Summary::read(image).unwrap().unwrap();
        summary.chunk_indexes.into_iter().map(|index| index.compression).collect()
    };
    for (sequence, name) in [(1, "zstd"), (2, "lz4")] {
        let mut script = Script::begin(RECYCLED.compressed(), 1, sequence);
        let mut word = 1_u32;
        let mut noise = |_| {
            word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (word >> 24) as u8
        };
        let payloads = [vec![7; 6_000], (0..6_000).map(&mut noise).collect(), vec![7; 3_000]];
        for (payload, number) in payloads.into_iter().zip(1..) {
            assert!(script.push(Sent::new(0, number, payload)));
            script.flush();
        }
        let lengths: Vec<usize> =
            script.writes.iter().rev().take(3).rev().map(|write| write.bytes.len()).collect();
        script.finish();
        let image = script.image(Vec::new());
        assert_eq!(lengths, [4_096, 8_192, 4_096]);
        // A block has 4096 bytes at least, so there is nothing to gain in the last one.
        assert_eq!(names(&image), [name, "", ""]);
        assert_eq!(read_linear(&image).unwrap(), script.sent);
    }
}

#[test]
fn the_summary_counts_what_is_there() {
    let script = full_script(RECYCLED);
    let image = script.image(Vec::new());
    let summary = mcap::Summary::read(&image).unwrap().unwrap();
    let statistics = summary.stats.unwrap();
    assert_eq!(statistics.message_count, script.sent.len() as u64);
    assert_eq!(statistics.chunk_count as usize, summary.chunk_indexes.len());
    assert_eq!((statistics.schema_count, statistics.channel_count), (2, 3));
    assert_eq!(statistics.metadata_count, 2);
    assert_eq!(statistics.message_start_time, script.sent[0].log_time_ns);
    assert_eq!(statistics.message_end_time, script.sent.last().unwrap().log_time_ns);
    for (id, count) in statistics.channel_message_counts {
        let sent = script.sent.iter().filter(|sent| sent.channel == id).count();
        assert_eq!(count, sent as u64);
    }
    assert_eq!(summary.channels[&2].topic, "/topic/2");
    assert_eq!(summary.channels[&2].metadata["rate"], "2");
    assert_eq!(summary.channels[&1].schema.as_ref().unwrap().name, "b");
    assert!(summary.channels[&0].schema.is_none());
}

#[test]
fn metadata_tells_identity_and_ledger() {
    let mut script = Script::begin(RECYCLED, 2, 9);
    script.push(Sent::new(1, 5, vec![1; 10]));
    script.ledger[0].lost = 3;
    script.ledger[0].lost_first_ns = 123_456_789_012;
    script.finish();
    let image = script.image(Vec::new());
    let summary = mcap::Summary::read(&image).unwrap().unwrap();
    let read = |at: usize| mcap::read::metadata(&image, &summary.metadata_indexes[at]).unwrap();
    let segment = read(0);
    assert_eq!(segment.name, "steadyio.segment");
    assert_eq!(segment.metadata["recording_id"], "30313233343536373839616263646566");
    assert_eq!(segment.metadata["sequence"], "9");
    assert_eq!(segment.metadata["created_ns"], "86");
    let ledger = read(1);
    assert_eq!(ledger.name, "steadyio.ledger");
    assert_eq!(ledger.metadata["completed_by"], "recorder");
    assert_eq!(ledger.metadata["0.lost"], "3");
    assert_eq!(ledger.metadata["0.lost_first_ns"], "123456789012");
    assert_eq!(ledger.metadata["1.received"], "1");
    assert_eq!(ledger.metadata["1.written"], "1");
}

#[test]
fn a_segment_without_messages_is_a_valid_file() {
    for config in [RECYCLED, GROWING] {
        let mut script = Script::begin(config, 1, 1);
        script.finish();
        let image = script.image(Vec::new());
        doctor::examine(&image);
        assert_eq!(read_linear(&image).unwrap(), []);
        assert_eq!(read_indexed(&image).unwrap(), []);
    }
}

#[test]
fn writes_are_aligned_and_stay_within_the_file() {
    let script = full_script(RECYCLED);
    for write in &script.writes {
        assert_eq!((write.offset % 4_096, write.bytes.len() % 4_096), (0, 0));
        assert!(write.offset + write.bytes.len() as u64 <= RECYCLED.segment_bytes);
    }
    assert_eq!(script.image(Vec::new()).len() as u64, RECYCLED.segment_bytes);
}

#[test]
fn a_full_index_ends_the_segment_early_and_not_before_its_bound() {
    let config = LayoutConfig { index_bytes: 500, ..RECYCLED };
    let mut script = Script::begin(config, 1, 1);
    let blocks_min = script.encoder.layout().blocks_min();
    let mut blocks = 0;
    while script.push(Sent::new(0, 1, vec![0; 10])) {
        script.flush();
        blocks += 1;
    }
    script.finish();
    assert_eq!(blocks, blocks_min);
    assert_eq!(read_indexed(&script.image(Vec::new())).unwrap().len(), blocks);
}

#[test]
fn blocks_of_slow_topics_fill_a_segment() {
    for channels in [1, 4] {
        let config = LayoutConfig::recycled(4 << 20, 1 << 20, 100, channels);
        let mut script = Script::begin(config, channels, 1);
        let mut blocks = 0;
        while (0..channels).all(|at| script.push(Sent::new(at as u16, 1, vec![0; 100]))) {
            script.flush();
            blocks += 1;
        }
        script.finish();
        // The rest is the index.
        assert!(blocks > 4_096 / 4 * 95 / 100, "{blocks}");
    }
}

#[test]
fn the_longest_message_fits_and_a_longer_one_is_refused() {
    let mut script = Script::begin(RECYCLED, 3, 1);
    let bytes_max = script.encoder.layout().payload_bytes_max();
    assert!(script.push(Sent::new(0, 1, vec![7; bytes_max])));
    script.flush();
    assert_eq!(script.writes.last().unwrap().bytes.len(), RECYCLED.block_bytes_max);
    let layout: &Layout = script.encoder.layout();
    assert_eq!(bytes_max, layout.config().block_bytes_max - 194 - 58 * 3, "as specified");
    let long = vec![7; bytes_max + 1];
    let message = steadyio_recorder::mcap::encoder::Message {
        channel: 0,
        sequence: 2,
        log_time_ns: 1,
        publish_time_ns: 1,
        payload: [&long, &[]],
    };
    let refused = script.encoder.push(&mut vec![0; 1 << 20], &message).unwrap_err();
    let text = format!("a message of {} bytes: a block takes at most {bytes_max}", bytes_max + 1);
    assert_eq!(refused.to_string(), text);
}

/// Files of this version are out there: another value means another version.
#[test]
fn version_1_is_these_bytes() {
    let crc = |config| crc32fast::hash(&full_script(config).image(Vec::new())[HEAD_BYTES..]);
    assert_eq!((crc(RECYCLED), crc(GROWING)), (1_877_044_920, 4_264_417_887));
}
