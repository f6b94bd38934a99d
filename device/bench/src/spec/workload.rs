// SPDX-License-Identifier: MIT OR Apache-2.0
//! The workload specification (`docs/spec/workload-1.md`): parsing and checking.
//!
//! A file is parsed twice: once as written, to report mistakes with their line, and once per
//! sweep point with the point's value put in (see [`crate::spec::expand`]), so that a swept value
//! passes the same checks as a written one.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};
use steadyio_core::value::Value;

use crate::spec::busy::Busy;
use crate::spec::host::Host;
use steadyio_core::range::bounded;

/// The only schema this version reads.
pub const WORKLOAD_SCHEMA: &str = "steadyio.workload/1";
/// Knob value that stands for the value of the sweep point.
pub const POINT_PLACEHOLDER: &str = "$point";
/// `sweep.key` that puts the point's value in place of [`POINT_PLACEHOLDER`].
pub const SWEEP_KNOBS: &str = "knobs";
/// The table whose keys a sweep reaches as `length.KEY`; so no job may have this name.
pub const LENGTH: &str = "length";
/// `sweep.key` that selects, by their key of this name, which jobs and commands run.
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
    /// One line for people.
    #[serde(default)]
    pub title: String,
    /// Decides every random offset, length and think time of the workload.
    #[serde(deserialize_with = "bounded::<_, 0, { i64::MAX as u64 }>")]
    pub seed: u64,
    /// Idle time before each point in ms, so that one point's writes do not delay the next.
    #[serde(default = "settle_ms_default", deserialize_with = "bounded::<_, 1, 600_000>")]
    pub settle_ms: u64,
    /// Whether the record has each job by itself, besides the classes.
    #[serde(default)]
    pub each_job: bool,
    /// When a point ends.
    pub length: Length,
    /// The file system that the jobs' files are on; None: the jobs use the device itself.
    pub filesystem: Option<Filesystem>,
    /// Software time of each I/O; None: as long as the host takes.
    pub host: Option<Host>,
    /// What runs at the same time.
    pub job: Vec<Job>,
    /// Programs that run next to the jobs.
    #[serde(default)]
    pub command: Vec<Command>,
    /// Tasks that compute while the jobs run.
    #[serde(default)]
    pub busy: Vec<Busy>,
    /// What changes from point to point.
    pub sweep: Option<Sweep>,
    /// The settings of the device that are compared.
    pub variant: Vec<Variant>,
}

fn settle_ms_default() -> u64 {
    500
}

/// When a point ends: exactly one of the two is set.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Length {
    /// I/Os of the first real-time job, or of the first if there is none; the other jobs run until
    /// it is done.
    #[serde(default, deserialize_with = "optional_ios")]
    pub ios: Option<u64>,
    /// Time for all jobs in s.
    #[serde(default, deserialize_with = "optional_seconds")]
    pub seconds: Option<u64>,
}

fn optional_ios<'de, D: Deserializer<'de>>(de: D) -> Result<Option<u64>, D::Error> {
    bounded::<D, 1, 100_000_000>(de).map(Some)
}

fn optional_seconds<'de, D: Deserializer<'de>>(de: D) -> Result<Option<u64>, D::Error> {
    bounded::<D, 1, 86_400>(de).map(Some)
}

/// Class of results: whose latency is protected, and from what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Real-time: the latency that counts.
    Rt,
    /// Background: the load next to it.
    Bg,
}

/// Kind of access, in fio's words.
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
    /// The word used in spec, record and fio job file.
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

    /// Whether reads and writes alternate, so that `read_percent` has a meaning.
    pub fn mixed(self) -> bool {
        matches!(self, Op::ReadWrite | Op::RandRw)
    }

    /// Whether offsets are random.
    pub fn random(self) -> bool {
        matches!(self, Op::RandRead | Op::RandWrite | Op::RandRw)
    }
}

