// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes fio's job file for a list of points. `run` and `process` use it.
//!
//! One fio process runs all points that share their knobs, because its start takes time: it
//! calibrates its clock first. That takes 65 ms on a board, and a quarter of a million clock reads
//! where the kernel's time is virtual. Stonewalls separate the groups of jobs. Each point is two
//! groups: `settle`, which idles, and the point's own jobs. The order inside a group matters: fio
//! starts its jobs in file order, and the job that ends the point comes last, so that all others
//! run when it ends.
//!
//! Jobs with arrivals run in `steady`'s own threads. In a point with such jobs, no job of fio ends
//! the point. The last one to start makes a file, so that the threads can start, too.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use steadyio_core::device::Device;

use crate::fio::think::{Target, ThinkLog};
use crate::spec::expand::PlannedPoint;
use crate::spec::workload::{Data, FileSync, Ioprio, Job};

/// The time limit in s of jobs that run until another ends; longer than any point.
const UNTIL_ENDED_S: u64 = 24 * 3_600;
/// fio 3.33 ignores `randseed` without `randrepeat=0`, and takes seeds of its own. All records were
/// made so, with this seed. Any other decides the offsets.
const SEED_OF_FIO: u64 = 1;
/// The distance between the seeds of a job's points. The seeds of a point's jobs differ by 1.
const SEED_STRIDE: u64 = 1_000;
/// The distance between the seeds of a job's processes.
const PROCESS_STRIDE: u64 = 1 << 40;
/// The file of [`started_path`]; fio runs in its directory.
const STARTED: &str = "started";

/// The common settings of all points of a job file.
#[derive(Debug)]
pub struct JobFile<'a> {
    pub device: &'a Device,
    /// The directory of the jobs' files; None if the jobs use the device itself.
    pub mount: Option<&'a Path>,
    /// The idle time before each point in ms.
    pub settle_ms: u64,
    /// The seed of the workload.
    pub seed: u64,
    /// The directory in which fio runs, with the lists of think times.
    pub dir: &'a Path,
}

/// The path of a job's file on the file system mounted at `mount`.
pub fn file_path(mount: &Path, job: &Job) -> PathBuf {
    mount.join(format!("{}.dat", job.name))
}

/// fio's name for a job of a point.
pub fn job_name(point: &PlannedPoint, job: &Job) -> String {
    format!("p{}.{}", point.index, job.name)
}

impl JobFile<'_> {
    /// The text of the job file, and the think time lists it refers to.
    pub fn render(&self, points: &[PlannedPoint]) -> (String, Vec<ThinkLog>) {
        let mut text = self.global();
        let mut logs = Vec::new();
        for point in points {
            text.push_str(&self.settle(point));
            let order = running_order(point);
            for (position, &index) in order.iter().enumerate() {
                let job = &point.jobs[index];
                for process in 0..job.processes {
                    let _ = writeln!(text, "\n[{}]", job_name(point, job));
                    if position == 0 && process == 0 {
                        text.push_str("stonewall=1\n");
                    }
                    let seed = seed_of(self.seed, point.index, index, process);
                    if job.think_jitter_us > 0 {
                        let log = self.think_log(point, job, seed);
                        let _ = writeln!(text, "{}", log.options());
                        logs.push(log);
                    }
                    text.push_str(&self.job(point, index, seed));
                }
                if point.has_arrivals() && position + 1 == order.len() {
                    let _ = writeln!(text, "exec_prerun=: > {STARTED}");
                }
            }
        }
        (text, logs)
    }

    fn global(&self) -> String {
        // clock_gettime: the CPU's own counter does not follow virtual time. lat uses the clock
        // reads of clat, so only its percentiles can be left out. fio would add a job's own file
        // name to a global one.
        let device = match self.mount {
            Some(_) => String::new(),
            None => format!("filename={}\ndirect=1\n", escaped(&self.device.node)),
        };
        let offsets = if self.seed == SEED_OF_FIO { "" } else { "randrepeat=0\n" };
        format!(
            "[global]\n\
             {device}\
             thread=1\n\
             clocksource=clock_gettime\n\
             {offsets}\
             norandommap=1\n\
             invalidate=0\n\
             fadvise_hint=0\n\
             exitall=1\n\
             exit_what=group\n\
             continue_on_error=io\n\
             lat_percentiles=1\n\
             clat_percentiles=0\n\
             disable_bw_measurement=1\n"
        )
    }

    fn settle(&self, point: &PlannedPoint) -> String {
        // One I/O to the null engine, then a pause: fio sleeps, the device idles.
        format!(
            "\n[p{}.settle]\n\
             stonewall=1\n\
             ioengine=null\n\
             filename=settle\n\
             rw=read\n\
             bs=4k\n\
             size=4k\n\
             thinktime={}\n",
            point.index,
            self.settle_ms * 1_000
        )
    }

    fn job(&self, point: &PlannedPoint, index: usize, seed: u64) -> String {
        let job = &point.jobs[index];
        let block = job.bs_kib * 1_024;
        let engine = if job.depth == 1 { "psync" } else { "libaio" };
        let target = self.target(job);
        let mut text = format!(
            "rw={}\nbs={block}\nsize={}\nioengine={engine}\niodepth={}\nrandseed={seed}\n",
            job.op.word(),
            target.size_bytes / block * block,
            job.depth,
        );
        if target.offset_bytes > 0 {
            let _ = writeln!(text, "offset={}", target.offset_bytes);
        }
        if job.processes > 1 {
            text.push_str("thread=0\n");
        }
        text.push_str(&file_options(job, &target.path));
        match job.ioprio {
            Ioprio::RealTime(level) => _ = write!(text, "prioclass=1\nprio={level}\n"),
            Ioprio::BestEffort(level) => _ = write!(text, "prioclass=2\nprio={level}\n"),
            Ioprio::Idle => text.push_str("prioclass=3\n"),
            Ioprio::None => {}
        }
        if let Some(percent) = job.read_percent {
            let _ = writeln!(text, "rwmixread={percent}");
        }
        if job.think_us > 0 && job.think_jitter_us == 0 {
            let _ = writeln!(text, "thinktime={}", job.think_us);
        }
        if job.op.writes() && job.data == Data::Zero {
            text.push_str("zero_buffers=1\n");
        }
        text.push_str(&end(point, index));
        text
    }

    fn think_log(&self, point: &PlannedPoint, job: &Job, seed: u64) -> ThinkLog {
        let path = self.dir.join(format!("{}.iolog", job_name(point, job)));
        let ios = point.length.ios.unwrap_or_default();
        ThinkLog::new(path, job, &self.target(job), ios, seed)
    }

    /// The range that the job reads and writes.
    pub fn target(&self, job: &Job) -> Target {
        match (self.mount, &job.file) {
            (Some(mount), Some(file)) => {
                Target { path: file_path(mount, job), offset_bytes: 0, size_bytes: file.mib << 20 }
            }
            _ => Target {
                path: self.device.node.clone(),
                offset_bytes: job.offset_mib << 20,
                size_bytes: self.device.size_bytes.saturating_sub(job.offset_mib << 20),
            },
        }
    }
}

