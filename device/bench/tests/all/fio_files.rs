// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files exchanged with fio: job files, lists of think times, results.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use proptest::prelude::*;
use steadyio_bench::fio::job::JobFile;
use steadyio_bench::fio::output;
use steadyio_bench::fio::think::{Target, ThinkLog};
use steadyio_bench::spec::expand::{Selection, Setting, Spec};
use steadyio_bench::spec::workload::{Class, Data, FileSync, Ioprio, Job, Op};
use steadyio_core::device::Device;
use steadyio_testing::skip;

const SIZE_BYTES: u64 = (1 << 30) + 512;

fn device() -> Device {
    Device {
        node: PathBuf::from("/dev/disk/by-path/platform:sdhci"),
        name: "mmcblk0".into(),
        disk: "mmcblk0".into(),
        sysfs: PathBuf::from("/sys/block/mmcblk0"),
        queue: PathBuf::from("/sys/block/mmcblk0/queue"),
        size_bytes: SIZE_BYTES,
    }
}

fn target(offset_bytes: u64) -> Target {
    let device = device();
    Target { path: device.node, offset_bytes, size_bytes: device.size_bytes - offset_bytes }
}

/// Job file of the first variant of a published workload.
fn job_file(dir: &Path, points: &[&str]) -> String {
    let spec = Spec::parse(&published()).unwrap();
    let points = points.iter().map(|point| point.to_string()).collect();
    let plan = spec.plan(&Selection { variants: Vec::new(), points }).unwrap();
    let file =
        JobFile { device: &device(), mount: None, settle_ms: 500, seed: spec.workload.seed, dir };
    file.render(&plan[0].groups[0].points).0
}

/// Job file of the first variant of a published workload with some values replaced.
fn job_file_with(settings: &[&str]) -> String {
    let settings: Vec<Setting> = settings.iter().map(|text| text.parse().unwrap()).collect();
    job_file_of(&published(), &settings)
}

fn published() -> String {
    std::fs::read_to_string("../../experiments/workloads/s1-fig5.toml").unwrap()
}

fn job_file_of(text: &str, settings: &[Setting]) -> String {
    let spec = Spec::parse_with(text, settings).unwrap();
    let plan = spec.plan(&Selection::default()).unwrap();
    let dir = Path::new("/tmp");
    let file =
        JobFile { device: &device(), mount: None, settle_ms: 500, seed: spec.workload.seed, dir };
    file.render(&plan[0].groups[0].points).0
}

/// The section of a job.
fn section<'a>(text: &'a str, name: &str) -> &'a str {
    let (_, from) = text.split_once(&format!("[{name}]\n")).expect("section");
    from.split("\n[").next().unwrap_or(from)
}

#[test]
fn what_is_set_reaches_fio() {
    let text = job_file_with(&["rt.op=write", "bg.op=randwrite", "length.ios=77"]);
    let (rt, bg) = (section(&text, "p6.rt"), section(&text, "p6.bg"));
    assert!(rt.contains("rw=write\n") && rt.contains("number_ios=77\n"), "{rt}");
    assert!(bg.contains("rw=randwrite\n") && bg.contains("bs=524288\n"), "{bg}");
    assert!(rt.contains("zero_buffers=1\n") && bg.contains("zero_buffers=1\n"));
    assert!(!job_file_with(&[]).contains("zero_buffers"), "reads have no data of their own");
}

#[test]
fn jobs_with_arrivals_are_not_fios_and_end_the_others() {
    let text = std::fs::read_to_string("../../experiments/workloads/s1-fig5.toml").unwrap();
    let text = text.replace("\"rt/0\"", "\"rt/0\"\narrivals = \"poisson\"\ngap_us = 9");
    let plan = Spec::parse(&text).unwrap().plan(&Selection::default()).unwrap();
    let dir = Path::new("/tmp");
    let file = JobFile { device: &device(), mount: None, settle_ms: 500, seed: 1, dir };
    let text = file.render(&plan[0].groups[0].points).0;
    assert!(!text.contains("[p0.rt]"), "{text}");
    let bg = section(&text, "p0.bg");
    assert!(bg.starts_with("stonewall=1\n") && bg.contains("runtime=86400s\n"), "{bg}");
    assert!(bg.contains("exec_prerun=: > started\n"), "the others wait for it: {bg}");
}

