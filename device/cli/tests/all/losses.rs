// SPDX-License-Identifier: MIT OR Apache-2.0
//! Durable messages that are gone: each command counts them and ends with status 3.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use steadyio_recorder::stream::encode::{HEAD, begin_frame, record_frame, topic_frame};
use steadyio_testing::recording::segments;

use crate::common::{stderr, valid_json};
use crate::record::input::topic;

const SEGMENT: &str = "r/segment-00000.mcap";
/// A user that may read what others let everyone read.
const NOBODY: u32 = 65_534;

fn steady(dir: &Path, arguments: &[&str], input: &[u8]) -> Output {
    let is_nobodys = fs::metadata(dir).unwrap().uid() == NOBODY;
    let mut command = match is_nobodys {
        true => Command::new(dir.join("steady")),
        false => Command::new(env!("CARGO_BIN_EXE_steady")),
    };
    if is_nobodys {
        command.uid(NOBODY);
    }
    command.args(arguments).current_dir(dir).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A command that reads nothing closes its end.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn record(dir: &Path, records: u64) -> Output {
    let topic = topic_frame(1, &topic("/a")).unwrap();
    let mut input = [&HEAD[..], &topic, &begin_frame()].concat();
    for number in 0..records {
        input.extend(record_frame(1, number, &[number as u8; 900]).unwrap());
    }
    let arguments = ["record", "--dir", "r", "--input", "-", "--framing", "frames", "--block"];
    let sizes = ["--segments", "3", "--segment-size", "1MiB", "--unit", "64KiB", "--no-lock"];
    let arguments = [&arguments[..], &sizes, &["--quiet", "--json"]].concat();
    steady(dir, &arguments, &input)
}

fn export(dir: &Path) -> (Option<i32>, Value) {
    let output = steady(dir, &["export", "r", "-o", "out.mcap", "--json"], &[]);
    (output.status.code(), valid_json(&output, "export-1.schema.json"))
}

/// 400 messages in a finished segment, of which some and the end block are overwritten.
fn damaged(dir: &Path) -> Vec<u8> {
    assert_eq!(record(dir, 400).status.code(), Some(0));
    let path = dir.join(SEGMENT);
    let mut bytes = fs::read(&path).unwrap();
    let middle = 300_000;
    bytes[middle..middle + 131_072].fill(0);
    fs::write(path, &bytes).unwrap();
    bytes
}

#[test]
fn a_finished_segment_that_lost_its_end_is_counted_by_all_and_changed_by_none() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let bytes = damaged(dir);
    let is_unchanged = || fs::read(dir.join(SEGMENT)).unwrap() == bytes;
    let (status, summary) = export(dir);
    let there = summary["messages"].as_u64().unwrap();
    let missing = 400 - there;
    assert!((50..200).contains(&missing), "{missing}");
    assert_eq!((status, &summary["missing"]["messages"]), (Some(3), &missing.into()));
    for arguments in
        [&["recover", "--dry-run", "r"][..], &["recover", "r"], &["recover", "--verify", "r"]]
    {
        let output = steady(dir, arguments, &[]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains(&format!("{SEGMENT}: {missing} messages are missing")), "{said}");
        assert!(is_unchanged(), "{arguments:?}");
    }
    let output = record(dir, 1);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let result = valid_json(&output, "recording-1.schema.json");
    assert_eq!(result["pool"]["missing_messages"], missing);
    assert!(is_unchanged());
    // A start counts it once.
    assert_eq!(record(dir, 1).status.code(), Some(0));
    assert_eq!(export(dir).0, Some(3));
}

#[test]
fn a_segment_that_is_cut_or_gone_is_counted() {
    for (says, is_cut) in [("is shorter than a segment", true), ("which is gone", false)] {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        assert_eq!(record(dir, 1_900).status.code(), Some(0));
        let (_, whole) = export(dir);
        let path = dir.join("r/segment-00001.mcap");
        if is_cut {
            fs::File::options().write(true).open(path).unwrap().set_len(500_000).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
        let (status, summary) = export(dir);
        let missing = whole["messages"].as_u64().unwrap() - summary["messages"].as_u64().unwrap();
        assert_eq!((status, &summary["missing"]["messages"]), (Some(3), &missing.into()));
        let output = record(dir, 1);
        assert_eq!(output.status.code(), Some(3));
        let said = stderr(&output);
        assert!(said.contains(says) && said.contains(&format!("{missing} messages")), "{said}");
    }
}

#[test]
fn damage_in_front_of_a_summary_is_counted_by_a_start_and_by_the_recovery() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    assert_eq!(record(dir, 400).status.code(), Some(0));
    let mut bytes = fs::read(dir.join(SEGMENT)).unwrap();
    bytes[200_000] ^= 1;
    fs::write(dir.join(SEGMENT), &bytes).unwrap();
    let (status, summary) = export(dir);
    let missing = 400 - summary["messages"].as_u64().unwrap();
    assert!(status == Some(3) && missing > 0);
    for arguments in [&["recover", "--dry-run", "r"][..], &["recover", "r"]] {
        let output = steady(dir, arguments, &[]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains(&format!("{SEGMENT}: {missing} messages are missing")), "{said}");
    }
    let output = record(dir, 1);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let result = valid_json(&output, "recording-1.schema.json");
    assert_eq!(result["pool"]["missing_messages"], missing);
    assert!(fs::read(dir.join(SEGMENT)).unwrap() == bytes);
}

