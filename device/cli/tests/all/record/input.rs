// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady record --input`: real pipes, FIFOs and sockets.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, setrlimit};
use serde_json::Value;
use steadyio_recorder::stream::encode::{HEAD, begin_frame, record_frame, topic_frame};
use steadyio_recorder::stream::frames::Topic;
use steadyio_testing::recording::{messages, segments};

use crate::common::{stderr, valid_json};

const SCHEMA: &str = "recording-1.schema.json";

fn command(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
    command.args(["record", "--json", "--no-lock", "--quiet", "--segments", "4"]);
    command.args(["--segment-size", "1M", "--unit", "64K", "--loss-window", "50ms", "--dir"]);
    command.arg(dir.join("recording")).args(arguments);
    let pipe = Stdio::piped;
    command.stdin(pipe()).stdout(pipe()).stderr(pipe());
    command
}

pub fn record(dir: &Path, arguments: &[&str]) -> Child {
    command(dir, arguments).spawn().unwrap()
}

/// Sends it all to stdin, and closes.
pub fn send(mut child: Child, bytes: &[u8]) -> Output {
    // A program that has seen enough closes its end.
    let _ = child.stdin.take().unwrap().write_all(bytes);
    child.wait_with_output().unwrap()
}

fn total(output: &Output, what: &str) -> u64 {
    let result: Value = valid_json(output, SCHEMA);
    result["ledger"]["total"][what]["records"].as_u64().unwrap()
}

/// By topic: log times and records, in their order.
fn read(dir: &Path) -> BTreeMap<String, Vec<(u64, Vec<u8>)>> {
    let mut topics: BTreeMap<String, Vec<(u64, Vec<u8>)>> = BTreeMap::new();
    for message in messages(&dir.join("recording")) {
        let records = topics.entry(message.channel.topic.clone()).or_default();
        records.push((message.log_time, message.data.into_owned()));
    }
    topics
}

pub fn topic(name: &str) -> Topic {
    Topic {
        topic: name.into(),
        message_encoding: "json".into(),
        schema_name: "Thing".into(),
        schema_encoding: "jsonschema".into(),
        schema_data: b"{}".to_vec(),
        metadata: Vec::new(),
        record_bytes_max: 1_000,
        period_ns: 0,
    }
}

/// Head, topics with identifiers from 0, begin.
fn beginning(topics: &[&str]) -> Vec<u8> {
    let mut bytes = HEAD.to_vec();
    for (id, name) in (0..).zip(topics) {
        bytes.extend(topic_frame(id, &topic(name)).unwrap());
    }
    bytes.extend(begin_frame());
    bytes
}

fn frames(id: u16, numbers: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let frame = |number: u64| record_frame(id, number, number.to_string().as_bytes()).unwrap();
    numbers.into_iter().flat_map(frame).collect()
}

fn numbered(numbers: impl IntoIterator<Item = u64>) -> Vec<(u64, Vec<u8>)> {
    numbers.into_iter().map(|number| (number, number.to_string().into_bytes())).collect()
}

#[test]
fn lines_of_stdin_are_records_of_one_topic() {
    let dir = tempfile::tempdir().unwrap();
    let child = record(dir.path(), &["--input", "-", "--topic", "/log", "--size", "100"]);
    let long = "x".repeat(500);
    let output = send(child, format!("first\n\n{long}\nlast").as_bytes());
    // The long line is lost, and the command reports that.
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert_eq!((total(&output, "received"), total(&output, "durable")), (4, 3));
    let lines: Vec<_> = read(dir.path())["/log"].iter().map(|(_, line)| line.clone()).collect();
    assert_eq!(lines, [&b"first"[..], b"", b"last"]);
}

#[test]
fn appends_of_a_stream_are_measured_only_if_that_is_asked_for() {
    for (options, measured) in [(&[][..], 0), (&["--measure-calls"][..], 3)] {
        let dir = tempfile::tempdir().unwrap();
        let output = send(record(dir.path(), &[&["--input", "-"], options].concat()), b"a\nb\nc\n");
        let result: Value = valid_json(&output, SCHEMA);
        assert_eq!(result["caller"]["calls"]["count"], measured, "{options:?}");
        assert_eq!(total(&output, "durable"), 3);
    }
}

