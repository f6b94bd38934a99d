// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady record` for an ordinary user, who may lock 8 MiB of memory and no more.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rustix::process::geteuid;
use serde_json::Value;
use steadyio_testing::recording::messages;

use crate::common::{stderr, valid_json};

const SCHEMA: &str = "recording-1.schema.json";
const MAY_LOCK: u64 = 8 << 20;

/// With all options at their defaults, but for those of the pool.
fn record(dir: &Path, arguments: &[&str], input: &[u8]) -> Output {
    let mut command = Command::new("prlimit");
    command.arg(format!("--memlock={MAY_LOCK}"));
    // What root may lock has no limit.
    if geteuid().is_root() {
        command.args(["setpriv", "--bounding-set=-ipc_lock"]);
    }
    command.args([env!("CARGO_BIN_EXE_steady"), "record", "--segments", "2"]);
    command.args(["--segment-size", "4M", "--dir"]).arg(dir).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn config(output: &Output, key: &str) -> Value {
    let result: Value = valid_json(output, SCHEMA);
    result["config"][key].clone()
}

/// Of a recording that ended well, and said that the ring is smaller than it `wanted` to be.
fn ring_that_fits(output: &Output, wanted: u64) -> u64 {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    let ring = config(output, "ring_bytes").as_u64().unwrap();
    let said = format!("--ring {ring}, not {wanted}: no more memory may be locked (ulimit -l");
    assert!(stderr(output).contains(&said), "{}", stderr(output));
    ring
}

#[test]
fn an_ordinary_user_records_with_the_defaults() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("recording");
    let output = record(&dir, &["--json", "--duration", "100ms"], b"");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let locked = ["memory_locked", "process_locked"].map(|key| config(&output, key));
    assert_eq!(locked, [true, false]);
    let said = "rings and blocks are locked into memory, but not the rest of the process";
    assert!(stderr(&output).contains(said), "{}", stderr(&output));
    assert_eq!(messages(&dir).len(), 20);
}

#[test]
fn the_ring_of_an_ordinary_users_stream_is_as_large_as_may_be_locked() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("recording");
    let output = record(&dir, &["--json", "--input", "-"], b"a\nb\n");
    let ring = ring_that_fits(&output, 32 << 20);
    assert!((3 << 20..4 << 20).contains(&ring), "{ring}");
    assert_eq!(messages(&dir).len(), 2);
}

#[test]
fn the_ring_of_a_fast_source_is_as_large_as_may_be_locked() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("recording");
    let output = record(&dir, &["--json", "--period", "1ms", "--duration", "50ms"], b"");
    // A second of records, with their headers.
    let ring = ring_that_fits(&output, 16_412_672);
    assert!((3 << 20..4 << 20).contains(&ring), "{ring}");
}

#[test]
fn what_may_not_be_locked_is_told_with_what_to_type_before_anything_is_made() {
    let says = [
        "cannot lock 12587008 bytes of memory: only 8388608 may be locked",
        "'ulimit -l 12292' as root, or LimitMEMLOCK=",
        "(--no-lock)",
    ];
    for source in [&["--duration", "50ms"][..], &["--input", "-"]] {
        let arguments = [source, &["--ring", "8M"]].concat();
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("recording");
        let output = record(&dir, &arguments, b"");
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        for part in says {
            assert!(stderr(&output).contains(part), "{part}: {}", stderr(&output));
        }
        assert!(!dir.exists());
        let output = record(&dir, &[&arguments[..], &["--no-lock"]].concat(), b"a\n");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
}

#[test]
fn a_memory_that_may_not_be_locked_is_told_with_both_sizes() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("recording");
    let output = record(&dir, &["--duration", "50ms", "--ram", "16M"], b"");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let said = stderr(&output);
    let needed = said.strip_prefix("steady: cannot lock ").and_then(|said| said.split(' ').next());
    assert!(needed.unwrap().parse::<u64>().unwrap() > 16 << 20, "{said}");
    assert!(said.contains(" bytes of memory: only 8388608 may be locked"), "{said}");
    assert!(!dir.exists());
    let output = record(&dir, &["--duration", "50ms", "--ram", "1M", "--json"], b"");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(config(&output, "ram_bytes"), 1 << 20);
    assert!(messages(&dir).is_empty(), "no incident asked for any");
}

#[test]
fn a_pool_is_prepared_whatever_may_be_locked() {
    let dir = tempfile::tempdir().unwrap();
    let output = record(dir.path(), &["--prepare", "--ring", "8M"], b"");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}
