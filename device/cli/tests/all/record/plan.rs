// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady record --plan`.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

fn command(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
    command.args(["record", "--no-lock", "--dir"]).arg(dir).args(arguments);
    command
}

fn plan(dir: &Path, arguments: &[&str]) -> Output {
    command(dir, arguments).output().unwrap()
}

fn json(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_known_stall_needs_no_device() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("not-there");
    let output = plan(&dir, &["--plan", "--worst-stall-ms", "200"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("--ring 1396736  holds the 85 records"), "{text}");
    assert!(text.contains("--loss-window 840ms"), "{text}");
    assert!(!dir.exists());
}

#[test]
fn a_rate_that_the_device_does_not_reach_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    // Which no device does, nor the copying.
    let rate = ["--size", "64K", "--period", "1us", "--loss-window", "8ms", "--ring", "300M"];
    let output = plan(dir.path(), &[&["--plan", "--duration", "100ms"], &rate[..]].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("--size and --period make 62500.000 MiB/s"), "{said}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "what was measured with is gone");
}

#[test]
fn a_measured_stall_is_the_same_here_and_from_the_result_of_a_recording() {
    let dir = tempfile::tempdir().unwrap();
    let small = ["--size", "4K", "--period", "1ms", "--unit", "64K", "--segments", "2"];
    let measured =
        plan(dir.path(), &[&["--plan", "--json", "--duration", "1s"], &small[..]].concat());
    let measured = json(&measured);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "what was measured with is gone");
    let stall_ns = measured["worst_stall_ns"].as_u64().unwrap();
    assert_eq!(measured["rate_bytes_s"], 4_096_000);
    assert!(measured["payload_bytes_s_max"].as_u64().unwrap() > 4_096_000);
    assert_eq!(measured["planned_stall_ns"].as_u64().unwrap(), 2 * stall_ns);
    assert!(stall_ns > 0);

    let result = dir.path().join("result.json");
    let file = result.to_str().unwrap();
    let recording = dir.path().join("recording");
    let size = ["--segment-size", "1M", "--total", "3M", "--out", file];
    assert_eq!(plan(&recording, &[&small[..], &size].concat()).status.code(), Some(0));
    let known =
        json(&plan(&recording, &[&["--plan", "--json", "--measured", file], &small[..]].concat()));
    let recorded: Value = serde_json::from_str(&fs::read_to_string(&result).unwrap()).unwrap();
    let pool = &recorded["pool"];
    // At this rate a look finds more than half a unit, so the next one is not a whole pause away.
    let gap_ns = pool["poll_gap_ns_max"].as_u64().unwrap();
    let of = |what: &str| pool[what]["latency_ns"]["max"].as_u64().unwrap();
    assert_eq!(known["worst_stall_ns"], gap_ns.max(of("writes")).max(of("syncs")));
}

#[test]
fn a_file_that_is_no_result_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("other.json");
    fs::write(&file, "{}").unwrap();
    let output = plan(dir.path(), &["--plan", "--measured", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("other.json: /ledger/total"), "{said}");
}

#[test]
fn a_signal_ends_the_measurement_and_nothing_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = command(dir.path(), &["--plan"]);
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !dir.path().join("steady-plan").exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        thread::sleep(Duration::from_millis(5));
    }
    kill_process(Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("stopped before the device was measured"), "{said}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "what was measured with is gone");
}
