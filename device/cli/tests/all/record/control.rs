// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a running recorder answers on its socket.

use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use steadyio_recorder::stream::encode::{HEAD, begin_frame, record_frame, topic_frame};
use steadyio_recorder::stream::frames::Topic;

use super::input::connect;
use crate::common::{stderr, valid_json};

const LONG: Duration = Duration::from_secs(60);

fn steady(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A recorder of so many topics, with a socket.
pub struct Recording {
    dir: tempfile::TempDir,
    child: Child,
}

fn topic(number: u16) -> Topic {
    Topic {
        topic: format!("/topic/{number}"),
        message_encoding: String::new(),
        schema_name: String::new(),
        schema_encoding: String::new(),
        schema_data: Vec::new(),
        metadata: Vec::new(),
        record_bytes_max: 100,
        period_ns: 0,
    }
}

impl Recording {
    pub fn start(topics: u16, arguments: &[&str]) -> Recording {
        let dir = tempfile::tempdir().unwrap();
        let mut command = steady(&["record", "--input", "-", "--framing", "frames", "--no-lock"]);
        command.args(["--quiet", "--segments", "4", "--segment-size", "16M", "--json"]);
        command.args(["--loss-window", "50ms"]).args(arguments).stdin(Stdio::piped());
        command.arg("--dir").arg(dir.path().join("recording"));
        let mut child = command.arg("--control").arg(dir.path().join("control")).spawn().unwrap();
        let topics = (0..topics).flat_map(|number| topic_frame(number, &topic(number)).unwrap());
        let stream = [HEAD.to_vec(), topics.collect(), begin_frame()].concat();
        child.stdin.as_mut().unwrap().write_all(&stream).unwrap();
        let recording = Recording { dir, child };
        drop(connect(&recording.socket()));
        recording
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("control")
    }

    pub fn send(&mut self, topic: u16, bytes: usize) {
        let frame = record_frame(topic, 1, &vec![7; bytes]).unwrap();
        self.child.stdin.as_mut().unwrap().write_all(&frame).unwrap();
    }

    fn status(&self) -> Value {
        let output = status(&self.socket(), &["--json"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        valid_json(&output, "status-1.schema.json")
    }

    fn wait_until(&self, what: impl Fn(&Value) -> bool) -> Value {
        let started = Instant::now();
        loop {
            let status = self.status();
            if what(&status) {
                return status;
            }
            assert!(started.elapsed() < LONG, "{status}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn end(mut self) -> Output {
        drop(self.child.stdin.take());
        let output = self.child.wait_with_output().unwrap();
        assert!(!self.dir.path().join("control").exists());
        output
    }
}

fn status(socket: &Path, arguments: &[&str]) -> Output {
    steady(&["status", "--control"]).arg(socket).args(arguments).output().unwrap()
}

fn exchange(socket: &Path, request: &[u8]) -> Value {
    let mut stream = connect(socket);
    stream.write_all(request).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with('\n') && answer.lines().count() == 1, "{answer}");
    serde_json::from_str(&answer).unwrap()
}

fn records(status: &Value, topic: usize, what: &str) -> u64 {
    status["channels"][topic]["account"][what]["records"].as_u64().unwrap()
}

#[test]
fn the_account_of_each_topic_is_told_while_it_is_recorded() {
    let mut recording = Recording::start(2, &[]);
    for _ in 0..10 {
        recording.send(0, 50);
    }
    recording.send(1, 50);
    let status = recording.wait_until(|status| status["total"]["durable"]["records"] == 11);
    assert_eq!((records(&status, 0, "received"), records(&status, 1, "durable")), (10, 1));
    assert_eq!((&status["state"], &status["trouble"]), (&"recording".into(), &Value::Null));
    assert_eq!(status["config"]["segments"], 4);
    let text = status_text(&recording.socket());
    assert!(text.starts_with("recording for "), "{text}");
    assert!(text.contains("/topic/0        10         0       10     0"), "{text}");
    assert_eq!(recording.end().status.code(), Some(0));
}

fn status_text(socket: &Path) -> String {
    String::from_utf8(status(socket, &[]).stdout).unwrap()
}

#[test]
fn whoever_sends_nothing_is_told_the_status_and_whoever_sends_nonsense_what_is_wrong() {
    let recording = Recording::start(1, &[]);
    recording.status();
    let socket = recording.socket();
    for nothing in [&b""[..], b"\n", b"{\"do\": \"status\"}", b"{\"do\":\"status\"}\nmore"] {
        assert_eq!(exchange(&socket, nothing)["schema"], "steadyio.status/1");
    }
    for nonsense in
        [&b"GET / HTTP/1.1\r\n"[..], b"{\"do\":\"explode\"}", b"{}", b"\xff\xff\n", b"[]"]
    {
        let answer = exchange(&socket, nonsense);
        assert_eq!(answer["schema"], "steadyio.control/1");
        assert!(answer["error"].as_str().unwrap().starts_with("no such request: "), "{answer}");
    }
    // Longer than a request may be.
    let mut stream = connect(&socket);
    let _ = stream.write_all(&[b'x'; 10_000]);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(answer.is_empty());
    recording.status();
    recording.end();
}

#[test]
fn clients_that_do_not_read_or_say_anything_delay_neither_records_nor_other_clients() {
    // An answer is longer than a socket buffers.
    let mut recording = Recording::start(2_000, &[]);
    recording.status();
    let client = |number: u32| {
        let mut stream = connect(&recording.socket());
        if number % 2 == 0 {
            stream.write_all(b"\n").unwrap();
        }
        stream
    };
    // More than are served at a time.
    let silent: Vec<UnixStream> = (0..17).map(client).collect();
    for number in 0..20_000 {
        recording.send(number % 2_000, 90);
    }
    // It is asked and answered behind all of them.
    let status = recording.wait_until(|status| {
        let count = |what: &str| status["total"][what]["records"].as_u64();
        count("received") == Some(20_000) && count("buffered") == Some(0)
    });
    assert_eq!(status["total"]["durable"]["records"], 20_000);
    drop(silent);
    assert_eq!(recording.end().status.code(), Some(0));
}

#[test]
fn owner_and_group_may_ask_and_what_is_no_socket_stays() {
    let recording = Recording::start(1, &[]);
    recording.status();
    let mode = fs::metadata(recording.socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
    let record = |socket: &Path, dir: &Path| {
        let mut command = steady(&["record", "--no-lock", "--total", "16K", "--segments", "2"]);
        command.args(["--segment-size", "1M", "--unit", "64K", "--dir"]);
        command.arg(dir).arg("--control").arg(socket).output().unwrap()
    };
    let other = recording.dir.path().join("other");
    let taken = record(&recording.socket(), &other);
    assert_eq!(taken.status.code(), Some(2));
    assert!(stderr(&taken).contains("another program is listening there"), "{}", stderr(&taken));
    let file = recording.dir.path().join("file");
    fs::write(&file, "kept").unwrap();
    let refused = record(&file, &other);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains(&format!("{}: exists and is not a socket", file.display())));
    let long = record(&recording.dir.path().join("l".repeat(200)), &other);
    assert!(stderr(&long).contains("too many for the path of a socket"), "{}", stderr(&long));
    assert_eq!(fs::read(&file).unwrap(), b"kept");
    assert!(!other.exists(), "nothing was created");
    // Of a recorder that was killed.
    let stale = recording.dir.path().join("stale");
    drop(UnixListener::bind(&stale).unwrap());
    assert_eq!(record(&stale, &other).status.code(), Some(0));
    let nobody = status(&file, &[]);
    assert_eq!(nobody.status.code(), Some(1));
    assert!(stderr(&nobody).contains("is a recorder with this socket running?"));
    recording.end();
}
