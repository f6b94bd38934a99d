// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady record` while its writes fail: a limit on file sizes makes the kernel refuse all of them.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use serde_json::Value;

use crate::common::{stderr, valid_json};

const SCHEMA: &str = "recording-1.schema.json";

/// Of records without an end.
const PERIODIC: [&str; 4] = ["--period", "1ms", "--size", "1K"];

fn record(dir: &Path, arguments: &[&str]) -> Command {
    // The signal that comes with the limit would kill it.
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "trap '' XFSZ; exec \"$0\" \"$@\"",
        env!("CARGO_BIN_EXE_steady"),
        "record",
    ]);
    command.args(["--json", "--no-lock", "--quiet", "--segments", "4", "--segment-size", "1M"]);
    command.args(["--unit", "64K", "--loss-window", "50ms", "--ring", "8M", "--dir"]);
    command.arg(dir.join("recording")).args(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap()
}

fn writes_fail(child: &Child, fail: bool) {
    let limit = Rlimit { current: fail.then_some(0), maximum: None };
    prlimit(Some(pid(child)), Resource::Fsize, limit).unwrap();
}

fn interrupt(child: &Child) {
    kill_process(pid(child), Signal::INT).unwrap();
}

fn total(output: &Output, what: &str) -> u64 {
    let result: Value = valid_json(output, SCHEMA);
    result["ledger"]["total"][what]["records"].as_u64().unwrap()
}

/// The next line that has this in it.
fn line_with(lines: &mut impl Iterator<Item = std::io::Result<String>>, part: &str) -> String {
    lines.map(Result::unwrap).find(|line| line.contains(part)).unwrap()
}

#[test]
fn a_failure_is_told_at_once_with_its_end_and_costs_nothing_that_the_ring_can_hold() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("notify");
    let notified = UnixDatagram::bind(&socket).unwrap();
    let next = || {
        let mut bytes = [0; 500];
        let length = notified.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    };
    let mut child = record(dir.path(), &PERIODIC).env("NOTIFY_SOCKET", &socket).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    assert_eq!(next(), "READY=1\nSTATUS=recording, 0 records lost");
    thread::sleep(Duration::from_millis(200));
    writes_fail(&child, true);
    line_with(&mut said, "the device fails: writing segment-00000.mcap: File too large");
    assert!(next().contains("STATUS=the device fails, 0 records lost: writing"));
    thread::sleep(Duration::from_millis(300));
    writes_fail(&child, false);
    let again = line_with(&mut said, "the device works again after");
    assert!(again.ends_with("; 0 records were lost"), "{again}");
    assert!(next().starts_with("READY=1\nSTATUS=recording"));
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let rest: Vec<String> = said.map(|line| line.unwrap()).collect();
    assert!(!rest.iter().any(|line| line.contains("File too large")), "it is over: {rest:?}");
    assert!(total(&output, "durable") > 400);
    assert_eq!(total(&output, "durable"), total(&output, "received"));
}

#[test]
fn on_failure_exit_ends_at_once_with_a_status_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let child = record(dir.path(), &PERIODIC).args(["--on-failure", "exit"]).spawn().unwrap();
    thread::sleep(Duration::from_millis(800));
    writes_fail(&child, true);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    assert!(stderr(&output).contains("the recording ends: the device failed"));
    assert!(stderr(&output).contains(" records are not durable"));
    assert_eq!(
        total(&output, "received"),
        total(&output, "durable") + total(&output, "lost_in_writing")
    );
}

#[test]
fn a_recording_whose_device_has_failed_to_the_end_says_so_and_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    // Producers that wait for room do not keep it from ending.
    let mut child = record(dir.path(), &["--input", "-", "--block", "--size", "20K"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let lines = thread::spawn(move || {
        let line = [b"x".repeat(10_000), b"\n".to_vec()].concat();
        while std::io::Write::write_all(&mut input, &line).is_ok() {}
    });
    let mut errors = child.stderr.take().unwrap();
    thread::sleep(Duration::from_millis(300));
    writes_fail(&child, true);
    thread::sleep(Duration::from_millis(6_000));
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    let mut said = String::new();
    errors.read_to_string(&mut said).unwrap();
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains(" records are not durable; "), "{said}");
    lines.join().unwrap();
}

#[test]
fn stop_when_full_ends_a_recording_that_has_no_other_end() {
    let dir = tempfile::tempdir().unwrap();
    let output = record(dir.path(), &PERIODIC).arg("--stop-when-full").output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(stderr(&output).contains("none of the segments may be overwritten"));
    let result: Value = valid_json(&output, SCHEMA);
    assert_eq!(result["ended"], "full");
    assert!(total(&output, "durable") > 3_000);
    let lost = total(&output, "lost_in_writing");
    assert_eq!(total(&output, "durable") + lost, total(&output, "received"));
}

#[test]
fn starts_that_receive_nothing_leave_every_record() {
    let dir = tempfile::tempdir().unwrap();
    // Records in all four segments.
    record(dir.path(), &["--total", "6M", "--period", "100us", "--size", "1K"]).output().unwrap();
    let recording = dir.path().join("recording");
    let files = || -> Vec<Vec<u8>> {
        let paths = (0..4).map(|number| recording.join(format!("segment-0000{number}.mcap")));
        paths.map(|path| std::fs::read(path).unwrap()).collect()
    };
    let before = files();
    for _ in 0..4 {
        let output = record(dir.path(), &["--input", "-"]).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    assert!(files() == before);
}