/// I/O priority of a job, as `ionice` and `ioprio_set(2)` have it.
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
    /// Unique in the workload; `sweep.key` refers to it.
    pub name: String,
    /// Where its latencies are counted.
    pub class: Class,
    /// Kind of access.
    pub op: Op,
    /// Size of one I/O in KiB.
    #[serde(deserialize_with = "bounded::<_, 1, 65_536>")]
    pub bs_kib: u64,
    /// Where the job's part of the device begins, in MiB.
    #[serde(default, deserialize_with = "bounded::<_, 0, 1_073_741_824>")]
    pub offset_mib: u64,
    /// I/Os kept outstanding: 1 = synchronous, more = libaio.
    #[serde(default = "one", deserialize_with = "bounded::<_, 1, 4_096>")]
    pub depth: u64,
    /// Threads that share the job's I/Os; with a `[host]`.
    #[serde(default = "one", deserialize_with = "bounded::<_, 1, 256>")]
    pub threads: u64,
    /// I/O priority.
    #[serde(default = "ioprio_default")]
    pub ioprio: Ioprio,
    /// Pause between the completion of one I/O and the issue of the next, in us.
    #[serde(default, deserialize_with = "bounded::<_, 0, 60_000_000>")]
    pub think_us: u64,
    /// The pause is drawn uniformly from `think_us` plus or minus this, in us.
    #[serde(default, deserialize_with = "bounded::<_, 0, 60_000_000>")]
    pub think_jitter_us: u64,
    /// The times of its I/Os; None: each follows the one before.
    pub arrivals: Option<Pattern>,
    /// Mean distance of two arrivals in us; the period of periodic ones.
    #[serde(default, deserialize_with = "optional_gap_us")]
    pub gap_us: Option<u64>,
    /// Least distance of two sporadic arrivals in us.
    #[serde(default, deserialize_with = "optional_gap_us")]
    pub gap_us_min: Option<u64>,
    /// Each periodic arrival is drawn uniformly from its time plus or minus this, in us.
    #[serde(default, deserialize_with = "optional_gap_us")]
    pub jitter_us: Option<u64>,
    /// I/Os per arrival, one after the other.
    #[serde(default, deserialize_with = "optional_burst")]
    pub burst: Option<u64>,
    /// Arrivals come for so long, in ms.
    #[serde(default, deserialize_with = "optional_phase_ms")]
    pub on_ms: Option<u64>,
    /// And then none for so long, in ms.
    #[serde(default, deserialize_with = "optional_phase_ms")]
    pub off_ms: Option<u64>,
    /// Now and then the thread wakes up so much too late, in us, and catches up.
    #[serde(default, deserialize_with = "optional_gap_us")]
    pub late_us: Option<u64>,
    /// So long after it was late before, in ms.
    #[serde(default, deserialize_with = "optional_phase_ms")]
    pub late_every_ms: Option<u64>,
    /// Arrivals that a thread serves before another takes its place; None: one serves all.
    #[serde(default, deserialize_with = "optional_burst")]
    pub thread_arrivals: Option<u64>,
    /// Its thread runs under SCHED_FIFO at this priority; with arrivals.
    #[serde(default, deserialize_with = "optional_fifo")]
    pub fifo: Option<u64>,
    /// The written data.
    #[serde(default)]
    pub data: Data,
    /// Share of reads of a mixed operation in percent.
    #[serde(default, deserialize_with = "optional_percent")]
    pub read_percent: Option<u64>,
    /// When a write to the device itself counts as done; with arrivals.
    #[serde(default)]
    pub sync: FileSync,
    /// How the job uses its file; needed with a file system, and only then allowed.
    pub file: Option<JobFile>,
    /// Sweep points at which it runs; empty: all.
    #[serde(default)]
    pub at: Vec<Value>,
}

/// A job's own file on the file system.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobFile {
    /// Size in MiB.
    #[serde(deserialize_with = "bounded::<_, 1, 1_048_576>")]
    pub mib: u64,
    /// Starts empty and grows with each write; otherwise written in full before the point.
    #[serde(default)]
    pub grow: bool,
    /// Through the page cache instead of direct.
    #[serde(default)]
    pub buffered: bool,
    /// When a write counts as done.
    #[serde(default)]
    pub sync: FileSync,
}

/// How the times of a job's I/Os are distributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// One per period, at a time that varies by the jitter.
    Periodic,
    /// A least distance, and an exponentially distributed one in addition.
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

/// When a write counts as done, as `open(2)` has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileSync {
    /// When the kernel (buffered) or the device (direct) has taken it.
    #[default]
    None,
    /// `O_DSYNC`: as if each were followed by fdatasync.
    Dsync,
    /// `O_SYNC`: as if each were followed by fsync.
    Full,
}

/// Content of what a job writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Data {
    /// Made once per job: not compressible, repeats every block.
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
    /// Size in MiB, from the start of the device.
    #[serde(deserialize_with = "bounded::<_, 64, 16_777_216>")]
    pub mib: u64,
    /// Further arguments of mkfs.
    #[serde(default)]
    pub mkfs: Vec<String>,
    /// Mount options, comma-separated.
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

/// A program that runs next to the jobs of a point, and ends with it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// Unique in the workload.
    pub name: String,
    /// Shell commands.
    pub run: String,
    /// I/O priority.
    #[serde(default = "ioprio_default")]
    pub ioprio: Ioprio,
    /// Sweep points at which it runs; empty: all.
    #[serde(default)]
    pub at: Vec<Value>,
}

/// One key that takes several values, one per point.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// `JOB.KEY`, `knobs` for every knob whose value is `"$point"`, or `at` for the times at which
    /// jobs and programs run.
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
    /// One line for people.
    #[serde(default)]
    pub title: String,
    /// The jobs use the card's /dev/chardiskN, which it is given for and which has other knobs.
    #[serde(default)]
    pub chardisk: bool,
    /// `scheduler`, `iosched/NAME`, `queue/NAME`, or `chardisk/NAME`, with the value wanted.
    #[serde(default)]
    pub knobs: BTreeMap<String, Value>,
    /// Knobs the device may lack or refuse; that is then noted in the record's `unmet`.
    #[serde(default)]
    pub optional: BTreeSet<String>,
    /// Meanwhile the kernel's workers that end a card's requests run under SCHED_FIFO at this
    /// priority.
    #[serde(default, deserialize_with = "optional_fifo")]
    pub kworkers_fifo: Option<u64>,
    /// Meanwhile real-time jobs with periodic arrivals are declared to k2: lower levels block their
    /// requests for so long. 0: they are not.
    #[serde(default, deserialize_with = "bounded::<_, 0, 1_000_000>")]
    pub declare_block_us: u64,
    /// Arguments of mkfs besides those of the file system.
    #[serde(default)]
    pub mkfs: Vec<String>,
    /// Mount options besides those of the file system.
    #[serde(default)]
    pub mount: String,
    /// Shell commands that run after the file system was mounted, before the files are written.
    #[serde(default)]
    pub prepare: String,
}

impl Workload {
    /// Jobs of one class, in order.
    pub fn jobs_of(&self, class: Class) -> impl Iterator<Item = &Job> {
        self.job.iter().filter(move |job| job.class == class)
    }

    /// Whether any job, or making a file system, changes data on the device.
    pub fn writes(&self) -> bool {
        self.filesystem.is_some() || self.job.iter().any(|job| job.op.writes())
    }
}
