// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a command does is the same where its diagnostics cannot be written.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, kill_process};
use steadyio_recorder::stream::encode::{HEAD, begin_frame, record_frame, topic_frame};
use steadyio_testing::Sysfs;
use steadyio_testing::recording::messages;

use crate::record::input::{connect, topic, wait_for_close};

/// What standard error may be, with what keeps it so.
fn unwritable() -> Vec<(&'static str, Stdio, Option<OwnedFd>)> {
    let full_device = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let (reader, full_pipe) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    rustix::fs::fcntl_setfl(&full_pipe, OFlags::NONBLOCK).unwrap();
    while rustix::io::write(&full_pipe, &[b'x'; 4_096]).is_ok() {}
    // The command gets one that would block.
    rustix::fs::fcntl_setfl(&full_pipe, OFlags::empty()).unwrap();
    let (_, closed_pipe) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    vec![
        ("a full device", full_device.into(), None),
        ("a full pipe", full_pipe.into(), Some(reader)),
        ("a closed pipe", closed_pipe.into(), None),
    ]
}

fn steady(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
    command.args(arguments).current_dir(dir).stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// Fails instead of waiting for ever.
fn end(mut child: Child, what: &str) -> Output {
    let until = Instant::now() + Duration::from_secs(60);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > until {
            child.kill().unwrap();
            panic!("{what}: it does not end");
        }
        sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

fn with_stderr(dir: &Path, arguments: &[&str], stderr: Stdio) -> Output {
    end(steady(dir, arguments).stderr(stderr).spawn().unwrap(), arguments[0])
}

/// A pool of two segments, prepared so that no line tells of its making.
fn prepare(dir: &Path, pool: &str) {
    let sizes = ["--segments", "3", "--segment-size", "1M", "--unit", "64K"];
    let arguments = [&["record", "--prepare", "--dir", pool][..], &sizes].concat();
    assert!(steady(dir, &arguments).stderr(Stdio::null()).status().unwrap().success());
}

const RECORD: [&str; 8] =
    ["record", "--no-lock", "--segment-size", "1M", "--unit", "64K", "--loss-window", "50ms"];

#[test]
fn every_command_ends_as_it_would_with_a_good_standard_error() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    prepare(dir, "empty");
    std::fs::write(dir.join("segment-00000.mcap"), "not a segment").unwrap();
    let sysfs = Sysfs::new();
    sysfs.add("mmcblk0", "k2");
    let sysfs = sysfs.root().to_str().unwrap();
    let watch = ["watch", "--sysfs", sysfs, "--count", "2", "--interval", "10ms", "--json"];
    let watch = [&watch[..], &["--listen", "127.0.0.1:0"]].concat();
    let failures: &[&[&str]] = &[
        &["apply", "none.toml", "--disk", "/dev/null"],
        &["bench", "none.toml", "--device", "/dev/null"],
        &["bound", "none.toml", "none.json"],
        &["cat", "empty"],
        &["completions", "none"],
        &["direct", "info", "/dev/null"],
        &["doctor", "/dev/null"],
        &["export", "empty", "-o", "out.mcap"],
        &["export", "segment-00000.mcap", "-o", "out.mcap"],
        &["incidents", "release", "empty", "none"],
        &["info", "none"],
        &["man", "/dev/null/none"],
        &["model", "none.json"],
        &["probe", "/dev/null"],
        &["record", "--dir", "/dev/null/none"],
        &["recover", "segment-00000.mcap"],
        &["status", "--control", "none"],
        &["store", "check", "none"],
        &["trace", "none.dat"],
        &["tune", "/dev/null", "none.toml", "--tail-max=1ms"],
        &watch,
        &["with", "--device", "/dev/null", "--", "true"],
        &["no-such-command"],
    ];
    for arguments in failures {
        let good = with_stderr(dir, arguments, Stdio::piped());
        assert!(!good.stderr.is_empty(), "{arguments:?} says nothing");
        for (what, stderr, _kept) in unwritable() {
            let output = with_stderr(dir, arguments, stderr);
            assert_eq!(output.status.code(), good.status.code(), "{arguments:?}, {what}");
            let is_same = arguments[0] == "watch" || output.stdout == good.stdout;
            assert!(is_same, "{arguments:?}, {what}");
        }
    }
}

#[test]
fn segments_are_made_and_recorded_into() {
    for (what, stderr, _kept) in unwritable() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let more = ["--dir", "r", "--segments", "2", "--total", "100K", "--size", "1K"];
        let output = with_stderr(dir, &[&RECORD[..], &more].concat(), stderr);
        assert_eq!(output.status.code(), Some(0), "{what}");
        assert_eq!(messages(&dir.join("r")).len(), 100, "{what}");
    }
}

