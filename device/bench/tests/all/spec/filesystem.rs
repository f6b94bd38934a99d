// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parts of a workload that need a file system: selection by `at`, and rejected mistakes.

use std::path::{Path, PathBuf};

use steadyio_bench::fio::job::JobFile;
use steadyio_bench::spec::expand::{Selection, Spec};
use steadyio_core::device::Device;

const WORKLOAD: &str = r#"
schema = "steadyio.workload/1"
name = "t"
seed = 1
length.ios = 10
filesystem = { type = "ext4", mib = 256 }
sweep = { key = "at", values = ["alone", "writer", "trim"] }

[[job]]
name = "rt"
class = "rt"
op = "randread"
bs_kib = 4
file = { mib = 8 }

[[job]]
name = "bg"
class = "bg"
op = "write"
bs_kib = 128
file = { mib = 16, grow = true, buffered = true, sync = "dsync" }
at = ["writer"]

[[command]]
name = "trim"
run = "fstrim ."
at = ["trim"]

[[variant]]
name = "v"
mount = "commit=1"
"#;

fn refused(from: &str, to: &str) -> String {
    assert!(WORKLOAD.contains(from), "{from}");
    Spec::parse(&WORKLOAD.replace(from, to)).expect_err(to).to_string()
}

#[test]
fn at_selects_jobs_and_commands_and_each_point_has_its_own_file_system() {
    let plan = Spec::parse(WORKLOAD).unwrap().plan(&Selection::default()).unwrap();
    let who: Vec<(usize, Vec<&str>, usize)> = plan[0]
        .groups
        .iter()
        .map(|group| {
            let point = &group.points[0];
            let jobs = point.jobs.iter().map(|job| job.name.as_str()).collect();
            (group.points.len(), jobs, point.commands.len())
        })
        .collect();
    let alone = || vec!["rt"];
    assert_eq!(who, [(1, alone(), 0), (1, vec!["rt", "bg"], 0), (1, alone(), 1)]);
    assert_eq!(plan[0].filesystem.mount, "commit=1");
}

#[test]
fn a_job_with_a_file_has_no_offset() {
    let said = refused("file = { mib = 16", "offset_mib = 1\nfile = { mib = 16");
    assert!(said.contains("offset_mib = 1: only allowed without a file"), "{said}");
}

#[test]
fn several_processes_may_write_a_file_but_not_extend_it() {
    let said = refused("at = [\"writer\"]", "at = [\"writer\"]\nprocesses = 4");
    assert!(said.contains("job bg: processes = 4 with file.grow"), "{said}");
    let full = WORKLOAD
        .replace("grow = true, ", "")
        .replace("op = \"write\"", "op = \"write\"\nprocesses = 4");
    assert!(Spec::parse(&full).is_ok());
}

#[test]
fn jobs_use_their_files_and_never_the_device() {
    let spec = Spec::parse(WORKLOAD).unwrap();
    let plan = spec.plan(&Selection::default()).unwrap();
    let device = Device {
        node: PathBuf::from("/dev/mmcblk0"),
        name: "mmcblk0".into(),
        disk: "mmcblk0".into(),
        sysfs: PathBuf::from("/sys/block/mmcblk0"),
        queue: PathBuf::from("/sys/block/mmcblk0/queue"),
        size_bytes: 1 << 30,
    };
    let file = JobFile {
        device: &device,
        mount: Some(Path::new("/mnt")),
        settle_ms: 500,
        seed: 1,
        dir: Path::new("/tmp"),
    };
    let (text, _) = file.render(&plan[0].groups[1].points);
    assert!(!text.contains("/dev/mmcblk0"), "{text}");
    let (bg, rt) = text.split_once("[p1.bg]").unwrap().1.split_once("[p1.rt]").unwrap();
    for line in ["filename=/mnt/bg.dat", "direct=0", "sync=dsync", "overwrite=0", "size=16777216"] {
        assert!(bg.contains(line), "{line}: {bg}");
    }
    for line in ["filename=/mnt/rt.dat", "direct=1", "sync=none", "overwrite=1", "size=8388608"] {
        assert!(rt.contains(line), "{line}: {rt}");
    }
}

#[test]
fn making_a_file_system_counts_as_writing() {
    let reads_only =
        WORKLOAD.replace("op = \"write\"", "op = \"read\"").replace("grow = true, ", "");
    assert!(Spec::parse(&reads_only).unwrap().workload.writes());
}

#[test]
fn what_makes_no_sense_is_refused_by_name() {
    for (from, to, says) in [
        ("type = \"ext4\"", "type = \"xfs\"", "ext4"),
        ("mib = 256", "mib = 16_777_217", "64 to 16777216"),
        ("mib = 8 }", "mib = 250 }", "filesystem.mib = 256"),
        ("file = { mib = 8 }", "", "job rt: file is missing"),
        ("op = \"write\"", "op = \"randwrite\"", "file.grow needs op = \"write\""),
        ("at = [\"trim\"]", "at = [\"trims\"]", "command trim: at has trims"),
        ("key = \"at\"", "key = \"knobs\"", "job bg: at has writer"),
        ("filesystem = { type = \"ext4\", mib = 256 }", "", "job rt: file: only allowed with"),
        ("sync = \"dsync\"", "sync = \"fsync\"", "dsync"),
        ("bs_kib = 128", "bs_kib = 128\ndept = 1", "dept"),
    ] {
        let text = refused(from, to);
        assert!(text.contains(says), "{to}: {text}");
    }
}
