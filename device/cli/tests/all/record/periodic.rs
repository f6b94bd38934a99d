// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady record` on the file system of the temporary directory.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use serde_json::Value;
use steadyio_testing::recording::messages;

use crate::common::{stderr, valid_json};

const SCHEMA: &str = "recording-1.schema.json";

fn record(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
    command.args(["record", "--json", "--no-lock", "--size", "4K", "--period", "1ms", "--dir"]);
    command.arg(dir).args(arguments);
    command
}

fn pool(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = record(dir, &["--segments", "2", "--segment-size", "1M", "--unit", "64K"]);
    command.args(arguments);
    command
}

fn records(result: &Value, what: &str) -> u64 {
    result["ledger"]["total"][what]["records"].as_u64().unwrap()
}

#[test]
fn a_priority_that_is_not_allowed_is_told_before_anything_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let recording = dir.path().join("recording");
    let started = pool(&recording, &["--total", "16K", "--writer-priority", "7"]);
    let mut command = Command::new("prlimit");
    command.arg("--rtprio=0");
    if geteuid().is_root() {
        command.args(["setpriv", "--bounding-set=-sys_nice"]);
    }
    let output = command.arg(started.get_program()).args(started.get_args()).output().unwrap();
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("SCHED_FIFO at priority 7"), "{told}");
    assert!(!recording.exists(), "{told}");
}

fn running(mut command: Command, there: &Path) -> Child {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let started = Instant::now();
    while !there.exists() {
        assert!(started.elapsed() < Duration::from_secs(60), "it never began");
        thread::sleep(Duration::from_millis(5));
    }
    child
}

fn end(child: Child, signal: Signal) -> Output {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn a_signal_ends_a_recording_with_everything_durable() {
    // Without an end of its own that is how it ends; with one it is too early.
    for (arguments, status) in [(&[][..], 0), (&["--duration", "1h"][..], 130)] {
        let dir = tempfile::tempdir().unwrap();
        let child = running(pool(dir.path(), arguments), &dir.path().join("segment-00001.mcap"));
        thread::sleep(Duration::from_millis(100));
        let output = end(child, Signal::INT);
        assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
        let result = valid_json(&output, SCHEMA);
        assert_eq!(result["ended"], "interrupted");
        assert_eq!(records(&result, "durable"), records(&result, "received"));
        assert_eq!(records(&result, "buffered"), 0);
    }
}

#[test]
fn a_wrong_command_line_is_named_and_creates_nothing() {
    let cases: [(&[&str], &str); 20] = [
        (&["--size", "0"], "--size 0: must be at least 1"),
        (&["--size", "1.5K"], "must be a whole number"),
        (&["--period", "5"], "must be a whole number with ns"),
        (&["--total", "1K"], "must be at least one record (--size 4096)"),
        (&["--ring", "4K"], "--ring 4096: must be at least"),
        (&["--segments", "1"], "--segments 1: must be 2 to 10000"),
        (
            &["--keep-size", "1M"],
            "--keep-size 1048576: comes to 0 segments of --segment-size: must be 2",
        ),
        (&["--segment-size", "1M"], "--segment-size 1048576: must be at least 4 times --unit"),
        (&["--unit", "3"], "--unit 3: must be 8192 to 16777216"),
        (&["--size", "1M"], "--size 1048576: must be at most 1047918; raise --record-max"),
        (&["--keep-time", "9000h"], "--keep-time 32400000s: takes "),
        (&["--loss-window", "1ms"], "--loss-window 1ms: must be 2 to 3600000 ms"),
        (&["--priority", "100"], "'--priority <1..99>': 100 is not in 1..=99"),
        (&["--writer-ionice", "1:8"], "must be CLASS:LEVEL, 1 to 3 and 0 to 7"),
        (&["--writer-cpu", "1023"], "--writer-cpu 1023: must be one of "),
        (&["--input", "/"], "/: is a directory"),
        (&["--input", "-", "--ring", "4K"], "--ring 4096: must be at least"),
        (
            &["--input", "unix:/nowhere/socket"],
            "/nowhere/socket: its directory: No such file or directory",
        ),
        (
            &["--prepare", "--input", "-", "--keep-time", "1h"],
            "--keep-time: the number of segments depends",
        ),
        (&["--total", "8K", "--cpu", "1023"], "--cpu 1023: must be one of "),
    ];
    for (arguments, says) in cases {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("recording");
        let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
        command.arg("record").arg("--dir").arg(&dir);
        if !arguments.contains(&"--size") {
            command.args(["--size", "4K"]);
        }
        let output = command.args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(says), "{arguments:?}: {}", stderr(&output));
        assert!(!dir.exists());
    }
}