fn wait_for(path: &Path) {
    let until = Instant::now() + Duration::from_secs(60);
    while !path.exists() {
        assert!(Instant::now() < until, "no {}", path.display());
        sleep(Duration::from_millis(5));
    }
}

/// Asks with `steady incidents`, which answers on standard output.
fn incidents(dir: &Path) -> usize {
    let entries = std::fs::read_dir(dir.join("r")).unwrap().map(|entry| entry.unwrap());
    let is_incident = |name: String| name.starts_with("incident-") && name.ends_with(".json");
    entries.filter(|entry| is_incident(entry.file_name().into_string().unwrap())).count()
}

#[test]
fn each_signal_keeps_an_incident() {
    for (what, stderr, _kept) in unwritable() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let more = ["--dir", "r", "--segments", "8", "--period", "1ms", "--size", "100"];
        let more = [&more[..], &["--control", "control"]].concat();
        let child = steady(dir, &[&RECORD[..], &more].concat()).stderr(stderr).spawn().unwrap();
        let pid = Pid::from_child(&child);
        wait_for(&dir.join("control"));
        wait_for(&dir.join("r/segment-00000.mcap"));
        for number in 1..=3 {
            kill_process(pid, Signal::USR1).unwrap();
            let until = Instant::now() + Duration::from_secs(60);
            while incidents(dir) < number {
                assert!(Instant::now() < until, "incident {number}, {what}");
                sleep(Duration::from_millis(5));
            }
        }
        kill_process(pid, Signal::INT).unwrap();
        assert_eq!(end(child, what).status.code(), Some(0), "{what}");
    }
}

#[test]
fn a_rejected_producer_ends_nobody_elses_recording() {
    for (what, stderr, _kept) in unwritable() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let more = ["--dir", "r", "--segments", "2", "--input", "unix:s", "--framing", "frames"];
        let child = steady(dir, &[&RECORD[..], &more].concat()).stderr(stderr).spawn().unwrap();
        let pid = Pid::from_child(&child);
        wait_for(&dir.join("s"));
        let mut good = connect(&dir.join("s"));
        let record = |time, data: &[u8]| record_frame(1, time, data).unwrap();
        let begin =
            [HEAD.to_vec(), topic_frame(1, &topic("/good")).unwrap(), begin_frame()].concat();
        good.write_all(&[begin, record(1, b"first")].concat()).unwrap();
        for _ in 0..3 {
            let mut bad = connect(&dir.join("s"));
            let _ = bad.write_all(b"hello\nhello\nhello\n");
            // Until it is rejected.
            let _ = bad.read(&mut [0; 10]);
        }
        good.write_all(&record(2, b"second")).unwrap();
        good.shutdown(Shutdown::Write).unwrap();
        wait_for_close(&good);
        kill_process(pid, Signal::INT).unwrap();
        assert_eq!(end(child, what).status.code(), Some(3), "{what}");
        let recorded = messages(&dir.join("r"));
        let records: Vec<&[u8]> = recorded.iter().map(|message| &*message.data).collect();
        assert_eq!(records, [&b"first"[..], b"second"], "{what}");
    }
}
