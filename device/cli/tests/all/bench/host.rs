// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady bench` with a `[host]`: threads on a real block device (a loop device of this machine).

use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::common::{DISK_MIB, loop_device, stderr, valid_record};

const WORKLOAD: &str = r#"
schema = "steadyio.workload/1"
name = "threads"
seed = 7
settle_ms = 1
length = { ios = 60 }

[host]
cores = 2
pre_at_once = 1
pre_us = 2000
post_us = 1000

[[job]]
name = "rt"
class = "rt"
op = "randwrite"
bs_kib = 64
threads = 4

[[variant]]
name = "none"
knobs = { scheduler = "none" }
"#;

fn measured(set: &[&str]) -> Option<Value> {
    let disk = loop_device()?;
    let mut command = disk.bench(WORKLOAD);
    command.args(set.iter().map(|set| format!("--set={set}"))).arg("--json");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    Some(valid_record(&output))
}

#[test]
fn every_io_is_counted_once_and_costs_what_the_host_says() {
    let Some(record) = measured(&[]) else { return };
    assert_eq!(record["tool"].get("fio"), None, "fio measured nothing");
    let result = &record["results"][0];
    let rt = &result["classes"]["rt"];
    assert_eq!(
        (&rt["count"], &rt["errors"], &rt["op"]),
        (&json!(60), &json!(0), &json!("randwrite"))
    );
    assert_eq!(rt["bytes"], 60 * 64 * 1024);
    // A sleep may take longer than asked for, never less.
    assert!(rt["latency_ns"]["min"].as_u64().unwrap() >= 3_000_000, "{rt}");
    let duration_ns = result["duration_ns"].as_u64().unwrap();
    assert!(duration_ns >= 60 * 2_000_000, "{duration_ns} ns: request-pre is one at a time");
}

#[test]
fn threads_share_the_ios_of_the_job() {
    let Some(disk) = loop_device() else { return };
    let whole = WORKLOAD
        .replace("ios = 60", &format!("ios = {}", DISK_MIB * 16))
        .replace("2000", "0")
        .replace("post_us = 1000", "post_us = 0")
        .replace("randwrite", "write");
    let output = disk.bench(&whole).arg("--json").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(valid_record(&output)["results"][0]["classes"]["rt"]["count"], DISK_MIB * 16);
    let written = fs::read(&disk.backing).unwrap();
    let first = &written[..65_536];
    assert!(first.iter().any(|&byte| byte != 0));
    let missing = written.chunks(65_536).position(|block| block != first);
    assert_eq!(missing, None, "a block of this number was not written");
}

#[test]
fn cores_limit_request_pre_and_post_together() {
    let Some(record) = measured(&["host.pre_at_once=2", "rt.threads=16"]) else { return };
    let duration_ns = record["results"][0]["duration_ns"].as_u64().unwrap();
    assert!(duration_ns >= 60 * 3_000_000 / 2, "{duration_ns} ns: two cores have more work");
}

#[test]
fn ctrl_c_ends_the_threads_and_puts_the_knobs_back() {
    let Some(disk) = loop_device() else { return };
    disk.set_knob("scheduler", "bfq");
    let long = WORKLOAD.replace("ios = 60", "ios = 1000000");
    let out = disk.dir.path().join("record.json");
    let mut command = disk.bench(&long);
    let steady = command.arg("--out").arg(&out).stderr(Stdio::piped()).spawn().unwrap();
    let tasks = format!("/proc/{}/task", steady.id());
    let deadline = Instant::now() + Duration::from_secs(60);
    while fs::read_dir(&tasks).map_or(0, Iterator::count) < 5 {
        assert!(Instant::now() < deadline, "the threads did not start");
        thread::sleep(Duration::from_millis(10));
    }
    kill_process(Pid::from_raw(i32::try_from(steady.id()).unwrap()).unwrap(), Signal::INT).unwrap();
    let output = steady.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(disk.knob("scheduler").contains("[bfq]"), "{}", disk.knob("scheduler"));
    assert!(!out.exists(), "an interrupted run left a record");
}