#[test]
fn topics_that_are_not_wanted_are_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let options = ["--topics", "/a*", "/late", "--exclude-topics", "*/raw"];
    let child =
        record(dir.path(), &[&["--input", "-", "--framing", "frames"], &options[..]].concat());
    let mut bytes = beginning(&["/a", "/a/raw", "/b"]);
    for (late, name) in [(3, "/late"), (4, "/late/raw")] {
        bytes.extend(topic_frame(late, &topic(name)).unwrap());
    }
    (0..5).for_each(|id| bytes.extend(frames(id, 0..3)));
    let output = send(child, &bytes);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(total(&output, "received"), 6);
    let found = read(dir.path());
    assert_eq!(found.into_keys().collect::<Vec<_>>(), ["/a", "/late"]);
}

#[test]
fn a_recording_begins_with_the_first_topic_that_is_wanted() {
    let dir = tempfile::tempdir().unwrap();
    let options = ["--input", "-", "--framing", "frames", "--topics", "/b"];
    let late = topic_frame(1, &topic("/b")).unwrap();
    let bytes = [beginning(&["/a"]), frames(0, 0..3), late, frames(1, 0..5), frames(0, 3..5)];
    let output = send(record(dir.path(), &options), &bytes.concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(read(dir.path()), [("/b".to_string(), numbered(0..5))].into());
}

#[test]
fn an_input_of_which_no_topic_is_wanted_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let options = ["--input", "-", "--framing", "frames", "--exclude-topics", "*"];
    let bytes = [beginning(&["/a"]), frames(0, 0..3)].concat();
    let output = send(record(dir.path(), &options), &bytes);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let output = send(record(dir.path(), &["--input", "-", "--topics", "/a"]), b"a\n");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--topics: lines have one topic"), "{}", stderr(&output));
}

#[test]
fn frames_of_a_fifo_keep_topics_times_and_schemas() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let child = record(dir.path(), &["--framing", "frames", "--input", fifo.to_str().unwrap()]);
    let mut writer = OpenOptions::new().write(true).open(&fifo).unwrap();
    let bytes =
        [beginning(&["/a", "/b"]), frames(0, 0..300), frames(1, 300..700), frames(0, 700..701)];
    // In pieces that end anywhere.
    for piece in bytes.concat().chunks(777) {
        writer.write_all(piece).unwrap();
    }
    drop(writer);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let topics = read(dir.path());
    assert_eq!(topics["/a"], numbered((0..300).chain(700..701)));
    assert_eq!(topics["/b"], numbered(300..700));
}

#[test]
fn a_stream_that_goes_wrong_ends_the_recording_with_what_came_before() {
    let begun = beginning(&["/a"]);
    let whole = [begun.clone(), frames(0, 0..50)].concat();
    let (at, end) = (begun.len(), whole.len());
    let cases = [
        ([&HEAD[..], b"hello\n"].concat(), "stdin: byte 8: frame type 111".to_string(), 0),
        (
            [&whole[..], b"\xff\xff\xff\xff\x03"].concat(),
            format!("stdin: byte {end}: a record frame of 4294967295 bytes: must be 11 to 1011"),
            50,
        ),
        (
            whole[..end - 1].to_vec(),
            format!("stdin: byte {}: the stream ends within a frame", end - 17),
            49,
        ),
        (
            [&begun[..], &frames(3, 0..1)].concat(),
            format!("stdin: byte {at}: topic 3 has a record or metadata, but was not declared"),
            0,
        ),
    ];
    for (bytes, says, durable) in cases {
        let dir = tempfile::tempdir().unwrap();
        let output = send(record(dir.path(), &["--framing", "frames", "--input", "-"]), &bytes);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert!(stderr(&output).contains(&says), "{says}: {}", stderr(&output));
        // Nothing is recorded before all is declared.
        if !output.stdout.is_empty() {
            assert_eq!(total(&output, "durable"), durable);
        }
        assert_eq!(read(dir.path()).remove("/a").unwrap_or_default(), numbered(0..durable));
    }
}

