// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors name what is wrong: the true cause, its value, and a remedy that works.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::geteuid;
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{stderr, valid_json};

const STEADY: &str = env!("CARGO_BIN_EXE_steady");

fn command(program: &[&str], dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program[0]);
    command.args(&program[1..]).args(["record", "--no-lock", "--segments", "2"]);
    command.args(["--segment-size", "4M", "--dir"]).arg(dir).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn record(dir: &Path, arguments: &[&str]) -> Output {
    command(&[STEADY], dir, arguments).output().unwrap()
}

/// By somebody without this capability.
fn record_without(capability: &str, dir: &Path, arguments: &[&str]) -> Output {
    let set = format!("--bounding-set=-{capability}");
    let program: &[&str] = if geteuid().is_root() { &["setpriv", &set, STEADY] } else { &[STEADY] };
    command(program, dir, arguments).output().unwrap()
}

/// Fails so, and nothing is there afterwards.
fn refused(output: &Output, dir: &Path, says: &str) {
    assert!(!output.status.success());
    assert!(stderr(output).contains(says), "{says:?}: {}", stderr(output));
    assert!(!dir.exists(), "{says:?}: something was made");
}

/// A directory, and the name of one that is not there yet.
fn place() -> (TempDir, std::path::PathBuf) {
    let above = tempfile::tempdir().unwrap();
    let dir = above.path().join("recording");
    (above, dir)
}

#[test]
fn a_directory_that_is_a_file_is_no_directory() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let says = format!("steady: {}: not a directory", file.path().display());
    for arguments in [&["--duration", "10ms"][..], &["--plan"]] {
        let output = record(file.path(), arguments);
        assert!(stderr(&output).contains(&says), "{}", stderr(&output));
    }
}

#[test]
fn a_socket_that_cannot_be_made_is_told_with_the_reason_before_anything_is_made() {
    let (above, dir) = place();
    let at = |name: &str| format!("unix:{}", above.path().join(name).display());
    fs::write(above.path().join("file"), "").unwrap();
    let cases = [
        (
            at(&"long".repeat(30)),
            "bytes are too many for the path of a socket: must be at most 107",
        ),
        (at("file"), "file: exists and is not a socket (give another path, or remove it)"),
        (at("none/socket"), "socket: its directory: No such file or directory"),
    ];
    for (input, says) in cases {
        refused(&record(&dir, &["--input", &input]), &dir, says);
    }
}

#[test]
fn a_result_that_could_not_get_its_name_is_refused_before_the_recording() {
    let (above, dir) = place();
    let out = above.path().display().to_string();
    let output = record(&dir, &["--duration", "10ms", "--out", &out]);
    refused(&output, &dir, &format!("--out {out}: is a directory"));
}

#[test]
fn a_priority_that_the_caller_may_not_have_is_told_before_anything_is_made() {
    let (_above, dir) = place();
    let output = record_without("sys_nice", &dir, &["--priority", "7", "--duration", "10ms"]);
    refused(&output, &dir, "cannot run the caller under SCHED_FIFO at priority 7");
}

#[test]
fn a_limit_on_file_sizes_is_told_before_the_process_is_killed_for_it() {
    let (_above, dir) = place();
    let program = ["prlimit", "--fsize=1000000", STEADY];
    let output = command(&program, &dir, &["--duration", "10ms"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let says = "a segment has 4194304 bytes, but this process may write files of 1000000 only";
    assert!(stderr(&output).contains(says), "{}", stderr(&output));
    assert_eq!(fs::read_dir(dir).unwrap().count(), 0);
}

#[test]
fn a_segment_of_somebody_else_is_no_failing_device() {
    let (_above, dir) = place();
    assert!(record(&dir, &["--prepare"]).status.success());
    let second = dir.join("segment-00001.unused");
    fs::set_permissions(&second, Permissions::from_mode(0o444)).unwrap();
    let output = record_without("dac_override", &dir, &["--duration", "10ms"]);
    assert_eq!(output.status.code(), Some(1));
    let says = format!("steady: {}: Permission denied (os error 13)\n", second.display());
    assert_eq!(stderr(&output), says);
}

#[test]
fn the_way_out_of_too_many_segments_works_as_it_is_printed() {
    let (_above, dir) = place();
    assert!(record(&dir, &["--prepare"]).status.success());
    let mut more = Command::new(STEADY);
    more.args(["record", "--prepare", "--segments", "4", "--segment-size", "4M", "--dir"]);
    assert!(more.arg(&dir).output().unwrap().status.success());
    let said = stderr(&record(&dir, &["--duration", "10ms"]));
    let line = said.rsplit(": steady ").next().unwrap();
    let printed = Command::new(STEADY).args(line.split_whitespace()).output().unwrap();
    assert!(printed.status.success(), "{}", stderr(&printed));
    assert!(record(&dir, &["--duration", "10ms"]).status.success());
}

#[test]
fn a_line_that_is_too_long_is_not_lost_to_a_full_ring() {
    let (_above, dir) = place();
    let mut command = command(&[STEADY], &dir, &["--input", "-", "--size", "4", "--json"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"long line\nok\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let says = "steady: 1 records are longer than their topic allows";
    assert!(stderr(&output).contains(says), "{}", stderr(&output));
    let result: Value = valid_json(&output, "recording-1.schema.json");
    assert_eq!(result["caller"]["too_long_records"], 1);
}

#[test]
fn an_export_that_cannot_be_written_names_its_file_and_the_cause() {
    let (above, dir) = place();
    assert!(record(&dir, &["--duration", "50ms"]).status.success());
    let out = above.path().join("export.mcap");
    let mut command = Command::new("prlimit");
    command.args(["--fsize=4096", "env", "--ignore-signal=XFSZ", STEADY, "export"]);
    let output = command.arg(&dir).args(["--compression=none", "-o"]).arg(&out).output().unwrap();
    let says = "cannot write: File too large (os error 27)\n";
    assert_eq!(stderr(&output), format!("steady: --output {}: {says}", out.display()));
    assert!(!out.exists());
}

#[test]
fn a_fifo_that_nobody_opens_is_told() {
    let (above, dir) = place();
    let fifo = above.path().join("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::from(0o600), 0).unwrap();
    let input = fifo.display().to_string();
    let mut child = command(&[STEADY], &dir, &["--input", &input]).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let says = format!("steady: nothing has come through {input} yet: is a program writing to it?");
    assert!(lines.into_iter().any(|line| line == says));
    fs::write(&fifo, "late\n").unwrap();
    assert!(child.wait().unwrap().success());
}
