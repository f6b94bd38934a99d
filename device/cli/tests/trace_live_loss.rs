// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady trace` of this kernel when the kernel loses events. Alone in its program: its load would
//! be in every other trace that runs at the same time.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

#[allow(dead_code, reason = "a part of it is needed here")]
#[path = "all/common/mod.rs"]
mod common;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;

use common::tracing::{SCHEMA, groups, instances_of, send, start, traced_loop, until};
use common::{stderr, valid_json};

/// How many records the kernel has lost for a trace.
fn records_lost(instance: &Path) -> u64 {
    let cpus = fs::read_dir(instance.join("per_cpu")).unwrap();
    let stats = cpus.map(|cpu| fs::read_to_string(cpu.unwrap().path().join("stats")).unwrap());
    let overrun = |text: String| {
        let line = text.lines().find_map(|line| line.strip_prefix("overrun: ")).map(str::to_string);
        line.unwrap().trim().parse::<u64>().unwrap()
    };
    stats.map(overrun).sum()
}

/// Stops a trace until the kernel has lost events, and lets it go on.
fn starve(child: &Child) {
    send(child, Signal::STOP);
    // Each byte is four events of system calls.
    let mut load = Command::new("dd");
    load.args(["if=/dev/zero", "of=/dev/null", "bs=1", "status=none"]);
    let mut load = load.spawn().unwrap();
    let instance = instances_of(child.id()).pop().unwrap();
    until("the kernel loses events", || records_lost(&instance) > 0);
    load.kill().unwrap();
    load.wait().unwrap();
    send(child, Signal::CONT);
}

#[test]
fn events_that_the_kernel_lost_are_told_and_what_came_after_them_is_shown() {
    let Some(disk) = traced_loop() else { return };
    let child = start(&["--device", &disk.node, "--json"]);
    starve(&child);
    let mut dd = Command::new("dd");
    dd.args([&format!("if={}", disk.node), "of=/dev/null", "bs=64k", "count=3", "iflag=direct"]);
    assert!(dd.stderr(Stdio::null()).status().unwrap().success());
    send(&child, Signal::INT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let record = valid_json(&output, SCHEMA);
    assert!(record["account"]["events_lost"].as_u64().unwrap() > 0, "{record:#}");
    assert!(groups(&record).contains(&("read 65536".to_string(), 3)), "{record:#}");
}
