// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady info` and `steady cat` of real recordings.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::Output;

use serde_json::Value;
use steadyio_recorder::stream::encode::{HEAD, begin_frame, record_frame, topic_frame};
use steadyio_recorder::stream::frames::Topic;

use crate::common::{stderr, valid_json};
use crate::export::{end, pool, record, recorder, records, running, steady, topic};

const SCHEMA: &str = "info-1.schema.json";

fn info(dir: &Path, arguments: &[&str]) -> Output {
    steady(&["info"]).arg(dir).args(arguments).output().unwrap()
}

fn cat(dir: &Path, arguments: &[&str]) -> Output {
    steady(&["cat"]).arg(dir).args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// A topic of each kind, with a message each.
fn mixed(dir: &Path) {
    let named =
        |name: &str, encoding: &str| Topic { message_encoding: encoding.into(), ..topic(name) };
    let mut child = recorder(dir, &["--profile", "robot"]);
    let stream = [
        HEAD.to_vec(),
        topic_frame(1, &named("/json", "json")).unwrap(),
        topic_frame(2, &named("/log", "text")).unwrap(),
        topic_frame(3, &named("/raw", "cdr")).unwrap(),
        begin_frame(),
        record_frame(1, 1_000_000_000, br#"{"x": 1.10}"#).unwrap(),
        record_frame(2, 2_000_000_000, b"hello\x1b[2J").unwrap(),
        record_frame(3, 3_500_000_000, &[0xff; 40]).unwrap(),
    ];
    child.stdin.take().unwrap().write_all(&stream.concat()).unwrap();
    end(child);
}

#[test]
fn info_prints_no_control_character_that_a_producer_chose() {
    let dir = tempfile::tempdir().unwrap();
    let wild = Topic { schema_name: "a\rb".into(), ..topic("/a\n\x1b[31m") };
    let mut child = recorder(dir.path(), &["--profile", "x\x07"]);
    let topic = topic_frame(1, &wild).unwrap();
    let stream = [HEAD.to_vec(), topic, begin_frame(), record_frame(1, 1, b"x").unwrap()];
    child.stdin.take().unwrap().write_all(&stream.concat()).unwrap();
    end(child);
    let text = stdout(&info(dir.path(), &[]));
    for shown in ["/a\\n\\u{1b}[31m", "a\\rb", "x\\u{7}"] {
        assert!(text.contains(shown), "{text}");
    }
    assert!(!text.contains(|letter: char| letter.is_control() && letter != '\n'), "{text:?}");
}

#[test]
fn info_shows_topics_times_and_what_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    mixed(dir.path());
    let before = pool(dir.path());
    let output = info(dir.path(), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    for line in [
        "profile:     robot",
        "messages:    3",
        "duration:    2.500 s",
        "start:       1970-01-01T00:00:01.000000000Z (1.000000)",
        "  /json  Block [text]  json             1   -     0",
        "missing:     nothing",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in:\n{text}");
    }
    let json: Value = valid_json(&info(dir.path(), &["--json"]), SCHEMA);
    assert_eq!((&json["messages"], &json["segments"]["empty"]), (&3.into(), &3.into()));
    assert_eq!(json["channels"][0]["schema_encoding"], "text");
    assert!(pool(dir.path()) == before);
}

#[test]
fn info_counts_the_messages_of_a_segment_that_is_being_written() {
    let dir = tempfile::tempdir().unwrap();
    let recording = dir.path().join("recording");
    let child = running(&recording, &records(600));
    let json: Value = valid_json(&info(&recording, &["--json"]), SCHEMA);
    assert_eq!(json["messages"], 600);
    assert_eq!(json["channels"][1]["messages"], 300);
    end(child);
}

#[test]
fn info_names_losses_and_incidents() {
    let dir = tempfile::tempdir().unwrap();
    record(dir.path(), &records(900));
    let incident = r#"{"schema": "steadyio.incident/1", "name": "bump", "asked_ns": 1, "from_ns": 0,
        "to_ns": 1, "segments": [{"file": "segment-00000", "sequence": 77,
        "recording_id": "00000000000000000000000000000000"}]}"#;
    fs::write(dir.path().join("incident-bump.json"), incident).unwrap();
    fs::remove_file(dir.path().join("segment-00000.mcap")).unwrap();
    let output = info(dir.path(), &[]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("  bump  0 of 1\n"), "{text}");
    assert!(text.contains("recorded messages are missing"), "{text}");
    assert!(text.contains("incident bump: 1 of 1 segments are missing"), "{text}");
    let json: Value = valid_json(&info(dir.path(), &["--json"]), SCHEMA);
    let (there, missing) = (&json["messages"], &json["missing"]["messages"]);
    assert_eq!(there.as_u64().unwrap() + missing.as_u64().unwrap(), 900);
}

#[test]
fn info_of_a_recording_without_messages_is_no_error() {
    let dir = tempfile::tempdir().unwrap();
    let sizes = ["--segments", "2", "--segment-size", "1M", "--unit", "64K"];
    let prepared = steady(&["record", "--prepare", "--dir"]).arg(dir.path()).args(sizes).output();
    assert!(prepared.unwrap().status.success());
    let output = info(dir.path(), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("messages:    0"));
    assert_eq!(info(Path::new("/none"), &[]).status.code(), Some(2));
}

#[test]
fn cat_prints_json_and_text_as_they_are_and_bytes_in_hexadecimal() {
    let dir = tempfile::tempdir().unwrap();
    mixed(dir.path());
    let output = cat(dir.path(), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let bytes = format!("3.500000 /raw {}... (40 bytes)\n", "ff".repeat(32));
    let text = "1.000000 /json {\"x\": 1.10}\n2.000000 /log hello\\u{1b}[2J\n".to_string();
    assert_eq!(stdout(&output), text + &bytes);
    let lines = stdout(&cat(dir.path(), &["--json"]));
    assert!(lines.lines().next().unwrap().ends_with(r#""encoding": "json", "data": {"x": 1.10}}"#));
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[1]["data"], "hello\u{1b}[2J");
    assert_eq!(
        (&lines[2]["data_hex"], &lines[2]["log_time_ns"]),
        (&"ff".repeat(40).into(), &3_500_000_000_u64.into())
    );
    let some = cat(dir.path(), &["--topics", "/j*", "--from", "1", "--to", "2"]);
    assert_eq!(stdout(&some), "1.000000 /json {\"x\": 1.10}\n");
}

#[test]
fn cat_ends_with_its_reader_and_tells_losses_in_its_exit_status() {
    let dir = tempfile::tempdir().unwrap();
    record(dir.path(), &records(900));
    let mut child = steady(&["cat"]).arg(dir.path()).spawn().unwrap();
    let mut start = [0; 9];
    child.stdout.take().unwrap().read_exact(&mut start).unwrap();
    assert_eq!(&start, b"9.500000 ");
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    assert_eq!(cat(dir.path(), &["--to", "1"]).status.code(), Some(1));
    fs::remove_file(dir.path().join("segment-00000.mcap")).unwrap();
    let output = cat(dir.path(), &[]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("recorded messages are missing"));
}
