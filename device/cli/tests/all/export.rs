// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady export` of real recordings, read back with the official reader.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use mcap::Summary;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use steadyio_recorder::stream::encode::{
    HEAD, begin_frame, published_frame, record_frame, topic_frame,
};
use steadyio_recorder::stream::frames::Topic;

use crate::common::{stderr, valid_json};

const SCHEMA: &str = "export-1.schema.json";
const TOPICS: [&str; 2] = ["/camera/image", "/joint"];
const S: u64 = 1_000_000_000;

/// Topic, log time, payload.
pub type Sent = (String, u64, Vec<u8>);

pub fn topic(name: &str) -> Topic {
    Topic {
        topic: name.into(),
        message_encoding: "raw".into(),
        schema_name: "Block".into(),
        schema_encoding: "text".into(),
        schema_data: b"bytes".to_vec(),
        metadata: Vec::new(),
        record_bytes_max: 4_000,
        period_ns: 0,
    }
}

/// The images come half a second late.
pub fn records(count: u64) -> Vec<Sent> {
    let record = |number: u64| {
        let late_ns = if number % 2 == 0 { S / 2 } else { 0 };
        let log_time_ns = 10 * S + number * 1_000_000 - late_ns;
        let payload = vec![number as u8; 1_000 + (number % 7) as usize * 400];
        (TOPICS[number as usize % 2].to_string(), log_time_ns, payload)
    };
    (0..count).map(record).collect()
}

pub fn by_time(mut sent: Vec<Sent>) -> Vec<Sent> {
    sent.sort_by_key(|sent| sent.1);
    sent
}

