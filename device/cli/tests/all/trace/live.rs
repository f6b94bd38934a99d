// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady trace` of this kernel: its results, and the privileges that it needs.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use steadyio_testing::skip;

use crate::common::tracing::{
    SCHEMA, fio, groups, mounted_ext4, output, run, start, trace, traced_loop,
};
use crate::common::{Loop, stderr, valid_json};

#[test]
fn each_io_of_a_program_is_there_and_its_spans_add_up() {
    let Some(disk) = traced_loop() else { return };
    let load = fio(&disk, 100);
    let mut command = trace(&["--device", &disk.node, "--json", "--worst", "100", "--"]);
    let output = command.args(load).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let record = valid_json(&output, SCHEMA);
    assert_eq!(groups(&record), [("read 4096".to_string(), 100)]);
    assert_eq!(record["ios"][0]["device"], disk.name());
    assert_eq!(record["account"]["unmatched"], 0);
    let worst = record["worst_ios"].as_array().unwrap();
    assert_eq!(worst.len(), 100);
    for io in worst {
        let spans = io["spans"].as_object().unwrap().values();
        let sum: u64 = spans.map(|ns| ns.as_u64().unwrap()).sum();
        assert_eq!(io["total_ns"], sum, "{io}");
    }
}

#[test]
fn in_a_pid_namespace_a_program_is_shown_and_a_number_refused() {
    let Some(disk) = traced_loop() else { return };
    let inside = |arguments: &[&str], rest: Vec<String>| {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--mount-proc", env!("CARGO_BIN_EXE_steady"), "trace"]);
        command.args(arguments).args(rest).output().unwrap()
    };
    // Of a child of the program's, too.
    let program = ["sh".into(), "-c".into(), format!("{}; true", fio(&disk, 50).join(" "))];
    let shown = inside(&["--device", &disk.node, "--json", "--"], program.to_vec());
    assert_eq!(shown.status.code(), Some(0), "{}", stderr(&shown));
    assert_eq!(groups(&valid_json(&shown, SCHEMA)), [("read 4096".to_string(), 50)]);

    let refused = inside(&["--device", &disk.node, "--pid", "1"], Vec::new());
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        stderr(&refused).contains("process numbers in this container differ"),
        "{}",
        stderr(&refused)
    );
}

#[test]
fn the_model_takes_what_was_traced() {
    let Some(disk) = traced_loop() else { return };
    let file = disk.dir.path().join("trace.json");
    let mut command = trace(&["--device", disk.name(), "--json", "--"]);
    fs::write(&file, command.args(fio(&disk, 50)).output().unwrap().stdout).unwrap();
    let model = Command::new(env!("CARGO_BIN_EXE_steady")).arg("model").arg(&file).output();
    let model = model.unwrap();
    assert_eq!(model.status.code(), Some(0), "{}", stderr(&model));
    let said = String::from_utf8_lossy(&model.stdout).into_owned();
    assert!(said.contains(&format!("{} read 4 KiB", disk.name())), "{said}");
}

#[test]
fn a_kept_trace_says_the_same_when_it_is_read_again() {
    let Some(disk) = traced_loop() else { return };
    let kept = disk.dir.path().join("kept");
    let kept = kept.to_str().unwrap();
    let mut command = trace(&["--device", &disk.node, "--keep", kept, "--json", "--"]);
    let live = valid_json(&command.args(fio(&disk, 50)).output().unwrap(), SCHEMA);
    let again = valid_json(&output(&[kept, "--json"]), SCHEMA);
    assert_eq!(again["account"], live["account"]);
    assert_eq!(groups(&again), groups(&live));
    assert_eq!(again["worst_ios"][0]["total_ns"], live["worst_ios"][0]["total_ns"]);
    assert_eq!(again["scope"]["processes"], "traced");
}

/// Two partitions of a disk, while it lives; or None with the reason printed.
struct Partitions<'disk>(&'disk Loop);

