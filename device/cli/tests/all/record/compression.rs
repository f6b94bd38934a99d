// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady record --compression`: what comes back, and how much the device gets.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use steadyio_testing::recording::messages;

use super::input::{record, send};
use crate::common::{stderr, valid_json};

fn steady(arguments: &[&str], recording: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
    command.args(arguments).arg(recording).output().unwrap()
}

#[test]
fn a_compressed_recording_holds_the_same_and_takes_less() {
    let line =
        |number: u32| format!("{{\"x\": {}, \"y\": {}, \"valid\": true}}\n", number, number / 7);
    let lines: Vec<String> = (0..8_000).map(line).collect();
    let mut device_bytes = Vec::new();
    for compression in ["none", "lz4", "zstd"] {
        let dir = tempfile::tempdir().unwrap();
        let recording = dir.path().join("recording");
        let child = record(dir.path(), &["--input", "-", "--block", "--compression", compression]);
        let output = send(child, lines.concat().as_bytes());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let result: Value = valid_json(&output, "recording-1.schema.json");
        let named = (compression != "none").then_some(compression);
        assert_eq!(result["config"]["compression"].as_str(), named);
        device_bytes.push(result["pool"]["device_bytes"].as_u64().unwrap());
        let found = messages(&recording);
        let found: Vec<&[u8]> = found.iter().map(|message| message.data.as_ref()).collect();
        assert!(found.iter().copied().eq(lines.iter().map(|line| line.trim_end().as_bytes())));

        let verified = steady(&["recover", "--verify"], &recording);
        assert_eq!(verified.status.code(), Some(0), "{}", stderr(&verified));
        let info: Value =
            valid_json(&steady(&["info", "--json"], &recording), "info-1.schema.json");
        assert_eq!(info["messages"], 8_000);
        let out = dir.path().join("out.mcap");
        let exported = steady(&["export", "--output", out.to_str().unwrap()], &recording);
        assert_eq!(exported.status.code(), Some(0), "{}", stderr(&exported));
        let file = fs::read(&out).unwrap();
        let exported = mcap::MessageStream::new(&file).unwrap().map(Result::unwrap);
        assert!(exported.map(|message| message.data.into_owned()).eq(found));
    }
    let [none, lz4, zstd] = device_bytes[..] else { unreachable!() };
    assert!(none > lz4 && lz4 > zstd && none > 2 * zstd, "{device_bytes:?}");
}
