// SPDX-License-Identifier: MIT OR Apache-2.0
//! The exit status tells of a change even if standard output is full.

use std::fs::{self, File, OpenOptions};
use std::path::Path;
use std::process::{Command, Output};

use crate::common::stderr;

fn full() -> File {
    OpenOptions::new().write(true).open("/dev/full").unwrap()
}

fn steady(dir: &Path, line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
    command.args(line.split_whitespace()).current_dir(dir).stdout(full()).output().unwrap()
}

#[track_caller]
fn done(dir: &Path, line: &str, says: &str) {
    let output = steady(dir, line);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{line}: {said}");
    assert!(said.contains("standard output: No space left on device"), "{line}: {said}");
    assert!(said.contains("this was done:\n") && said.contains(says), "{line}: {said}");
}

#[test]
fn a_change_of_a_store_is_reported_on_standard_error() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::write(dir.join("file"), [7; 5_000]).unwrap();
    done(dir, "store create s --size 8M --align 64K", "s: a store for 1000 extents");
    done(dir, "store put s 1 file", "extent 1: 5000 bytes");
    done(dir, "store put s 2 file --json", "\"id\": 2");
    done(dir, "store get s 1 copy", "extent 1: 5000 bytes");
    assert_eq!(fs::read(dir.join("copy")).unwrap(), [7; 5_000]);
    done(dir, "store delete s 2", "deleted: 2");
    let mut image = fs::read(dir.join("s")).unwrap();
    image[..512].fill(0);
    fs::write(dir.join("s"), image).unwrap();
    done(dir, "store repair s", "the damaged one was written again");
    // What only prints fails.
    for line in ["store list s", "store check s", "store repair s", "store get s 1 -"] {
        assert_eq!(steady(dir, line).status.code(), Some(1), "{line}");
    }
}

#[test]
fn a_recording_ends_with_its_own_status() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let pool = "--dir r --no-lock --segments 2 --segment-size 1M --unit 64K --size 1K";
    done(dir, &format!("record --prepare {pool}"), "segments");
    done(dir, &format!("record --total 100K --period 0 {pool}"), "durable");
    done(dir, "recover r", "segment-00000.mcap");
    assert_eq!(steady(dir, "recover --dry-run r").status.code(), Some(1));
}

#[test]
fn a_file_is_written_although_the_tables_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace/tests/traces");
    let sample = sample.join("host-trace.txt");
    let line = format!("trace {} --spans spans.json --csv ios.csv", sample.display());
    let output = steady(dir.path(), &line);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("standard output: "), "{}", stderr(&output));
    for file in ["spans.json", "ios.csv"] {
        assert!(fs::metadata(dir.path().join(file)).unwrap().len() > 0, "{file}");
    }
}
