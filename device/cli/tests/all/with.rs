// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady with` on a real block device (a loop device of this machine).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use steadyio_testing::skip;

use crate::common::{Loop, loop_device, stderr, valid_record};

fn with(disk: &Loop, knobs: &[&str], program: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
    command.args(["with", "--device", &disk.node]);
    command.args(knobs.iter().flat_map(|knob| ["--knob", knob]));
    command.arg("--").args(program);
    command
}

fn set_up(disk: &Loop) {
    disk.set_knob("scheduler", "none");
    disk.set_knob("max_sectors_kb", "512");
}

fn assert_put_back(disk: &Loop) {
    assert!(disk.knob("scheduler").contains("[none]"), "{}", disk.knob("scheduler"));
    assert_eq!(disk.knob("max_sectors_kb"), "512");
}

const KNOBS: [&str; 3] =
    ["scheduler=mq-deadline", "iosched/read_expire=120", "queue/max_sectors_kb=64"];

#[test]
fn the_program_sees_the_knobs_and_its_status_is_passed_on() {
    let Some(disk) = loop_device() else { return };
    set_up(&disk);
    let look = "cd /sys/block/$STEADY_DISK/queue && cat scheduler iosched/read_expire \
                max_sectors_kb && test -b $STEADY_DEVICE && exit 7";
    let output = with(&disk, &KNOBS, &["sh", "-c", look]).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    let seen = String::from_utf8(output.stdout).unwrap();
    assert!(seen.contains("[mq-deadline]") && seen.ends_with("120\n64\n"), "{seen}");
    assert_put_back(&disk);
}

/// `steady with --out`, in the disk's directory.
fn recorded(disk: &Loop, options: &[&str], script: &str) -> (Output, PathBuf) {
    let path = disk.dir.path().join("record.json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
    command.args(["with", "--device", &disk.node, "--knob", KNOBS[2], "--out"]).arg(&path);
    command.args(options).args(["--", "sh", "-c", script]).current_dir(disk.dir.path());
    (command.output().unwrap(), path)
}

#[test]
fn the_record_says_what_ran_what_was_set_and_what_the_program_reported() {
    let Some(disk) = loop_device() else { return };
    set_up(&disk);
    let copy = "dd if=/dev/zero of=copy bs=64K count=16 2>dd.txt";
    let options = ["--variant", "small", "--class", "bg=dd,op=write,bs_kib=64:dd.txt"];
    let (output, path) = recorded(&disk, &options, copy);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let record = valid_record(&Output { stdout: fs::read(&path).unwrap(), ..output });
    assert_eq!(record["spec"]["program"], json!(["sh", "-c", copy]));
    assert_eq!(record["device"]["name"], disk.name());
    let result = &record["results"][0];
    assert_eq!(result["variant"], "small");
    assert_eq!(result["knobs"], json!({"queue/max_sectors_kb": {"wanted": 64, "read_back": 64}}));
    assert_eq!(result["queue"]["max_sectors_kb"], 64);
    assert_eq!(result["classes"]["bg"]["count"], 16);
    assert!(result["classes"].get("rt").is_none());
    assert_put_back(&disk);

    let (output, path) = recorded(&disk, &[], "true");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let record = valid_record(&Output { stdout: fs::read(&path).unwrap(), ..output });
    assert_eq!(record["results"][0]["classes"], json!({}));
}

#[test]
fn there_is_no_record_of_a_program_that_failed_or_left_nothing() {
    let Some(disk) = loop_device() else { return };
    set_up(&disk);
    for (options, script, status, says) in [
        (&["--class", "bg=dd:dd.txt"][..], "true", 125, "dd.txt: No such file"),
        (&[], "exit 7", 7, "the program failed: no record"),
    ] {
        let (output, path) = recorded(&disk, options, script);
        assert_eq!(output.status.code(), Some(status));
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
        assert!(!path.exists());
        assert_put_back(&disk);
    }
}

#[test]
fn a_discard_limit_that_the_kernel_refuses_is_put_back_as_far_as_possible() {
    let Some(disk) = loop_device() else { return };
    let number = |attribute: &str| disk.knob(attribute).parse::<u64>().unwrap();
    let (before, granularity) = (number("discard_max_bytes"), number("discard_granularity"));
    if granularity == 0 {
        skip(&format!("{} does not discard", disk.node));
        return;
    }
    // A loop device's own limit is 4 GiB less 512 bytes, usually no multiple; and what would be
    // lowered to it is more than the kernel takes.
    let after = before.min(u32::MAX.into()) / granularity * granularity;
    let knob = format!("queue/discard_max_bytes={}", 16 * granularity);
    let look = "cat /sys/block/$STEADY_DISK/queue/discard_max_bytes";
    let output = with(&disk, &[&knob], &["sh", "-c", look]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(output.stdout, format!("{}\n", 16 * granularity).into_bytes());
    assert_eq!(number("discard_max_bytes"), after);
    let said = format!("discard_max_bytes was {before}, which the kernel does not accept");
    assert_eq!(stderr(&output).contains(&said), after != before, "{}", stderr(&output));

    // A value of one's own has to be one that the kernel takes.
    let knob = format!("queue/discard_max_bytes={}", granularity + 1);
    let output = with(&disk, &[&knob], &["true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    let hint = format!("it takes multiples of discard_granularity, here {granularity}");
    assert!(stderr(&output).contains(&hint), "{}", stderr(&output));
    assert_eq!(number("discard_max_bytes"), after);
}

#[test]
fn knobs_are_put_back_when_it_is_terminated() {
    let Some(disk) = loop_device() else { return };
    set_up(&disk);
    let file = disk.dir.path().join("pid");
    let sleep = format!("echo $$ >{0}.new && mv {0}.new {0} && exec sleep 600", file.display());
    let mut child =
        with(&disk, &KNOBS, &["sh", "-c", &sleep]).stderr(Stdio::piped()).spawn().unwrap();
    let started = Instant::now();
    while !file.exists() {
        assert!(started.elapsed() < Duration::from_secs(60), "the program did not start");
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(disk.knob("max_sectors_kb"), "64");
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
    let sleep = fs::read_to_string(&file).unwrap();
    assert!(!Path::new("/proc").join(sleep.trim()).exists(), "the program went on");
    assert_put_back(&disk);
}

#[test]
fn nothing_runs_when_a_knob_is_refused() {
    let Some(disk) = loop_device() else { return };
    set_up(&disk);
    for (knob, says) in [
        ("iosched/nonsense=1", "no such knob"),
        ("queue/max_sectors_kb=1", "rejected by the kernel"),
    ] {
        let output = with(&disk, &["scheduler=bfq", knob], &["echo", "ran"]).output().unwrap();
        assert_eq!(output.status.code(), Some(125));
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
        assert!(output.stdout.is_empty());
        assert_put_back(&disk);
    }
}

#[test]
fn a_program_that_is_missing_is_named() {
    let Some(disk) = loop_device() else { return };
    set_up(&disk);
    let output = with(&disk, &KNOBS, &["no-such-program"]).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(stderr(&output).contains("no-such-program"), "{}", stderr(&output));
    assert_put_back(&disk);
}
