// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady export --output -`: an export into a pipe.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Output};
use std::thread::sleep;
use std::time::Duration;

use mcap::Summary;
use rustix::process::{Pid, Signal, kill_process};

use crate::common::stderr;
use crate::export::{by_time, messages, pool, record, records, steady};

fn spawn(dir: &Path, arguments: &[&str]) -> Child {
    steady(&["export", "-o", "-"]).arg(dir).args(arguments).spawn().unwrap()
}

fn export(dir: &Path, arguments: &[&str]) -> Output {
    spawn(dir, arguments).wait_with_output().unwrap()
}

#[test]
fn a_pipe_gets_what_a_file_would_get() {
    let dir = tempfile::tempdir().unwrap();
    let (recording, file) = (dir.path().join("recording"), dir.path().join("out.mcap"));
    let sent = records(1_000);
    record(&recording, &sent);
    let before = pool(&recording);
    for compression in ["zstd", "lz4", "none"] {
        let output = export(&recording, &["--compression", compression]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let said = stderr(&output);
        assert!(said.starts_with("steady: standard output: 1000 messages of 2 topics"), "{said}");
        assert!(messages(&output.stdout) == by_time(sent.clone()), "{compression}");
        // A kept stream has an index.
        let summary = Summary::read(&output.stdout).unwrap().unwrap();
        let chunks = summary.chunk_indexes.iter();
        let chunks = chunks.map(|chunk| summary.stream_chunk(&output.stdout, chunk).unwrap());
        assert_eq!(chunks.map(Iterator::count).sum::<usize>(), 1_000);
    }
    let to_file = steady(&["export", "-o"]).arg(&file).arg(&recording).output().unwrap();
    assert_eq!(to_file.status.code(), Some(0));
    assert!(messages(&fs::read(&file).unwrap()) == by_time(sent));
    assert!(pool(&recording) == before);
}

#[test]
fn a_reader_that_ends_early_is_no_failure() {
    let dir = tempfile::tempdir().unwrap();
    record(dir.path(), &records(1_000));
    let mut child = spawn(dir.path(), &["--compression", "none"]);
    let mut start = [0; 8];
    child.stdout.take().unwrap().read_exact(&mut start).unwrap();
    assert_eq!(&start, mcap::MAGIC);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("its reader ended before the export did"));
}

#[test]
fn losses_are_in_the_exit_status_of_a_stream_too() {
    let dir = tempfile::tempdir().unwrap();
    record(dir.path(), &records(600));
    let path = dir.path().join("segment-00000.mcap");
    let mut bytes = fs::read(&path).unwrap();
    bytes[300_000] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let output = export(dir.path(), &[]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("damaged: 1 blocks, "), "{}", stderr(&output));
    let found = messages(&output.stdout).len();
    assert!(found > 500 && found < 600, "{found}");
}

#[test]
fn an_interrupt_ends_a_stream_that_nobody_reads() {
    let dir = tempfile::tempdir().unwrap();
    record(dir.path(), &records(1_000));
    let mut child = spawn(dir.path(), &["--compression", "none"]);
    // It fills the pipe, and waits.
    let mut first = [0];
    let stdout = child.stdout.as_mut().unwrap();
    stdout.read_exact(&mut first).unwrap();
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    while child.try_wait().unwrap().is_none() {
        sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("interrupted; the stream has no end"));
    assert!(Summary::read(&[&first[..], &output.stdout].concat()).is_err(), "it looks complete");
}

#[test]
fn nothing_is_written_where_nothing_is_selected_or_the_command_line_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    record(dir.path(), &records(100));
    for (arguments, status, says) in [
        (&["--to", "1"][..], 1, "no message from 0.000000 to 1.000000"),
        (&["--json"], 2, "--json: standard output is the export"),
    ] {
        let output = export(dir.path(), arguments);
        assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
        assert!(output.stdout.is_empty());
    }
}
