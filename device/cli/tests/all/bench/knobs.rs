// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady bench` with the real fio on a real block device (a loop device of this machine).

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use steadyio_testing::skip;

use crate::common::{DISK_MIB, Loop, loop_device, stderr, valid_record};

const JOBS: &str = r#"
schema = "steadyio.workload/1"
name = "loop"
seed = 7
settle_ms = 1

[[job]]
name = "rt"
class = "rt"
op = "randread"
bs_kib = 64
ioprio = "rt/0"

[[job]]
name = "bg"
class = "bg"
op = "randread"
bs_kib = 512
depth = 4
ioprio = "idle"
"#;

const IOS: &str = "length = { ios = 100 }\n";
const LONG: &str = "length = { seconds = 60 }\n";
const DEADLINE: &str = r#"
[[variant]]
name = "mq-deadline"
knobs = { scheduler = "mq-deadline", "iosched/read_expire" = 120, "queue/max_sectors_kb" = 64 }
"#;

/// Top-level keys come first in TOML, so the length goes in front.
fn workload(length: &str, rest: &[&str]) -> String {
    format!("{length}{JOBS}{}", rest.concat())
}

fn knobs_before(disk: &Loop) -> Vec<(&'static str, String)> {
    // Not the defaults: the restored values must be the earlier ones.
    disk.set_knob("scheduler", "bfq");
    disk.set_knob("iosched/slice_idle", "3");
    disk.set_knob("max_sectors_kb", "512");
    let names = ["scheduler", "iosched/slice_idle", "max_sectors_kb", "nr_requests"];
    names.map(|name| (name, disk.knob(name))).to_vec()
}

fn assert_knobs(disk: &Loop, before: &[(&str, String)]) {
    for (name, value) in before {
        assert_eq!(disk.knob(name), *value, "{name} was not restored");
    }
}

#[test]
fn measures_every_point_and_puts_the_knobs_back() {
    let Some(disk) = loop_device() else { return };
    let before = knobs_before(&disk);
    let sweep = "[sweep]\nkey = \"bg.bs_kib\"\nvalues = [4, 512]\n";
    let none = "[[variant]]\nname = \"none\"\nknobs = { scheduler = \"none\" }\n";
    let spec = workload(IOS, &[sweep, none, DEADLINE]);
    let output = disk.bench(&spec).arg("--json").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_knobs(&disk, &before);
    let record = valid_record(&output);
    let results = record["results"].as_array().unwrap();
    let order: Vec<_> =
        results.iter().map(|r| (r["variant"].clone(), r["point"].clone())).collect();
    let expected = [("none", 4), ("none", 512), ("mq-deadline", 4), ("mq-deadline", 512)];
    assert_eq!(order, expected.map(|(variant, point)| (json!(variant), json!(point))));
    for result in results {
        let classes = &result["classes"];
        assert_eq!(classes["rt"]["count"], 100);
        assert_eq!(classes["rt"]["bytes"], 100 * 64 * 1024);
        assert_eq!(classes["bg"]["bs_kib"], result["point"]);
        let sum = 100 + classes["bg"]["count"].as_u64().unwrap();
        assert_eq!(classes["total"]["count"], sum);
        let bins = classes["total"]["histogram_ns"].as_array().unwrap();
        assert_eq!(bins.iter().map(|bin| bin[1].as_u64().unwrap()).sum::<u64>(), sum);
    }
    let mq_deadline = &results[2];
    assert_eq!(
        mq_deadline["knobs"]["queue/max_sectors_kb"],
        json!({"wanted": 64, "read_back": 64})
    );
    assert_eq!(mq_deadline["queue"]["iosched/read_expire"], 120);
    assert_eq!(results[0]["queue"]["scheduler"], "none");
}

