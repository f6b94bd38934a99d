// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady record --prepare`: a pool that is made and resized by itself.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use steadyio_testing::recording::{messages, segments};

use crate::common::stderr;

fn record(dir: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
    command.args(["record", "--json", "--no-lock", "--size", "4K", "--period", "0", "--dir"]);
    command.arg(dir).args(["--segment-size", "1M", "--unit", "64K"]);
    command.args(arguments).output().unwrap()
}

/// Segments; how many were made, how many removed, how many hold records.
fn prepare(dir: &Path, segments: &str) -> [u64; 4] {
    let output = record(dir, &["--prepare", "--segments", segments]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["schema"], "steadyio.recording-pool/1");
    ["segments", "made", "removed", "recorded"].map(|key| result[key].as_u64().unwrap())
}

#[test]
fn a_pool_is_made_before_a_recording_and_resized_after_it() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("recording");
    assert_eq!(prepare(&dir, "2"), [2, 2, 0, 0]);
    assert_eq!(prepare(&dir, "4"), [4, 2, 0, 0]);
    let output = record(&dir, &["--segments", "4", "--total", "2M"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(!stderr(&output).contains("making"), "{}", stderr(&output));
    let records = messages(&dir).len();

    let output = record(&dir, &["--segments", "2", "--total", "4K"]);
    assert_eq!(output.status.code(), Some(1));
    let says = "holds 4 segments, but 2 are configured: record with --segments 4, or give up the \
                oldest (2 of them): steady record --prepare --dir ";
    assert!(stderr(&output).contains(says), "{}", stderr(&output));
    // One has no records, and the oldest goes with those of its.
    assert_eq!(prepare(&dir, "3"), [3, 0, 1, 3]);
    assert_eq!((messages(&dir).len(), segments(&dir).len()), (records, 3));
    assert_eq!(prepare(&dir, "2"), [2, 0, 1, 2]);
    assert!(messages(&dir).len() < records);
}

#[test]
fn text_says_what_was_made_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
    command.args(["record", "--prepare", "--segment-size", "4M", "--segments", "3", "--dir"]);
    let output = command.arg(dir.path().join("recording")).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said, "3 segments of 4194304 bytes, 0 with records; 3 made, 0 removed\n");
}
