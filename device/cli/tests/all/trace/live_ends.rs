// SPDX-License-Identifier: MIT OR Apache-2.0
//! How `steady trace` of this kernel ends: by itself, by signals, and at errors. It must leave
//! nothing behind.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::common::tracing::{
    SCHEMA, fio, groups, instances_of, output, send, start, trace, traced_loop, until,
};
use crate::common::{Loop, stderr, valid_json};

/// A program that prints when it runs, and makes a file when a signal ends it.
fn told(disk: &Loop) -> (String, PathBuf, PathBuf) {
    let (ready, mark) = (disk.dir.path().join("ready"), disk.dir.path().join("told"));
    let script = format!(
        "trap 'kill $!; touch {}; exit 0' TERM; sleep 600 & touch {}; wait",
        mark.display(),
        ready.display()
    );
    (script, ready, mark)
}

#[test]
fn each_signal_ends_trace_and_program_and_leaves_no_tracing_on() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let Some(disk) = traced_loop() else { return };
        let (script, ready, mark) = told(&disk);
        let child = start(&["--device", &disk.node, "--", "sh", "-c", &script]);
        let pid = child.id();
        until("the program runs", || ready.exists());
        send(&child, signal);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{signal:?}: {}", stderr(&output));
        assert!(String::from_utf8_lossy(&output.stdout).contains("\nAccount\n"));
        assert!(mark.exists(), "{signal:?}: the program was not told");
        assert_eq!(instances_of(pid), Vec::<PathBuf>::new());
    }
}