#[test]
fn the_job_that_ends_a_point_comes_last_in_its_group() {
    let text = job_file(Path::new("/tmp"), &[]);
    let names: Vec<&str> = text.lines().filter(|line| line.starts_with("[p")).collect();
    assert_eq!(names.len(), 7 * 3);
    assert_eq!(names[..3], ["[p0.settle]", "[p0.bg]", "[p0.rt]"]);
    for (job, stonewall, end) in [
        ("settle", true, "thinktime=500000"),
        ("bg", true, "time_based=1"),
        ("rt", false, "number_ios=4000"),
    ] {
        let lines = section(&text, &format!("p6.{job}"));
        assert_eq!(lines.contains("stonewall=1"), stonewall, "{lines}");
        assert!(lines.contains(end), "{lines}");
    }
    // Whole blocks only, and the last 512 bytes are no whole block.
    assert!(section(&text, "p6.rt").contains("size=1073741824\n"));
}

#[test]
fn seeds_differ_between_jobs_and_points_but_not_with_the_selection() {
    let all = job_file(Path::new("/tmp"), &[]);
    let one = job_file(Path::new("/tmp"), &["512"]);
    assert_eq!(section(&all, "p6.rt").trim(), section(&one, "p6.rt").trim());
    let mut seeds: Vec<&str> = all.lines().filter(|line| line.starts_with("randseed=")).collect();
    let count = seeds.len();
    seeds.sort_unstable();
    seeds.dedup();
    assert_eq!((seeds.len(), count), (14, 14));
}

#[test]
fn fio_itself_takes_the_job_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("points.fio");
    std::fs::write(&path, job_file(dir.path(), &["4", "512"])).unwrap();
    match Command::new("fio").arg("--parse-only").arg(&path).current_dir(dir.path()).output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success() && said.is_empty(), "{said}");
        }
        Err(error) => skip(&format!("fio: {error}")),
    }
}

#[test]
fn a_job_with_an_offset_has_the_device_from_there_on() {
    let spec = published().replace("name = \"bg\"\n", "name = \"bg\"\noffset_mib = 100\n");
    let text = job_file_of(&spec, &[]);
    let bg = section(&text, "p0.bg");
    assert!(bg.contains(&format!("\noffset={}\n", 100 << 20)), "{bg}");
    let block = 4_096;
    let size = (SIZE_BYTES - (100 << 20)) / block * block;
    assert!(bg.contains(&format!("\nsize={size}\n")), "{bg}");
    assert!(!section(&text, "p0.rt").contains("offset="));
}

#[test]
fn each_process_of_a_job_has_offsets_of_its_own() {
    let spec = published().replace("name = \"bg\"\n", "name = \"bg\"\nprocesses = 128\n");
    let text = job_file_of(&spec, &[]);
    let point = text.split("[p1.settle]").next().unwrap();
    let all: Vec<_> = point.split("[p0.bg]").skip(1).collect();
    let seeds: BTreeSet<_> = all.iter().filter_map(|one| seed_in(one)).collect();
    assert_eq!((all.len(), seeds.len()), (128, 128));
    assert!(all[0].contains("stonewall=1\n") && !all[1].contains("stonewall=1\n"));
    assert!(all.iter().all(|one| one.contains("\niodepth=1\n") && one.contains("\nthread=0\n")));
    assert!(!section(&text, "p0.rt").contains("thread="), "one process is a thread");
}

fn seed_in(section: &str) -> Option<&str> {
    section.split("randseed=").nth(1)?.lines().next()
}

#[test]
fn offsets_follow_the_seed() {
    let text = |seed: &str| job_file_of(&published().replace("seed = 1\n", seed), &[]);
    let (one, two) = (text("seed = 1\n"), text("seed = 2\n"));
    assert_ne!(seed_in(section(&one, "p0.bg")), seed_in(section(&two, "p0.bg")));
    assert!(section(&two, "global").contains("\nrandrepeat=0\n"), "{two}");
    assert!(!one.contains("randrepeat="), "the records were made without");
}

fn job(op: Op, bs_kib: u64, think_us: u64, think_jitter_us: u64) -> Job {
    let read_percent = op.mixed().then_some(70);
    let (name, ioprio) = ("rt".to_string(), Ioprio::None);
    let class = Class::Rt;
    Job {
        name,
        class,
        op,
        bs_kib,
        offset_mib: 0,
        depth: 1,
        processes: 1,
        threads: 1,
        ioprio,
        think_us,
        think_jitter_us,
        arrivals: None,
        gap_us: None,
        gap_us_min: None,
        jitter_us: None,
        burst: None,
        on_ms: None,
        off_ms: None,
        late_us: None,
        late_every_ms: None,
        thread_arrivals: None,
        fifo: None,
        data: Data::Random,
        read_percent,
        sync: FileSync::None,
        file: None,
        at: Vec::new(),
    }
}