#[test]
fn a_sweep_over_knobs_sets_each_value() {
    let Some(disk) = loop_device() else { return };
    let sweep = "[sweep]\nkey = \"knobs\"\nvalues = [4, 128]\n";
    let variant = "[[variant]]\nname = \"v\"\nknobs = { \"queue/max_sectors_kb\" = \"$point\" }\n";
    let spec = workload(IOS, &[sweep, variant]);
    let output = disk.bench(&spec).args(["--json", "--point", "128"]).output().unwrap();
    let record = valid_record(&output);
    assert_eq!(record["results"].as_array().unwrap().len(), 1);
    assert_eq!(record["results"][0]["queue"]["max_sectors_kb"], 128);
}

#[test]
fn a_point_may_move_more_than_the_device_holds() {
    let Some(disk) = loop_device() else { return };
    for op in ["read", "randread"] {
        let jobs = JOBS.replace("\"randread\"", &format!("\"{op}\""));
        let spec = format!("length = {{ ios = 1500 }}\n{jobs}[[variant]]\nname = \"as-is\"\n");
        let output = disk.bench(&spec).arg("--json").output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let rt = &valid_record(&output)["results"][0]["classes"]["rt"];
        assert_eq!((&rt["count"], &rt["errors"]), (&json!(1500), &json!(0)));
        assert!(rt["bytes"].as_u64().unwrap() > DISK_MIB << 20);
    }
}

#[test]
fn think_times_with_jitter_are_kept() {
    let Some(disk) = loop_device() else { return };
    let jobs = JOBS.replace("ioprio = \"rt/0\"", "think_us = 2000\nthink_jitter_us = 500");
    let spec = format!("{IOS}{jobs}[[variant]]\nname = \"as-is\"\n");
    let output = disk.bench(&spec).arg("--json").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let record = valid_record(&output);
    assert_eq!(record["results"][0]["classes"]["rt"]["count"], 100);
    // A pause may take longer than asked for, never less: 100 of at least 1.5 ms.
    let duration_ns = record["results"][0]["duration_ns"].as_u64().unwrap();
    assert!(duration_ns >= 150_000_000, "{duration_ns} ns is shorter than the pauses alone");
}

#[test]
fn arrivals_are_kept_beside_fio() {
    let Some(disk) = loop_device() else { return };
    let arrivals = "ioprio = \"rt/0\"\narrivals = \"periodic\"\ngap_us = 2000\njitter_us = 500";
    let jobs = JOBS.replace("ioprio = \"rt/0\"", arrivals);
    let spec = format!("{IOS}{jobs}[[variant]]\nname = \"as-is\"\n");
    let output = disk.bench(&spec).arg("--json").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let record = valid_record(&output);
    let result = &record["results"][0];
    assert_eq!(result["classes"]["rt"]["count"], 100);
    assert!(result["classes"]["bg"]["count"].as_u64().unwrap() > 0, "fio ran meanwhile");
    // The last of 100 comes after 200 ms, half a millisecond sooner at most.
    let duration_ns = result["duration_ns"].as_u64().unwrap();
    assert!(duration_ns >= 199_500_000, "{duration_ns} ns: not all arrivals can have come");
}

#[test]
fn the_processes_of_a_job_run_until_the_real_time_job_ends() {
    let Some(disk) = loop_device() else { return };
    for job in ["ioprio = \"rt/0\"", "ioprio = \"rt/0\"\narrivals = \"poisson\"\ngap_us = 2000"] {
        let jobs = JOBS.replace("depth = 4", "processes = 1").replace("ioprio = \"rt/0\"", job);
        let sweep = "[sweep]\nkey = \"bg.processes\"\nvalues = [1, 20]\n";
        let spec = format!("{IOS}{jobs}{sweep}[[variant]]\nname = \"as-is\"\n");
        let output = disk.bench(&spec).arg("--json").output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let record = valid_record(&output);
        let counts = |class: &str| {
            [0, 1].map(|point| record["results"][point]["classes"][class]["count"].as_u64())
        };
        assert_eq!(counts("rt"), [Some(100); 2], "{job}");
        // On a busy machine the real-time job may end before each of 20 processes has started.
        assert!(counts("bg").iter().all(|count| *count > Some(0)), "{job}: {:?}", counts("bg"));
    }
}

