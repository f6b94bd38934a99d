// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady record --framing mcap`, and framings that do not fit their input.

use std::collections::BTreeMap;
use std::fs;
use std::io::Cursor;
use std::path::Path;
use std::process::{Command, Stdio};

use mcap::records::{MessageHeader, Metadata};
use mcap::{Attachment, Compression, MessageStream, Summary, WriteOptions};
use steadyio_recorder::stream::encode::HEAD;

use super::input::{record, send};
use crate::common::stderr;

/// 300 messages of two topics with metadata and an attachment, as another program writes them.
fn file() -> Vec<u8> {
    let mut out = Cursor::new(Vec::new());
    let options = WriteOptions::new().compression(Some(Compression::Zstd)).profile("ros2");
    let mut writer = options.chunk_size(Some(4_000)).create(&mut out).unwrap();
    let schema = writer.add_schema("std_msgs/msg/String", "ros2msg", b"string data").unwrap();
    let qos = BTreeMap::from([("offered_qos_profiles".into(), "- depth: 1".into())]);
    let talk = writer.add_channel(schema, "/talk", "cdr", &qos).unwrap();
    for number in 0..300u64 {
        let channel_id = match number {
            200.. => writer.add_channel(schema, "/late", "cdr", &BTreeMap::new()).unwrap(),
            _ => talk,
        };
        let header = MessageHeader {
            channel_id,
            sequence: 0,
            log_time: 1_000 + number,
            publish_time: 500 + number,
        };
        writer.write_to_known_channel(&header, &[number as u8; 100]).unwrap();
    }
    let metadata = BTreeMap::from([("robot".into(), "r1".into())]);
    writer.write_metadata(&Metadata { name: "who".into(), metadata }).unwrap();
    let attachment = Attachment {
        log_time: 5,
        create_time: 6,
        name: "map.png".into(),
        media_type: "image/png".into(),
        data: vec![1; 5_000].into(),
    };
    writer.attach(&attachment).unwrap();
    writer.finish().unwrap();
    drop(writer);
    out.into_inner()
}

/// Topic, schema, metadata of the channel, times and payload of each message.
fn contents(bytes: &[u8]) -> Vec<(String, String, usize, u64, u64, Vec<u8>)> {
    let messages = MessageStream::new(bytes).unwrap().map(Result::unwrap);
    let row = |message: mcap::Message<'_>| {
        let channel = &message.channel;
        let schema = channel.schema.as_ref().map_or(String::new(), |schema| schema.name.clone());
        let (topic, metadata) = (channel.topic.clone(), channel.metadata.len());
        let data = message.data.to_vec();
        (topic, schema, metadata, message.log_time, message.publish_time, data)
    };
    messages.map(row).collect()
}

fn exported(dir: &Path) -> Vec<u8> {
    let out = dir.join("export.mcap");
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
    command.arg("export").arg(dir.join("recording")).arg("-o").arg(&out).stderr(Stdio::null());
    assert!(command.status().unwrap().success());
    fs::read(out).unwrap()
}

#[test]
fn a_recording_of_mcap_is_exported_as_it_came() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = file();
    let output = send(record(dir.path(), &["--input", "-", "--framing", "mcap"]), &bytes);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let out = exported(dir.path());
    assert_eq!(contents(&out), contents(&bytes));
    let summary = Summary::read(&out).unwrap().unwrap();
    let [index] = &summary.attachment_indexes[..] else {
        panic!("{:?}", summary.attachment_indexes)
    };
    let attachment = mcap::read::attachment(&out, index).unwrap();
    assert_eq!((&*attachment.name, attachment.data.len()), ("map.png", 5_000));
    let index = summary.metadata_indexes.iter().find(|index| index.name == "who").unwrap();
    assert_eq!(mcap::read::metadata(&out, index).unwrap().metadata["robot"], "r1");
    // Of the input, since none was given.
    assert_eq!(&out[17..25], b"\x04\0\0\0ros2");
}

#[test]
fn what_came_before_the_stream_goes_wrong_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let mut bytes = file();
    bytes.truncate(bytes.len() / 2);
    let output = send(record(dir.path(), &["--input", "-", "--framing", "mcap"]), &bytes);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(said.contains("stdin: byte ") && said.contains("the stream ends"), "{said}");
    let (found, all) = (contents(&exported(dir.path())), contents(&file()));
    assert!(!found.is_empty() && found.len() < all.len());
    assert_eq!(found, all[..found.len()]);
}

#[test]
fn a_wrong_framing_is_noticed_before_a_segment_is_made() {
    let cases = [
        ("frames", file(), "the input is MCAP (give --framing mcap)"),
        ("lines", file(), "the input is MCAP (give --framing mcap)"),
        ("mcap", HEAD.to_vec(), "is a stream of frames (give --framing frames)"),
        ("lines", HEAD.to_vec(), "is a stream of frames (give --framing frames)"),
        ("frames", b"hello\n".to_vec(), "not a stream of frames"),
        ("mcap", b"hello\n".to_vec(), "not MCAP, it begins with"),
    ];
    for (framing, bytes, says) in cases {
        for from_file in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("input");
            fs::write(&path, &bytes).unwrap();
            let input = if from_file { path.to_str().unwrap() } else { "-" };
            let arguments = ["--input", input, "--framing", framing];
            let output = send(record(dir.path(), &arguments), &bytes);
            assert_eq!(output.status.code(), Some(2), "{framing}: {}", stderr(&output));
            assert!(stderr(&output).contains(says), "{framing}: {}", stderr(&output));
            assert!(!dir.path().join("recording").exists());
        }
    }
}

#[test]
fn an_encoding_is_not_to_be_given_for_mcap() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = ["--input", "-", "--framing", "mcap", "--encoding", "json"];
    let output = send(record(dir.path(), &arguments), &file());
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--encoding: MCAP says the encoding"));
}
