// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady trace` of operations that io_uring hands to its worker threads.

use std::path::Path;
use std::process::Command;

use steadyio_testing::skip;

use crate::common::{loop_device, stderr, valid_json};

#[test]
fn what_workers_of_io_uring_read_is_the_programs_io() {
    let Some(disk) = loop_device() else { return };
    if !Path::new("/sys/kernel/tracing/events/io_uring").is_dir() {
        return skip("no events of io_uring in /sys/kernel/tracing");
    }
    let load = format!(
        "fio --name=load --filename={} --rw=randread --bs=4k --direct=1 --size=32M --number_ios=100 \
         --output=/dev/null --ioengine=io_uring --iodepth=1 --force_async=1",
        disk.node
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
    command.args(["trace", "--device", &disk.node, "--json", "--worst", "100", "--"]);
    let output = command.args(load.split_whitespace()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let record = valid_json(&output, "steady-trace-record-1.schema.json");
    assert_eq!(
        (&record["ios"][0]["op"], &record["ios"][0]["count"]),
        (&"read".into(), &100.into())
    );
    assert_eq!(record["account"]["ios_incomplete"], 0, "{record:#}");
    for io in record["worst_ios"].as_array().unwrap() {
        let thread = io["comm"].as_str().unwrap();
        assert!(!thread.starts_with("iou-wrk"), "of the thread that submitted it: {io:#}");
    }
}