impl Partitions<'_> {
    fn add(disk: &Loop) -> Option<Partitions<'_>> {
        let made = Partitions(disk);
        for (number, begin) in [("1", "2048"), ("2", "32768")] {
            // Begin and length in sectors.
            let added = Command::new("addpart").args([&disk.node, number, begin, "16384"]).status();
            let there = Path::new(&format!("{}p{number}", disk.node)).exists();
            if !(added.is_ok_and(|status| status.success()) && there) {
                skip("no addpart, no partitions on loop devices, or no nodes for them");
                return None;
            }
        }
        Some(made)
    }
}

impl Drop for Partitions<'_> {
    fn drop(&mut self) {
        for number in ["1", "2"] {
            let _ = Command::new("delpart").args([&self.0.node, number]).status();
        }
    }
}

#[test]
fn of_a_partition_only_its_own_io_is_shown() {
    let Some(disk) = traced_loop() else { return };
    let Some(_partitions) = Partitions::add(&disk) else { return };
    let ours = format!("{}p1", disk.node);
    let dd = |from: &str, kib: u32, count: u32| {
        format!("dd if={from} of=/dev/null bs={kib}k count={count} iflag=direct status=none; ")
    };
    let others = dd(&format!("{}p2", disk.node), 16, 5) + &dd(&disk.node, 32, 4);
    let flush =
        format!("dd if=/dev/zero of={ours} bs=8k count=1 oflag=direct conv=fsync status=none");
    let load = dd(&ours, 64, 3) + &others + &flush;
    let kept = disk.dir.path().join("kept");
    let kept = kept.to_str().unwrap();
    let live = ["--device", &ours, "--keep", kept, "--json", "--", "sh", "-c", &load];
    let live = valid_json(&output(&live), SCHEMA);
    let expected = ["fsync 0", "read 65536", "write 8192"].map(str::to_string);
    let said: BTreeMap<String, u64> = groups(&live).into_iter().collect();
    assert_eq!(said.keys().cloned().collect::<Vec<_>>(), expected);
    assert_eq!(said["read 65536"], 3);
    assert_eq!(live["account"]["unmatched"], 0);
    assert!(live["scope"]["ios_hidden"].as_u64().unwrap() >= 9);
    let again = ["--device", &ours, kept, "--json"];
    let again: BTreeMap<String, u64> =
        groups(&valid_json(&output(&again), SCHEMA)).into_iter().collect();
    assert_eq!(again["read 65536"], 3);
    assert_eq!(again["write 8192"], 1);
    assert!(!again.contains_key("read 16384"));
}

#[test]
fn an_earlier_trace_is_not_written_over() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("capture.json"), "earlier").unwrap();
    let output = output(&["--keep", dir.path().to_str().unwrap(), "--duration", "1s"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("holds a trace already; name another directory"));
    assert_eq!(fs::read(dir.path().join("capture.json")).unwrap(), b"earlier");
}

#[test]
fn a_trace_that_cannot_be_kept_is_shown_and_leaves_nothing_in_the_folder() {
    let Some(disk) = traced_loop() else { return };
    let dir = tempfile::tempdir().unwrap();
    let in_the_way = dir.path().join("capture.json");
    fs::create_dir(&in_the_way).unwrap();
    let mut command =
        trace(&["--device", &disk.node, "--keep", dir.path().to_str().unwrap(), "--"]);
    let output = command.args(fio(&disk, 20)).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let says = format!("steady: keeping the trace in {}: ", dir.path().display());
    assert!(stderr(&output).contains(&says), "{}", stderr(&output));
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("I/Os of system calls") && shown.contains("\nAccount\n"));
    let left: Vec<_> =
        fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left, [in_the_way]);
}

