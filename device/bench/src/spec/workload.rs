// SPDX-License-Identifier: MIT OR Apache-2.0
//! The workload specification (`docs/spec/workload-1.md`): its fields, parsing and checking.
//! [`crate::spec::expand`] makes the points from it.
//!
//! A file is parsed twice: once as written, to report mistakes with their line, and once per sweep
//! point with the point's value inserted, so that a swept value passes the same checks as a written
//! one.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};
use steadyio_core::value::Value;

use crate::spec::busy::Busy;
use crate::spec::host::Host;
use steadyio_core::range::bounded;

/// The only schema this version reads.
pub const WORKLOAD_SCHEMA: &str = "steadyio.workload/1";
/// A knob value that is replaced by the value of the sweep point.
pub const POINT_PLACEHOLDER: &str = "$point";
/// The `sweep.key` that replaces [`POINT_PLACEHOLDER`] by the point's value.
pub const SWEEP_KNOBS: &str = "knobs";
/// The table whose keys a sweep names `length.KEY`. No job may have this name.
pub const LENGTH: &str = "length";
/// The `sweep.key` that selects jobs and commands by their key of this name.
pub const SWEEP_AT: &str = "at";

/// A workload that cannot be used; the text names the key, the value and the allowed values.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SpecError(pub String);

/// A whole workload file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Always [`WORKLOAD_SCHEMA`].
    pub schema: String,
    /// Identifies the workload in file names and results.
    pub name: String,
    /// One line for users.
    #[serde(default)]
    pub title: String,
    /// The seed of every random offset, length and think time.
    #[serde(deserialize_with = "bounded::<_, 0, { i64::MAX as u64 }>")]
    pub seed: u64,
    /// The idle time before each point in ms, so that one point's writes do not delay the next.
    #[serde(default = "settle_ms_default", deserialize_with = "bounded::<_, 1, 600_000>")]
    pub settle_ms: u64,
    /// Whether the record has each job separately, besides the classes.
    #[serde(default)]
    pub each_job: bool,
    /// The condition that ends a point.
    pub length: Length,
    /// The file system for the jobs' files; None if the jobs use the device itself.
    pub filesystem: Option<Filesystem>,
    /// The software time of each I/O; None if it is that of the host.
    pub host: Option<Host>,
    /// The concurrent jobs.
    pub job: Vec<Job>,
    /// The programs that run during the jobs.
    #[serde(default)]
    pub command: Vec<Command>,
    /// The tasks that compute while the jobs run.
    #[serde(default)]
    pub busy: Vec<Busy>,
    /// The key that changes from point to point.
    pub sweep: Option<Sweep>,
    /// The settings of the device to compare.
    pub variant: Vec<Variant>,
}

fn settle_ms_default() -> u64 {
    500
}

/// The condition that ends a point. Exactly one of the two is set.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Length {
    /// The number of I/Os of the first real-time job, or of the first job if there is none. The
    /// other jobs run until it is done.
    #[serde(default, deserialize_with = "optional_ios")]
    pub ios: Option<u64>,
    /// The time for all jobs in s.
    #[serde(default, deserialize_with = "optional_seconds")]
    pub seconds: Option<u64>,
}

fn optional_ios<'de, D: Deserializer<'de>>(de: D) -> Result<Option<u64>, D::Error> {
    bounded::<D, 1, 100_000_000>(de).map(Some)
}

fn optional_seconds<'de, D: Deserializer<'de>>(de: D) -> Result<Option<u64>, D::Error> {
    bounded::<D, 1, 86_400>(de).map(Some)
}

/// A class of results: the protected one, or the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Real-time: its latency is measured and protected.
    Rt,
    /// Background: the concurrent load.
    Bg,
}

/// A kind of access, in fio's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    Read,
    Write,
    /// Sequential reads and writes.
    ReadWrite,
    /// Reads at uniformly random offsets.
    RandRead,
    /// Writes at uniformly random offsets.
    RandWrite,
    /// Reads and writes at uniformly random offsets.
    RandRw,
}

