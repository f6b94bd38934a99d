// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady record --latched`: topics whose last message is in every segment.

use std::fs;

use mcap::{MessageStream, Summary};
use steadyio_recorder::stream::encode::{HEAD, begin_frame, record_frame, topic_frame};
use steadyio_testing::recording::segments;

use super::input::{record, send, topic};
use crate::common::stderr;

/// Payloads of a topic by finished segment.
fn payloads(dir: &std::path::Path, topic: &str) -> Vec<Vec<Vec<u8>>> {
    let files = segments(&dir.join("recording")).into_iter().map(|path| fs::read(path).unwrap());
    let finished = files.filter(|bytes| Summary::read(bytes).ok().flatten().is_some());
    let of_topic = |bytes: Vec<u8>| {
        let messages = MessageStream::new(&bytes).unwrap().map(Result::unwrap);
        let wanted = messages.filter(|message| message.channel.topic == topic);
        wanted.map(|message| message.data.to_vec()).collect()
    };
    finished.map(of_topic).collect()
}

#[test]
fn the_last_message_of_a_latched_topic_is_in_each_segment() {
    let dir = tempfile::tempdir().unwrap();
    let options = ["--input", "-", "--framing", "frames", "--latched", "/tf_static", "--block"];
    let mut bytes = HEAD.to_vec();
    bytes.extend(topic_frame(0, &topic("/tf_static")).unwrap());
    bytes.extend(topic_frame(1, &topic("/a")).unwrap());
    bytes.extend(begin_frame());
    bytes.extend(record_frame(0, 1, b"tree").unwrap());
    for time_ns in 2..8_000 {
        bytes.extend(record_frame(1, time_ns, &[1; 1_000]).unwrap());
    }
    let output = send(record(dir.path(), &options), &bytes);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let found = payloads(dir.path(), "/tf_static");
    assert!(found.len() >= 3 && found.iter().all(|all| *all == [b"tree"]), "{found:?}");
}

#[test]
fn another_topic_than_that_of_the_lines_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let output = send(record(dir.path(), &["--input", "-", "--latched", "/map"]), b"a\n");
    assert_eq!(output.status.code(), Some(2));
    let text = stderr(&output);
    assert!(text.contains("--latched /map: the topic of the lines is /lines"), "{text}");
    assert!(!dir.path().join("recording").exists());
}