#[test]
fn what_cannot_be_written_is_told_before_the_program_runs() {
    let dir = tempfile::tempdir().unwrap();
    let mark = dir.path().join("ran");
    for (option, status) in [("--perfetto", 1), ("--spans", 1), ("--keep", 2)] {
        let output = output(&[option, "/proc/no/such", "--", "touch", mark.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
        assert_eq!(stderr(&output).matches("No such file").count(), 1, "{}", stderr(&output));
        assert!(stderr(&output).contains(&format!("{option} /proc/no/such: ")));
        assert!(!mark.exists());
    }
}

#[test]
fn others_are_hidden_unless_all_are_asked_for() {
    let Some(disk) = traced_loop() else { return };
    let own = format!("dd if={} of=/dev/null bs=64k count=3 iflag=direct status=none", disk.node);
    let other = format!("dd if={} of=/dev/null bs=16k count=5 iflag=direct status=none", disk.node);
    // The other program is of no descent: the shell that runs it is started before the trace.
    let run = |all: &[&str]| {
        let go = disk.dir.path().join("go");
        let wait = format!("while [ ! -e {} ]; do sleep 0.02; done; {other}; rm {0}", go.display());
        let mut beside = Command::new("sh").args(["-c", &wait]).spawn().unwrap();
        let script =
            format!("{own}; touch {}; while [ -e {0} ]; do sleep 0.02; done", go.display());
        let mut command = trace(&["--device", &disk.node, "--json"]);
        let output = command.args(all).args(["--", "sh", "-c", &script]).output().unwrap();
        beside.wait().unwrap();
        valid_json(&output, SCHEMA)
    };
    let own_only = run(&[]);
    assert_eq!(groups(&own_only), [("read 65536".to_string(), 3)]);
    // Its calls are not traced, its requests are. More than these where udev looks at the new device.
    let hidden = |what: &str| own_only["scope"][what].as_u64().unwrap();
    assert!(hidden("requests_hidden") >= 5 && hidden("ios_hidden") == 0, "{own_only:#}");
    let all: BTreeMap<String, u64> = groups(&run(&["--all"])).into_iter().collect();
    assert_eq!((all["read 16384"], all["read 65536"]), (5, 3));
}

#[test]
fn an_fsync_of_a_file_system_has_its_journal_and_its_flush() {
    let Some(disk) = traced_loop() else { return };
    let mount = mounted_ext4(&disk);
    let write = format!("dd if=/dev/zero of={mount}/file bs=64k count=1 conv=fsync status=none");
    // By its mount point in the current folder, and with the journal's thread, which is nobody's child.
    let mut command = trace(&["--device", "mnt", "--all", "--json", "--", "sh", "-c", &write]);
    let output = command.current_dir(disk.dir.path()).output().unwrap();
    run("umount", &[&mount]);
    let record = valid_json(&output, SCHEMA);
    assert!(groups(&record).iter().any(|(op, _)| op.starts_with("fsync")), "{record:#}");
    let flushes = record["flushes_and_discards"].as_array().unwrap();
    assert!(flushes.iter().any(|group| group["op"] == "flush"), "{record:#}");
}

#[test]
fn what_the_program_prints_goes_to_standard_error_with_json() {
    let Some(_disk) = traced_loop() else { return };
    let run = |arguments: &[&str]| output(&[arguments, &["--", "echo", "hello"]].concat());
    let json = run(&["--json"]);
    valid_json(&json, SCHEMA);
    assert!(stderr(&json).contains("hello"));
    assert!(String::from_utf8_lossy(&run(&[]).stdout).starts_with("hello\n"));
}

#[test]
fn a_running_process_is_traced_until_it_ends() {
    let Some(disk) = traced_loop() else { return };
    let go = disk.dir.path().join("go");
    let script = format!(
        "while [ ! -e {} ]; do sleep 0.02; done; \
         dd if={} of=/dev/null bs=32k count=4 iflag=direct status=none",
        go.display(),
        disk.node
    );
    let mut process = Command::new("sh").args(["-c", &script]).spawn().unwrap();
    let child = start(&["--pid", &process.id().to_string(), "--device", &disk.node, "--json"]);
    fs::write(&go, "").unwrap();
    process.wait().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(groups(&valid_json(&output, SCHEMA)), [("read 32768".to_string(), 4)]);
}

#[test]
fn who_may_not_trace_is_told_so() {
    let Some(_disk) = traced_loop() else { return };
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let binary = dir.path().join("steady");
    // By another process: what this one has open for writing, a program that another test starts at that moment
    // has open too, and then the copy cannot be run.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_steady")).arg(&binary).status();
    assert!(copied.unwrap().success());
    let mut command = Command::new(&binary);
    let output = command.args(["trace", "--duration", "1s"]).uid(65_534).gid(65_534).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("run as root"), "{}", stderr(&output));
}

#[test]
fn a_wrong_command_line_is_refused_before_anything_is_traced() {
    for (arguments, says) in [
        (&[][..], "nothing to trace: give a recorded trace"),
        (&["--duration", "0"], "--duration 0: must be greater than 0"),
        (&["--duration", "5"], "must be a whole number with"),
        (&["--pid", "0"], "--pid <PID>"),
        (&["--pid", "4194303"], "--pid 4194303: no such process"),
        (
            &["--device", "no-such-disk"],
            "--device no-such-disk: no-such-disk: no such block device",
        ),
        (&["--device", "/dev/null"], "is in a file system without a block device of its own"),
        (&["--device", "/proc"], "is in a file system without a block device of its own"),
        (&["--format", "perf", "--duration", "1s"], "--format: needs files"),
        (&["file", "--", "true"], "cannot be used with"),
        (&["file", "--keep", "dir"], "cannot be used with"),
        (&["file", "--duration", "1s"], "cannot be used with"),
    ] {
        let output = output(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(says), "{says} is not in: {}", stderr(&output));
        assert!(output.stdout.is_empty());
    }
}

/// A cgroup that processes can be moved to; when it goes, they are ended and it is removed.
struct Cgroup(PathBuf);

impl Cgroup {
    fn new(name: &str) -> Option<Cgroup> {
        let root = Path::new("/sys/fs/cgroup");
        let of_version_2 = root.join("cgroup.controllers").exists();
        let path = if of_version_2 { root.to_path_buf() } else { root.join("blkio") }.join(name);
        match fs::create_dir(&path) {
            Ok(()) => Some(Cgroup(path)),
            Err(error) => {
                skip(&format!("no cgroup can be made: {error}"));
                None
            }
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for _ in 0..100 {
            let inside = fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
            for process in inside.lines() {
                let _ = Command::new("kill").args(["-KILL", process]).status();
            }
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn calls_are_summed_by_cgroup() {
    let Some(disk) = traced_loop() else { return };
    let name = format!("steady-trace-{}", std::process::id());
    let Some(cgroup) = Cgroup::new(&name) else { return };
    let read = |count: u32| {
        format!("dd if={} of=/dev/null bs=64k count={count} iflag=direct status=none", disk.node)
    };
    // The shell in the cgroup is there when tracing ends; what it starts is not.
    let done = disk.dir.path().join("done");
    let (procs, done) = (cgroup.0.join("cgroup.procs"), done.display());
    let inside =
        format!("echo $$ >{}; {}; touch {done}; exec sleep 60 >&- 2>&-", procs.display(), read(5));
    let wait = format!("until [ -e {done} ]; do sleep 0.05; done");
    let script = format!("sh -c '{inside}' & {wait}; {}", read(3));
    let output = output(&["--device", &disk.node, "--json", "--", "sh", "-c", &script]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let record = valid_json(&output, SCHEMA);
    let rows = record["cgroups"].as_array().unwrap();
    let ios = |is_own: bool| -> u64 {
        let own = |row: &&Value| row["cgroup"].as_str().unwrap().ends_with(&name) == is_own;
        rows.iter().filter(own).map(|row| row["ios"].as_u64().unwrap()).sum()
    };
    assert_eq!((ios(true), ios(false)), (5, 3), "{rows:#?}");
}
