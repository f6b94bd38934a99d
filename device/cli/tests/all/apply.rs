// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady apply` into a system below a folder; on a running one it is tested in the lab.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const CARD: &str = "experiments/devices/foresee-ncemad9d-usb.toml";
const RULE: &str = "etc/udev/rules.d/90-steadyio-mmcblk0.rules";
const DROP_IN: &str = "etc/systemd/system/arm.service.d/90-steadyio-mmcblk0.conf";

struct Image(tempfile::TempDir);

impl Image {
    fn new() -> Image {
        Image(tempfile::tempdir().unwrap())
    }

    fn path(&self, below: &str) -> PathBuf {
        self.0.path().join(below)
    }

    fn apply(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
        command.current_dir(ROOT).args(["apply", "--disk", "mmcblk0", "--root"]);
        command.arg(self.0.path()).args(arguments).output().unwrap()
    }

    /// The robot's tasks, those of the arm by a service.
    fn tasks(&self, from: &str, to: &str) -> String {
        self.unit("arm", "ExecStart=-/usr/bin/arm \\\n  --fast\n");
        let robot = fs::read_to_string(format!("{ROOT}/docs/examples/robot.toml")).unwrap();
        let path = self.path("tasks.toml");
        let served =
            robot.replace("name = \"joints\"", "name = \"joints\"\nservice = \"arm.service\"");
        assert!(served.contains(from));
        fs::write(&path, served.replace(from, to)).unwrap();
        path.to_str().unwrap().into()
    }
}

impl Image {
    fn unit(&self, name: &str, lines: &str) {
        let folder = self.path("usr/lib/systemd/system");
        fs::create_dir_all(&folder).unwrap();
        let text = format!("[Unit]\nExecStart=no\n[Service]\n{lines}");
        fs::write(folder.join(format!("{name}.service")), text).unwrap();
    }
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn what_would_be_written_is_shown_and_nothing_is() {
    let image = Image::new();
    let output = image.apply(&[CARD, &image.tasks("a", "a")]);
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("ATTR{queue/scheduler}=\"k2\""), "{said}");
    assert!(said.contains("IOSchedulingClass=realtime\nIOSchedulingPriority=0\n"), "{said}");
    assert!(!image.path("etc").exists());
}