#[test]
fn a_result_goes_into_a_file_as_well() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("result.json");
    let mut command = pool(&dir.path().join("recording"), &["--total", "40K"]);
    let output = command.arg("--out").arg(&file).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(fs::read(&file).unwrap(), output.stdout);
}

#[test]
fn a_file_that_cannot_be_written_is_named_before_anything_is_recorded() {
    for option in ["--out", "--account-log"] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("none/result");
        let file = file.to_str().unwrap();
        let recording = dir.path().join("recording");
        let output = pool(&recording, &["--duration", "1h", option, file]).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let says = format!("steady: {option} {file}: No such file or directory (os error 2)\n");
        assert_eq!(stderr(&output), says);
        assert!(!recording.exists());
    }
}

#[test]
fn no_output_replaces_a_file_of_a_recording() {
    let dir = tempfile::tempdir().unwrap();
    let recording = dir.path().join("recording");
    let output = pool(&recording, &["--total", "40K"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let files = || {
        let paths = fs::read_dir(&recording).unwrap().map(|entry| entry.unwrap().path());
        paths.map(|path| (path.clone(), fs::read(path).unwrap())).collect::<BTreeMap<_, _>>()
    };
    let before = files();
    for option in ["--out", "--account-log"] {
        for name in ["segment-00000.mcap", "pool.json", "incident-a.json"] {
            let file = recording.join(name);
            let arguments = ["--total", "40K", option, file.to_str().unwrap()];
            let output = pool(&recording, &arguments).output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
            let says = format!("steady: {option} {}: is a file of a recording", file.display());
            assert!(stderr(&output).starts_with(&says), "{}", stderr(&output));
        }
    }
    assert!(files() == before);
}

#[test]
fn the_account_log_ends_with_all_that_was_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("account");
    let mut command = pool(&dir.path().join("recording"), &["--total", "200K"]);
    let output = command.arg("--account-log").arg(&file).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = fs::read_to_string(&file).unwrap();
    let number = |text: &str| text.parse::<u64>().unwrap();
    let line = |line: &str| line.split(' ').map(number).collect::<Vec<u64>>();
    let lines: Vec<Vec<u64>> = text.lines().map(line).collect();
    assert!(lines.windows(2).all(|pair| pair[0].iter().zip(&pair[1]).all(|(a, b)| a <= b)));
    assert!(lines.iter().all(|line| line[1] >= line[2] && line[2] >= line[3]));
    assert_eq!(lines.last().unwrap()[1..], [50, 50, 50, 0]);
}

#[test]
fn a_record_that_does_not_fit_is_refused_by_its_true_limit_and_taken_if_it_is_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let recording = dir.path().join("recording");
    let arguments = ["--size", "64K", "--total", "640K", "--segment-size", "4M"];
    let with = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
        command.args(["record", "--no-lock", "--unit", "64K", "--segments", "2", "--dir"]);
        command.arg(&recording).args(arguments).args(more).output().unwrap()
    };
    let refused = with(&[]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    let says = "--size 65536: must be at most 64878; raise --record-max";
    assert!(stderr(&refused).contains(says), "{}", stderr(&refused));
    assert!(!recording.exists());
    let taken = with(&["--record-max", "64K"]);
    assert_eq!(taken.status.code(), Some(0), "{}", stderr(&taken));
}

#[test]
fn what_keep_time_promises_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    // Small records and a short window: most of a block is padding.
    let rate = ["--size", "100", "--period", "2ms", "--loss-window", "20ms"];
    let sizes = ["--segment-size", "512K", "--unit", "64K", "--keep-time", "3s"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
    command.args(["record", "--json", "--no-lock", "--duration", "14s", "--dir"]).arg(dir.path());
    let output = command.args(rate).args(sizes).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let result = valid_json(&output, SCHEMA);
    // The oldest was overwritten.
    let segments = result["config"]["segments"].as_u64().unwrap();
    assert!(result["pool"]["rotations"]["count"].as_u64().unwrap() >= segments, "{result}");
    let times: Vec<u64> = messages(dir.path()).iter().map(|message| message.log_time).collect();
    let kept = Duration::from_nanos(times.iter().max().unwrap() - times.iter().min().unwrap());
    assert!(kept >= Duration::from_secs(3), "{kept:?}");
}
