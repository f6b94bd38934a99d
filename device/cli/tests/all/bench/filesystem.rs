// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady bench` with a file system, with the real mkfs, mount and fio on a loop device.

use std::fs;

use crate::common::{Loop, loop_device, stderr, valid_record};

const WORKLOAD: &str = r#"
schema = "steadyio.workload/1"
name = "filesystem"
seed = 1
settle_ms = 1
length.ios = 20
filesystem = { type = "ext4", mib = 64 }
sweep = { key = "at", values = ["alone", "beside"] }

[[job]]
name = "rt"
class = "rt"
op = "randread"
bs_kib = 4
file = { mib = 4 }

[[job]]
name = "bg"
class = "bg"
op = "write"
bs_kib = 16
file = { mib = 8, grow = true, buffered = true, sync = "full" }
at = ["beside"]

[[command]]
name = "churn"
run = "while :; do mkdir dir; rmdir dir; sleep 0.01; done"
at = ["beside"]

[[variant]]
name = "v"
mount = "commit=1"
prepare = "test -d lost+found && grep -q commit=1 /proc/mounts"
"#;

fn mounted(disk: &Loop) -> bool {
    fs::read_to_string("/proc/mounts").unwrap().contains(&format!("{} ", disk.node))
}

fn refused(disk: &Loop, workload: &str, consent: bool) -> String {
    let mut command = disk.bench(workload);
    if consent {
        command.args(["--destroy-data", disk.name()]);
    }
    let output = command.output().expect("steady");
    assert!(!output.status.success());
    assert!(!mounted(disk));
    stderr(&output)
}

#[test]
fn files_are_measured_and_the_file_system_is_gone_afterwards() {
    let Some(disk) = loop_device() else { return };
    let mut command = disk.bench(WORKLOAD);
    let output = command.args(["--json", "--destroy-data", disk.name()]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let record = valid_record(&output);
    let results = record["results"].as_array().unwrap();
    assert_eq!(results.len(), 2);
    for result in results {
        assert_eq!(result["classes"]["rt"]["count"], 20);
    }
    assert!(results[0]["classes"].get("bg").is_none());
    assert!(results[1]["classes"]["bg"]["count"].as_u64().unwrap() > 0);
    assert!(!mounted(&disk));
}

#[test]
fn nothing_is_formatted_without_consent() {
    let Some(disk) = loop_device() else { return };
    let said = refused(&disk, WORKLOAD, false);
    assert!(said.contains(&format!("--destroy-data {}", disk.name())), "{said}");
    assert!(fs::read(&disk.backing).unwrap().iter().all(|&byte| byte == 0));
}

#[test]
fn what_goes_wrong_is_named_and_leaves_nothing_mounted() {
    let Some(disk) = loop_device() else { return };
    for (from, to, says) in [
        ("while :; do mkdir dir; rmdir dir; sleep 0.01; done", "echo sad >&2; exit 3", "sad"),
        ("test -d lost+found", "echo sorry >&2; false", "sorry"),
        ("mount = \"commit=1\"", "mount = \"no-such-option\"", "mount -t ext4 -o no-such-option"),
        ("mib = 64 }", "mib = 65 }", "filesystem.mib = 65"),
    ] {
        assert!(WORKLOAD.contains(from), "{from}");
        let said = refused(&disk, &WORKLOAD.replace(from, to), true);
        assert!(said.contains(says), "{to}: {said}");
    }
}