/// The options of a job on a file.
fn file_options(job: &Job, path: &Path) -> String {
    let Some(file) = &job.file else { return String::new() };
    let sync = match file.sync {
        FileSync::None => "none",
        FileSync::Dsync => "dsync",
        FileSync::Full => "sync",
    };
    format!(
        "filename={}\ndirect={}\nsync={sync}\nfallocate=none\noverwrite={}\n",
        escaped(path),
        u8::from(!file.buffered),
        u8::from(!file.grow),
    )
}

fn end(point: &PlannedPoint, index: usize) -> String {
    let (length, job) = (&point.length, &point.jobs[index]);
    let ends_point = point.main_job() == Some(index);
    match (length.ios, length.seconds) {
        // The list of think times is as long as the point.
        (Some(_), _) if ends_point && job.think_jitter_us > 0 => String::new(),
        // Without io_size, the job would end after one pass over the device.
        (Some(ios), _) if ends_point => {
            let bytes = ios.saturating_mul(job.bs_kib * 1_024);
            format!("number_ios={ios}\nio_size={bytes}\n")
        }
        (_, Some(seconds)) if !point.has_arrivals() => {
            format!("time_based=1\nruntime={seconds}s\n")
        }
        _ => format!("time_based=1\nruntime={UNTIL_ENDED_S}s\n"),
    }
}

/// The indices of fio's jobs; the one that ends the point comes last.
fn running_order(point: &PlannedPoint) -> Vec<usize> {
    let (mut others, last): (Vec<usize>, Vec<usize>) = (0..point.jobs.len())
        .filter(|&index| point.jobs[index].arrivals.is_none())
        .partition(|&index| point.main_job() != Some(index));
    others.extend(last);
    others
}

/// The seed of a process of a job. It does not depend on the variant, so all variants use the same
/// offsets.
pub(crate) fn seed_of(seed: u64, point: usize, job: usize, process: u64) -> u64 {
    let position = point as u64 * SEED_STRIDE + job as u64 + 1 + process * PROCESS_STRIDE;
    // fio reads seeds as signed numbers.
    seed.wrapping_mul(1_000_000).wrapping_add(position) & (i64::MAX as u64)
}

/// fio splits file names at colons.
fn escaped(node: &Path) -> String {
    node.display().to_string().replace('\\', "\\\\").replace(':', "\\:")
}

/// The file that appears when fio's jobs of a point with arrivals have started.
pub fn started_path(dir: &Path) -> PathBuf {
    dir.join(STARTED)
}

/// The job file's name in the run's directory.
pub fn job_file_path(dir: &Path) -> PathBuf {
    dir.join("points.fio")
}