pub fn steady(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub fn recorder(dir: &Path, arguments: &[&str]) -> Child {
    let mut command = steady(&["record", "--input", "-", "--framing", "frames", "--block"]);
    command.args(["--no-lock", "--quiet", "--segments", "4", "--segment-size", "1M"]);
    command.args(["--unit", "64K", "--loss-window", "50ms"]).args(arguments);
    command.arg("--dir").arg(dir).stdin(Stdio::piped());
    command.spawn().unwrap()
}

pub fn frames(sent: &[Sent]) -> Vec<u8> {
    let id = |name: &str| TOPICS.iter().position(|topic| *topic == name).unwrap() as u16;
    sent.iter().flat_map(|(name, ns, data)| record_frame(id(name), *ns, data).unwrap()).collect()
}

pub fn head() -> Vec<u8> {
    let topics = TOPICS.iter().zip(0..).map(|(name, id)| topic_frame(id, &topic(name)).unwrap());
    [HEAD.to_vec(), topics.collect::<Vec<_>>().concat(), begin_frame()].concat()
}

/// A recording of all of this.
pub fn record(dir: &Path, sent: &[Sent]) {
    record_with(dir, sent, &[]);
}

fn record_with(dir: &Path, sent: &[Sent], arguments: &[&str]) {
    let mut child = recorder(dir, arguments);
    child.stdin.take().unwrap().write_all(&[head(), frames(sent)].concat()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

fn export(dir: &Path, out: &Path, arguments: &[&str]) -> Output {
    steady(&["export", "--json", "--output"]).arg(out).arg(dir).args(arguments).output().unwrap()
}

fn read(path: &Path) -> Vec<Sent> {
    messages(&fs::read(path).unwrap())
}

pub fn messages(file: &[u8]) -> Vec<Sent> {
    let messages = mcap::MessageStream::new(file).unwrap().map(Result::unwrap);
    let sent = |message: mcap::Message<'_>| {
        assert_eq!(message.channel.schema.as_ref().unwrap().data.as_ref(), b"bytes");
        (message.channel.topic.clone(), message.log_time, message.data.to_vec())
    };
    messages.map(sent).collect()
}

pub fn pool(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let paths = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = paths.map(|path| (path.clone(), fs::read(&path).unwrap())).collect();
    files.sort();
    files
}

#[test]
fn every_message_comes_out_in_order_whatever_the_compression() {
    let dir = tempfile::tempdir().unwrap();
    let recording = dir.path().join("recording");
    let sent = records(1_000);
    record(&recording, &sent);
    let before = pool(&recording);
    for (compression, smaller) in [("zstd", true), ("lz4", true), ("none", false)] {
        let out = dir.path().join("out.mcap");
        let output = export(&recording, &out, &["--compression", compression]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let summary: Value = valid_json(&output, SCHEMA);
        let found = read(&out);
        assert!(found == by_time(sent.clone()), "{compression}");
        assert_eq!(summary["messages"], 1_000);
        assert_eq!(summary["out_of_order"], 0);
        assert_eq!(summary["bytes"], fs::metadata(&out).unwrap().len());
        assert_eq!(summary["bytes"].as_u64().unwrap() < 1 << 20, smaller);
        let account = &summary["recordings"][0]["channels"]["/joint"];
        assert_eq!((&account["received"], &account["lost"]), (&500.into(), &0.into()));
    }
    assert!(pool(&recording) == before);
}

#[test]
fn the_index_and_what_is_known_of_the_recordings_are_in_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let recording = dir.path().join("recording");
    record(&recording, &records(300));
    // None continues one with another profile.
    record_with(&recording, &records(300), &["--profile", "other"]);
    let out = dir.path().join("out.mcap");
    let output = export(&recording, &out, &[]);
    let summary: Value = valid_json(&output, SCHEMA);
    assert_eq!(summary["recordings"].as_array().unwrap().len(), 2);
    let bytes = fs::read(&out).unwrap();
    let index = Summary::read(&bytes).unwrap().unwrap();
    assert_eq!(index.stats.as_ref().unwrap().message_count, 600);
    // The same topic of both recordings is one channel.
    assert_eq!((index.channels.len(), index.schemas.len()), (2, 1));
    let indexed: usize = index
        .chunk_indexes
        .iter()
        .map(|chunk| index.stream_chunk(&bytes, chunk).unwrap().map(Result::unwrap).count())
        .sum();
    assert_eq!(indexed, 600);
    let names: Vec<&str> = index.metadata_indexes.iter().map(|place| place.name.as_str()).collect();
    assert_eq!(names, ["steadyio.export", "steadyio.recording", "steadyio.recording"]);
}

#[test]
fn profile_metadata_and_publish_times_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let recording = dir.path().join("recording");
    let mut child = recorder(&recording, &["--profile", "ros2"]);
    let metadata = vec![("offered_qos_profiles".to_string(), "- depth: 1".to_string())];
    let topic = Topic { metadata: metadata.clone(), ..topic("/a") };
    let stream = [
        HEAD.to_vec(),
        topic_frame(1, &topic).unwrap(),
        begin_frame(),
        published_frame(1, 5, 3, b"first").unwrap(),
        record_frame(1, 6, b"second").unwrap(),
    ];
    child.stdin.take().unwrap().write_all(&stream.concat()).unwrap();
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
    let out = dir.path().join("out.mcap");
    assert_eq!(export(&recording, &out, &[]).status.code(), Some(0));
    let bytes = fs::read(&out).unwrap();
    let found: Vec<_> = mcap::MessageStream::new(&bytes).unwrap().map(Result::unwrap).collect();
    let times: Vec<_> = found.iter().map(|one| (one.log_time, one.publish_time)).collect();
    assert_eq!(times, [(5, 3), (6, 6)]);
    assert_eq!(found[0].channel.metadata, metadata.into_iter().collect());
    let first = mcap::read::LinearReader::new(&bytes).unwrap().next();
    let Some(Ok(mcap::records::Record::Header(header))) = first else { panic!("{first:?}") };
    assert_eq!(header.profile, "ros2");
}

#[test]
fn topics_and_times_choose_the_messages() {
    let dir = tempfile::tempdir().unwrap();
    let recording = dir.path().join("recording");
    let sent = records(1_000);
    record(&recording, &sent);
    let out = dir.path().join("out.mcap");
    let wanted = |topics: &[&str], from_ns: u64, to_ns: u64| {
        let sent = by_time(sent.clone()).into_iter();
        sent.filter(|(topic, ns, _)| {
            topics.contains(&topic.as_str()) && (from_ns..to_ns).contains(ns)
        })
        .collect::<Vec<_>>()
    };
    // The last message has 10.999 s.
    for (arguments, topics, from_ns, to_ns) in [
        (&["--topics", "/joint"][..], &["/joint"][..], 0, u64::MAX),
        (&["--topics", "/cam*", "--from", "9.75"], &["/camera/image"], 9_750_000_000, u64::MAX),
        (
            &["--from", "10.1", "--to", "1970-01-01T00:00:10.200Z"],
            &TOPICS,
            10_100_000_000,
            10_200_000_000,
        ),
        (&["--from", "-100ms", "--to=-50ms"], &TOPICS, 10_899_000_000, 10_949_000_000),
    ] {
        let output = export(&recording, &out, arguments);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(read(&out) == wanted(topics, from_ns, to_ns), "{arguments:?}");
    }
}

#[test]
fn a_recording_that_was_cut_off_is_exported_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let (recording, crashed) = (dir.path().join("recording"), dir.path().join("crashed"));
    let sent = records(600);
    let child = running(&recording, &sent);
    // What a crash at this moment leaves.
    fs::create_dir(&crashed).unwrap();
    for (path, bytes) in pool(&recording) {
        fs::write(crashed.join(path.file_name().unwrap()), bytes).unwrap();
    }
    end(child);
    let before = pool(&crashed);
    let out = dir.path().join("out.mcap");
    let output = export(&crashed, &out, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(read(&out) == by_time(sent));
    assert!(pool(&crashed) == before);
}

/// A recorder that has made all of this durable, and waits for more.
pub fn running(recording: &Path, sent: &[Sent]) -> Child {
    let log = recording.with_extension("log");
    let mut child = recorder(recording, &["--account-log", log.to_str().unwrap()]);
    let input = child.stdin.as_mut().unwrap();
    input.write_all(&[head(), frames(sent)].concat()).unwrap();
    let durable = || {
        let text = fs::read_to_string(&log).unwrap_or_default();
        let line = text.lines().rev().nth(1)?.split(' ').nth(3)?.parse::<usize>();
        line.ok()
    };
    while durable() != Some(sent.len()) {
        thread::sleep(Duration::from_millis(5));
    }
    child
}

pub fn end(mut child: Child) {
    drop(child.stdin.take());
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
}

#[test]
fn what_is_durable_is_exported_while_the_recording_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let recording = dir.path().join("recording");
    let sent = records(600);
    let mut child = running(&recording, &sent);
    let out = dir.path().join("out.mcap");
    let output = export(&recording, &out, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(read(&out) == by_time(sent));
    // The recorder was not disturbed.
    let more = records(700).split_off(600);
    child.stdin.as_mut().unwrap().write_all(&frames(&more)).unwrap();
    end(child);
    assert_eq!(export(&recording, &out, &[]).status.code(), Some(0));
    assert!(read(&out) == by_time(records(700)));
}

#[test]
fn a_damaged_block_costs_itself_and_the_exit_status_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let recording = dir.path().join("recording");
    let sent = records(600);
    record(&recording, &sent);
    let path = recording.join("segment-00000.mcap");
    let mut bytes = fs::read(&path).unwrap();
    bytes[300_000] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let out = dir.path().join("out.mcap");
    let output = export(&recording, &out, &[]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("damaged: 1 blocks, "), "{}", stderr(&output));
    let summary: Value = valid_json(&output, SCHEMA);
    assert_eq!(summary["missing"]["durable_blocks"], 1);
    let (found, sent) = (read(&out), by_time(sent));
    assert!(found.len() > 500 && found.len() < 600, "{}", found.len());
    assert!(found.iter().all(|message| sent.contains(message)));
    assert!(found.is_sorted_by_key(|message| message.1));
}

