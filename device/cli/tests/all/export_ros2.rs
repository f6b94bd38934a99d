// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady export --ros2`: bags of rosbag2. `tests/recorder/test_ros2_bag.py` reads one with rosbags.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Output;

use mcap::Summary;
use serde_json::Value;
use steadyio_recorder::stream::encode::{HEAD, begin_frame, record_frame, topic_frame};
use steadyio_recorder::stream::frames::Topic;

use crate::common::{stderr, valid_json};
use crate::export::{end, messages, pool, recorder, steady, topic};

const QOS: &str = "- history: 1\n  depth: 10\n";

fn imu(name: &str) -> Topic {
    Topic {
        message_encoding: "cdr".into(),
        schema_name: "sensor_msgs/msg/Imu".into(),
        schema_encoding: "ros2msg".into(),
        schema_data: b"bytes".to_vec(),
        metadata: vec![("offered_qos_profiles".into(), QOS.into())],
        ..topic(name)
    }
}

/// A recording with a topic of ROS 2, and one of this kind.
fn record(dir: &Path, other: &Topic) {
    let mut child = recorder(dir, &[]);
    let mut stream = HEAD.to_vec();
    stream.extend(topic_frame(0, &imu("/imu")).unwrap());
    stream.extend(topic_frame(1, other).unwrap());
    stream.extend(begin_frame());
    for number in 0..300_u64 {
        stream.extend(record_frame((number % 2) as u16, 1_000 + number, &[7; 1_000]).unwrap());
    }
    child.stdin.take().unwrap().write_all(&stream).unwrap();
    end(child);
}

fn export(recording: &Path, bag: &Path, arguments: &[&str]) -> Output {
    steady(&["export", "--json", "--ros2"])
        .arg(bag)
        .arg(recording)
        .args(arguments)
        .output()
        .unwrap()
}

#[test]
fn a_bag_has_metadata_and_files_of_the_size_that_was_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let (recording, bag) = (dir.path().join("recording"), dir.path().join("bag"));
    record(&recording, &imu("/other"));
    let output = export(&recording, &bag, &["--split", "100kB"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let summary: Value = valid_json(&output, "export-1.schema.json");
    let files: Vec<Vec<u8>> =
        (0..3).map(|number| fs::read(bag.join(format!("bag_{number}.mcap"))).unwrap()).collect();
    assert_eq!(summary["bytes"], files.iter().map(Vec::len).sum::<usize>());
    for (number, file) in files.iter().enumerate() {
        let found = messages(file);
        assert_eq!((found.len(), found[0].1), (100, 1_000 + number as u64 * 100));
        let index = Summary::read(file).unwrap().unwrap();
        // Of both topics, also where the other file defined them.
        assert_eq!((index.channels.len(), index.schemas.len()), (2, 1));
    }
    let header = mcap::read::LinearReader::new(&files[2]).unwrap().next();
    let Some(Ok(mcap::records::Record::Header(header))) = header else { panic!("{header:?}") };
    assert_eq!(header.profile, "ros2");
    assert_eq!(fs::read_dir(&bag).unwrap().count(), 4);
    let metadata = fs::read_to_string(bag.join("metadata.yaml")).unwrap();
    for line in [
        "  version: 5",
        "  message_count: 300",
        "    nanoseconds_since_epoch: 1000",
        "        type: \"sensor_msgs/msg/Imu\"",
        r#"        offered_qos_profiles: "- history: 1\n  depth: 10\n""#,
        "      message_count: 150",
        "    - \"bag_2.mcap\"",
        "        nanoseconds_since_epoch: 1200",
    ] {
        assert!(metadata.lines().any(|found| found == line), "{line} is not in:\n{metadata}");
    }
}

#[test]
fn what_ros_2_cannot_play_is_named_and_nothing_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("place");
    fs::create_dir(&place).unwrap();
    let bag = place.join("bag");
    let json = Topic { message_encoding: "json".into(), ..imu("/other") };
    let schema = Topic { schema_encoding: "jsonschema".into(), ..imu("/other") };
    let name = Topic { schema_name: "Imu".into(), ..imu("/other") };
    for (number, (other, says)) in [
        (json, "topic /other: its encoding is \"json\", and must be \"cdr\""),
        (schema, "topic /other: its schema is in \"jsonschema\""),
        (name, "topic /other: its type is \"Imu\""),
    ]
    .into_iter()
    .enumerate()
    {
        let recording = dir.path().join(number.to_string());
        record(&recording, &other);
        let before = pool(&recording);
        let output = export(&recording, &bag, &[]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
        assert_eq!(export(&recording, &bag, &["--to", "0.0000001"]).status.code(), Some(2));
        let nothing = export(&recording, &bag, &["--topics", "/imu", "--to", "0.0000001"]);
        assert_eq!(nothing.status.code(), Some(1), "{}", stderr(&nothing));
        assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
        // Without it, a bag is made, and never replaced.
        assert_eq!(export(&recording, &bag, &["--topics", "/imu"]).status.code(), Some(0));
        let again = export(&recording, &bag, &["--topics", "/imu"]);
        assert_eq!(again.status.code(), Some(2));
        assert!(stderr(&again).contains("exists; give the name of a new directory"));
        assert_eq!(fs::read_dir(&place).unwrap().count(), 1);
        fs::remove_dir_all(&bag).unwrap();
        assert!(pool(&recording) == before);
    }
}
