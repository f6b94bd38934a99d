// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady watch` as a program, on a folder made like sysfs.

use std::fs;
use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use steadyio_testing::{Sysfs, skip};

use crate::common::tracing::traced_loop;
use crate::record::control::Recording;

fn disk(scheduler: &str) -> Sysfs {
    let sysfs = Sysfs::new();
    sysfs.add("mmcblk0", scheduler);
    sysfs
}

fn command(sysfs: &Sysfs, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
    command.arg("watch").arg("--sysfs").arg(sysfs.root()).args(["--interval", "10ms"]);
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(sysfs: &Sysfs, arguments: &[&str]) -> Output {
    command(sysfs, arguments).output().unwrap()
}

/// A command that runs until a signal ends it.
struct Running {
    child: Child,
    out: Lines<BufReader<ChildStdout>>,
    said: Lines<BufReader<ChildStderr>>,
}

impl Running {
    fn start(sysfs: &Sysfs, arguments: &[&str]) -> Running {
        let mut child = command(sysfs, arguments).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap()).lines();
        let said = BufReader::new(child.stderr.take().unwrap()).lines();
        Running { child, out, said }
    }

    fn json(&mut self) -> Value {
        let line = self.out.next().unwrap().unwrap();
        let document = serde_json::from_str(&line).unwrap();
        let schema = include_str!("../../../../docs/spec/watch-1.schema.json");
        jsonschema::validate(&serde_json::from_str(schema).unwrap(), &document).unwrap();
        document
    }

    fn says(&mut self, what: &str) -> String {
        self.said.by_ref().map(Result::unwrap).find(|line| line.contains(what)).unwrap()
    }

    fn end(&mut self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id() as i32).unwrap();
        kill_process(pid, signal).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn get<S: Read + Write>(mut stream: S) -> String {
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn what_completes_is_in_the_next_json_line() {
    let sysfs = disk("k2");
    let mut watch = Running::start(&sysfs, &["mmcblk0", "--json"]);
    assert_eq!(watch.json()["devices"][0]["interval"]["classes"], Value::Array(vec![]));
    let head = "count 100 sum_ns 600000 max_ns 5900000 late 1";
    sysfs.set_latency("mmcblk0", "rt4", head, "4096:98 5120:1 6291456:1");
    let class = loop {
        let document = watch.json();
        if let [class] =
            document["devices"][0]["interval"]["classes"].as_array().unwrap().as_slice()
        {
            break class.clone();
        }
    };
    assert_eq!(
        (&class["class"], &class["count"], &class["late"]),
        (&"rt4".into(), &100.into(), &1.into())
    );
    assert_eq!((&class["p50_ns"], &class["p99_ns"]), (&4096.into(), &5120.into()));
    assert_eq!((&class["max_ns"], &class["deadline_ns"]), (&5_900_000.into(), &5_000_000.into()));
    watch.end(Signal::INT);
}

#[test]
fn lines_have_a_head_and_the_time_that_the_watch_took_is_told() {
    let sysfs = disk("none");
    let output = run(&sysfs, &["mmcblk0", "--count", "2"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[0].starts_with("time") && lines[1].contains("none  reads 0  writes 0  busy 0 %"));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("none counts no latencies") && said.contains("of CPU time"), "{said}");
}

#[test]
fn a_tcp_socket_answers_with_metrics() {
    let sysfs = disk("k2");
    let mut watch = Running::start(&sysfs, &["--quiet", "--listen", "127.0.0.1:0"]);
    let said = watch.says("metrics are at http://");
    let address = said.split('/').nth(2).unwrap().to_string();
    let answer = loop {
        let answer = get(TcpStream::connect(&address).unwrap());
        // The thread may be asked before the first look.
        if answer.contains("steady_device_present") {
            break answer;
        }
    };
    assert!(answer.contains("Content-Type: application/openmetrics-text; version=1.0.0"));
    assert!(answer.contains("steady_device_scheduler{device=\"mmcblk0\",scheduler=\"k2\"} 1.0\n"));
    assert!(answer.contains("\nsteady_watch_cpu_seconds_total "));
    watch.end(Signal::TERM);
}

#[test]
fn a_client_that_sends_nothing_holds_up_nobody_but_clients() {
    let sysfs = disk("k2");
    let mut watch = Running::start(&sysfs, &["--json", "--listen", "127.0.0.1:0"]);
    let said = watch.says("metrics are at http://");
    let address = said.split('/').nth(2).unwrap().to_string();
    let _silent = TcpStream::connect(&address).unwrap();
    watch.json();
    watch.json();
    assert!(get(TcpStream::connect(&address).unwrap()).starts_with("HTTP/1.1 200"));
    watch.end(Signal::TERM);
}

#[test]
fn a_unix_socket_is_removed_at_the_end() {
    let sysfs = disk("k2");
    let path = sysfs.root().join("metrics");
    let address = format!("unix:{}", path.display());
    for signal in [Signal::INT, Signal::TERM] {
        let mut watch = Running::start(&sysfs, &["--json", "--listen", &address]);
        watch.json();
        assert!(get(UnixStream::connect(&path).unwrap()).starts_with("HTTP/1.1 200 OK\r\n"));
        watch.end(signal);
        assert!(!path.exists());
    }
}

#[test]
fn the_text_file_is_complete_at_each_moment_and_removed_at_the_end() {
    let sysfs = disk("k2");
    let path = sysfs.root().join("steady.prom");
    let mut watch = Running::start(&sysfs, &["--json", "--openmetrics", path.to_str().unwrap()]);
    for _ in 0..5 {
        watch.json();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# HELP") && text.ends_with("# EOF\n"), "{text}");
    }
    watch.end(Signal::TERM);
    let left: Vec<_> =
        fs::read_dir(sysfs.root()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["block"]);
}

#[test]
fn a_text_file_that_cannot_be_written_any_more_is_told_once() {
    let sysfs = disk("k2");
    let folder = sysfs.root().join("text");
    fs::create_dir(&folder).unwrap();
    let path = folder.join("steady.prom");
    let mut watch = Running::start(&sysfs, &["--json", "--openmetrics", path.to_str().unwrap()]);
    watch.json();
    // The watch may be writing there.
    while fs::remove_dir_all(&folder).is_err() {
        thread::sleep(Duration::from_millis(1));
    }
    watch.says("steady.prom: No such file");
    for _ in 0..3 {
        watch.json();
    }
    watch.end(Signal::TERM);
    assert!(!watch.said.any(|line| line.unwrap().contains("No such file")));
}

#[test]
fn a_recorder_is_asked_what_it_received() {
    let sysfs = disk("k2");
    let mut recording = Recording::start(1, &[]);
    let socket = recording.socket();
    let arguments = ["mmcblk0", "--json", "--recorder", socket.to_str().unwrap()];
    let mut watch = Running::start(&sysfs, &arguments);
    while watch.json()["recorders"][0]["state"] != "recording" {}
    for _ in 0..3 {
        recording.send(0, 10);
    }
    let mut received = 0;
    while received < 3 {
        let document = watch.json();
        assert_eq!(document["recorders"][0]["lost"], 0);
        received += document["recorders"][0]["received"].as_u64().unwrap();
    }
    assert_eq!(received, 3);
    watch.end(Signal::TERM);
}

#[test]
fn a_reader_that_ends_ends_the_watch() {
    let sysfs = disk("k2");
    let mut child = command(&sysfs, &["mmcblk0"]).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut String::new()).unwrap();
    drop(out);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn what_is_wrong_is_named_before_anything_is_watched() {
    let sysfs = disk("k2");
    let path = sysfs.root().to_str().unwrap().to_string();
    let text = format!("{path}/metrics.txt");
    let folder = format!("{path}/none/m.prom");
    for (arguments, says) in [
        (&["sda"][..], "sda: no such block device"),
        (&["--interval", "1ms"], "must be from 10ms to 1h"),
        (&["--listen", "8000"], "must be HOST:PORT"),
        (&["--listen", "unix:/none/socket"], "--listen unix:/none/socket"),
        (&["--openmetrics", &text], "the name must end in .prom"),
        (&["--openmetrics", &folder], "m.prom: No such file"),
        (&["--json", "--quiet"], "cannot be used with"),
        (&["--count", "0"], "0 is not in 1"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
        let output = command.args(["watch", "--sysfs", &path]).args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(says), "{arguments:?}: {says} is not in: {said}");
    }
}

#[test]
fn late_requests_are_not_traced_where_nobody_tells_of_them_and_nothing_is_left() {
    if traced_loop().is_none() {
        return;
    }
    if Path::new("/sys/kernel/tracing/events/k2/k2_late").exists() {
        return skip("k2 is there");
    }
    let disk = disk("k2");
    let folder = disk.root().join("traces");
    let output = run(&disk, &["--traces", folder.to_str().unwrap(), "--count", "1"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("--traces: k2 reports late requests"), "{said}");
    assert!(!folder.exists());
}