/// Connects once somebody listens, which is a moment after the socket is there.
pub fn connect(socket: &Path) -> UnixStream {
    let started = Instant::now();
    loop {
        match UnixStream::connect(socket) {
            Ok(stream) => return stream,
            Err(error) => assert!(started.elapsed() < Duration::from_secs(60), "{error}"),
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until the other side has closed.
pub fn wait_for_close(mut stream: &UnixStream) {
    let _ = std::io::copy(&mut stream, &mut std::io::sink());
}

#[test]
fn several_producers_share_a_socket_and_only_the_wrong_one_is_sent_away() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("socket");
    let input = format!("unix:{}", socket.display());
    let arguments = ["--input", &input, "--framing", "frames", "--producers", "2"];
    let child = record(dir.path(), &arguments);
    let (mut first, mut second) = (connect(&socket), connect(&socket));
    // Different identifiers for the same topic.
    first.write_all(&[beginning(&["/a"]), frames(0, 0..100)].concat()).unwrap();
    second.write_all(&[beginning(&["/b", "/a"]), frames(0, 100..200)].concat()).unwrap();
    // A topic that comes when recording has begun, and is another one than before.
    let begun = Instant::now();
    while !dir.path().join("recording/segment-00000.mcap").exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "recording has not begun");
        thread::sleep(Duration::from_millis(5));
    }
    let mut late = connect(&socket);
    let other = Topic { message_encoding: "other".into(), ..topic("/a") };
    let other = topic_frame(0, &other).unwrap();
    late.write_all(&[&HEAD, &other[..], &begin_frame()].concat()).unwrap();
    wait_for_close(&late);
    let mut garbage = connect(&socket);
    garbage.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    wait_for_close(&garbage);
    first.write_all(&frames(0, 200..300)).unwrap();
    first.shutdown(std::net::Shutdown::Write).unwrap();
    wait_for_close(&first);
    second.write_all(&frames(1, 300..400)).unwrap();
    second.shutdown(std::net::Shutdown::Write).unwrap();
    wait_for_close(&second);
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("topic \"/a\": another message encoding than"), "{said}");
    assert!(said.contains("rejected producer 4: byte 0: not a stream of frames"), "{said}");
    let mut topics = read(dir.path());
    topics.get_mut("/a").unwrap().sort();
    assert_eq!(topics["/a"], numbered((0..100).chain(200..400)));
    assert_eq!(topics["/b"], numbered(100..200));
    assert!(!socket.exists());
}

#[test]
fn topics_are_added_while_recording_by_a_producer_and_by_later_ones() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("socket");
    let input = format!("unix:{}", socket.display());
    let arguments = ["--input", &input, "--framing", "frames", "--late-topics", "3"];
    let child = record(dir.path(), &arguments);
    let mut first = connect(&socket);
    first.write_all(&[beginning(&["/a"]), frames(0, 0..100)].concat()).unwrap();
    // Among its records, under another identifier.
    let added = |id, name| topic_frame(id, &topic(name)).unwrap();
    let more = [added(7, "/b"), frames(7, 0..100), frames(0, 100..200)].concat();
    first.write_all(&more).unwrap();
    // The next one declares both, and two that are new.
    let mut second = connect(&socket);
    let topics = ["/c", "/b", "/d"];
    second.write_all(&[beginning(&topics), frames(0, 0..50), frames(2, 0..50)].concat()).unwrap();
    second.shutdown(std::net::Shutdown::Write).unwrap();
    wait_for_close(&second);
    // Room for three was asked for.
    let mut third = connect(&socket);
    third.write_all(&beginning(&["/a", "/e"])).unwrap();
    wait_for_close(&third);
    // One that another has added, between those that it has.
    let known = [added(3, "/d"), frames(3, 50..60), frames(7, 100..200)].concat();
    first.write_all(&known).unwrap();
    first.shutdown(std::net::Shutdown::Write).unwrap();
    wait_for_close(&first);
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    let says = "topic \"/e\" cannot be added to the recording: late.channels = 3: all are taken; \
                raise it, in steady record by --late-topics";
    assert!(said.contains(says), "{said}");
    let found = read(dir.path());
    for (topic, records) in [("/a", 0..200), ("/b", 0..200), ("/c", 0..50), ("/d", 0..60)] {
        assert_eq!(found[topic], numbered(records), "{topic}");
    }
    let result: Value = valid_json(&output, SCHEMA);
    let topics = result["ledger"]["channels"].as_array().unwrap();
    assert_eq!(topics.len(), 4, "{topics:?}");
}

