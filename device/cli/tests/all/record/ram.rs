// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady record --ram`: only records around an incident are written.

use std::fs;
use std::process::Output;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use steadyio_testing::recording::messages;

use super::incidents::{LONG, Pool, Recorder, stdout};
use crate::common::{stderr, valid_json};

/// Records in this memory, 1 MiB, when it is full: their headers take 34 bytes each.
const RECORDS: u64 = (1 << 20) / 4_034;

fn ram(pool: &Pool, arguments: &[&str]) -> Recorder {
    let all =
        [&["--ram", "1M", "--late-topics", "0", "--loss-window", "50ms", "--json"], arguments];
    pool.record("6", 0, &all.concat())
}

fn total(output: &Output, what: &str) -> u64 {
    let result: Value = valid_json(output, "recording-1.schema.json");
    result["ledger"]["total"][what]["records"].as_u64().unwrap_or(0)
}

fn signal(recorder: &Recorder) {
    kill_process(Pid::from_child(&recorder.child), Signal::USR1).unwrap();
}

fn wait_for_incidents(pool: &Pool, count: usize) -> Value {
    let started = Instant::now();
    loop {
        let incidents = pool.list(0);
        if incidents.as_array().unwrap().len() == count {
            return incidents;
        }
        assert!(started.elapsed() < LONG, "{incidents}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn nothing_is_written_but_what_came_around_an_incident() {
    let pool = Pool::new();
    let mut recorder = ram(&pool, &["--incident-after", "2s"]);
    recorder.send(40);
    recorder.wait_for("buffered", 40);
    thread::sleep(Duration::from_millis(2_500));
    recorder.send(60);
    let status = recorder.wait_for("buffered", 100);
    assert_eq!(status["writer"]["device_bytes"], 0);
    assert_eq!(status["config"]["incident_after_ns"], 2_000_000_000);
    let unused = fs::read_dir(pool.dir()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(unused.filter(|name| name.to_string_lossy().ends_with(".unused")).count(), 6);

    let output = thread::scope(|scope| {
        let keep = scope.spawn(|| recorder.keep("crash", "2s"));
        recorder.wait_for("durable", 60);
        keep.join().unwrap()
    });
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = stdout(&output);
    assert!(said.starts_with("incident crash: kept the last "), "{said}");
    recorder.send(30);
    recorder.wait_for("received", 130);
    let output = recorder.end();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!((total(&output, "durable"), total(&output, "expired")), (60, 70));
    assert_eq!(pool.exported_times("crash"), (40..100).collect::<Vec<u64>>());
}

#[test]
fn a_topic_that_falls_silent_begins_an_incident() {
    let pool = Pool::new();
    let rate = ["--incident-rate", "/none<1", "--incident-rate", "/a<5"];
    let times = ["--incident-after", "100ms", "--incident-last", "1h"];
    let mut recorder = ram(&pool, &[&rate[..], &times].concat());
    for _ in 0..30 {
        recorder.send(1);
        thread::sleep(Duration::from_millis(50));
    }
    let name = wait_for_incidents(&pool, 1)[0]["incident"]["name"].as_str().unwrap().to_string();
    let output = recorder.end();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("steady: /a: ") && said.contains("fewer than 5 per second"), "{said}");
    assert!(said.contains("--incident-rate: no topic \"/none\" was recorded"), "{said}");
    // On a busy machine the pause may have come before all were sent.
    let times = pool.exported_times(&name);
    assert!(!times.is_empty() && times == (0..times.len() as u64).collect::<Vec<u64>>(), "{said}");
}

#[test]
fn two_signals_at_once_leave_no_gap_and_write_each_message_once() {
    let pool = Pool::new();
    let mut recorder = ram(&pool, &["--incident-after", "2s", "--incident-last", "1h"]);
    recorder.send(50);
    recorder.wait_for("buffered", 50);
    signal(&recorder);
    recorder.wait_for("durable", 50);
    recorder.send(50);
    recorder.wait_for("durable", 100);
    signal(&recorder);
    let incidents = wait_for_incidents(&pool, 2);
    let taken_ns = |at: usize| incidents[at]["incident"]["to_ns"].as_u64().unwrap();
    assert!(taken_ns(1) - taken_ns(0) < 2_000_000_000, "the second did not wait: {incidents}");
    recorder.send(50);
    recorder.wait_for("received", 150);
    let output = recorder.end();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let hundred: Vec<u64> = (0..100).collect();
    for incident in incidents.as_array().unwrap() {
        assert_eq!(pool.exported_times(incident["incident"]["name"].as_str().unwrap()), hundred);
    }
    let mut written: Vec<u64> = messages(&pool.dir()).iter().map(|one| one.log_time).collect();
    written.sort_unstable();
    assert_eq!(written, hundred);
}

#[test]
fn a_memory_that_is_too_small_for_the_incident_is_told() {
    let pool = Pool::new();
    let mut recorder = ram(&pool, &["--incident-after", "1ms", "--incident-last", "1h"]);
    recorder.send(RECORDS + 100);
    recorder.wait_for("received", RECORDS + 100);
    let output = recorder.keep("crash", "1h");
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stdout(&output).contains("the rest is not there any more"), "{}", stdout(&output));
    let said = stdout(&recorder.ask(&["status"]));
    assert!(said.contains(&format!("{RECORDS}   100\n")), "{said}");
    let output = recorder.end();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert_eq!((total(&output, "lost_ram_full"), total(&output, "durable")), (100, RECORDS));
    let said = stderr(&output);
    let end = "steady: 100 records of incidents had left the memory: --ram is too small\n";
    assert!(said.ends_with(end), "{said}");
    assert_eq!(pool.exported_times("crash"), (100..100 + RECORDS).collect::<Vec<u64>>());
}

#[test]
fn the_end_of_the_recording_ends_an_incident() {
    let pool = Pool::new();
    let mut recorder = ram(&pool, &["--incident-after", "1h", "--incident-last", "1h"]);
    recorder.send(50);
    recorder.wait_for("buffered", 50);
    signal(&recorder);
    recorder.wait_for("durable", 50);
    recorder.send(500);
    let output = recorder.end();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let name = pool.list(0)[0]["incident"]["name"].as_str().unwrap().to_string();
    assert_eq!(pool.exported_times(&name), (0..550).collect::<Vec<u64>>());
}
