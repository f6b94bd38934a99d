// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady incidents` and SIGUSR1: what is kept, for how long, and when that is refused.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use steadyio_recorder::stream::encode::{HEAD, begin_frame, record_frame, topic_frame};
use steadyio_recorder::stream::frames::Topic;

use crate::common::{stderr, valid_json};

pub(super) const LONG: Duration = Duration::from_secs(60);
const RECORD_BYTES: usize = 4_000;
/// More than a segment holds.
const SEGMENT_RECORDS: u64 = 260;

fn steady(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The pool of a test, and the socket of its recorder.
pub(super) struct Pool(tempfile::TempDir);

pub(super) struct Recorder {
    socket: PathBuf,
    pub(super) child: Child,
    sent: u64,
}

impl Pool {
    pub(super) fn new() -> Pool {
        Pool(tempfile::tempdir().unwrap())
    }

    pub(super) fn dir(&self) -> PathBuf {
        self.0.path().join("recording")
    }

    /// Log times of its records begin there.
    pub(super) fn record(&self, segments: &str, first: u64, arguments: &[&str]) -> Recorder {
        let mut command = steady(&["record", "--input", "-", "--framing", "frames", "--block"]);
        command.args(["--no-lock", "--quiet", "--segment-size", "1M", "--unit", "64K"]);
        command.args(["--segments", segments]).args(arguments).stdin(Stdio::piped());
        let socket = self.0.path().join("control");
        command.arg("--dir").arg(self.dir()).arg("--control").arg(&socket);
        let mut recorder = Recorder { socket, child: command.spawn().unwrap(), sent: first };
        let topic = Topic {
            topic: "/a".into(),
            message_encoding: String::new(),
            schema_name: String::new(),
            schema_encoding: String::new(),
            schema_data: Vec::new(),
            metadata: Vec::new(),
            record_bytes_max: RECORD_BYTES as u32,
            period_ns: 0,
        };
        recorder.write(&[HEAD.to_vec(), topic_frame(0, &topic).unwrap(), begin_frame()].concat());
        recorder.wait_for("received", 0);
        recorder
    }

    pub(super) fn list(&self, status: i32) -> Value {
        let output = steady(&["incidents", "list", "--json"]).arg(self.dir()).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
        valid_json(&output, "incidents-1.schema.json")["incidents"].clone()
    }

    fn release(&self, name: &str) -> Output {
        steady(&["incidents", "release", name, "--dir"]).arg(self.dir()).output().unwrap()
    }

    fn prepare(&self, segments: &str) -> Output {
        let mut command = steady(&["record", "--prepare", "--segment-size", "1M"]);
        command.args(["--unit", "64K", "--segments", segments, "--dir"]);
        command.arg(self.dir()).output().unwrap()
    }

    fn export(&self, name: &str) -> Output {
        let mut command = steady(&["export", "--incident", name, "--json"]);
        command.arg("-o").arg(self.0.path().join("out.mcap")).arg(self.dir()).output().unwrap()
    }

    pub(super) fn exported_times(&self, name: &str) -> Vec<u64> {
        let output = self.export(name);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        valid_json(&output, "export-1.schema.json");
        let bytes = fs::read(self.0.path().join("out.mcap")).unwrap();
        let messages = mcap::MessageStream::new(&bytes).unwrap();
        messages.map(|message| message.unwrap().log_time).collect()
    }
}

impl Recorder {
    fn write(&mut self, bytes: &[u8]) {
        self.child.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    pub(super) fn send(&mut self, records: u64) {
        for time in self.sent..self.sent + records {
            self.write(&record_frame(0, time, &[7; RECORD_BYTES]).unwrap());
        }
        self.sent += records;
    }

    pub(super) fn wait_for(&self, what: &str, records: u64) -> Value {
        let started = Instant::now();
        loop {
            let output = self.ask(&["status", "--json"]);
            let status: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            if status["total"][what]["records"].as_u64() == Some(records) {
                return valid_json(&output, "status-1.schema.json");
            }
            assert!(started.elapsed() < LONG, "{status} {}", stderr(&output));
            thread::sleep(Duration::from_millis(5));
        }
    }

    pub(super) fn ask(&self, arguments: &[&str]) -> Output {
        steady(arguments).arg("--control").arg(&self.socket).output().unwrap()
    }

    pub(super) fn keep(&self, name: &str, last: &str) -> Output {
        self.ask(&["incidents", "keep", name, "--last", last])
    }

    pub(super) fn end(mut self) -> Output {
        drop(self.child.stdin.take());
        self.child.wait_with_output().unwrap()
    }
}

pub(super) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn assert_refused(output: &Output, why: &str) {
    assert_eq!(output.status.code(), Some(1), "{}", stdout(output));
    assert!(stderr(output).contains(why), "{}", stderr(output));
}

#[test]
fn what_was_kept_survives_a_kill_and_many_rotations_until_it_is_released() {
    let pool = Pool::new();
    // Records that are not durable when the answer comes would be lost.
    let mut recorder = pool.record("8", 0, &["--loss-window", "1s"]);
    let sent = 5 * SEGMENT_RECORDS / 2;
    recorder.send(sent);
    recorder.wait_for("received", sent);
    let output = recorder.keep("crash", "1h");
    recorder.child.kill().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let said = stdout(&output);
    assert!(said.contains(" s of 3600.0 s: the rest is not there any more"), "{said}");
    assert!(said.ends_with("; 3 segments, and 5 are left to record in\n"), "{said}");
    recorder.end();

    let mut recorder = pool.record("8", 10_000, &[]);
    recorder.send(12 * SEGMENT_RECORDS);
    let said = stderr(&recorder.end());
    assert!(said.contains("incidents keep 3 of 8 segments; 5 are recorded in"), "{said}");
    assert_eq!(pool.exported_times("crash"), (0..sent).collect::<Vec<u64>>());
    assert_eq!(pool.list(0)[0]["segments_there"], 3);

    let why = "incidents (crash) keep 3 segments, and recording needs 2 others: record with 5";
    assert_refused(&pool.prepare("4"), why);
    assert_eq!(pool.exported_times("crash").len() as u64, sent, "nothing was removed");
    assert_eq!(pool.prepare("5").status.code(), Some(0));
    assert_eq!(pool.exported_times("crash").len() as u64, sent, "others were");
    assert_eq!(pool.release("crash").status.code(), Some(0));
    assert_eq!(pool.prepare("2").status.code(), Some(0));
    let output = pool.export("crash");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("has no incident crash; it has none"), "{}", stderr(&output));
}

#[test]
fn what_cannot_be_kept_is_refused_and_says_why() {
    let pool = Pool::new();
    let mut recorder = pool.record("4", 0, &["--loss-window", "50ms"]);
    assert_refused(&recorder.keep("a", "1s"), "incident a: nothing is recorded yet");
    recorder.send(10);
    recorder.wait_for("durable", 10);
    assert_refused(&recorder.keep("a/b", "1s"), "incident \"a/b\": a name has 1 to 64 letters");
    assert_eq!(recorder.keep("a", "1ms").status.code(), Some(0));
    assert_refused(&recorder.keep("a", "1ms"), "name is taken");
    recorder.send(2 * SEGMENT_RECORDS);
    let status = recorder.wait_for("durable", recorder.sent);
    assert_eq!(status["incidents"], serde_json::json!({ "count": 1, "kept_segments": 1 }));
    let said = stdout(&recorder.ask(&["status"]));
    assert!(said.contains("\nincidents: 1; they keep 1 of 4 segments\n"), "{said}");
    assert_refused(&recorder.keep("b", "1h"), "keeping them leaves 1 of 4 to record in");
    assert_refused(&pool.release("a"), "in use by a recorder (release a with --control PATH)");
    let release = |name| recorder.ask(&["incidents", "release", name]);
    assert_refused(&release("b"), "has no incident b; it has a");
    assert_eq!(stdout(&release("a")), "incident a: released\n");
    assert_eq!(pool.list(0).as_array().unwrap().len(), 0);
    assert_eq!(recorder.keep("a", "1ms").status.code(), Some(0), "what was pinned is free again");
    recorder.end();
}

#[test]
fn a_full_pool_stops_a_recording_before_what_is_kept() {
    let pool = Pool::new();
    let mut recorder = pool.record("4", 0, &["--loss-window", "50ms"]);
    recorder.send(10);
    recorder.wait_for("durable", 10);
    assert_eq!(recorder.keep("a", "1ms").status.code(), Some(0));
    recorder.end();
    let mut recorder = pool.record("4", 1_000, &["--stop-when-full"]);
    recorder.send(3 * SEGMENT_RECORDS);
    assert_eq!(recorder.end().status.code(), Some(4));
    assert_eq!(pool.exported_times("a"), (0..10).collect::<Vec<u64>>());
}

#[test]
fn a_signal_keeps_an_incident_named_after_the_time() {
    let pool = Pool::new();
    let mut recorder = pool.record("8", 0, &["--incident-last", "1ms", "--loss-window", "50ms"]);
    recorder.send(10);
    recorder.wait_for("durable", 10);
    let pid = Pid::from_raw(recorder.child.id().cast_signed()).unwrap();
    for count in 1..3 {
        kill_process(pid, Signal::USR1).unwrap();
        let started = Instant::now();
        while pool.list(0).as_array().unwrap().len() < count && started.elapsed() < LONG {
            thread::sleep(Duration::from_millis(5));
        }
    }
    let name = pool.list(0)[0]["incident"]["name"].as_str().unwrap().to_string();
    let said = stderr(&recorder.end());
    assert!(name.len() == 16 && name.ends_with('Z'), "{name}");
    assert!(
        said.contains(&format!("steady: incident {name}: kept the last 0.0 s; 1 seg")),
        "{said}"
    );
    assert_eq!(pool.exported_times(&name), (0..10).collect::<Vec<u64>>());
}

#[test]
fn a_pool_whose_incident_cannot_be_read_is_left_alone_but_half_a_file_is_none() {
    let pool = Pool::new();
    assert_eq!(pool.prepare("3").status.code(), Some(0));
    let half = pool.dir().join("incident-y.json.new");
    fs::write(&half, "{").unwrap();
    assert_eq!(pool.prepare("3").status.code(), Some(0));
    assert!(!half.exists());
    fs::write(pool.dir().join("incident-x.json"), "{").unwrap();
    assert_refused(&pool.prepare("2"), "incident-x.json: cannot be read as an incident");
    assert_eq!(segments(&pool.dir()), 3);
}

fn segments(dir: &Path) -> usize {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().starts_with("segment-")).count()
}