#[test]
fn a_segment_that_cannot_be_read_is_named_and_the_others_are_exported() {
    let dir = tempfile::tempdir().unwrap();
    let recording = dir.path().join("recording");
    record(&recording, &records(900));
    let aside = recording.join("segment-00000.mcap.damaged-1");
    fs::rename(recording.join("segment-00000.mcap"), &aside).unwrap();
    let mut bytes = fs::read(&aside).unwrap();
    let (head, end) = (4_096 + 200, bytes.len() - 100);
    bytes[head] ^= 1;
    bytes[end] ^= 1;
    fs::write(&aside, &bytes).unwrap();
    let out = dir.path().join("out.mcap");
    let output = export(&recording, &out, &[]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("damaged-1: holds data, but its definitions"));
    let summary: Value = valid_json(&output, SCHEMA);
    assert_eq!(summary["unreadable"][0]["path"], aside.to_str().unwrap());
    assert!(read(&out).len() > 100);
}

#[test]
fn only_a_regular_file_that_is_no_segment_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let recording = dir.path().join("recording");
    record(&recording, &records(100));
    let (link, folder) = (dir.path().join("link"), dir.path().join("folder"));
    let target = dir.path().join("target");
    fs::write(&target, "kept").unwrap();
    symlink(&target, &link).unwrap();
    fs::create_dir(&folder).unwrap();
    let segment = recording.join("segment-00000.mcap");
    let linked = dir.path().join("linked.mcap");
    fs::hard_link(&segment, &linked).unwrap();
    let aside = recording.join("segment-00002.mcap.damaged-1");
    fs::write(&aside, "kept").unwrap();
    let before = pool(&recording);
    for (out, says) in [
        (&link, "is not a regular file"),
        (&folder, "is not a regular file"),
        (&segment, "is a segment"),
        (&linked, "is a segment"),
        (&recording.join("segment-00077.mcap"), "the name of one"),
        (&recording.join("segment-00000.mcap.damaged-9"), "is a file of a recording"),
        (&recording.join("pool.json"), "is a file of a recording"),
        (&aside, "is a segment"),
        (&dir.path().join("none/out.mcap"), "No such file"),
    ] {
        let output = export(&recording, out, &[]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
    assert!(pool(&recording) == before);
    assert_eq!(fs::read(&target).unwrap(), b"kept");
    fs::remove_file(aside).unwrap();
    // A regular file is.
    assert_eq!(export(&recording, &target, &[]).status.code(), Some(0));
    assert_eq!(read(&target).len(), 100);
}

#[test]
fn an_export_whose_summary_cannot_be_printed_leaves_the_output_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let recording = dir.path().join("recording");
    record(&recording, &records(100));
    let out = dir.path().join("out.mcap");
    fs::write(&out, "kept").unwrap();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = steady(&["export", "--output"]);
    let output = command.arg(&out).arg(&recording).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("standard output: No space left"), "{}", stderr(&output));
    assert_eq!(fs::read(&out).unwrap(), b"kept");
}