impl Op {
    /// The word in spec, record and fio job file.
    pub fn word(self) -> &'static str {
        match self {
            Op::Read => "read",
            Op::Write => "write",
            Op::ReadWrite => "readwrite",
            Op::RandRead => "randread",
            Op::RandWrite => "randwrite",
            Op::RandRw => "randrw",
        }
    }

    /// Whether the operation changes data.
    pub fn writes(self) -> bool {
        !matches!(self, Op::Read | Op::RandRead)
    }

    /// Whether it mixes reads and writes, so that `read_percent` has a meaning.
    pub fn mixed(self) -> bool {
        matches!(self, Op::ReadWrite | Op::RandRw)
    }

    /// Whether offsets are random.
    pub fn random(self) -> bool {
        matches!(self, Op::RandRead | Op::RandWrite | Op::RandRw)
    }
}

/// The I/O priority of a job, as in `ionice` and `ioprio_set(2)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ioprio {
    /// Real-time class, level 0 (first) to 7.
    RealTime(u8),
    /// Best-effort class, level 0 (first) to 7.
    BestEffort(u8),
    Idle,
    /// Not set: the kernel derives it from the nice value.
    None,
}

impl<'de> Deserialize<'de> for Ioprio {
    fn deserialize<D: Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
        let text = String::deserialize(de)?;
        let level = |digits: &str| match digits.parse::<u8>() {
            Ok(level) if level <= 7 && digits.len() == 1 => Ok(level),
            _ => Err(()),
        };
        let parsed = match text.split_once('/') {
            Some(("rt", digits)) => level(digits).map(Ioprio::RealTime),
            Some(("be", digits)) => level(digits).map(Ioprio::BestEffort),
            None if text == "idle" => Ok(Ioprio::Idle),
            None if text == "none" => Ok(Ioprio::None),
            _ => Err(()),
        };
        parsed.map_err(|()| {
            let allowed =
                "must be \"rt/0\" to \"rt/7\", \"be/0\" to \"be/7\", \"idle\" or \"none\"";
            D::Error::custom(format!("ioprio = \"{text}\": {allowed}"))
        })
    }
}

