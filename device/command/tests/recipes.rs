// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady-recipe` on the file system of the temporary directory.

#![allow(clippy::expect_used, clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use serde_json::Value;
use steadyio_bench::recording::recipe::RECIPES;
use steadyio_testing::{alone_on_this_machine, is_root, skip, valid_json};

const SCHEMA: &str = include_str!("../../../docs/spec/recording-1.schema.json");

fn recipe(name: &str, dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady-recipe"));
    command.args([name, "--json", "--no-lock", "--size", "4K", "--period", "1ms", "--dir"]);
    command.arg(dir).args(arguments);
    command
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn records(result: &Value, what: &str) -> u64 {
    result["ledger"]["total"][what]["records"].as_u64().unwrap()
}

/// Files named so, and their lengths together.
fn files(dir: &Path, prefix: &str) -> (usize, u64) {
    let entries = fs::read_dir(dir).unwrap().map(Result::unwrap);
    let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
    named.fold((0, 0), |(count, bytes), entry| (count + 1, bytes + entry.metadata().unwrap().len()))
}

#[test]
fn every_recipe_records_everything_and_says_how_long_the_caller_took() {
    let _alone = alone_on_this_machine("flusher");
    for one in RECIPES {
        if !one.writes.flusher && !geteuid().is_root() {
            skip(&format!("{}: switching the flusher off needs root", one.name));
            continue;
        }
        let dir = tempfile::tempdir().unwrap();
        let sizes = ["--total", "400K", "--segment-size", "256K", "--unit", "32K"];
        let output = recipe(one.name, dir.path(), &sizes).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}: {}", one.name, stderr(&output));
        let result = valid_json(&output, SCHEMA);
        assert_eq!(result["recipe"]["name"], one.name);
        assert_eq!((records(&result, "received"), records(&result, "durable")), (100, 100));
        assert_eq!(result["caller"]["calls"]["count"], 100);
        assert_eq!(result["ended"], "finished");
        assert!(result["pool"].is_null());
        assert_eq!(files(dir.path(), "recording-"), (2, 400 << 10));
        assert_eq!(files(dir.path(), "background-").0, 0, "they go when it ends");
        let ratio = &result["flusher"]["dirty_background_ratio"];
        assert_eq!(ratio == 100, !one.writes.flusher, "{}: {ratio}", one.name);
    }
}

#[test]
fn the_flusher_is_put_back_when_it_is_terminated() {
    if !is_root("switching the flusher off") {
        return;
    }
    let _alone = alone_on_this_machine("flusher");
    let expire = || fs::read_to_string("/proc/sys/vm/dirty_expire_centisecs").unwrap();
    let before = expire();
    let dir = tempfile::tempdir().unwrap();
    let mut command = recipe("prealloc-syncrange", dir.path(), &["--total", "240M"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let started = Instant::now();
    while !dir.path().join("recording-0000.raw").exists() {
        assert!(started.elapsed() < Duration::from_secs(60), "it never began");
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(expire(), "300000\n");
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert_eq!(expire(), before);
    // The unwritten end of the file is cut off.
    let result = valid_json(&output, SCHEMA);
    assert_eq!(files(dir.path(), "recording-").1, records(&result, "durable") * 4_096);
}

#[test]
fn a_wrong_command_line_is_named_and_creates_nothing() {
    let cases: [(&str, &[&str], &str); 6] = [
        ("pool", &["--total", "8K"], "possible values: append-fdatasync"),
        ("append-fdatasync", &[], "--total <SIZE>"),
        ("append-fdatasync", &["--total", "1K"], "at least one record (--size 4096)"),
        ("append-fdatasync", &["--total", "8K", "--unit", "0"], "--unit 0: must be at least 1"),
        (
            "append-fdatasync",
            &["--total", "8K", "--segment-size", "1K"],
            "--segment-size 1024: less than one record",
        ),
        (
            "append-fdatasync",
            &["--total", "8K", "--priority", "100"],
            "'--priority <1..99>': 100 is not in 1..=99",
        ),
    ];
    for (name, arguments, says) in cases {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("recording");
        let output = recipe(name, &dir, arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(says), "{arguments:?}: {}", stderr(&output));
        assert!(!dir.exists());
    }
}

#[test]
fn a_file_that_cannot_be_preallocated_is_named_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    let more_than_there_is = ["--total", "4000000G"];
    let mut command = recipe("prealloc-syncrange-flusher", dir.path(), &more_than_there_is);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("/recording-0000.raw: "), "{}", stderr(&output));
    assert_eq!(files(dir.path(), ""), (0, 0));
}
