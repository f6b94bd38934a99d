// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady record --live` and the process of the live view, whatever that does. A shell script is
//! in its place here; tests/python/test_live.py has the program itself.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::{stderr, valid_json};

const ADDRESS: &str = "127.0.0.1:8765";
/// Ends as the program does.
const WAITS: &str = "echo ws://$3; cat >/dev/null";
const FOR_ONE_SECOND: [&str; 2] = ["--duration", "1s"];

/// The command, with this script as steady-live.
fn record(dir: &Path, script: &str, arguments: &[&str]) -> Command {
    let program = dir.join("steady-live");
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
    command.args(["record", "--live", ADDRESS, "--json", "--no-lock", "--quiet", "--dir"]);
    command.arg(dir.join("recording")).args(["--segments", "4", "--segment-size", "1M"]);
    command.args(["--unit", "64K", "--size", "1K"]).args(arguments);
    command.env("PATH", format!("{}:/usr/bin:/bin", dir.display()));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn output(script: &str, arguments: &[&str]) -> (Output, bool) {
    let dir = tempfile::tempdir().unwrap();
    let output = record(dir.path(), script, arguments).output().unwrap();
    (output, dir.path().join("recording").exists())
}

fn assert_recorded(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    let result: Value = valid_json(output, "recording-1.schema.json");
    let total = &result["ledger"]["total"];
    assert!(total["durable"]["records"].as_u64() > Some(100), "{total}");
    assert_eq!(total["received"], total["durable"]);
}

#[test]
fn it_runs_beside_the_recorder_at_a_low_priority_and_ends_with_it() {
    let script = format!("nice >&2; ionice -p $$ >&2; echo \"$# $1\" >&2; {WAITS}; echo over >&2");
    let (output, _) = output(&script, &FOR_ONE_SECOND);
    assert_recorded(&output);
    let said = stderr(&output);
    let lines: Vec<&str> = said.lines().filter(|line| !line.contains("making segment")).collect();
    let own = rustix::process::getpriority_process(None).unwrap();
    assert_eq!(lines[..2], [(own + 10).min(19).to_string().as_str(), "idle"], "{said}");
    assert!(lines[2].starts_with("4 ") && lines[2].ends_with("/recording"), "{said}");
    assert_eq!(lines[3..], ["steady: live view: ws://127.0.0.1:8765", "over"], "{said}");
}

#[test]
fn one_that_cannot_start_ends_the_command_before_anything_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = record(dir.path(), "", &FOR_ONE_SECOND);
    let output = command.env("PATH", "/nowhere").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let install = "--live 127.0.0.1:8765: steady-live is not in $PATH: install it with pip install \
                   'steadyio[live]'";
    assert!(stderr(&output).contains(install), "{}", stderr(&output));
    assert!(!dir.path().join("recording").exists());
}

#[test]
fn one_that_ends_before_it_listens_ends_the_command_before_anything_is_made() {
    let (output, made) = output("echo in use >&2; exit 1", &FOR_ONE_SECOND);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.starts_with("in use\n") && said.contains("ended before it listened"), "{said}");
    assert!(!made);
}

#[test]
fn one_that_is_killed_is_reported_once_and_leaves_no_zombie() {
    let dir = tempfile::tempdir().unwrap();
    let script = format!("echo $$ >&2; {WAITS}");
    let mut child = record(dir.path(), &script, &["--period", "1ms"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let viewer: i32 = lines.next().unwrap().parse().unwrap();
    assert_eq!(lines.next().unwrap(), "steady: live view: ws://127.0.0.1:8765");
    assert!(lines.any(|line| line.contains("making segment 4 of 4")));
    kill_process(Pid::from_raw(viewer).unwrap(), Signal::KILL).unwrap();
    let line = lines.next().unwrap();
    let told = "steady: the live view has ended (signal: 9 (SIGKILL)); recording goes on";
    assert_eq!(line, told);
    assert!(!Path::new(&format!("/proc/{viewer}")).exists());
    // Later records than those that were there when it was killed.
    std::thread::sleep(std::time::Duration::from_millis(500));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(lines.next(), None);
    assert_recorded(&child.wait_with_output().unwrap());
}

#[test]
fn one_that_hangs_is_killed_at_the_end() {
    let (output, _) = output("echo $$ >&2; echo ws://; exec sleep 1000 >&2", &FOR_ONE_SECOND);
    assert_recorded(&output);
    let said = stderr(&output);
    assert!(!said.contains("has ended"), "{said}");
    let viewer = said.lines().next().unwrap();
    assert!(!Path::new(&format!("/proc/{viewer}")).exists());
}

#[test]
fn ctrl_c_is_for_the_recorder() {
    let dir = tempfile::tempdir().unwrap();
    let script = format!("ps -o pgid= $$ >&2; {WAITS}");
    let mut child = record(dir.path(), &script, &[]).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let group: i32 = lines.next().unwrap().trim().parse().unwrap();
    let own = rustix::process::getpgrp().as_raw_nonzero().get();
    assert_ne!(group, own);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    drop(lines);
    let status = child.wait().unwrap().code();
    assert!(status == Some(0) || status == Some(130), "{status:?}");
}

#[test]
fn a_wrong_address_is_rejected() {
    for (address, why) in
        [("8765", "must be HOST:PORT, as 127.0.0.1:8765"), ("a:99999", "must be HOST:PORT")]
    {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
        command.args(["record", "--dir", "x", "--live", address]);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{address}");
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
    }
}
