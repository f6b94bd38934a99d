// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the command says about wrong input; needs neither root nor a device.

use std::fs;
use std::process::{Command, Output};

use serde_json::{Value, json};

const GOOD: &str = r#"
schema = "steadyio.workload/1"
name = "w"
seed = 1
[length]
ios = 10
[[job]]
name = "rt"
class = "rt"
op = "randread"
bs_kib = 64
[[variant]]
name = "as-is"
"#;

fn steady(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_steady")).args(arguments).output().unwrap()
}

fn bench(workload: &str, device: &str) -> (Option<i32>, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("w.toml");
    fs::write(&path, workload).unwrap();
    let output = steady(&["bench", "--device", device, path.to_str().unwrap()]);
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn version_and_help_name_the_command_and_its_exit_statuses() {
    let version = steady(&["--version"]);
    assert_eq!(version.stdout, format!("steady {}\n", env!("CARGO_PKG_VERSION")).as_bytes());
    let help = String::from_utf8(steady(&["bench", "--help"]).stdout).unwrap();
    for word in ["--device", "--variant", "--point", "--out", "--json", "--check", "130"] {
        assert!(help.contains(word), "{word} is not in the help");
    }
    for command in [
        "bench", "cat", "direct", "doctor", "export", "info", "model", "record", "recover",
        "status", "store", "trace", "tune", "watch", "with",
    ] {
        let help = String::from_utf8(steady(&[command, "--help"]).stdout).unwrap();
        assert!(help.contains("\nExit status: "), "{command}");
    }
}

#[test]
fn a_wrong_workload_is_named_with_line_key_and_limits() {
    let (status, said) = bench(&GOOD.replace("bs_kib = 64", "bs_kib = 0"), "/dev/null");
    assert_eq!(status, Some(2));
    for part in ["w.toml", "line 11", "bs_kib = 0", "must be 1 to 65536"] {
        assert!(said.contains(part), "{part} is not in: {said}");
    }
}

#[test]
fn the_workload_is_printed_as_it_would_run_and_only_if_it_can() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("w.toml");
    fs::write(&path, GOOD).unwrap();
    let printed = |set| steady(&["bench", path.to_str().unwrap(), "--print-spec", "--set", set]);
    let spec: Value = serde_json::from_slice(&printed("length.ios=20").stdout).unwrap();
    assert_eq!((&spec["length"]["ios"], &spec["job"][0]["bs_kib"]), (&json!(20), &json!(64)));
    assert_eq!(spec.get("settle_ms"), None, "defaults are not filled in");
    for (set, says) in [("rt.depth=2", "cannot set \"rt.depth\""), ("rt.bs_kib=0", "must be 1 to")]
    {
        let refused = printed(set);
        assert_eq!((refused.status.code(), refused.stdout.len()), (Some(2), 0));
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(said.contains("w.toml") && said.contains(says), "{said}");
    }
    let neither = steady(&["bench", path.to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&neither.stderr).contains("--device <DEV>"));
}

#[test]
fn only_block_devices_are_measured() {
    for (device, kind) in [
        ("/dev/null", "a character device"),
        ("/etc/passwd", "a regular file"),
        ("/", "a directory"),
    ] {
        let (status, said) = bench(GOOD, device);
        assert_eq!(status, Some(2), "{said}");
        assert!(said.contains(kind) && said.contains("not a block device"), "{said}");
    }
    let (status, said) = bench(GOOD, "/dev/no-such-device");
    assert_eq!(status, Some(2));
    assert!(said.contains("No such file"), "{said}");
}

#[test]
fn tune_refuses_a_wrong_limit_or_knob() {
    for (arguments, says) in [
        (&["--tail-max=0%"][..], "must be above 0 and at most 100"),
        (&["--tail-max=101%"], "must be above 0 and at most 100"),
        (&["--tail-max=50"], "a time such as 500us"),
        (&["--throughput-min=-1%"], "must be above 0 and at most 100"),
        (&["--throughput-min=50"], "such as 200MiB"),
        (&[], "--tail-max <LIMIT>"),
        (&["--tail-max=50%", "--throughput-min=50%"], "cannot be used with"),
        (&["--tail-max=50%", "--quantile=100"], "from 50 to 99.999"),
        (&["--tail-max=50%", "--knob=depth"], "must be one of inflight_max"),
        (&["--tail-max=50%", "--with=scheduler=none"], "the scheduler is k2"),
        (&["--bound", "--tail-max=50%"], "cannot be used with"),
        (&["--bound", "--apply"], "cannot be used with"),
    ] {
        let output = steady(&[&["tune", "/dev/null", "none.toml"][..], arguments].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(says), "{arguments:?}: {says} is not in: {said}");
    }
}

#[test]
fn with_names_what_is_wrong_with_a_knob() {
    for (knob, says) in [
        ("scheduler", "KEY=VALUE"),
        ("scheduler=", "the value is missing"),
        ("nr_requests=4", "scheduler, iosched/NAME or queue/NAME"),
    ] {
        let output = steady(&["with", "--device", "/dev/null", "--knob", knob, "--", "true"]);
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(says), "{says} is not in: {said}");
    }
    let twice = ["--out", "record.json", "--class=rt=dd:a", "--class=rt=dd:b"];
    let output =
        steady(&[&["with", "--device", "/dev/null"][..], &twice, &["--", "true"]].concat());
    assert_eq!(output.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&output.stderr).contains("a class is given twice"));
    let output = steady(&["with", "--device", "/dev/null", "--", "true"]);
    assert_eq!(output.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&output.stderr).contains("a character device"));
}