#[test]
fn a_pool_without_a_segment_left_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    assert_eq!(record(dir, 400).status.code(), Some(0));
    for segment in segments(&dir.join("r")) {
        fs::remove_file(segment).unwrap();
    }
    let says = "400 messages are missing";
    let output = steady(dir, &["export", "r", "-o", "out.mcap", "--json"], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains(says), "{}", stderr(&output));
    for arguments in [&["recover", "r"][..], &["info", "r"]] {
        let output = steady(dir, arguments, &[]);
        let said = stderr(&output) + &String::from_utf8_lossy(&output.stdout);
        assert!(output.status.code() == Some(3) && said.contains(says), "{said}");
    }
    let output = record(dir, 1);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert_eq!(valid_json(&output, "recording-1.schema.json")["pool"]["missing_messages"], 400);
}

#[test]
fn a_segment_of_another_owner_is_counted_and_does_not_stop_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    // Root may read everything, and nobody perhaps not the folder of the program. By another process:
    // what this one writes, a program that another test starts has open, too, and it cannot be run.
    if fs::metadata(dir).unwrap().uid() == 0 {
        let copy = Command::new("cp").arg(env!("CARGO_BIN_EXE_steady")).arg(dir).status();
        assert!(copy.unwrap().success());
        chown(dir, Some(NOBODY), None).unwrap();
    }
    assert_eq!(record(dir, 1_900).status.code(), Some(0));
    let whole = export(dir).1["messages"].as_u64().unwrap();
    let path = dir.join("r/segment-00001.mcap");
    let before = fs::read(&path).unwrap();
    if fs::metadata(dir).unwrap().uid() == NOBODY {
        chown(&path, Some(0), None).unwrap();
    }
    fs::set_permissions(&path, PermissionsExt::from_mode(0o0)).unwrap();
    let (status, summary) = export(dir);
    let missing = whole - summary["messages"].as_u64().unwrap();
    assert!(missing > 0);
    assert_eq!((status, &summary["missing"]["messages"]), (Some(3), &missing.into()));
    let output = steady(dir, &["recover", "r"], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains(&format!("{missing} messages")), "{}", stderr(&output));
    let output = record(dir, 1);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("Permission denied") && said.contains("without it"), "{said}");
    // What it holds is not known any more.
    let counted = export(dir).1["missing"]["messages"].as_u64().unwrap();
    assert!(counted >= missing, "{counted} of {missing}");
    fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    assert!(fs::read(&path).unwrap() == before);
}

#[test]
fn a_directory_that_is_named_twice_counts_once() {
    let dir = tempfile::tempdir().unwrap();
    damaged(dir.path());
    std::os::unix::fs::symlink("r", dir.path().join("link")).unwrap();
    let run = |command: &[&str], paths: &[&str]| {
        let output = steady(dir.path(), &[command, paths].concat(), b"");
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()["losses"].clone()
    };
    let commands: [&[&str]; 3] = [
        &["export", "--json", "-o", "twice.mcap"],
        &["info", "--json"],
        &["recover", "--dry-run", "--json"],
    ];
    for command in commands {
        let once = run(command, &["r"]);
        assert_eq!(once.as_array().unwrap().len(), 1, "{once}");
        assert_eq!(run(command, &["r", "link", "r"]), once);
    }
}

#[test]
fn a_recovery_counts_no_message_that_a_renamed_segment_has() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    assert_eq!(record(dir, 400).status.code(), Some(0));
    let (whole, aside) = (dir.join(SEGMENT), dir.join("r/segment-00000.mcap.damaged-1"));
    fs::copy(&whole, &aside).unwrap();
    let mut bytes = fs::read(&whole).unwrap();
    bytes[300_000..300_000 + 131_072].fill(0);
    fs::write(&whole, &bytes).unwrap();
    let recover = || steady(dir, &["recover", "--verify", "r"], &[]);
    let output = recover();
    assert_eq!(output.status.code(), Some(3), "the segment is damaged");
    assert!(!stderr(&output).contains("messages are missing"), "{}", stderr(&output));
    let (status, summary) = export(dir);
    assert_eq!((status, &summary["missing"]["messages"]), (Some(0), &0.into()));
    assert_eq!(summary["messages"], 400);
    fs::write(&aside, &bytes).unwrap();
    assert!(stderr(&recover()).contains("messages are missing"));
}

#[test]
fn a_recovery_of_a_wiped_segment_alone_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    assert_eq!(record(dir, 400).status.code(), Some(0));
    let path = dir.join(SEGMENT);
    fs::write(&path, vec![0; fs::metadata(&path).unwrap().len() as usize]).unwrap();
    let output = steady(dir, &["recover", SEGMENT], &[]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("it was wiped"), "{}", stderr(&output));
}