/// Waits until `steady` has set the knobs and its fio runs.
fn wait_for_fio(disk: &Loop, steady: u32) -> u32 {
    let children = format!("/proc/{steady}/task/{steady}/children");
    let deadline = Instant::now() + Duration::from_secs(60);
    while Instant::now() < deadline {
        let text = fs::read_to_string(&children).unwrap_or_default();
        if let Some(fio) = text.split_whitespace().next().and_then(|pid| pid.parse().ok()) {
            let threads = fs::read_dir(format!("/proc/{fio}/task")).map_or(0, Iterator::count);
            if disk.knob("scheduler").contains("[mq-deadline]") && threads > 1 {
                return fio;
            }
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("fio did not start");
}

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal).unwrap();
}

fn gone(pid: u32) -> bool {
    // A zombie waiting for its new parent counts as gone.
    fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
}

#[test]
fn ctrl_c_ends_fio_and_puts_the_knobs_back() {
    let Some(disk) = loop_device() else { return };
    for interrupt in [Signal::INT, Signal::TERM] {
        let before = knobs_before(&disk);
        let out = disk.dir.path().join("record.json");
        let mut command = disk.bench(&workload(LONG, &[DEADLINE]));
        let steady = command.arg("--out").arg(&out).stderr(Stdio::piped()).spawn().unwrap();
        let fio = wait_for_fio(&disk, steady.id());
        signal(steady.id(), interrupt);
        let output = steady.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
        assert_knobs(&disk, &before);
        assert!(gone(fio), "fio outlived steady");
        assert!(!out.exists(), "an interrupted run left a record");
    }
}

#[test]
fn the_next_run_mends_what_a_killed_one_left() {
    let Some(disk) = loop_device() else { return };
    let before = knobs_before(&disk);
    let mut steady =
        disk.bench(&workload(LONG, &[DEADLINE])).stderr(Stdio::null()).spawn().unwrap();
    let fio = wait_for_fio(&disk, steady.id());
    let second = disk.bench(&workload(IOS, &[DEADLINE])).output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert!(stderr(&second).contains("another run"), "{}", stderr(&second));
    signal(steady.id(), Signal::KILL);
    steady.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !gone(fio) && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(10));
    }
    assert!(gone(fio), "fio outlived a killed steady");
    assert!(disk.knob("scheduler").contains("[mq-deadline]"));
    let output = disk.bench(&workload(IOS, &[DEADLINE])).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("an earlier run was killed"), "{}", stderr(&output));
    assert_knobs(&disk, &before);
}

#[test]
fn failed_ios_are_counted_and_shown_by_the_exit_status() {
    let Some(disk) = loop_device() else { return };
    // Reads behind the end of the backing file fail.
    fs::File::options().write(true).open(&disk.backing).unwrap().set_len(32 << 20).unwrap();
    let output = disk
        .bench(&workload(IOS, &["[[variant]]\nname = \"as-is\"\n"]))
        .arg("--json")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let rt = &valid_record(&output)["results"][0]["classes"]["rt"];
    let (count, errors) = (rt["count"].as_u64().unwrap(), rt["errors"].as_u64().unwrap());
    assert!(errors > 0 && count > 0, "half of the device fails: {count} done, {errors} failed");
    assert_eq!(count + errors, 100);
}

#[test]
fn knobs_the_kernel_refuses_are_errors_unless_optional() {
    let Some(disk) = loop_device() else { return };
    let before = knobs_before(&disk);
    let cases = [
        ("scheduler = \"no-such\"", "offered: ", "scheduler"),
        ("\"iosched/no_such\" = 1", "no such knob", "iosched/no_such"),
        ("\"queue/max_sectors_kb\" = 1", "rejected by the kernel", "queue/max_sectors_kb"),
    ];
    for (knob, reason, key) in cases {
        let variant = format!("[[variant]]\nname = \"v\"\nknobs = {{ {knob} }}\n");
        let output = disk.bench(&workload(IOS, &[&variant])).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert!(stderr(&output).contains(reason), "{}", stderr(&output));
        assert_knobs(&disk, &before);
        let optional = format!("{variant}optional = [\"{key}\"]\n");
        let output = disk.bench(&workload(IOS, &[&optional])).arg("--json").output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        let unmet = &valid_record(&output)["unmet"];
        assert_eq!(unmet[0]["knob"], key);
        assert!(unmet[0]["reason"].as_str().unwrap().contains(reason));
        assert_knobs(&disk, &before);
    }
}