#[test]
fn a_stream_that_declares_more_topics_than_there_is_room_for_ends_with_what_came_before() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = ["--input", "-", "--framing", "frames", "--late-topics", "0"];
    let late = topic_frame(1, &topic("/b")).unwrap();
    let stream = [beginning(&["/a"]), frames(0, 0..100), late, frames(1, 0..10)].concat();
    let output = send(record(dir.path(), &arguments), &stream);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("topic \"/b\" cannot be added"), "{}", stderr(&output));
    assert_eq!(read(dir.path())["/a"], numbered(0..100));
}

#[test]
fn a_producer_of_records_too_long_is_sent_away_and_the_others_are_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("socket");
    let input = format!("unix:{}", socket.display());
    let child = record(dir.path(), &["--input", &input, "--framing", "frames"]);
    let mut images = connect(&socket);
    let image = Topic { record_bytes_max: 1 << 20, ..topic("/image") };
    images
        .write_all(&[&HEAD, &topic_frame(0, &image).unwrap()[..], &begin_frame()].concat())
        .unwrap();
    wait_for_close(&images);
    let mut good = connect(&socket);
    good.write_all(&[beginning(&["/a"]), frames(0, 0..100)].concat()).unwrap();
    // Longer than it declared.
    let mut long = connect(&socket);
    long.write_all(&[beginning(&["/a"]), record_frame(0, 7, &[0; 1_001]).unwrap()].concat())
        .unwrap();
    wait_for_close(&long);
    good.write_all(&frames(0, 100..200)).unwrap();
    good.shutdown(std::net::Shutdown::Write).unwrap();
    wait_for_close(&good);
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("topic \"/image\" has records of up to 1048576 bytes"), "{said}");
    assert!(said.contains("rejected producer 3: byte"), "{said}");
    assert_eq!(read(dir.path())["/a"], numbered(0..200));
}

/// CPU time of a program so far.
fn cpu_ticks(child: &Child) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
fn when_files_run_out_recording_goes_on_and_producers_wait_until_there_are_some() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("socket");
    let input = format!("unix:{}", socket.display());
    let mut command = command(dir.path(), &["--input", &input, "--framing", "frames"]);
    // SAFETY: only a system call, between fork and exec.
    unsafe {
        command.pre_exec(|| {
            let limit = Rlimit { current: Some(26), maximum: Some(26) };
            Ok(setrlimit(Resource::Nofile, limit)?)
        });
    }
    let mut child = command.spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut wait_for = |part: &str| {
        let line = said.by_ref().map(Result::unwrap).find(|line| line.contains(part));
        line.unwrap_or_else(|| panic!("{part} was not said"));
    };
    let mut first = connect(&socket);
    first.write_all(&beginning(&["/a"])).unwrap();
    let crowd: Vec<UnixStream> = (0..20).map(|_| connect(&socket)).collect();
    wait_for("cannot accept another producer: Too many open files");
    let mut last = connect(&socket);
    last.write_all(&[beginning(&["/a"]), frames(0, 50_000..50_100)].concat()).unwrap();
    let before = cpu_ticks(&child);
    // Some rotations, each of which opens a file.
    let long = |number| record_frame(0, number, &[7; 1_000]).unwrap();
    for part in (0..5_000).step_by(100) {
        first.write_all(&(part..part + 100).flat_map(long).collect::<Vec<_>>()).unwrap();
        thread::sleep(Duration::from_millis(20));
    }
    let ticks = cpu_ticks(&child) - before;
    assert!(ticks < 80, "{ticks}: it does not sleep while nobody can be let in");
    drop(crowd);
    wait_for("accepting producers again");
    last.shutdown(std::net::Shutdown::Write).unwrap();
    wait_for_close(&last);
    first.shutdown(std::net::Shutdown::Write).unwrap();
    wait_for_close(&first);
    kill_process(Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!((total(&output, "durable"), total(&output, "received")), (5_100, 5_100));
}

