// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady trace --sched`: the thread that had the CPU that an I/O's thread waited for. Alone in
//! its program: it takes a CPU from all other programs.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

#[allow(dead_code, reason = "a part of it is needed here")]
#[path = "all/common/mod.rs"]
mod common;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use steadyio_testing::skip;

use common::{Loop, loop_device, stderr, valid_json};

const SCHEMA: &str = "steady-trace-record-1.schema.json";
/// Of the busy task's time: so that others have the CPU too, and the kernel does not throttle it.
const BUSY: Duration = Duration::from_millis(6);
const REST: Duration = Duration::from_millis(4);

/// A loop device, or None with the reason printed if this machine cannot have one or not be traced.
fn traced_loop() -> Option<Loop> {
    let disk = loop_device()?;
    if !Path::new("/sys/kernel/tracing/events/sched/sched_switch").is_dir() {
        skip("no events of the scheduler in /sys/kernel/tracing");
        return None;
    }
    // Blocks that were never written would be read in no time, between two bursts of the busy task.
    let mut fill = Command::new("dd");
    fill.args(["if=/dev/zero", "bs=1M", "count=16", "oflag=direct", "status=none"]);
    assert!(fill.arg(format!("of={}", disk.node)).status().unwrap().success());
    Some(disk)
}

/// The highest CPU that this process may use.
fn last_cpu() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    list.trim().rsplit([',', '-']).next().unwrap().to_string()
}

/// A process that ends with the test.
struct BusyTask(Child);

impl Drop for BusyTask {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl BusyTask {
    /// Busy on that CPU at a real-time priority, with rests; None with the reason if that is not allowed.
    fn start(cpu: &str, priority: &str) -> Option<BusyTask> {
        let mut busy = Command::new("chrt");
        busy.args(["--fifo", priority, "taskset", "--cpu-list", cpu]);
        busy.arg(std::env::current_exe().unwrap());
        busy.args(["--ignored", "--exact", "busy_until_killed"]).stdout(Stdio::null());
        let mut busy = BusyTask(busy.spawn().unwrap());
        loop {
            if let Some(status) = busy.0.try_wait().unwrap() {
                skip(&format!("no real-time thread may be started ({status})"));
                return None;
            }
            // Its own, and that of the test that is busy.
            if busy.threads().len() > 1 {
                return Some(busy);
            }
            sleep(Duration::from_millis(10));
        }
    }

    fn threads(&self) -> Vec<u64> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.0.id())).unwrap();
        tasks.map(|task| task.unwrap().file_name().to_string_lossy().parse().unwrap()).collect()
    }
}

/// Not a test: what `BusyTask::start` runs.
#[test]
#[ignore = "run by another test only"]
fn busy_until_killed() {
    let end = Instant::now() + Duration::from_secs(60);
    while Instant::now() < end {
        let rest = Instant::now() + BUSY;
        while Instant::now() < rest {
            std::hint::spin_loop();
        }
        sleep(REST);
    }
}

/// Reads blocks past the page cache, with `before` before the reader's command.
fn trace_reads(options: &[&str], disk: &Loop, before: &[&str]) -> Output {
    let mut steady = Command::new(env!("CARGO_BIN_EXE_steady"));
    steady.args(["trace", "--device", &disk.node, "--worst", "200"]).args(options).arg("--");
    steady.args(before).args(["dd", "of=/dev/null", "bs=4k", "count=4096", "iflag=direct"]);
    steady.args(["status=none", &format!("if={}", disk.node)]);
    steady.output().unwrap()
}

fn causes(record: &Value) -> Vec<(&Value, &Value)> {
    let ios = record["worst_ios"].as_array().unwrap();
    ios.iter()
        .flat_map(|io| io["causes"].as_array().unwrap().iter().map(move |cause| (io, cause)))
        .collect()
}

#[test]
fn the_thread_that_had_the_cpu_is_named_and_accounts_for_the_most_of_the_span() {
    let Some(disk) = traced_loop() else { return };
    let cpu = last_cpu();
    let Some(busy) = BusyTask::start(&cpu, "50") else { return };
    // A real-time priority, so that only a higher one keeps it waiting.
    let before = ["chrt", "--fifo", "10", "taskset", "--cpu-list", &cpu];
    let output = trace_reads(&["--sched", "--json"], &disk, &before);
    let threads = busy.threads();
    let record = valid_json(&output, SCHEMA);
    let of_busy = |(io, cause): &(&Value, &Value)| {
        let had = &cause["longest"]["had_cpu"];
        let span_ns =
            io["spans"][format!("{}_ns", cause["span"].as_str().unwrap_or("no"))].as_u64();
        threads.contains(&had["pid"].as_u64().unwrap_or(0))
            && (&had["class"], &had["priority"]) == (&"real_time".into(), &50.into())
            && cause["longest"]["cpu"].as_u64() == cpu.parse().ok()
            && had["ns"].as_u64().unwrap_or(0) * 2 > span_ns.unwrap()
    };
    let found = causes(&record);
    let waits = found.iter().filter(|(_, cause)| cause["waited_for"] == "cpu").count();
    assert!(
        found.iter().any(of_busy),
        "busy {threads:?} is none of {waits} waits: {}",
        stderr(&output)
    );
}

#[test]
fn a_kept_trace_tells_the_same_of_threads_when_it_is_read_again() {
    let Some(disk) = traced_loop() else { return };
    let kept = disk.dir.path().join("kept");
    let kept = kept.to_str().unwrap();
    let live = valid_json(&trace_reads(&["--sched", "--keep", kept, "--json"], &disk, &[]), SCHEMA);
    let mut again = Command::new(env!("CARGO_BIN_EXE_steady"));
    again.args(["trace", kept, "--worst", "200", "--json", "--device", disk.name()]);
    let again = valid_json(&again.output().unwrap(), SCHEMA);
    assert_eq!(again["worst_ios"], live["worst_ios"]);
    let missing = live["missing"].as_array().unwrap();
    assert!(!missing.iter().any(|missing| missing["event"] == "sched:sched_switch"), "{missing:?}");
}

#[test]
fn of_all_threads_switches_are_traced_only_if_asked_for_and_the_hint_says_what_would_tell() {
    let Some(disk) = traced_loop() else { return };
    let kept = disk.dir.path().join("kept");
    let output = trace_reads(&["--all", "--keep", kept.to_str().unwrap()], &disk, &[]);
    assert!(!kept.join("formats/sched").exists());
    let said = String::from_utf8_lossy(&output.stdout);
    let hint = "missing event sched:sched_switch: unknown what threads did in submission and post (--sched)";
    assert!(said.contains(hint), "{said}");
}