#[test]
fn ctrl_c_that_the_program_got_too_is_an_interruption() {
    let Some(disk) = traced_loop() else { return };
    let ready = disk.dir.path().join("ready");
    let script = format!("touch {}; exec sleep 600", ready.display());
    let mut command = trace(&["--", "sh", "-c", &script]);
    command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    until("the program runs", || ready.exists());
    kill_process_group(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
}

#[test]
fn a_second_ctrl_c_kills_a_program_that_does_not_end() {
    let Some(disk) = traced_loop() else { return };
    let (ready, told) = (disk.dir.path().join("ready"), disk.dir.path().join("told"));
    let script = format!(
        "trap 'touch {}' TERM; touch {}; while :; do sleep 0.05; done",
        told.display(),
        ready.display()
    );
    let child = start(&["--", "sh", "-c", &script]);
    let pid = child.id();
    until("the program runs", || ready.exists());
    send(&child, Signal::INT);
    until("the program got the signal", || told.exists());
    send(&child, Signal::INT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("\nAccount\n"));
    assert_eq!(instances_of(pid), Vec::<PathBuf>::new());
}

#[test]
fn two_traces_at_once_both_have_everything() {
    let (Some(first), Some(second)) = (traced_loop(), traced_loop()) else { return };
    let go = first.dir.path().join("go");
    let child = |disk: &Loop| {
        let wait = format!("while [ ! -e {} ]; do sleep 0.02; done", go.display());
        let script = format!("{wait}; {}", fio(disk, 100).join(" "));
        start(&["--device", &disk.node, "--json", "--", "sh", "-c", &script])
    };
    let children = [child(&first), child(&second)];
    fs::write(&go, "").unwrap();
    for child in children {
        let pid = child.id();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let record = valid_json(&output, SCHEMA);
        assert_eq!(groups(&record), [("read 4096".to_string(), 100)]);
        let account = &record["account"];
        assert_eq!((&account["events_lost"], &account["unmatched"]), (&0.into(), &0.into()));
        assert_eq!(instances_of(pid), Vec::<PathBuf>::new());
    }
}

#[test]
fn what_a_killed_trace_left_is_removed_by_the_next_which_says_so() {
    let Some(disk) = traced_loop() else { return };
    let mut killed = start(&["--device", &disk.node]);
    let left = instances_of(killed.id());
    assert_eq!(left.len(), 1);
    killed.kill().unwrap();
    killed.wait().unwrap();
    // From now on a trace of another test may be the next, so whether it is still there is not asked.
    let next = output(&["--device", &disk.node, "--duration", "50ms"]);
    assert_eq!(next.status.code(), Some(0), "{}", stderr(&next));
    until("it is removed", || !left[0].exists());
}

#[test]
fn without_a_mounted_tracefs_tracing_works_and_nothing_is_mounted() {
    let Some(disk) = traced_loop() else { return };
    // In a mount namespace of its own, where all that is mounted below is taken away. Only tracefs is looked for:
    // other mounts go from it too when somebody removes the folder that they are on.
    let script = "umount /sys/kernel/tracing && { ! mountpoint -q /sys/kernel/debug || umount -l /sys/kernel/debug; } \
                  && \"$@\" && ! grep ' - tracefs ' /proc/self/mountinfo >&2";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_steady")]);
    command.args(["trace", "--device", &disk.node, "--json", "--"]).args(fio(&disk, 20));
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(groups(&valid_json(&output, SCHEMA)), [("read 4096".to_string(), 20)]);
}

#[test]
fn without_a_time_ctrl_c_is_how_a_trace_ends() {
    let Some(disk) = traced_loop() else { return };
    for (arguments, status) in [(&[][..], 0), (&["--duration", "10min"][..], 130)] {
        let child = start(&[&["--device", &disk.node], arguments].concat());
        let pid = child.id();
        send(&child, Signal::INT);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
        assert_eq!(instances_of(pid), Vec::<PathBuf>::new());
    }
}

#[test]
fn a_time_ends_the_trace_and_a_program_that_runs_longer() {
    let Some(disk) = traced_loop() else { return };
    let output_of = output(&["--device", &disk.node, "--duration", "50ms", "--json"]);
    assert_eq!(output_of.status.code(), Some(0), "{}", stderr(&output_of));
    valid_json(&output_of, SCHEMA);
    let ended = output(&["--duration", "50ms", "--", "sleep", "600"]);
    assert_eq!(ended.status.code(), Some(0), "{}", stderr(&ended));
}

#[test]
fn a_program_that_cannot_be_run_leaves_no_tracing_on() {
    let Some(_disk) = traced_loop() else { return };
    for (program, why) in
        [("/no/such/program", "No such file"), ("/etc/passwd", "Permission denied")]
    {
        let child = trace(&["--", program]).stderr(Stdio::piped()).spawn().unwrap();
        let pid = child.id();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let says = format!("{program}: {why}");
        assert!(stderr(&output).contains(&says), "{}", stderr(&output));
        assert_eq!(instances_of(pid), Vec::<PathBuf>::new());
    }
}

#[test]
fn a_program_that_fails_is_told_and_its_io_is_shown() {
    let Some(_disk) = traced_loop() else { return };
    for (script, says) in
        [("exit 7", "sh: exited with status 7"), ("kill -9 $$", "sh: killed by signal 9")]
    {
        let output = output(&["--", "sh", "-c", script]);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
        assert!(String::from_utf8_lossy(&output.stdout).contains("\nAccount\n"));
    }
}

#[test]
fn a_program_is_waited_for_when_memory_is_full_and_that_is_said() {
    let Some(disk) = traced_loop() else { return };
    let mark = disk.dir.path().join("mark");
    // Each byte is six events.
    let load = "dd if=/dev/zero of=/dev/null bs=1 count=200000 status=none";
    let script = format!("{load}; touch {}", mark.display());
    let output = output(&["--memory", "1MiB", "--", "sh", "-c", &script]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let says = "memory (1 MiB) is full: tracing ended early; --keep DIR continues on disk; waiting for sh to end \
                (Ctrl-C terminates it)";
    assert!(stderr(&output).contains(says), "{}", stderr(&output));
    assert!(mark.exists(), "the program ran to its end");
    let small = self::output(&["--memory", "1K", "--", "true"]);
    assert_eq!(small.status.code(), Some(2), "{}", stderr(&small));
    assert!(stderr(&small).contains("--memory 1 KiB: must be at least 1MiB"), "{}", stderr(&small));
}

#[test]
fn a_ring_keeps_the_end_of_what_memory_cannot_hold() {
    let Some(disk) = traced_loop() else { return };
    let kept = disk.dir.path().join("kept");
    let read = |kib: u32| {
        format!("dd if={} of=/dev/null bs={kib}k count=5 iflag=direct status=none", disk.node)
    };
    let calls = "dd if=/dev/zero of=/dev/null bs=1 count=200000 status=none";
    let script = format!("{}; {calls}; {}", read(64), read(16));
    let kept = kept.to_str().unwrap();
    let ring = ["--ring", "--memory", "2MiB", "--keep", kept, "--device", &disk.node, "--json"];
    let program = ["--", "sh", "-c", &script];
    let output = output(&[&ring[..], &program[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let live = valid_json(&output, SCHEMA);
    assert_eq!(groups(&live), [("read 16384".to_string(), 5)]);
    assert_eq!(groups(&valid_json(&self::output(&[kept, "--json"]), SCHEMA)), groups(&live));
    let held = fs::read_dir(kept).unwrap().map(|entry| entry.unwrap());
    let pages = held.filter(|entry| entry.file_name().to_string_lossy().ends_with(".raw"));
    let bytes: u64 = pages.map(|entry| entry.metadata().unwrap().len()).sum();
    // A fifth of the calls' events: those of one interval between two reads of the buffers fill
    // more than half of memory.
    assert!(bytes > 0 && bytes < 8 << 20, "{bytes} bytes are kept");
}

#[test]
fn an_interval_has_the_requests_that_ended_in_it() {
    let Some(disk) = traced_loop() else { return };
    let read = format!("dd if={} of=/dev/null bs=64k count=50 iflag=direct status=none", disk.node);
    // Pages that are not full are looked at twice a second.
    let script = format!("{read}; sleep 4");
    let traced = ["--device", &disk.node, "--interval", "200ms", "--", "sh", "-c", &script];
    let output = output(&traced);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = stderr(&output);
    let of_reads = said.lines().filter(|line| line.contains(&format!("{} read", disk.name())));
    let counts =
        of_reads.map(|line| line.split_whitespace().nth(4).unwrap().parse::<u64>().unwrap());
    assert_eq!(counts.sum::<u64>(), 50, "{said}");
    assert!(said.contains("  no I/O\n"), "{said}");
}

#[test]
fn a_trace_that_waits_for_a_slow_io_ends_with_it_and_the_program_goes_on() {
    let Some(disk) = traced_loop() else { return };
    let mark = disk.dir.path().join("mark");
    let read = format!("dd if={} of=/dev/null bs=64k count=5 iflag=direct status=none", disk.node);
    let run = |trigger: &[&str]| {
        let script = format!("{read}; sleep 4; touch {}", mark.display());
        let program = ["--device", &disk.node, "--", "sh", "-c", &script];
        let output = output(&[trigger, &program].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(mark.exists(), "the program ran to its end");
        fs::remove_file(&mark).unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).contains("read 64 KiB"));
        stderr(&output)
    };
    let said = run(&["--trigger-above", "1ns"]);
    assert!(said.contains("tracing ended: ") && said.contains("for a read on 7:"), "{said}");
    assert!(said.contains("; waiting for sh to end"), "{said}");
    assert!(!run(&["--trigger-above", "10min"]).contains("tracing ended"));
}

#[test]
fn a_trace_that_waits_for_a_slow_request_of_real_time_does_not_end_with_another() {
    let Some(disk) = traced_loop() else { return };
    let says_class =
        fs::read_to_string("/sys/kernel/tracing/events/block/block_rq_complete/format")
            .is_ok_and(|format| format.contains(" ioprio;"));
    let read = format!("dd if={} of=/dev/null bs=64k count=5 iflag=direct status=none", disk.node);
    let run = |class: &str| {
        let script = format!("ionice -c {class} {read}; sleep 4");
        let trigger = ["--trigger-above", "1ns", "--trigger-class", "rt"];
        output(&[&trigger[..], &["--device", &disk.node, "--", "sh", "-c", &script]].concat())
    };
    if !says_class {
        let refused = run("1");
        assert_eq!(refused.status.code(), Some(1));
        assert!(stderr(&refused).contains("Linux 6.4"), "{}", stderr(&refused));
        return;
    }
    assert!(!stderr(&run("2")).contains("tracing ended"));
    assert!(stderr(&run("1")).contains("tracing ended: "));
}