proptest! {
    #[test]
    fn think_lists_stay_on_the_device_and_within_the_jitter(
        op in prop::sample::select(vec![Op::Read, Op::RandRead, Op::RandWrite, Op::RandRw]),
        bs_kib in 1u64..2_000,
        (think, jitter) in (1u64..100_000).prop_flat_map(|think| (Just(think), 1..=think)),
        offset_mib in 0u64..1_000,
        seed in any::<u64>(),
    ) {
        let first = offset_mib << 20;
        let job = job(op, bs_kib, think, jitter);
        let log = ThinkLog::new("x.iolog".into(), &job, &target(first), 200, seed);
        let mut time = 1;
        let mut ios = 0;
        for line in log.text().lines().skip(1) {
            let fields: Vec<&str> = line.split(' ').collect();
            let at: u64 = fields[0].parse().unwrap();
            if let [_, _, direction, offset, length] = fields[..] {
                let (offset, length): (u64, u64) = (offset.parse().unwrap(), length.parse().unwrap());
                prop_assert!((think - jitter..=think + jitter).contains(&(at - time)));
                prop_assert_eq!(((offset - first) % length, length), (0, bs_kib * 1_024));
                prop_assert!(offset + length <= SIZE_BYTES);
                prop_assert!(op.writes() || direction == "read");
                ios += 1;
            }
            time = at;
        }
        prop_assert_eq!(ios, 200);
        let again = ThinkLog::new("x.iolog".into(), &job, &target(first), 200, seed);
        prop_assert_eq!(log.text(), again.text());
    }

    #[test]
    fn any_result_is_read_or_refused(text in "\\PC{0,100}", json in "[{}\\[\\]\",:0-9a-z]{0,80}") {
        let _ = output::parse(&text);
        let _ = output::parse(&format!("note\n{{{json}"));
    }
}

/// One direction of a job in fio's result.
fn direction(count: u64) -> String {
    format!(
        "{{\"io_bytes\":{},\"runtime\":20,\"total_ios\":9,\"lat_ns\":{{\"min\":90,\"max\":210,\
         \"bins\":{{\"100\":{count},\"200\":1}}}}}}",
        count * 4096
    )
}

/// A job in fio's result, whose I/Os failed twice.
fn reported(error: i32, read: &str, write: &str) -> String {
    format!(
        "{{\"jobname\":\"p0.rt\",\"error\":{error},\"total_err\":2,\"read\":{read},\
         \"write\":{write}}}"
    )
}

#[test]
fn the_processes_of_a_job_have_one_result() {
    let idle = "{\"io_bytes\":0,\"runtime\":0,\"lat_ns\":{\"min\":0,\"max\":0}}";
    let other = direction(5).replace("90", "80").replace("210", "410").replace("\"200", "\"400");
    let processes = [
        reported(0, &direction(3), idle),
        reported(5, &other.replace("20,", "30,"), idle),
        // Ended before its first I/O.
        reported(0, idle, idle),
    ];
    let jobs = output::parse(&format!("{{\"jobs\":[{}]}}", processes.join(","))).unwrap();
    let job = &jobs["p0.rt"];
    assert_eq!((jobs.len(), job.count, job.errors, job.fatal), (1, 10, 6, 5));
    assert_eq!((job.bytes, job.duration_ns), (8 * 4096, 30_000_000));
    assert_eq!(job.latency.bins(), [(100, 8), (200, 1), (400, 1)]);
    let ends = job.latency.percentiles();
    assert_eq!((ends.min, ends.max), (Some(80), Some(410)));
}

#[test]
fn messages_around_the_result_do_no_harm_and_missing_results_are_shown() {
    let job = reported(0, &direction(3), &direction(4));
    let text = format!("fio: a note\n{{\"jobs\":[{job}]}}\nanother note\n");
    let jobs = output::parse(&text).unwrap();
    let job = &jobs["p0.rt"];
    assert_eq!((job.count, job.errors, job.bytes, job.duration_ns), (9, 2, 7 * 4096, 20_000_000));
    assert_eq!(job.latency.bins(), [(100, 7), (200, 2)]);
    let missing = output::parse("fio: engine libaio not loadable").unwrap_err().to_string();
    assert!(missing.contains("libaio not loadable"), "{missing}");
    let bin = output::parse(&text.replace("\"200\"", "\"2x\"")).unwrap_err().to_string();
    assert!(bin.contains("p0.rt") && bin.contains("2x"), "{bin}");
}