/// One stream of I/O.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The name, unique in the workload; `sweep.key` refers to it.
    pub name: String,
    /// The class of its latencies.
    pub class: Class,
    /// The kind of access.
    pub op: Op,
    /// The size of one I/O in KiB.
    #[serde(deserialize_with = "bounded::<_, 1, 65_536>")]
    pub bs_kib: u64,
    /// The beginning of the job's part of the device, in MiB.
    #[serde(default, deserialize_with = "bounded::<_, 0, 1_073_741_824>")]
    pub offset_mib: u64,
    /// The number of outstanding I/Os: 1 = synchronous, more = libaio.
    #[serde(default = "one", deserialize_with = "bounded::<_, 1, 4_096>")]
    pub depth: u64,
    /// The number of processes that do the job, each with `depth` outstanding I/Os.
    #[serde(default = "one", deserialize_with = "bounded::<_, 1, 256>")]
    pub processes: u64,
    /// The number of threads that share the job's I/Os; needs a `[host]`.
    #[serde(default = "one", deserialize_with = "bounded::<_, 1, 256>")]
    pub threads: u64,
    /// I/O priority.
    #[serde(default = "ioprio_default")]
    pub ioprio: Ioprio,
    /// The pause between the completion of one I/O and the issue of the next, in us.
    #[serde(default, deserialize_with = "bounded::<_, 0, 60_000_000>")]
    pub think_us: u64,
    /// The pause is drawn uniformly from `think_us` plus or minus this, in us.
    #[serde(default, deserialize_with = "bounded::<_, 0, 60_000_000>")]
    pub think_jitter_us: u64,
    /// The pattern of its I/Os' times; None if each I/O follows the one before.
    pub arrivals: Option<Pattern>,
    /// The mean distance of two arrivals in us; the period of periodic ones.
    #[serde(default, deserialize_with = "optional_gap_us")]
    pub gap_us: Option<u64>,
    /// The shortest distance of two sporadic arrivals in us.
    #[serde(default, deserialize_with = "optional_gap_us")]
    pub gap_us_min: Option<u64>,
    /// Each periodic arrival is drawn uniformly from its time plus or minus this, in us.
    #[serde(default, deserialize_with = "optional_gap_us")]
    pub jitter_us: Option<u64>,
    /// The number of I/Os per arrival, one after the other.
    #[serde(default, deserialize_with = "optional_burst")]
    pub burst: Option<u64>,
    /// The time with arrivals, in ms.
    #[serde(default, deserialize_with = "optional_phase_ms")]
    pub on_ms: Option<u64>,
    /// The time without arrivals after it, in ms.
    #[serde(default, deserialize_with = "optional_phase_ms")]
    pub off_ms: Option<u64>,
    /// The delay in us with which the thread wakes up now and then. It catches up afterwards.
    #[serde(default, deserialize_with = "optional_gap_us")]
    pub late_us: Option<u64>,
    /// The time from one such delay to the next, in ms.
    #[serde(default, deserialize_with = "optional_phase_ms")]
    pub late_every_ms: Option<u64>,
    /// The number of arrivals that a thread serves before another thread replaces it; None: one
    /// serves all.
    #[serde(default, deserialize_with = "optional_burst")]
    pub thread_arrivals: Option<u64>,
    /// The SCHED_FIFO priority of its thread; needs arrivals.
    #[serde(default, deserialize_with = "optional_fifo")]
    pub fifo: Option<u64>,
    /// The written data.
    #[serde(default)]
    pub data: Data,
    /// The share of reads of a mixed operation in percent.
    #[serde(default, deserialize_with = "optional_percent")]
    pub read_percent: Option<u64>,
    /// The time at which a write to the device itself counts as done; needs arrivals.
    #[serde(default)]
    pub sync: FileSync,
    /// The job's use of its file; required with a file system, and only allowed then.
    pub file: Option<JobFile>,
    /// The sweep points at which it runs; empty: all.
    #[serde(default)]
    pub at: Vec<Value>,
}

impl Job {
    /// The number of I/Os that all its processes keep outstanding.
    pub fn outstanding(&self) -> u64 {
        self.depth * self.processes
    }
}

/// A job's separate file on the file system.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobFile {
    /// The size in MiB.
    #[serde(deserialize_with = "bounded::<_, 1, 1_048_576>")]
    pub mib: u64,
    /// Whether the file starts empty and grows with each write. Otherwise it is written in full
    /// before the point.
    #[serde(default)]
    pub grow: bool,
    /// Whether I/O uses the page cache instead of direct I/O.
    #[serde(default)]
    pub buffered: bool,
    /// The time at which a write counts as done.
    #[serde(default)]
    pub sync: FileSync,
}

/// The distribution of the times of a job's I/Os.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// One per period, at a time that varies by the jitter.
    Periodic,
    /// A minimum distance plus an exponentially distributed one.
    Sporadic,
    /// Exponentially distributed distances.
    Poisson,
}

impl Pattern {
    /// The word used in the spec.
    pub fn word(self) -> &'static str {
        match self {
            Pattern::Periodic => "periodic",
            Pattern::Sporadic => "sporadic",
            Pattern::Poisson => "poisson",
        }
    }
}

/// The time at which a write counts as done, as in `open(2)`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileSync {
    /// The kernel (buffered) or the device (direct) has taken it.
    #[default]
    None,
    /// `O_DSYNC`: as if fdatasync followed each.
    Dsync,
    /// `O_SYNC`: as if fsync followed each.
    Full,
}

/// The contents of a job's writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Data {
    /// Random data made once per job: not compressible, the same in each block.
    #[default]
    Random,
    /// Zeroes, which cost an emulated device no memory.
    Zero,
}

fn one() -> u64 {
    1
}

fn ioprio_default() -> Ioprio {
    Ioprio::None
}

