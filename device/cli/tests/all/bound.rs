// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady bound` as a user runs it, and that its reference page shows what it prints.

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const CARD: &str = "experiments/devices/foresee-ncemad9d-usb.toml";
const ROBOT: &str = "docs/examples/robot.toml";

fn bound(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
    command.current_dir(ROOT).arg("bound").args(arguments).output().unwrap()
}

/// The robot's tasks with something replaced, on the card: what it ends with.
fn changed(from: &str, to: &str) -> (Option<i32>, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tasks.toml");
    let robot = fs::read_to_string(format!("{ROOT}/{ROBOT}")).unwrap();
    assert!(robot.contains(from));
    fs::write(&path, robot.replace(from, to)).unwrap();
    let output = bound(&[CARD, path.to_str().unwrap()]);
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

#[test]
fn the_reference_page_shows_what_its_command_prints() {
    let page = fs::read_to_string(format!("{ROOT}/docs/reference/steady-bound.md")).unwrap();
    let (_, block) = page.split_once("```\n$ steady bound ").unwrap();
    let (arguments, rest) = block.split_once('\n').unwrap();
    let (expected, _) = rest.split_once("```").unwrap();
    let output = bound(&arguments.split(' ').collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

#[test]
fn the_document_follows_its_schema() {
    let schema = fs::read_to_string(format!("{ROOT}/docs/spec/bound-1.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let output = bound(&[CARD, ROBOT, "--json"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(&document).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(document["holds"], Value::Bool(true));
}

#[test]
fn a_deadline_that_may_be_missed_ends_with_3() {
    let (status, said) = changed("level = 0", "level = 0\ndeadline_us = 5000");
    assert_eq!(status, Some(3));
    assert!(said.contains("1 of 3 tasks may miss the deadline"), "{said}");
    assert!(said.contains("joints: max_sectors_kb = 256 shortens it most"), "{said}");
}

#[test]
fn work_without_end_has_no_bound_and_ends_with_3() {
    let (status, said) = changed("period_us = 100000", "period_us = 1000");
    assert_eq!(status, Some(3));
    assert!(said.contains("none: there may be more work than time for it"), "{said}");
}

#[test]
fn a_file_that_cannot_be_used_ends_with_2_and_is_named() {
    let (status, said) = changed("level = 2", "level = 9");
    assert_eq!(status, Some(2));
    assert!(said.contains("tasks.toml") && said.contains("9 is out of range"), "{said}");
    let output = bound(&["/nonexistent", ROBOT]);
    assert_eq!(output.status.code(), Some(2));
}
