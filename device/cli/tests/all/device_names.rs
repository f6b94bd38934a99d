// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every command takes the same names of a device.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use steadyio_testing::{LoopDisk, Sysfs};

use crate::common::loop_device;

const WORKLOAD: &str = "schema = \"steadyio.workload/1\"\nname = \"w\"\nseed = 1\n[length]\nios = 10\n\
    [[job]]\nname = \"rt\"\nclass = \"rt\"\nop = \"randread\"\nbs_kib = 4\n\
    [[variant]]\nname = \"as-is\"\n";

fn steady(dir: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
    command.args(arguments).current_dir(dir).output().unwrap()
}

/// A command line for each command that takes a device, in which `DEV` stands for it.
const COMMANDS: [&[&str]; 13] = [
    &["bench", "--check", "--device", "DEV", "w.toml"],
    &["direct", "info", "DEV"],
    &["direct", "read", "DEV", "read.bin", "--bytes=4K"],
    &["direct", "write", "DEV", "block.bin"],
    &["direct", "bench", "DEV", "--op=write", "--count=1"],
    &["direct", "bind", "DEV"],
    &["doctor", "DEV"],
    &["probe", "DEV", "--write", "w.toml"],
    &["store", "check", "DEV"],
    &["store", "list", "DEV"],
    &["tune", "DEV", "w.toml", "--tail-max=1ms", "--check"],
    &["watch", "DEV", "--count=1", "--interval=10ms", "--quiet"],
    &["with", "--device", "DEV", "--", "true"],
];

/// What a command reports, but for the name that it was given.
fn answer(dir: &Path, command: &[&str], device: &str, name: &str) -> (Option<i32>, String) {
    let words: Vec<&str> = command.iter().map(|&w| if w == "DEV" { device } else { w }).collect();
    let output = steady(dir, &words);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let said = said.replace(device, "DEV").replace(&format!("/dev/{name}"), "DEV");
    // Without what it measured.
    let said =
        said.lines().filter(|line| !line.contains("watched for") && !line.contains(" MiB/s"));
    (output.status.code(), said.collect::<Vec<_>>().join("\n").replace(name, "DEV"))
}

fn with_files(disk: &LoopDisk) -> &Path {
    let dir = disk.dir.path();
    std::fs::write(dir.join("w.toml"), WORKLOAD).unwrap();
    std::fs::write(dir.join("block.bin"), [0; 4096]).unwrap();
    dir
}

#[test]
fn a_name_a_node_and_a_link_are_the_same_in_every_command() {
    let Some(disk) = loop_device() else { return };
    let dir = with_files(&disk);
    let link = dir.join("by-id-of-the-card");
    symlink(&disk.node, &link).unwrap();
    for command in COMMANDS {
        let by_node = answer(dir, command, &disk.node, disk.name());
        let unknown = by_node.1.contains("no such block device");
        assert!(!unknown, "{command:?}: {}", by_node.1);
        for form in [disk.name(), link.to_str().unwrap()] {
            assert_eq!(answer(dir, command, form, disk.name()), by_node, "{command:?}, {form}");
        }
    }
}

#[test]
fn a_device_that_is_missing_is_answered_with_those_there_are() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("w.toml"), WORKLOAD).unwrap();
    std::fs::write(dir.path().join("block.bin"), [0; 4096]).unwrap();
    let trace = &["trace", "--device", "DEV", "--duration=1ms"][..];
    for command in COMMANDS.into_iter().chain([trace]) {
        for device in ["mmcblk79", "/dev/mmcblk79", "/dev/disk/by-id/mmc-none"] {
            let (status, said) = answer(dir.path(), command, device, "mmcblk79");
            let own = if command[0] == "with" { 125 } else { 2 };
            // A store may be a file, a card may have a name of the bus.
            let is_more = matches!(command[..2], ["store", _] | ["direct", "bind"]);
            assert_eq!(
                status,
                Some(if command[0] == "store" { 1 } else { own }),
                "{command:?}: {said}"
            );
            assert!(is_more || said.contains("no such block device"), "{command:?}: {said}");
        }
    }
}

#[test]
fn a_partition_stands_for_its_disk_where_a_disk_is_needed_and_that_is_said() {
    let Some(disk) = LoopDisk::new(32, &["--partscan"]) else { return };
    // The kernel need not know a table of partitions for this.
    let added = Command::new("addpart").args([&disk.node, "1", "2048", "8192"]).status();
    assert!(added.unwrap().success());
    let partition = format!("{}p1", disk.name());
    let dir = with_files(&disk);
    let note = format!("{partition} is a partition; this concerns its whole disk, {}", disk.name());
    for command in [
        &["doctor", &partition][..],
        &["watch", &partition, "--count=1", "--interval=10ms", "--quiet"],
        &["with", "--device", &partition, "--knob", "queue/nomerges=0", "--", "true"],
        &["apply", "--remove", "--disk", &partition],
    ] {
        let said = String::from_utf8(steady(dir, command).stderr).unwrap();
        assert!(said.contains(&note), "{command:?}: {said}");
    }
}

#[test]
fn consent_may_name_the_device_in_any_form() {
    let Some(disk) = loop_device() else { return };
    let dir = with_files(&disk);
    assert!(Command::new("mkfs.ext4").args(["-q", &disk.node]).status().unwrap().success());
    let write = |consent: &str| {
        steady(dir, &["direct", "write", disk.name(), "block.bin", "--destroy-data", consent])
    };
    for wrong in ["mmcblk79", "loop", "", "/dev/null"] {
        let output = write(wrong);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{wrong}: {said}");
        assert!(said.contains("must name the device that is written to"), "{said}");
    }
    for right in [disk.name(), &disk.node] {
        assert_eq!(write(right).status.code(), Some(0), "{right}");
    }
}

#[test]
fn a_name_of_a_device_and_a_file_is_not_guessed() {
    let Some(disk) = loop_device() else { return };
    let dir = disk.dir.path();
    std::fs::write(dir.join(disk.name()), [0; 4096]).unwrap();
    let output = steady(dir, &["store", "create", disk.name()]);
    let said = String::from_utf8(output.stderr).unwrap();
    let says = format!("names a device and a file here; write {} or ./{}", disk.node, disk.name());
    assert!(said.contains(&says), "{said}");
    assert_eq!(std::fs::read(dir.join(disk.name())).unwrap(), [0; 4096]);
}

#[test]
fn watch_finds_a_disk_of_another_sysfs() {
    let sysfs = Sysfs::new();
    sysfs.add("mmcblk79", "k2");
    let root = sysfs.root().to_str().unwrap();
    for device in ["mmcblk79", "/dev/mmcblk79"] {
        let line = ["watch", device, "--sysfs", root, "--count=1", "--interval=10ms"];
        assert_eq!(steady(Path::new("/"), &line).status.code(), Some(0), "{device}");
    }
}