fn optional_gap_us<'de, D: Deserializer<'de>>(de: D) -> Result<Option<u64>, D::Error> {
    bounded::<D, 0, 60_000_000>(de).map(Some)
}

fn optional_burst<'de, D: Deserializer<'de>>(de: D) -> Result<Option<u64>, D::Error> {
    bounded::<D, 1, 1_000>(de).map(Some)
}

fn optional_phase_ms<'de, D: Deserializer<'de>>(de: D) -> Result<Option<u64>, D::Error> {
    bounded::<D, 1, 3_600_000>(de).map(Some)
}

fn optional_fifo<'de, D: Deserializer<'de>>(de: D) -> Result<Option<u64>, D::Error> {
    bounded::<D, 1, 99>(de).map(Some)
}

fn optional_percent<'de, D: Deserializer<'de>>(de: D) -> Result<Option<u64>, D::Error> {
    bounded::<D, 0, 100>(de).map(Some)
}

/// The file system, recreated for each point.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filesystem {
    #[serde(rename = "type")]
    pub kind: FilesystemKind,
    /// The size in MiB, from the start of the device.
    #[serde(deserialize_with = "bounded::<_, 64, 16_777_216>")]
    pub mib: u64,
    /// Additional arguments of mkfs.
    #[serde(default)]
    pub mkfs: Vec<String>,
    /// The mount options, comma-separated.
    #[serde(default)]
    pub mount: String,
}

/// Kind of file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FilesystemKind {
    Ext4,
    F2fs,
}

/// A program that runs during the jobs of a point, and ends with the point.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// Unique in the workload.
    pub name: String,
    /// The shell commands.
    pub run: String,
    /// I/O priority.
    #[serde(default = "ioprio_default")]
    pub ioprio: Ioprio,
    /// The sweep points at which it runs; empty: all.
    #[serde(default)]
    pub at: Vec<Value>,
}

/// One key that takes several values, one per point.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// `JOB.KEY`; or `knobs` for every knob with the value `"$point"`; or `at` for the points at
    /// which jobs and programs run.
    pub key: String,
    /// The points, in running order.
    pub values: Vec<Value>,
}

/// One setting of the device's knobs.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Unique in the workload.
    pub name: String,
    /// One line for users.
    #[serde(default)]
    pub title: String,
    /// Whether the jobs use the card's /dev/chardiskN. The card is taken for them, and has other
    /// knobs.
    #[serde(default)]
    pub chardisk: bool,
    /// The requested values of `scheduler`, `iosched/NAME`, `queue/NAME`, or `chardisk/NAME`.
    #[serde(default)]
    pub knobs: BTreeMap<String, Value>,
    /// The knobs that the device may lack or reject. The record's `unmet` then lists them.
    #[serde(default)]
    pub optional: BTreeSet<String>,
    /// The SCHED_FIFO priority of the kernel's workers that complete a card's requests, during this
    /// variant.
    #[serde(default, deserialize_with = "optional_fifo")]
    pub kworkers_fifo: Option<u64>,
    /// The time for which lower levels may block periodic real-time jobs, which are declared to k2
    /// during this variant. 0: they are not declared.
    #[serde(default, deserialize_with = "bounded::<_, 0, 1_000_000>")]
    pub declare_block_us: u64,
    /// Additional arguments of mkfs.
    #[serde(default)]
    pub mkfs: Vec<String>,
    /// Additional mount options.
    #[serde(default)]
    pub mount: String,
    /// Shell commands that run after the file system is mounted, before the files are written.
    #[serde(default)]
    pub prepare: String,
}

impl Workload {
    /// Jobs of one class, in order.
    pub fn jobs_of(&self, class: Class) -> impl Iterator<Item = &Job> {
        self.job.iter().filter(move |job| job.class == class)
    }

    /// Whether any job changes data on the device, or a file system is made.
    pub fn writes(&self) -> bool {
        self.filesystem.is_some() || self.job.iter().any(|job| job.op.writes())
    }
}
