// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady bound` as a user runs it. Its reference page must show its output.

use std::fs;
use std::process::{Command, Output};

use serde_json::{Value, json};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const CARD: &str = "experiments/devices/foresee-ncemad9d-usb.toml";
const ROBOT: &str = "docs/examples/robot.toml";

fn bound(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
    command.current_dir(ROOT).arg("bound").args(arguments).output().unwrap()
}

/// The robot's tasks with something replaced, on the card: what it ends with.
fn changed(from: &str, to: &str) -> (Option<i32>, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tasks.toml");
    let robot = fs::read_to_string(format!("{ROOT}/{ROBOT}")).unwrap();
    assert!(robot.contains(from));
    fs::write(&path, robot.replace(from, to)).unwrap();
    let output = bound(&[CARD, path.to_str().unwrap()]);
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

#[test]
fn the_reference_page_shows_what_its_command_prints() {
    let page = fs::read_to_string(format!("{ROOT}/docs/reference/steady-bound.md")).unwrap();
    let (_, block) = page.split_once("```\n$ steady bound ").unwrap();
    let (arguments, rest) = block.split_once('\n').unwrap();
    let (expected, _) = rest.split_once("```").unwrap();
    let output = bound(&arguments.split(' ').collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

#[test]
fn the_document_follows_its_schema() {
    let schema = fs::read_to_string(format!("{ROOT}/docs/spec/bound-1.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let output = bound(&[CARD, ROBOT, "--json"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(&document).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(document["holds"], Value::Bool(true));
}

#[test]
fn a_deadline_that_may_be_missed_ends_with_3() {
    let (status, said) = changed("level = 1", "level = 1\ndeadline_us = 7000");
    assert_eq!(status, Some(3));
    assert!(said.contains("1 of 3 tasks may miss the deadline"), "{said}");
    assert!(said.contains("log: level = 0 shortens it most, to 5.387 ms"), "{said}");
}

#[test]
fn a_card_that_is_too_slow_is_called_so_and_the_deadline_that_it_names_holds() {
    let dir = tempfile::tempdir().unwrap();
    let [card, tasks] = ["card.toml", "tasks.toml"].map(|name| dir.path().join(name));
    let text = "schema = \"steadyio.device/1\"\nname = \"slow\"\ncard = { capacity_mib = 256 }\n\
                read = { base_ns = 200_000, per_kib_ns = 23_000, jump_ns = 300_000 }\n\
                write = { base_ns = 1_000_000, per_kib_ns = 75_000, jump_ns = 16_400_000 }";
    fs::write(&card, text).unwrap();
    let bound_with = |deadline_us: u64, max_sectors_kb: u64| {
        let text = format!(
            "schema = \"steadyio.tasks/1\"\nname = \"logger\"\n\
             k2 = {{ inflight_max = 1, split_kib = 4, max_sectors_kb = {max_sectors_kb}, \
             nr_requests = 64 }}\n\
             task = [{{ name = \"log\", op = \"write\", kib = 512, level = 0, period_us = 1000000, \
             deadline_us = {deadline_us} }}, {{ name = \"map\", op = \"write\", kib = 512, level = 1, \
             period_us = 1000000 }}]"
        );
        fs::write(&tasks, text).unwrap();
        let output = bound(&[card.to_str().unwrap(), tasks.to_str().unwrap()]);
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (status, said) = bound_with(50_000, 512);
    assert_eq!(status, Some(3));
    assert!(!said.contains("shortens it most"), "{said}");
    let (_, enough) = said
        .split_once(
            "log: no knob is enough: the device is too slow for a deadline of 50.000 ms. It keeps one of ",
        )
        .unwrap();
    let us = |text: &str| text.split_once(" ms").unwrap().0.replace('.', "").parse().unwrap();
    assert_eq!(bound_with(us(enough), 512).0, Some(0), "{said}");
    let (_, with) = enough.split_once(", or one of ").unwrap();
    let (_, kib) = with.split_once("max_sectors_kb = ").unwrap();
    let kib = kib.split_once('\n').unwrap().0.parse().unwrap();
    assert_eq!(bound_with(us(with), kib).0, Some(0), "{said}");
}

#[test]
fn work_without_end_has_no_bound_and_ends_with_3() {
    let (status, said) = changed("period_us = 100000\njitter_us = 200", "period_us = 1000");
    assert_eq!(status, Some(3));
    assert!(said.contains("none: there may be more work than time for it"), "{said}");
}

#[test]
fn a_late_device_makes_each_bound_longer_by_at_least_that() {
    let late = bound(&[CARD, ROBOT, "--overrun", "50ms", "--json"]);
    let document: Value = serde_json::from_slice(&late.stdout).unwrap();
    for (task, late) in document["tasks"].as_array().unwrap().iter().zip(0..) {
        let usual_ns = task["job"]["bound_ns"].as_u64().unwrap();
        let late_ns = document["overrun"]["bound_ns"][late].as_u64().unwrap();
        assert!(late_ns >= usual_ns + 50_000_000, "{task}");
    }
    let said = String::from_utf8(bound(&[CARD, ROBOT, "--overrun=50ms"]).stdout).unwrap();
    assert!(said.contains("joints: 53.730 ms, if the device is late by 50.000 ms once"), "{said}");
}

/// A record as `steady trace --json` makes it, of one thread; `cpu` is its `cpu_per_io`.
fn trace(comm: &str, cpu: &Value, events_lost: u64) -> Value {
    json!({
        "schema": "steadyio.trace/1",
        "account": { "events_lost": events_lost },
        "threads": [{ "comm": comm, "cpu_per_io": cpu }],
    })
}

fn cpu(count: u64) -> Value {
    json!({ "count": count, "mean_ns": 2e4, "p50_ns": 9, "p99_ns": 9, "p999_ns": 9, "max_ns": 41_001 })
}

/// With tasks of which only `joints` states no `cpu_us`.
fn bound_with_trace(record: &Value, joints: &str) -> (Option<i32>, String) {
    let dir = tempfile::tempdir().unwrap();
    let paths = ["trace.json", "tasks.toml"].map(|name| dir.path().join(name));
    let robot = fs::read_to_string(format!("{ROOT}/{ROBOT}")).unwrap();
    let stated = |text: String, name: &str| {
        text.replace(&format!("name = \"{name}\""), &format!("name = \"{name}\"\ncpu_us = 5"))
    };
    let robot = ["log", "map"].into_iter().fold(robot, stated);
    let robot = robot.replace("name = \"joints\"", &format!("name = \"joints\"\n{joints}"));
    fs::write(&paths[0], record.to_string()).unwrap();
    fs::write(&paths[1], robot).unwrap();
    let [trace, tasks] = paths.each_ref().map(|path| path.to_str().unwrap());
    let output = bound(&[CARD, tasks, "--cpu-from", trace]);
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

#[test]
fn what_a_task_computes_is_the_largest_of_a_trace_and_the_output_says_what_it_rests_on() {
    for (comm, task) in [("joints", ""), ("ros_joints", "thread = \"ros_joints\"")] {
        let (status, said) = bound_with_trace(&trace(comm, &cpu(120), 0), task);
        assert_eq!(status, Some(0), "{said}");
        let says = format!(
            "joints: cpu 0.042 ms per I/O, the most in 120 I/Os (120 jobs) of thread {comm}\n"
        );
        assert!(said.contains(&says), "{said}");
        let row = said.lines().find(|line| line.starts_with("joints ")).unwrap();
        assert!(row.contains(" 0.042 ") && row.contains(" 3.772 "), "{said}");
        assert!(!said.contains("log: cpu"), "{said}");
    }
}

#[test]
fn a_trace_that_does_not_tell_what_a_task_computes_ends_with_2() {
    let good = trace("joints", &cpu(120), 0);
    let mut endless = cpu(120);
    endless["max_ns"] = u64::MAX.into();
    for (record, task, says) in [
        (&trace("other", &cpu(120), 0), "", "thread joints did no I/O in the trace, only other"),
        (&trace("joints", &cpu(99), 0), "", "task joints: 99 jobs of thread joints are too few"),
        (&trace("joints", &cpu(199), 0), "ios = 2", "task joints: 99 jobs of thread joints"),
        (&trace("joints", &Value::Null, 0), "", "CPU times of thread joints are unknown"),
        (&trace("joints", &cpu(120), 3), "", "3 events were lost"),
        (
            &trace("joints", &endless, 0),
            "",
            "max_ns = 18446744073709551615 of thread joints: must be",
        ),
        (&json!({ "schema": "x" }), "", "not a record of steady trace --json"),
        (&good, "cpu_us = 7", "every task of robot has cpu_us"),
        (&good, "cpu_us = 7\nthread = \"joints\"", "cpu_us = 7 and thread = \"joints\": only one"),
    ] {
        let (status, said) = bound_with_trace(record, task);
        assert_eq!(status, Some(2), "{said}");
        assert!(said.contains(says), "{said}");
    }
}

#[test]
fn a_thread_without_a_trace_is_refused() {
    let (status, said) = changed("level = 2", "level = 2\nthread = \"map\"");
    assert_eq!(status, Some(2));
    assert!(said.contains("task map: thread = \"map\": needs --cpu-from TRACE.json"), "{said}");
}

#[test]
fn a_file_that_cannot_be_used_ends_with_2_and_is_named() {
    let (status, said) = changed("level = 2", "level = 9");
    assert_eq!(status, Some(2));
    assert!(said.contains("tasks.toml") && said.contains("9 is out of range"), "{said}");
    let output = bound(&["/nonexistent", ROBOT]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_file_without_end_is_refused() {
    let output = Command::new(env!("CARGO_BIN_EXE_steady"))
        .args(["bound", "/dev/zero", "/dev/null"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("/dev/zero: is larger than 1048576 bytes"), "{said}");
}

/// A card that pauses for 7 s, and a task that writes 50 KiB each second.
#[test]
fn where_stalls_are_most_of_a_bound_a_buffer_helps_and_the_recorder_takes_it() {
    let dir = tempfile::tempdir().unwrap();
    let [card, tasks, file] =
        ["card.toml", "tasks.toml", "bound.json"].map(|name| dir.path().join(name));
    let text = "schema = \"steadyio.device/1\"\nname = \"slow\"\ncard = { capacity_mib = 256 }\n\
                read = { base_ns = 1, per_kib_ns = 1 }\n\
                write = { base_ns = 1, per_kib_ns = 1, pause_kib = 65536, pause_ns = 7_000_000_000 }";
    fs::write(&card, text).unwrap();
    let text = "schema = \"steadyio.tasks/1\"\nname = \"logger\"\n\
                k2 = { inflight_max = 1, split_kib = 4, max_sectors_kb = 512, nr_requests = 64 }\n\
                background = { op = \"read\", kib = 512 }\n\
                task = [{ name = \"log\", op = \"write\", kib = 50, level = 0, period_us = 1000000 }]";
    fs::write(&tasks, text).unwrap();
    let files = [card.to_str().unwrap(), tasks.to_str().unwrap()];
    let said = String::from_utf8(bound(&files).stdout).unwrap();
    assert!(said.contains("log: no knob helps: 100.0 % of it are stalls of the device"), "{said}");
    assert!(
        said.contains(
            "log: 351 KiB keep 50 KiB/s through the longest wait (steady record --ring 351KiB)"
        ),
        "{said}"
    );
    assert!(!said.contains("shortens it most"), "{said}");
    let output = bound(&[&files[..], &["--json"]].concat());
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let task = &document["tasks"][0];
    let wanted = (&json!(true), &json!(51_200), &json!(358_401), &Value::Null);
    let buffer = &task["buffer"];
    let found = (&task["mostly_stalls"], &buffer["bytes_s"], &buffer["bytes"], &task["helps_most"]);
    assert_eq!(found, wanted);
    fs::write(&file, &output.stdout).unwrap();
    let plan = ["record", "--plan", "--dir", "x", "--size", "50KiB", "--period", "1s", "--bound"];
    let output = Command::new(env!("CARGO_BIN_EXE_steady")).args(plan).arg(&file).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.starts_with("worst stall 7000.0 ms (the bound of task log)"), "{said}");
}

#[test]
fn a_file_that_has_no_bounds_is_no_plan() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("bound.json");
    for (text, part) in [
        ("{}", "must be the output of steady bound --json"),
        ("{\"tasks\": [{\"name\": \"a\", \"job\": null}]}", "task a has no bound"),
    ] {
        fs::write(&file, text).unwrap();
        let plan =
            ["record", "--plan", "--dir", "x", "--size", "4KiB", "--period", "1s", "--bound"];
        let output =
            Command::new(env!("CARGO_BIN_EXE_steady")).args(plan).arg(&file).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains(part), "{said}");
    }
}
