// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--encoding` and `--schema`: what readers find in the channels of shell producers.

use std::fs;
use std::path::Path;

use steadyio_recorder::stream::encode::{HEAD, begin_frame, record_frame, topic_frame};
use steadyio_recorder::stream::frames::Topic;
use steadyio_testing::recording::messages;

use super::input::{record, send, topic};
use crate::common::stderr;

const JSON_SCHEMA: &[u8] = br#"{"type": "object", "properties": {"x": {"type": "number"}}}"#;
/// Of a file with package "demo" and the messages "Pose" and "Twist".
const DESCRIPTORS: &[u8] = b"\x0a\x17\x12\x04demo\x22\x06\x0a\x04Pose\x22\x07\x0a\x05Twist";
const ONE_DESCRIPTOR: &[u8] = b"\x0a\x08\x22\x06\x0a\x04Pose";

/// Topic, message encoding, and schema of a channel.
type Found = (String, String, Option<FoundSchema>);
/// Name, encoding and data.
type FoundSchema = (String, String, Vec<u8>);

/// All channels with messages, by topic.
fn channels(dir: &Path) -> Vec<Found> {
    let mut found: Vec<_> = messages(&dir.join("recording"))
        .into_iter()
        .map(|message| {
            let schema = message.channel.schema.as_ref();
            let schema =
                schema.map(|one| (one.name.clone(), one.encoding.clone(), one.data.to_vec()));
            (message.channel.topic.clone(), message.channel.message_encoding.clone(), schema)
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

fn lines(arguments: &[&str]) -> Vec<Found> {
    let dir = tempfile::tempdir().unwrap();
    let files = dir.path().join("pose.json");
    fs::write(&files, JSON_SCHEMA).unwrap();
    let arguments: Vec<&str> = arguments
        .iter()
        .map(|one| if *one == "FILE" { files.to_str().unwrap() } else { *one })
        .collect();
    let arguments = [&["--input", "-"][..], &arguments].concat();
    let output = send(record(dir.path(), &arguments), b"{\"x\": 1}\n{\"x\": 2}\n");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    channels(dir.path())
}

#[test]
fn lines_get_the_encoding_and_the_schema_of_the_command_line() {
    let channel = |encoding: &str, schema: Option<(&str, &str, &[u8])>| {
        let schema =
            schema.map(|(name, encoding, data)| (name.into(), encoding.into(), data.to_vec()));
        vec![("/lines".to_string(), encoding.to_string(), schema)]
    };
    let any = Some(("object", "jsonschema", &br#"{"type": "object"}"#[..]));
    let (pose, named) =
        (Some(("pose", "jsonschema", JSON_SCHEMA)), Some(("Pose", "jsonschema", JSON_SCHEMA)));
    assert_eq!(lines(&[]), channel("", None));
    assert_eq!(lines(&["--encoding", "text"]), channel("text", None));
    assert_eq!(lines(&["--encoding", "json"]), channel("json", any));
    assert_eq!(lines(&["--encoding", "json", "--schema", "FILE"]), channel("json", pose));
    let arguments = ["--encoding", "json", "--schema", "FILE", "--schema-name", "Pose"];
    assert_eq!(lines(&arguments), channel("json", named));
}

#[test]
fn topics_of_frames_that_declare_no_encoding_get_it_too() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("demo.bin");
    fs::write(&file, DESCRIPTORS).unwrap();
    let bare = Topic {
        message_encoding: String::new(),
        schema_name: String::new(),
        schema_encoding: String::new(),
        schema_data: Vec::new(),
        ..topic("/bare")
    };
    // One before and one after the beginning, and one that says all itself.
    let stream = [
        HEAD.to_vec(),
        topic_frame(0, &bare).unwrap(),
        topic_frame(1, &topic("/own")).unwrap(),
        begin_frame(),
        topic_frame(2, &Topic { topic: "/late".into(), ..bare }).unwrap(),
        record_frame(0, 1, b"\x0a\x00").unwrap(),
        record_frame(1, 2, b"{}").unwrap(),
        record_frame(2, 3, b"\x0a\x00").unwrap(),
    ];
    let mut arguments = vec!["--input", "-", "--framing", "frames", "--encoding", "protobuf"];
    arguments.extend(["--schema", file.to_str().unwrap(), "--schema-name", "demo.Twist"]);
    let output = send(record(dir.path(), &arguments), &stream.concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let twist = Some(("demo.Twist".into(), "protobuf".into(), DESCRIPTORS.to_vec()));
    let own = Some(("Thing".into(), "jsonschema".into(), b"{}".to_vec()));
    assert_eq!(
        channels(dir.path()),
        [
            ("/bare".into(), "protobuf".into(), twist.clone()),
            ("/late".into(), "protobuf".into(), twist),
            ("/own".into(), "json".into(), own),
        ]
    );
}

#[test]
fn what_does_not_fit_together_is_named_and_nothing_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, data: &[u8]| {
        let path = dir.path().join(name);
        fs::write(&path, data).unwrap();
        path.to_str().unwrap().to_string()
    };
    let (json, broken) = (file("a.json", JSON_SCHEMA), file("b.json", b"{"));
    let (array, none) = (file("c.json", b"{\"type\": \"array\"}"), dir.path().join("none"));
    let (several, one) = (file("a.bin", DESCRIPTORS), file("b.bin", ONE_DESCRIPTOR));
    let (msg, large) = (file("Imu.msg", b"float64 x"), file("large.json", &vec![b' '; 1_048_577]));
    let none = none.to_str().unwrap();
    let frames = ["--framing", "frames"];
    for (arguments, says) in [
        (&["--encoding", "xml"][..], "[possible values: json, text, protobuf, cdr]"),
        (&["--schema", &json], "--encoding"),
        (&["--encoding", "json", "--schema-name", "a"], "--schema <FILE>"),
        (&["--encoding", "cdr"], "--encoding cdr: its records are binary"),
        (&["--encoding", "text", "--schema", &json], "text has no schema"),
        (&["--encoding", "json", "--schema", none], "none: No such file"),
        (&["--encoding", "json", "--schema", &broken], "b.json: is not JSON"),
        (&["--encoding", "json", "--schema", &array], "\"type\": \"object\" at its top"),
        (&["--encoding", "json", "--schema", &large], "has 1048577 bytes: must be at most 1048576"),
        (&[&frames[..], &["--encoding", "cdr"]].concat(), "--encoding cdr: needs --schema FILE"),
        (&[&frames[..], &["--encoding", "cdr", "--schema", &json]].concat(), ".msg or .idl"),
        (&[&frames[..], &["--encoding", "cdr", "--schema", &msg]].concat(), "needs --schema-name"),
        (
            &[&frames[..], &["--encoding", "cdr", "--schema", &msg, "--schema-name", "Imu"]]
                .concat(),
            "--schema-name Imu: must be PACKAGE/msg/NAME",
        ),
        (
            &[&frames[..], &["--encoding", "protobuf", "--schema", &broken]].concat(),
            "is not a FileDescriptorSet",
        ),
        (
            &[&frames[..], &["--encoding", "protobuf", "--schema", &several]].concat(),
            "give --schema-name, one of demo.Pose, demo.Twist",
        ),
        (
            &[&frames[..], &["--encoding", "protobuf", "--schema", &one, "--schema-name", "a"]]
                .concat(),
            "has no message a (--schema-name): one of Pose",
        ),
    ] {
        let output = send(record(dir.path(), &[&["--input", "-"][..], arguments].concat()), b"");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(says), "{arguments:?}: {}", stderr(&output));
        assert!(!dir.path().join("recording").exists(), "{arguments:?}");
    }
}
