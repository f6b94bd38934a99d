// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady bench --check` finds what a run would fail for, and does no I/O.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use steadyio_testing::is_root;

use crate::common::{Loop, loop_device, stderr};

const NOBODY: u32 = 65_534;

/// One job, and one variant with these knobs.
fn workload(op: &str, knobs: &str) -> String {
    format!(
        "schema = \"steadyio.workload/1\"\nname = \"w\"\nseed = 1\nlength = {{ ios = 10 }}\n\
         [[job]]\nname = \"rt\"\nclass = \"rt\"\nop = \"{op}\"\nbs_kib = 4\nioprio = \"rt/0\"\n\
         [[variant]]\nname = \"only\"\nknobs = {{ {knobs} }}\n"
    )
}

fn check(disk: &Loop, workload: &str) -> (Option<i32>, String) {
    let output = disk.bench(workload).arg("--check").output().unwrap();
    (output.status.code(), stderr(&output))
}

/// Reads and writes that the disk has done.
fn ios(disk: &Loop) -> Vec<String> {
    let stat = fs::read_to_string(disk.queue().with_file_name("stat")).unwrap();
    [0, 4].map(|column| stat.split_whitespace().nth(column).unwrap().into()).to_vec()
}

#[test]
fn what_can_run_passes_without_an_io_and_leaves_the_knobs() {
    let Some(disk) = loop_device() else { return };
    disk.set_knob("scheduler", "none");
    let before = (ios(&disk), disk.knob("scheduler"), disk.knob("max_sectors_kb"));
    let knobs = "scheduler = \"mq-deadline\", \"queue/max_sectors_kb\" = 64";
    let (status, said) = check(&disk, &workload("randread", knobs));
    assert_eq!(status, Some(0), "{said}");
    assert_eq!((ios(&disk), disk.knob("scheduler"), disk.knob("max_sectors_kb")), before);
}

#[test]
fn a_scheduler_or_value_that_the_kernel_lacks_is_found() {
    let Some(disk) = loop_device() else { return };
    let before = disk.knob("scheduler");
    for (knobs, says) in [
        ("scheduler = \"k2-missing\"", "scheduler = k2-missing"),
        ("scheduler = \"none\", \"iosched/split_kib\" = 4", "iosched/split_kib = 4"),
        ("\"queue/max_sectors_kb\" = 1000000000", "queue/max_sectors_kb"),
    ] {
        let (status, said) = check(&disk, &workload("randread", knobs));
        assert_eq!(status, Some(1), "{knobs}: {said}");
        assert!(said.contains("variant only") && said.contains(says), "{said}");
        assert_eq!(disk.knob("scheduler"), before, "{knobs}");
    }
}

#[test]
fn writes_to_a_disk_that_is_used_or_holds_data_are_found() {
    let Some(disk) = loop_device() else { return };
    let writes = workload("randwrite", "scheduler = \"none\"");
    assert_eq!(check(&disk, &writes).0, Some(0));
    assert!(Command::new("mkfs.ext4").args(["-q", &disk.node]).status().unwrap().success());
    let (status, said) = check(&disk, &writes);
    assert_eq!(status, Some(1), "{said}");
    assert!(
        said.contains("holds an ext2, ext3 or ext4") && said.contains("--destroy-data"),
        "{said}"
    );
    let place = disk.dir.path().join("mounted");
    fs::create_dir(&place).unwrap();
    if !Command::new("mount").arg(&disk.node).arg(&place).status().unwrap().success() {
        return steadyio_testing::skip("mounting a loop device");
    }
    let (status, said) = check(&disk, &writes);
    assert!(Command::new("umount").arg(&place).status().unwrap().success());
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("is in use (mounted on "), "{said}");
}

#[test]
fn a_user_without_rights_is_told_which_are_needed() {
    if !is_root("running as another user") {
        return;
    }
    let Some(disk) = loop_device() else { return };
    // Another user cannot reach the folder of the build.
    let steady = disk.dir.path().join("steady");
    fs::copy(env!("CARGO_BIN_EXE_steady"), &steady).unwrap();
    for path in [disk.dir.path(), &steady] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let spec = disk.dir.path().join("w.toml");
    let privilege = "needs root, or CAP_DAC_OVERRIDE";
    let access = "needs root, or a group that may open it, such as disk";
    let name = disk.name();
    for (knobs, arguments, says) in [
        ("scheduler = \"none\"", &["bench", "w.toml", "--check", "--device", name][..], privilege),
        ("", &["bench", "w.toml", "--check", "--device", name], access),
        ("", &["with", "--device", name, "--knob", "scheduler=none", "--", "true"], privilege),
        ("", &["probe", name, "--quick"], privilege),
        ("", &["direct", "info", name], access),
        ("", &["store", "list", name], access),
    ] {
        fs::write(&spec, workload("randread", knobs)).unwrap();
        let mut command = Command::new(&steady);
        command.args(arguments).current_dir(disk.dir.path()).uid(NOBODY).gid(NOBODY);
        let output = command.output().unwrap();
        assert!(!output.status.success(), "{arguments:?}");
        let said = stderr(&output);
        assert!(said.contains(says) && !said.contains("/run/steadyio"), "{arguments:?}: {said}");
    }
}
