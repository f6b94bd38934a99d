// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady trace` on traces made elsewhere: samples of one load, traced with several tools at once.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

use serde_json::Value;

use crate::common::{stderr, valid_json};

const SCHEMA: &str = "steady-trace-record-1.schema.json";
const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../trace/tests/traces");

fn sample(name: &str) -> PathBuf {
    Path::new(SAMPLES).join(name)
}

fn trace(file: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
    command.arg("trace").arg(file).args(arguments).output().unwrap()
}

fn record(file: &Path, arguments: &[&str]) -> Value {
    valid_json(&trace(file, &[arguments, &["--json"]].concat()), SCHEMA)
}

/// How many I/Os all groups have.
fn ios(record: &Value) -> u64 {
    let groups = record["ios"].as_array().unwrap();
    groups.iter().map(|group| group["count"].as_u64().unwrap()).sum()
}

/// A thread with I/Os in the sample.
fn some_pid(record: &Value) -> String {
    record["worst_ios"][0]["pid"].to_string()
}

#[test]
fn standard_input_is_read_as_a_file_is() {
    let file = sample("host-report-t.txt");
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
    let mut child = command
        .args(["trace", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let text = fs::read(&file).unwrap();
    let writer = thread::spawn(move || input.write_all(&text).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(valid_json(&output, SCHEMA), record(&file, &[]));
}

#[test]
fn what_was_lost_is_said_first() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lossy");
    let whole = fs::read_to_string(sample("host-report-t.txt")).unwrap();
    let middle = whole.lines().count() / 2;
    let mut lines: Vec<&str> = whole.lines().collect();
    lines.insert(middle, "CPU:1 [LOST 12 EVENTS]");
    fs::write(&path, lines.join("\n")).unwrap();
    let said = |file: &Path| String::from_utf8(trace(file, &[]).stdout).unwrap();
    assert!(said(&path).starts_with("Incomplete: 12 events lost"), "{}", said(&path));
    assert!(!said(&sample("host-report-t.txt")).contains("Incomplete"));
}

#[test]
fn the_reference_page_shows_what_its_command_prints() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let page = fs::read_to_string(format!("{root}/docs/reference/steady-trace.md")).unwrap();
    let (_, example) = page.split_once("```\n$ steady trace ").expect("an example");
    let (arguments, rest) = example.split_once('\n').unwrap();
    let (expected, _) = rest.split_once("```").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
    command.current_dir(root).arg("trace").args(arguments.split(' '));
    let printed = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert_eq!(printed, expected, "of: steady trace {arguments}");
}

/// The whole load, by three tools at once: the kernel's own text, trace-cmd report, perf script.
const WHOLE: [&str; 3] = ["host-trace.txt", "host-report-t.txt", "host-perf-fields-ns.txt"];

#[test]
fn ftrace_trace_cmd_and_perf_tell_the_same_of_one_load() {
    let told = |name: &str| {
        let record = record(&sample(name), &[]);
        let account = &record["account"];
        assert_eq!(account["unread"]["count"], 0, "{name}: {account}");
        assert_eq!(account["unmatched"], 0, "{name}: {account}");
        assert!(ios(&record) >= 20, "{name}: {}", ios(&record));
        let of = |group: &Value| {
            let key = |key: &str| group[key].to_string();
            [key("op"), key("size_bytes_max"), key("count"), key("bytes")]
        };
        record["ios"].as_array().unwrap().iter().map(of).collect::<Vec<_>>()
    };
    let [ftrace, trace_cmd, perf] = WHOLE.map(told);
    assert_eq!(ftrace, trace_cmd);
    assert_eq!(ftrace, perf);
}

#[test]
fn a_format_can_be_said_and_a_wrong_one_is_refused() {
    let file = sample("host-trace.txt");
    assert_eq!(record(&file, &["--format", "ftrace"]), record(&file, &[]));
    let output = trace(&file, &["--format", "perf"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no event could be read: "), "{}", stderr(&output));
    assert!(output.stdout.is_empty());
}

#[test]
fn only_the_threads_asked_for_are_shown() {
    let file = sample("host-trace.txt");
    let all = record(&file, &[]);
    let one = record(&file, &["--pid", &some_pid(&all)]);
    assert_eq!(one["scope"]["processes"], "traced");
    assert!(0 < ios(&one) && ios(&one) < ios(&all));
    assert_eq!(ios(&one) + one["scope"]["ios_hidden"].as_u64().unwrap(), ios(&all));
    let nobody = trace(&file, &["--pid", "4194303"]);
    let text = String::from_utf8_lossy(&nobody.stdout).into_owned();
    assert!(
        text.starts_with("The trace has no I/O or request of the requested processes and device."),
        "{text}"
    );
    assert!(text.contains("hidden: "), "{text}");
}

#[test]
fn a_cgroup_that_a_trace_does_not_name_is_told() {
    let out = trace(&sample("host-report-t.txt"), &["--cgroup", "/app"]);
    assert!(stderr(&out).contains("--cgroup: the trace names no cgroups"), "{}", stderr(&out));
    let wrong = trace(&sample("host-report-t.txt"), &["--cgroup", "app"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("--cgroup app: must begin with /"), "{}", stderr(&wrong));
}

#[test]
fn only_the_device_asked_for_is_shown() {
    let file = sample("host-trace.txt");
    let all = record(&file, &[]);
    let device = all["ios"][0]["device"].as_str().unwrap();
    assert_eq!(ios(&record(&file, &["--device", device])), ios(&all));
    let absent = trace(&file, &["--device", "250:7"]);
    assert_eq!(absent.status.code(), Some(0));
    let hint = "--device 250:7: the trace has no request known to be of this device, only of";
    assert!(stderr(&absent).contains(&format!("{hint} {device}")), "{}", stderr(&absent));
    let named = trace(&file, &["--device", "mmcblk0"]);
    assert_eq!(named.status.code(), Some(2));
    assert!(stderr(&named).contains("must be MAJOR:MINOR"), "{}", stderr(&named));
}

#[test]
fn a_line_that_is_not_understood_is_told_and_the_rest_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let broken = dir.path().join("broken.txt");
    let text = fs::read_to_string(sample("host-trace.txt")).unwrap();
    let middle = text.lines().count() / 2;
    let lines = text.lines().enumerate();
    let cut = lines.map(|(number, line)| if number == middle { "what is this" } else { line });
    fs::write(&broken, cut.collect::<Vec<_>>().join("\n")).unwrap();
    let output = trace(&broken, &[]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains(&format!("not read: {}:{}: ", broken.display(), middle + 1)), "{said}");
    assert!(said.contains("I/Os of system calls"), "{said}");
}

#[test]
fn what_is_no_trace_is_refused_with_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let empty = dir.path().join("empty");
    fs::write(&empty, "").unwrap();
    for (file, says) in [
        (Path::new("../../README.md"), "README.md: not a known trace format"),
        (&empty, "empty: is empty"),
        (Path::new("no-such-file"), "no-such-file: cannot be opened: No such file"),
        (dir.path(), ": is a folder, but not one of `steady trace --keep`"),
    ] {
        let output = trace(file, &[]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(says), "{says} is not in: {}", stderr(&output));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn the_model_takes_the_record_and_the_spans_file_alike() {
    let dir = tempfile::tempdir().unwrap();
    let (spans, json) = (dir.path().join("spans.json"), dir.path().join("trace.json"));
    let file = sample("host-trace.txt");
    let output = trace(&file, &["--spans", spans.to_str().unwrap(), "--json"]);
    fs::write(&json, &output.stdout).unwrap();
    let model = |file: &Path| {
        let output = Command::new(env!("CARGO_BIN_EXE_steady")).arg("model").arg(file).output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(model(&spans), model(&json));
    assert!(model(&json).contains("read 4 KiB"));
}

#[test]
fn a_trace_without_spans_is_shown_and_gives_no_spans_file() {
    let dir = tempfile::tempdir().unwrap();
    let spans = dir.path().join("spans.json");
    // No system calls were recorded.
    let output = trace(&sample("6.12-trace.txt"), &["--spans", spans.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("so there are no spans"), "{}", stderr(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("\nAccount\n"));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn finer_spans_are_shown_if_asked_for() {
    let file = sample("host-trace.txt");
    let shows = |arguments: &[&str]| {
        String::from_utf8_lossy(&trace(&file, arguments).stdout).contains("issue->completion")
    };
    assert!(shows(&["--fine"]) && !shows(&[]));
}

#[test]
fn the_worst_are_as_many_as_asked_for() {
    let count = |arguments: &[&str]| {
        let record = record(&sample("host-trace.txt"), arguments);
        record["worst_ios"].as_array().unwrap().len()
    };
    assert_eq!((count(&[]), count(&["--worst", "2"]), count(&["--worst", "0"])), (5, 2, 0));
}

#[test]
fn a_file_that_cannot_be_written_fails_and_is_named() {
    for option in ["--spans", "--perfetto"] {
        let output = trace(&sample("host-trace.txt"), &[option, "/no-such-dir/file"]);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        let says = format!("{option} /no-such-dir/file: No such file");
        assert!(stderr(&output).contains(&says), "{}", stderr(&output));
    }
}

#[test]
fn no_output_is_an_input_or_that_of_another_option() {
    let dir = tempfile::tempdir().unwrap();
    let [input, link, new] = ["in", "link", "new"].map(|name| dir.path().join(name));
    fs::copy(sample("host-trace.txt"), &input).unwrap();
    std::os::unix::fs::symlink(&input, &link).unwrap();
    let [read, link, new] = [&input, &link, &new].map(|path| path.to_str().unwrap());
    for (arguments, expected) in [
        (["--csv", read, "--worst", "1"], "is a file that is read"),
        (["--perfetto", link, "--worst", "1"], "is a file that is read"),
        (["--csv", new, "--json-lines", new], "--csv names the same file"),
    ] {
        let output = trace(&input, &arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
    assert_eq!(fs::read(&input).unwrap(), fs::read(sample("host-trace.txt")).unwrap());
}

#[test]
fn a_trace_dat_without_trace_cmd_names_what_to_install() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("trace.dat");
    fs::write(&file, b"\x17\x08\x44tracing6\0").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
    let output = command.arg("trace").arg(&file).env("PATH", dir.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("its package is called trace-cmd"), "{}", stderr(&output));
}
