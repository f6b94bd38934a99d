// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of the official writer, cut off at any byte.

use std::collections::BTreeMap;
use std::io::Cursor;

use steadyio_recorder::mcap::recover::{RecoverError, State, examine};

use super::segment::disk::{Disk, recover, recover_and_cut};
use super::segment::{RECYCLED, Script, Sent, read_indexed, read_linear};

struct Written {
    image: Vec<u8>,
    sent: Vec<Sent>,
}

/// Two channels, an attachment and a metadata record between the messages.
fn official(options: mcap::WriteOptions) -> Written {
    let mut image = Cursor::new(Vec::new());
    let mut writer = mcap::Writer::with_options(&mut image, options).unwrap();
    let schema = writer.add_schema("type", "jsonschema", b"{}").unwrap();
    let channels: Vec<u16> = ["/a", "/b"]
        .map(|topic| writer.add_channel(schema, topic, "json", &BTreeMap::new()).unwrap())
        .to_vec();
    let mut sent = Vec::new();
    for number in 1..40u32 {
        let channel = channels[number as usize % 2];
        let message = Sent::new(channel, number, vec![number as u8; number as usize * 7 % 60]);
        let header = mcap::records::MessageHeader {
            channel_id: channel,
            sequence: number,
            log_time: message.log_time_ns,
            publish_time: message.publish_time_ns,
        };
        writer.write_to_known_channel(&header, &message.payload).unwrap();
        sent.push(message);
        if number == 20 {
            writer
                .attach(&mcap::Attachment {
                    log_time: 1,
                    create_time: 2,
                    name: "log.txt".into(),
                    media_type: "text/plain".into(),
                    data: b"text".into(),
                })
                .unwrap();
            let metadata = [("key".to_string(), "value".to_string())].into();
            writer
                .write_metadata(&mcap::records::Metadata { name: "board".into(), metadata })
                .unwrap();
        }
    }
    writer.finish().unwrap();
    drop(writer);
    Written { image: image.into_inner(), sent }
}

fn chunked() -> Written {
    official(mcap::WriteOptions::new().compression(None).chunk_size(Some(400)))
}

#[test]
fn chunked_files_cut_at_any_byte_keep_all_whole_chunks() {
    let Written { image: whole, sent } = chunked();
    let mut last = 0;
    for bytes in 100..whole.len() {
        let (image, found) = recover(whole[..bytes].to_vec()).unwrap();
        assert_eq!((found.state, found.damaged), (State::Finished, false), "{bytes}");
        let linear = read_linear(&image).unwrap();
        assert_eq!(linear, sent[..linear.len()], "{bytes}");
        assert_eq!(read_indexed(&image).unwrap(), linear, "{bytes}");
        assert!(linear.len() >= last, "{bytes}: a longer file holds no less");
        last = linear.len();
        assert_eq!(recover(image.clone()).unwrap().0, image, "nothing is left to do");
    }
    assert_eq!(last, sent.len());
}

#[test]
fn files_without_chunks_cut_at_any_byte_keep_all_whole_messages() {
    let Written { image: whole, sent } =
        official(mcap::WriteOptions::new().compression(None).use_chunks(false));
    for bytes in 100..whole.len() {
        let (image, _) = recover(whole[..bytes].to_vec()).unwrap();
        let linear = read_linear(&image).unwrap();
        assert_eq!(linear, sent[..linear.len()], "{bytes}");
        let summary = mcap::Summary::read(&image).unwrap().unwrap();
        assert_eq!(summary.stats.unwrap().message_count, linear.len() as u64);
    }
}

#[test]
fn attachments_and_metadata_are_found_through_the_summary() {
    let Written { image: whole, .. } = chunked();
    let (image, _) = recover(whole[..whole.len() - 1].to_vec()).unwrap();
    let summary = mcap::Summary::read(&image).unwrap().unwrap();
    let attachment = mcap::read::attachment(&image, &summary.attachment_indexes[0]).unwrap();
    assert_eq!((&attachment.name[..], &attachment.data[..]), ("log.txt", &b"text"[..]));
    let metadata = mcap::read::metadata(&image, &summary.metadata_indexes[0]).unwrap();
    assert_eq!((&metadata.name[..], &metadata.metadata["key"][..]), ("board", "value"));
}

#[test]
fn a_second_cut_is_harmless() {
    let Written { image: whole, .. } = chunked();
    let cut = &whole[..whole.len() * 2 / 3];
    let (expected, _) = recover(cut.to_vec()).unwrap();
    for power in 0.. {
        let Some(again) = recover_and_cut(cut.to_vec(), power) else { break };
        assert_eq!(recover(again).unwrap().0, expected, "cut after {power} bytes");
    }
}

#[test]
fn finished_files_are_left_alone() {
    let Written { image, sent } = chunked();
    let (same, found) = recover(image.clone()).unwrap();
    assert_eq!(same, image);
    let messages: u64 = found.contents.unwrap().channels.iter().map(|c| c.messages).sum();
    assert_eq!(messages, sent.len() as u64);
}

#[test]
fn damage_with_data_behind_it_is_not_cut_off() {
    let Written { image: whole, .. } = chunked();
    let summary = mcap::Summary::read(&whole).unwrap().unwrap();
    let second = summary.chunk_indexes[1].chunk_start_offset as usize;
    let mut image = whole[..whole.len() - 10].to_vec();
    image[second + 100] ^= 1;
    let before = image.clone();
    let mut disk = Disk::new(image);
    match examine(&disk, false) {
        Err(RecoverError::Damaged(at)) => assert_eq!(at, second as u64),
        other => panic!("{other:?}"),
    }
    assert_eq!(disk.image, before);
    disk.image = whole.clone();
    disk.image[second + 100] ^= 1;
    let found = examine(&disk, false).unwrap();
    assert_eq!((found.state, found.damaged), (State::Finished, true));
}

#[test]
fn our_own_segments_are_never_taken_for_plain_files() {
    let mut script = Script::begin(RECYCLED, 1, 1);
    script.push(Sent::new(0, 1, vec![1; 100]));
    script.finish();
    let mut image = script.image(Vec::new());
    // A bit of the life in the head, and one of its copy.
    image[80] ^= 1;
    image[4_096 + 100] ^= 1;
    let error = examine(&Disk::new(image), false).unwrap_err();
    assert!(matches!(error, RecoverError::UnknownLife), "{error}");
}

#[test]
fn other_files_are_refused_and_empty_ones_are_unused() {
    let error = examine(&Disk::new(b"RIFF....".to_vec()), false).unwrap_err();
    assert_eq!(error.to_string(), "is no MCAP file: it begins with other bytes");
    for image in [Vec::new(), vec![0; 128 << 10]] {
        assert_eq!(examine(&Disk::new(image), false).unwrap().state, State::Unused);
    }
}