#[test]
fn a_full_ring_loses_and_counts_or_makes_the_producer_wait() {
    let lines = format!("{}\n", "y".repeat(999)).repeat(3_000);
    let blocks: [(&[&str], i32); 2] = [(&["--block"], 0), (&[], 3)];
    let compressions = ["none", "lz4", "zstd"];
    for (compression, (block, status)) in
        compressions.iter().flat_map(|one| blocks.map(|block| (one, block)))
    {
        let dir = tempfile::tempdir().unwrap();
        let sizes =
            ["--input", "-", "--size", "999", "--ring", "16K", "--compression", compression];
        let arguments = [&sizes, block].concat();
        let output = send(record(dir.path(), &arguments), lines.as_bytes());
        assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
        let lost = total(&output, "lost_ring_full");
        assert_eq!(total(&output, "received"), 3_000);
        assert_eq!(total(&output, "durable") + lost, 3_000);
        assert_eq!(lost > 0, block.is_empty());
    }
}

#[test]
fn a_signal_before_the_producers_have_begun_leaves_no_record() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("socket");
    let child = record(
        dir.path(),
        &["--framing", "frames", "--input", &format!("unix:{}", socket.display())],
    );
    drop(connect(&socket));
    // The pool is made before anybody is let in.
    let unused: Vec<String> = (0..4).map(|number| format!("segment-0000{number}.unused")).collect();
    let made = segments(&dir.path().join("recording"));
    assert!(made.iter().zip(&unused).all(|(path, name)| path.ends_with(name)), "{made:?}");
    assert_eq!(made.len(), 4);
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(!socket.exists() && read(dir.path()).is_empty());
}

#[test]
fn a_producer_with_an_absurd_period_is_rejected_and_nobody_else() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("socket");
    let input = format!("unix:{}", socket.display());
    let child = record(dir.path(), &["--input", &input, "--framing", "frames"]);
    let pid = Pid::from_child(&child);
    let mut good = connect(&socket);
    good.write_all(&[beginning(&["/good"]), frames(0, 0..100)].concat()).unwrap();
    for period_ns in [1, 1_001] {
        let absurd = Topic { period_ns, record_bytes_max: 2_000_000, ..topic("/bad") };
        let mut bad = connect(&socket);
        let head = [HEAD.to_vec(), topic_frame(1, &absurd).unwrap(), begin_frame()].concat();
        let _ = bad.write_all(&head);
        // Until it is rejected.
        let _ = std::io::Read::read(&mut bad, &mut [0; 1]);
    }
    let mut other = connect(&socket);
    other.write_all(&[beginning(&["/other"]), frames(0, 0..100)].concat()).unwrap();
    for mut producer in [good, other] {
        producer.shutdown(std::net::Shutdown::Write).unwrap();
        // Until it was read to its end.
        let _ = std::io::Read::read(&mut producer, &mut [0; 1]);
    }
    kill_process(pid, Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("declares 2000000 bytes every 1 ns"), "{}", stderr(&output));
    let found = read(dir.path());
    assert_eq!((found["/good"].len(), found["/other"].len()), (100, 100));
}

#[test]
fn a_producer_whose_topics_cannot_be_recorded_is_rejected_before_the_start_too() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("socket");
    let input = format!("unix:{}", socket.display());
    let arguments = ["--input", &input, "--framing", "frames", "--producers", "2"];
    let child = record(dir.path(), &arguments);
    let mut good = connect(&socket);
    good.write_all(&[beginning(&["/good"]), frames(0, 0..10)].concat()).unwrap();
    let latched = |name: &str| {
        let metadata = vec![("steadyio.latched".into(), "true".into())];
        Topic { metadata, record_bytes_max: 60_000, ..topic(name) }
    };
    let bad = [
        vec![topic(&"t".repeat(257))],
        vec![topic("")],
        vec![Topic { record_bytes_max: 0, ..topic("/none") }],
        ["/1", "/2", "/3", "/4", "/5"].map(latched).to_vec(),
    ];
    for topics in bad {
        let mut bad = connect(&socket);
        let frames = (0..).zip(&topics).flat_map(|(id, topic)| topic_frame(id, topic).unwrap());
        let _ = bad.write_all(&[HEAD.to_vec(), frames.collect(), begin_frame()].concat());
        bad.shutdown(std::net::Shutdown::Write).unwrap();
        wait_for_close(&bad);
    }
    let mut other = connect(&socket);
    other.write_all(&[beginning(&["/other"]), frames(0, 0..10)].concat()).unwrap();
    for stream in [&good, &other] {
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        wait_for_close(stream);
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert_eq!(stderr(&output).matches("steady: rejected").count(), 4, "{}", stderr(&output));
    assert_eq!(total(&output, "durable"), 20);
}