#[test]
fn what_selects_nothing_is_an_error_and_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let recording = dir.path().join("recording");
    record(&recording, &records(100));
    let out = dir.path().join("out.mcap");
    for (arguments, status, says) in [
        (&["--topics", "/join"][..], 2, "no such topic; must be one of /camera/image, /joint"),
        (&["--from", "12", "--to", "11"], 2, "--from 12.000000: must be before --to 11.000000"),
        (&["--to", "1"], 1, "the recording has log times from 9.500000 to 10.099000"),
        (&["--from", "10.0975", "--to", "10.0978"], 1, "no message from 10.097500"),
    ] {
        let output = export(&recording, &out, arguments);
        assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
    let empty = tempfile::tempdir().unwrap();
    let output = export(empty.path(), &out, &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("has no segment"), "{}", stderr(&output));
    assert!(!out.exists());
}

#[test]
fn an_interrupted_export_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let (recording, place) = (dir.path().join("recording"), dir.path().join("place"));
    record(&recording, &records(1_200));
    fs::create_dir(&place).unwrap();
    let out = place.join("out.mcap");
    let mut export = steady(&["export", "--output"]);
    let mut child = export.arg(&out).arg(&recording).spawn().unwrap();
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    let is_begun = || fs::read_dir(&place).unwrap().next().is_some();
    while !is_begun() && child.try_wait().unwrap().is_none() {
        thread::yield_now();
    }
    // It has the signal before it goes on.
    kill_process(pid, Signal::STOP).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    kill_process(pid, Signal::CONT).unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{said}");
    assert!(said.contains("interrupted; no file was made"), "{said}");
    assert!(!is_begun(), "something was left");
}
