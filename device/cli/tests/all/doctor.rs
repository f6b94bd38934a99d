// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady doctor` on a real device of this machine.

use std::process::{Command, Output};

use serde_json::Value;

use crate::common::loop_device;

fn doctor(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_steady")).arg("doctor").args(arguments).output().unwrap()
}

#[test]
fn a_loop_device_without_k2_is_a_finding_in_both_forms() {
    let Some(disk) = loop_device() else { return };
    let node = disk.node.as_str();
    let output = doctor(&[node, "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let schema = include_str!("../../../../docs/spec/doctor-1.schema.json");
    let schema: Value = serde_json::from_str(schema).unwrap();
    jsonschema::validate(&schema, &document).unwrap();
    assert_eq!(document["disk"], disk.name());
    let found = document["findings"].as_array().unwrap();
    let scheduler = found.iter().find(|one| one["text"].as_str().unwrap().contains("scheduler of"));
    let scheduler = scheduler.unwrap();
    // Where k2 builds there is a command; where it does not, another kernel.
    let line =
        if scheduler["id"] == "k2-kernel" { &scheduler["advice"] } else { &scheduler["fix"] };
    let line = line.as_str().unwrap();
    let choose = format!("echo k2 > /sys/block/{}/queue/scheduler", disk.name());
    assert!(line.ends_with(&choose) || line.starts_with("use one of Linux"), "{line}");
    let text = String::from_utf8(doctor(&[node]).stdout).unwrap();
    assert!(text.contains(line) && text.ends_with("findings\n") | text.ends_with("finding\n"));
}

#[test]
fn what_is_no_block_device_is_refused() {
    for (device, says) in [("/dev/null", "a character device"), ("/dev/none", "No such file")] {
        let output = doctor(&[device]);
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains(says));
    }
}
