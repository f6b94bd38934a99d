// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady direct` on a loop device: copies in and out, refusals, and what a bench prints. The character
//! device is tested in the guest.

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;

use crate::common::loop_device;

fn direct(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_steady")).arg("direct").args(arguments).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn what_is_copied_in_comes_out_at_its_place() {
    let Some(disk) = loop_device() else { return };
    let (node, name) = (disk.node.as_str(), disk.name());
    let path = |file: &str| disk.dir.path().join(file).to_str().unwrap().to_string();
    let (from, to) = (path("from"), path("to"));
    // More than one chunk of 4 MiB, and no multiple of one.
    let data: Vec<u8> = (0..(5 << 20) + 4096).map(|at: u32| (at / 7 % 251) as u8).collect();
    fs::write(&from, &data).unwrap();
    let written = direct(&["write", node, &from, "--offset=1M"]);
    assert!(written.status.success(), "{}", said(&written));
    assert!(said(&written).contains("5246976 bytes in"), "{}", said(&written));
    let read = direct(&["read", node, &to, "--offset=1M", "--bytes=5246976"]);
    assert!(read.status.success(), "{}", said(&read));
    assert!(fs::read(&to).unwrap() == data, "the copy differs");
    let piped = direct(&["read", node, "-", "--offset=1048576", "--bytes=8K"]);
    assert!(piped.stdout == data[..8192]);
    assert!(fs::read(&disk.backing).unwrap()[..1 << 20].iter().all(|&byte| byte == 0));
    let info = direct(&["info", node, "--json"]);
    let info: Value = serde_json::from_slice(&info.stdout).unwrap();
    assert_eq!(info["block"]["name"], name);
}

#[test]
fn what_would_be_lost_or_is_outside_is_refused_and_nothing_is_touched() {
    let Some(disk) = loop_device() else { return };
    let (node, name) = (disk.node.as_str(), disk.name());
    let file = disk.dir.path().join("file").to_str().unwrap().to_string();
    fs::write(&file, [1; 8192]).unwrap();
    let refused = |arguments: &[&str], says: &str| {
        let output = direct(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", said(&output));
        assert!(said(&output).contains(says), "{arguments:?}: {says} is not in: {}", said(&output));
    };
    refused(&["write", node, &file, "--offset=100"], "--offset 100: must be a multiple");
    refused(&["write", node, &file, "--offset=1G"], "ends at 67108864");
    refused(&["read", node, &file, "--bytes=1000"], "--bytes 1000: must be a multiple");
    refused(&["read", "/dev/null", &file], "not a chario card");
    refused(&["bench", node, "--size=100"], "--size 100: must be a multiple");
    refused(&["bench", node, "--size=0"], "--size 0");
    refused(&["bind", "/dev/none"], "none");
    assert!(fs::read(&disk.backing).unwrap().iter().all(|&byte| byte == 0));
    assert_eq!(fs::read(&file).unwrap(), [1; 8192], "a failed read leaves the file as it was");
    let formatted = Command::new("mkfs.ext4").args(["-q", node]).status().unwrap();
    assert!(formatted.success());
    refused(&["write", node, &file], &format!("--destroy-data {name}"));
    let allowed = direct(&["write", node, &file, "--destroy-data", name]);
    assert!(allowed.status.success(), "{}", said(&allowed));
}

#[test]
fn both_ways_are_measured_and_counted() {
    let Some(disk) = loop_device() else { return };
    let output = direct(&["bench", &disk.node, "--count=50", "--size=64K", "--json"]);
    if said(&output).contains("io_uring, fixed buffer") {
        steadyio_testing::skip(
            "io_uring is not allowed on this machine, or less than 64 KiB locked",
        );
        return;
    }
    assert!(output.status.success(), "{}", said(&output));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let results = document["results"].as_array().unwrap();
    let ways: Vec<_> = results.iter().map(|one| one["way"].as_str().unwrap()).collect();
    assert_eq!(ways, ["O_DIRECT", "io_uring, fixed buffer"]);
    for result in results {
        assert_eq!(result["count"], 50);
        assert!(result["latency_ns"]["max"].as_u64() >= result["latency_ns"]["p50"].as_u64());
    }
}

#[test]
fn regions_are_refused_as_they_are_written() {
    for region in ["1M", "1M+", "+4K", "1M+64Mrw", "1x+2", "-1+2"] {
        let output = direct(&["bind", "mmc0:0001", &format!("--region={region}")]);
        assert_eq!(output.status.code(), Some(2));
        assert!(said(&output).contains("START+LENGTH"), "{region}: {}", said(&output));
    }
}

#[test]
fn a_read_replaces_no_device_and_follows_a_link() {
    let Some(disk) = loop_device() else { return };
    let at = |name: &str| disk.dir.path().join(name);
    let (file, link) = (at("file"), at("link"));
    fs::write(&file, "before").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let read = direct(&["read", &disk.node, link.to_str().unwrap(), "--bytes=4K"]);
    assert!(read.status.success(), "{}", said(&read));
    assert!(link.is_symlink() && fs::read(&file).unwrap() == [0; 4096]);
    let fifo = at("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let reader = std::thread::spawn({
        let fifo = fifo.clone();
        move || fs::read(fifo).unwrap()
    });
    let read = direct(&["read", &disk.node, fifo.to_str().unwrap(), "--bytes=4K"]);
    assert!(read.status.success(), "{}", said(&read));
    assert_eq!(reader.join().unwrap(), [0; 4096]);
    let read = direct(&["read", &disk.node, &disk.node, "--bytes=4K"]);
    assert_eq!(read.status.code(), Some(2), "{}", said(&read));
    assert!(said(&read).contains("is a block device"), "{}", said(&read));
}

