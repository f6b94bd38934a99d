// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady trace` of this kernel, and a load to trace.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use steadyio_testing::skip;

use super::{Loop, loop_device};

pub const SCHEMA: &str = "steady-trace-record-1.schema.json";
const INSTANCES: &str = "/sys/kernel/tracing/instances";
/// Long enough for anything here on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A loop device, or None with the reason printed if this machine cannot have one or not be traced.
pub fn traced_loop() -> Option<Loop> {
    let disk = loop_device()?;
    if !Path::new(INSTANCES).is_dir() {
        skip(&format!("no tracefs at {INSTANCES}"));
        return None;
    }
    Some(disk)
}

pub fn trace(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
    command.arg("trace").args(arguments);
    command
}

pub fn output(arguments: &[&str]) -> Output {
    trace(arguments).output().unwrap()
}

/// A load that makes as many I/Os of 4 KiB, one after the other.
pub fn fio(disk: &Loop, ios: u64) -> Vec<String> {
    let words = format!(
        "fio --name=load --filename={} --rw=randread --bs=4k --direct=1 --size=32M \
         --number_ios={ios} --output=/dev/null",
        disk.node
    );
    words.split_whitespace().map(String::from).collect()
}

/// Folders of the trace instances of a process.
pub fn instances_of(pid: u32) -> Vec<PathBuf> {
    let folders = fs::read_dir(INSTANCES).unwrap().map(|entry| entry.unwrap().path());
    let prefix = format!("{INSTANCES}/steady-{pid}-");
    folders.filter(|folder| folder.to_string_lossy().starts_with(&prefix)).collect()
}

pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Starts a trace and waits until it is under way.
pub fn start(arguments: &[&str]) -> Child {
    let mut command = trace(arguments);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A new instance traces for a moment before its filters are set.
    let traces = |instance: &PathBuf| {
        let is_on = |file: &str| {
            let text = fs::read_to_string(instance.join(file));
            text.is_ok_and(|text| text.trim() == "1")
        };
        is_on("events/block/block_rq_issue/enable") && is_on("tracing_on")
    };
    until("tracing is on", || instances_of(child.id()).iter().any(traces));
    child
}

/// A signal for this process only.
pub fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

pub fn groups(record: &Value) -> Vec<(String, u64)> {
    let of = |group: &Value| {
        let size = group["size_bytes_max"].as_u64().unwrap();
        (format!("{} {size}", group["op"].as_str().unwrap()), group["count"].as_u64().unwrap())
    };
    record["ios"].as_array().unwrap().iter().map(of).collect()
}

pub fn run(program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).status().unwrap();
    assert!(status.success(), "{program} {arguments:?}");
}

/// Makes a file system, and mounts it at `mnt` in the directory of the disk's file.
pub fn mounted_ext4(disk: &Loop) -> String {
    let mount = disk.dir.path().join("mnt");
    fs::create_dir(&mount).unwrap();
    let mount = mount.to_str().unwrap().to_string();
    run("mkfs.ext4", &["-q", &disk.node]);
    run("mount", &[&disk.node, &mount]);
    mount
}