#[test]
fn rule_and_drop_in_are_written_and_removed_again() {
    let image = Image::new();
    let output = image.apply(&[CARD, &image.tasks("a", "a"), "--yes"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let rule = text(&image.path(RULE));
    let at = |attribute: &str| rule.find(&format!("ATTR{{queue/{attribute}}}")).unwrap();
    // A scheduler's knobs are there only once it is set.
    assert!(at("scheduler") < at("nr_requests") && at("scheduler") < at("iosched/device_limits"));
    assert!(rule.contains("ATTR{queue/iosched/rt_block_us}=\"1000\""), "{rule}");
    let deadlines = "ATTR{queue/iosched/rt_deadline_us}=\"10000 20000 100000 0 0 0 0 0\"";
    assert!(rule.contains(deadlines), "{rule}");
    let drop_in = text(&image.path(DROP_IN));
    assert!(drop_in.contains("IOSchedulingPriority=0"), "{drop_in}");
    let command = "ExecStart=\nExecStart=-/usr/bin/steady with --device /dev/mmcblk0 --declare \
                   level=0,period_us=10000,block_us=1000,jitter_us=200,think_us=1 -- /usr/bin/arm";
    assert!(drop_in.contains(command) && drop_in.ends_with(" --fast\n"), "{drop_in}");

    let shown = image.apply(&["--remove"]);
    assert_eq!(shown.status.code(), Some(0));
    assert!(image.path(RULE).exists());
    let removed = image.apply(&["--remove", "--yes"]);
    assert_eq!(removed.status.code(), Some(0));
    assert!(!image.path(RULE).exists() && !image.path(DROP_IN).parent().unwrap().exists());
}

#[test]
fn a_deadline_that_may_be_missed_changes_nothing() {
    let image = Image::new();
    let tasks = image.tasks("period_us = 20000", "period_us = 20000\ndeadline_us = 1000");
    let output = image.apply(&[CARD, &tasks, "--yes"]);
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("task log may miss its deadline"), "{said}");
    assert!(!image.path("etc").exists());
}

#[test]
fn a_file_of_somebody_else_is_kept() {
    let image = Image::new();
    fs::create_dir_all(image.path(DROP_IN).parent().unwrap()).unwrap();
    fs::write(image.path(DROP_IN), "[Service]\n").unwrap();
    let output = image.apply(&[CARD, &image.tasks("a", "a"), "--yes"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("was not written by steady apply"), "{said}");
    assert!(!image.path(RULE).exists());
    assert_eq!(text(&image.path(DROP_IN)), "[Service]\n");
    image.apply(&["--remove", "--yes"]);
    assert!(image.path(DROP_IN).exists());
}

#[test]
fn a_service_of_a_user_gets_the_group_that_may_open_k2() {
    let image = Image::new();
    let tasks = image.tasks("a", "a");
    image.unit("arm", "User=robot\nExecStart=/usr/bin/arm\n");
    fs::create_dir_all(image.path("etc")).unwrap();
    fs::write(image.path("etc/group"), "root:x:0:\nsteadyio:x:990:\n").unwrap();
    let output = image.apply(&[CARD, &tasks, "--yes"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&image.path(DROP_IN)).contains("\nSupplementaryGroups=steadyio\nExecStart=\n"));
    let rule = text(&image.path(RULE));
    assert!(rule.ends_with("SUBSYSTEM==\"misc\", KERNEL==\"k2\", GROUP=\"steadyio\"\n"), "{rule}");
}

#[test]
fn a_service_of_a_dynamic_user_and_one_with_few_devices_can_open_k2() {
    let image = Image::new();
    let tasks = image.tasks("a", "a");
    let lines = "DynamicUser=yes\nDevicePolicy=closed\nExecStart=/usr/bin/arm\n";
    image.unit("arm", lines);
    fs::create_dir_all(image.path("etc")).unwrap();
    fs::write(image.path("etc/group"), "steadyio:x:990:\n").unwrap();
    assert_eq!(image.apply(&[CARD, &tasks, "--yes"]).status.code(), Some(0));
    let drop_in = text(&image.path(DROP_IN));
    let lines = "\nSupplementaryGroups=steadyio\nDeviceAllow=/dev/k2 rw\nExecStart=\n";
    assert!(drop_in.contains(lines), "{drop_in}");
}

#[test]
fn a_task_whose_computing_time_only_a_trace_has_is_refused() {
    let image = Image::new();
    let tasks = image.tasks("name = \"log\"", "name = \"log\"\nthread = \"log\"");
    let output = image.apply(&[CARD, &tasks, "--yes"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("task log: thread = \"log\": needs --cpu-from"), "{said}");
}

#[test]
fn look_ahead_has_the_range_of_k2() {
    let image = Image::new();
    assert_eq!(image.apply(&[CARD, "--rt-block-us", "1000000"]).status.code(), Some(0));
    assert_eq!(image.apply(&[CARD, "--rt-block-us", "1000001"]).status.code(), Some(2));
}

#[test]
fn a_service_that_cannot_declare_its_task_changes_nothing() {
    for (lines, reason) in [
        ("", "arm.service: has 0 ExecStart=, must be one"),
        ("ExecStart=/a\nExecStart=/b\n", "arm.service: has 2 ExecStart="),
        ("ExecStart=@/a b\n", "arm.service: ExecStart=@/a b: @ is not supported"),
        ("User=robot\nExecStart=/a\n", "arm.service: User=robot needs the group steadyio"),
        ("DynamicUser=1\nExecStart=/a\n", "arm.service: DynamicUser=yes needs the group steadyio"),
        ("PrivateDevices=true\nExecStart=/a\n", "arm.service: PrivateDevices=yes hides /dev/k2"),
    ] {
        let image = Image::new();
        let tasks = image.tasks("a", "a");
        image.unit("arm", lines);
        let output = image.apply(&[CARD, &tasks, "--yes"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(reason) && !image.path("etc").exists(), "{said}");
    }
    let image = Image::new();
    let tasks = image.tasks("arm.service", "leg.service");
    let output = image.apply(&[CARD, &tasks]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("leg.service: no such unit"));
}

#[test]
fn the_declaration_of_a_task_without_a_service_is_printed() {
    let image = Image::new();
    let output = image.apply(&[CARD, &image.tasks("a", "a")]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains(
            "task log: run it under `steady with --device /dev/mmcblk0 --declare level=1,"
        ),
        "{said}"
    );
}

#[test]
fn tasks_are_declared_unless_the_file_says_how_background_is_cut() {
    let image = Image::new();
    let output = image.apply(&[CARD, &image.tasks("rt_block_us = 1_000\n", ""), "--yes"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("tasks are declared (block_us: joints "), "{said}");
    assert!(text(&image.path(DROP_IN)).contains(" --declare level=0,"));
    assert!(text(&image.path(RULE)).contains("iosched/device_limits"));
}

#[test]
fn tasks_are_not_declared_next_to_a_stated_split_kib() {
    let image = Image::new();
    let tasks = image.tasks("rt_block_us = 1_000\n", "split_kib = 16\n");
    assert_eq!(image.apply(&[CARD, &tasks, "--yes"]).status.code(), Some(0));
    assert!(!text(&image.path(DROP_IN)).contains("declare"));
}

#[test]
fn tasks_that_no_declaration_helps_are_not_declared() {
    let image = Image::new();
    let open = image.tasks("rt_block_us = 1_000\n", "");
    let late =
        text(Path::new(&open)).replace("period_us = 20000", "period_us = 20000\ndeadline_us = 1");
    fs::write(&open, late).unwrap();
    let output = image.apply(&[CARD, &open, "--yes"]);
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!said.contains("are declared"), "{said}");
}

#[test]
fn a_service_has_one_level() {
    let image = Image::new();
    let tasks = image.tasks("name = \"log\"", "name = \"log\"\nservice = \"arm.service\"");
    let output = image.apply(&[CARD, &tasks]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("task log: level = 1, but another task of arm.service has 0"), "{said}");
}

#[test]
fn a_disk_has_a_name_or_a_node() {
    let image = Image::new();
    let remove = |disk| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
        command.args(["apply", "--remove", "--disk", disk, "--root"]).arg(image.path(""));
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for named in ["mmcblk79", "/dev/mmcblk79"] {
        assert_eq!(remove(named), (Some(0), "steady: mmcblk79: nothing was applied\n".into()));
    }
    for (wrong, says) in [("/dev/null", "not a block device"), ("/dev/disk/by-id/none", "mmcblk0")]
    {
        let (status, said) = remove(wrong);
        assert_eq!(status, Some(2), "{said}");
        assert!(said.contains("--disk") && said.contains(says), "{said}");
    }
}

#[test]
fn look_ahead_is_told_the_times_of_the_profile() {
    let image = Image::new();
    let output = image.apply(&[CARD, "--rt-block-us", "1000"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("ATTR{queue/iosched/rt_block_us}=\"1000\""), "{said}");
    let model = said.split("device_model}=\"").nth(1).unwrap().split('"').next().unwrap();
    let words: Vec<&str> = model.split(' ').collect();
    let of_small_reads: u64 = words[2].parse().unwrap();
    let of_large_writes: u64 = words[14].parse().unwrap();
    assert_eq!([words[0], words[1], words[12], words[13]], ["read", "4", "write", "512"]);
    assert!(of_small_reads > 100 && of_large_writes > 10 * of_small_reads, "{model}");
    let both = image.apply(&[CARD, &image.tasks("a", "a"), "--rt-block-us", "1000"]);
    assert_eq!(both.status.code(), Some(2));
}

#[test]
fn an_ssd_takes_look_ahead_and_no_bound() {
    let profile = std::fs::read_to_string("../probe/tests/profile.toml").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let [root, file] = ["root", "ssd.toml"].map(|name| folder.path().join(name));
    std::fs::write(&file, profile.replace("disk = \"mmcblk0\"", "disk = \"nvme0n1\"")).unwrap();
    let apply = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
        command.args(["apply", file.to_str().unwrap(), "--disk", "nvme0n1", "--root"]);
        let output = command.arg(&root).args(arguments).output().unwrap();
        (output.status.code(), [output.stdout, output.stderr].concat())
    };
    let (status, said) = apply(&["--rt-block-us", "2000"]);
    let said = String::from_utf8(said).unwrap();
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("KERNEL==\"nvme0n1\", ATTRS{model}==\"NCEMAD\""), "{said}");
    let (status, said) = apply(&["../../docs/examples/robot.toml"]);
    let said = String::from_utf8(said).unwrap();
    assert!(status == Some(2) && said.contains("no bound is known for an SSD"), "{said}");
}