#[test]
fn the_side_that_failed_is_named() {
    let Some(disk) = loop_device() else { return };
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut steady = Command::new(env!("CARGO_BIN_EXE_steady"));
    let read = steady.args(["direct", "read", &disk.node, "-", "--bytes=4K"]).stdout(full());
    let read = read.output().unwrap();
    assert_eq!(read.status.code(), Some(1), "{}", said(&read));
    assert!(said(&read).contains("steady: standard output: No space left"), "{}", said(&read));
    // More than is buffered.
    let read = direct(&["read", &disk.node, "/dev/full", "--bytes=1M"]);
    assert_eq!(read.status.code(), Some(1), "{}", said(&read));
    assert!(said(&read).contains("steady: /dev/full: No space left"), "{}", said(&read));
}

#[test]
fn a_pipe_is_no_input_of_a_write_and_is_not_waited_for() {
    let Some(disk) = loop_device() else { return };
    let fifo = disk.dir.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut steady = Command::new("timeout");
    steady.arg("20").arg(env!("CARGO_BIN_EXE_steady")).args(["direct", "write", &disk.node]);
    let written = steady.arg(&fifo).output().unwrap();
    assert_eq!(written.status.code(), Some(2), "{}", said(&written));
    assert!(said(&written).contains("fifo: must be a regular file"), "{}", said(&written));
}

#[test]
fn a_part_of_no_bytes_is_not_measured() {
    let Some(disk) = loop_device() else { return };
    for (option, start) in [("--bytes=0", 0), ("--offset=64M", 64 << 20)] {
        let output = direct(&["bench", &disk.node, option]);
        let says = format!("--offset {start}, 0 bytes: there is nothing to measure");
        assert_eq!(output.status.code(), Some(2), "{option}: {}", said(&output));
        assert!(said(&output).contains(&says), "{option}: {}", said(&output));
    }
}

#[test]
fn every_seed_is_one() {
    let Some(disk) = loop_device() else { return };
    let seed = "--seed=18446744073709551615";
    let output = direct(&["bench", &disk.node, "--count=5", "--background=2", seed]);
    if said(&output).contains("io_uring, fixed buffer") {
        steadyio_testing::skip("io_uring is not allowed on this machine, or 4 KiB locked");
        return;
    }
    assert!(output.status.success(), "{}", said(&output));
    assert!(!said(&output).contains("panicked"), "{}", said(&output));
}
