// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady tune --bound` as a user runs it, and as its reference page shows it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::valid_json;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const CARD: &str = "experiments/devices/foresee-ncemad9d-usb.toml";
const TIGHT: &str = "docs/examples/tight.toml";

fn steady(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
    command.current_dir(ROOT).args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

#[test]
fn the_reference_page_shows_what_its_command_prints() {
    let page = fs::read_to_string(format!("{ROOT}/docs/reference/steady-tune.md")).unwrap();
    let (_, block) = page.split_once("```\n$ steady tune --bound ").unwrap();
    let (arguments, rest) = block.split_once('\n').unwrap();
    let (expected, _) = rest.split_once("```").unwrap();
    let arguments: Vec<&str> =
        ["tune", "--bound"].into_iter().chain(arguments.split(' ')).collect();
    let output = steady(&arguments);
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&output).starts_with(expected), "{}", stdout(&output));
}

#[test]
fn the_document_follows_its_schema() {
    let output = steady(&["tune", "--bound", CARD, TIGHT, "--json"]);
    let document = valid_json(&output, "tune-bound-1.schema.json");
    assert_eq!(document["candidates"][2]["tasks_missed"], 0);
    assert_eq!(document["pick"], 2);
}

#[test]
fn the_file_with_the_pick_keeps_comments_and_meets_all_deadlines() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tuned.toml");
    let path = path.to_str().unwrap();
    let picked = steady(&["tune", "--bound", CARD, TIGHT, "--out", path]);
    assert_eq!(picked.status.code(), Some(0));
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains("# The time from one sample"), "{text}");
    let bound = steady(&["bound", CARD, path]);
    assert_eq!(bound.status.code(), Some(0));
    assert!(stdout(&picked).ends_with(stdout(&bound)), "{}", stdout(&picked));
}

#[test]
fn the_file_with_the_pick_can_have_its_tasks_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let (tasks, out) = (dir.path().join("tasks.toml"), dir.path().join("tuned.toml"));
    let text = fs::read_to_string(format!("{ROOT}/{TIGHT}")).unwrap();
    let tables: toml::Table = text.parse().unwrap();
    let task = tables["task"].to_string();
    let (head, _) = text.split_once("# The time from one sample").unwrap();
    fs::write(&tasks, format!("task = {task}\n{head}")).unwrap();
    let [tasks, out] = [tasks, out].map(|path| path.to_str().unwrap().to_string());
    let picked = steady(&["tune", "--bound", CARD, &tasks, "--out", &out]);
    let bound = steady(&["bound", CARD, &out]);
    assert_eq!(bound.status.code(), Some(0));
    assert!(stdout(&picked).ends_with(stdout(&bound)), "{}", stdout(&picked));
}

#[test]
fn deadlines_that_no_knobs_meet_end_with_3_and_write_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (tasks, out) = (dir.path().join("tasks.toml"), dir.path().join("tuned.toml"));
    let text = fs::read_to_string(format!("{ROOT}/{TIGHT}")).unwrap();
    fs::write(&tasks, text.replace("deadline_us = 4000", "deadline_us = 400")).unwrap();
    let name = |path: &Path| path.to_str().unwrap().to_string();
    let output = steady(&["tune", "--bound", CARD, &name(&tasks), "--out", &name(&out)]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stdout(&output).ends_with("no knobs meet all deadlines\n"), "{}", stdout(&output));
    assert!(!out.exists());
}

#[test]
fn a_set_without_background_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let tasks = dir.path().join("tasks.toml");
    let text = fs::read_to_string(format!("{ROOT}/{TIGHT}")).unwrap();
    let (before, after) = text.split_once("[background]").unwrap();
    let after = after.split_once("kib = 512\n").unwrap().1;
    fs::write(&tasks, format!("{before}{after}")).unwrap();
    let output = steady(&["tune", "--bound", CARD, tasks.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("tight: has no [background] that knobs could cut"), "{said}");
}