#[test]
fn a_partition_has_its_disks_knobs_and_protects_its_disk() {
    let Some(disk) = loop_device() else { return };
    // Start and length in sectors.
    let added = Command::new("addpart").args([&disk.node, "1", "2048", "65536"]).status();
    if !added.is_ok_and(|status| status.success()) {
        skip("no addpart, or no partitions on loop devices");
        return;
    }
    let before = knobs_before(&disk);
    let partition = format!("{}p1", disk.node);
    let node_there = std::path::Path::new(&partition).exists();
    let whole = disk.bench(&writing()).output().unwrap();
    let part = node_there.then(|| {
        disk.bench_on(&partition, &workload(IOS, &[DEADLINE])).arg("--json").output().unwrap()
    });
    let removed = Command::new("delpart").args([&disk.node, "1"]).status().unwrap();
    assert!(removed.success());
    assert_eq!(whole.status.code(), Some(1));
    assert!(stderr(&whole).contains("partitions ("), "{}", stderr(&whole));
    let Some(part) = part else {
        skip("/dev has no node for the partition");
        return;
    };
    assert_eq!(part.status.code(), Some(0), "{}", stderr(&part));
    let record = valid_record(&part);
    assert_eq!(record["device"]["name"], format!("{}p1", disk.name()));
    assert_eq!(record["device"]["disk"], disk.name());
    assert_eq!(record["device"]["size_bytes"], 65536 * 512);
    assert_eq!(record["results"][0]["queue"]["scheduler"], "mq-deadline");
    assert_knobs(&disk, &before);
}

fn writing() -> String {
    workload(IOS, &["[[variant]]\nname = \"as-is\"\n"]).replace("\"randread\"", "\"randwrite\"")
}

#[test]
fn data_is_only_overwritten_with_consent_by_name() {
    let Some(disk) = loop_device() else { return };
    let made = Command::new("mkfs.ext4").args(["-q", &disk.node]).status();
    if !made.is_ok_and(|status| status.success()) {
        skip("no mkfs.ext4");
        return;
    }
    let before = fs::read(&disk.backing).unwrap();
    let refused = disk.bench(&writing()).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("ext2, ext3 or ext4"), "{}", stderr(&refused));
    let wrong = disk.bench(&writing()).args(["--destroy-data", "sda"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(1));
    assert!(fs::read(&disk.backing).unwrap() == before, "a refused run changed the device");
    let output = disk.bench(&writing()).args(["--destroy-data", disk.name()]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(fs::read(&disk.backing).unwrap() != before, "the writes did not reach the device");
}

#[test]
fn a_mounted_device_is_read_but_never_written() {
    let Some(disk) = loop_device() else { return };
    let mount_point = disk.dir.path().join("mnt");
    fs::create_dir(&mount_point).unwrap();
    let made = Command::new("mkfs.ext4").args(["-q", &disk.node]).status();
    let mounted = Command::new("mount").arg(&disk.node).arg(&mount_point).status();
    if !made.is_ok_and(|s| s.success()) || !mounted.is_ok_and(|s| s.success()) {
        skip("cannot make and mount an ext4");
        return;
    }
    let write = disk.bench(&writing()).args(["--destroy-data", disk.name()]).output().unwrap();
    let read = disk.bench(&workload(IOS, &["[[variant]]\nname = \"as-is\"\n"])).output().unwrap();
    let unmounted = Command::new("umount").arg(&mount_point).status().unwrap();
    assert!(unmounted.success());
    assert_eq!(write.status.code(), Some(1));
    assert!(stderr(&write).contains("mounted on"), "{}", stderr(&write));
    assert_eq!(read.status.code(), Some(0), "{}", stderr(&read));
}
