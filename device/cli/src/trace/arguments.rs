// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arguments of `steady trace`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{anyhow, bail};
use clap::ValueEnum;
use clap::builder::NonEmptyStringValueParser;
use steadyio_trace::event::Class;
use steadyio_trace::report::words::size_text;
use steadyio_trace::source::capture::Trigger;
use steadyio_trace::source::detect;

use crate::quantity;

const HELP: &str = "Exit status: 0 success; 1 failure, or PROGRAM failed; 2 usage error; 3 \
finished, but events were lost or unreadable, or requests unmatched (see the account); 130 \
interrupted before PROGRAM, --duration or a file ended. Without PROGRAM, --duration and files, \
Ctrl-C ends a trace normally. The trace up to that point is always shown, and the kernel's tracing \
is always restored.";

/// The minimum of memory; a trace fills this within some periods of the reader.
const MEMORY_BYTES_MIN: u64 = 1 << 20;

/// The shortest interval. The reader reads partly filled pages less often anyway.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

const NO_SOURCE: &str = "nothing to trace: give a recorded trace, or PROGRAM after --, \
or --pid, --cgroup, --device or --duration to trace this kernel";

/// Show the time of each I/O per layer, and the causes of the slowest
///
/// Traces this kernel with its trace events, or reads a trace that was kept (--keep) or recorded by
/// ftrace, trace-cmd or perf. Divides the time of each I/O into submission, block layer, device and
/// post.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Arguments {
    /// Recorded traces (- for standard input), or a directory of --keep; several files are parts of
    /// one trace
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Format of the files [default: detected per file]
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// Show only I/O of this device: its name, node, mount point or MAJOR:MINOR
    #[arg(long, value_name = "DEVICE", value_parser = NonEmptyStringValueParser::new())]
    pub device: Option<String>,
    /// Show only I/O of this process and its children
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: Option<u32>,
    /// Show only I/O of this cgroup and those below it: its path as in /proc/PID/cgroup, for example
    /// /system.slice/app.service
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<String>,
    /// Tracing time, for example 10s; a PROGRAM that runs longer is terminated
    #[arg(long, value_name = "TIME", value_parser = quantity::duration, conflicts_with = "files")]
    pub duration: Option<Duration>,
    /// Show I/O of all processes, not only of PROGRAM or --pid
    #[arg(long)]
    pub all: bool,
    /// Also show the finer spans (queue, tag, insert, issue, hardware, completion, return)
    #[arg(long)]
    pub fine: bool,
    /// Record sched_switch and sched_waking of all threads, to show the thread that held the CPU
    /// while another waited for it
    #[arg(long, conflicts_with = "files")]
    pub sched: bool,
    /// Also trace calls on names and attributes of files: open, stat, getdents, unlink, rename and
    /// the like
    #[arg(long, value_name = "KIND", conflicts_with = "files")]
    pub calls: Option<Calls>,
    /// Number of worst I/Os to show, and of worst requests outside system calls
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub worst: usize,
    /// Print JSON instead of tables (docs/spec/steady-trace-record-1.schema.json)
    #[arg(long)]
    pub json: bool,
    /// Write the spans for `steady model` to FILE
    #[arg(long, value_name = "FILE")]
    pub spans: Option<PathBuf>,
    /// Write CSV to FILE (all I/Os, other calls and requests shown)
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write JSON to FILE, one object per line (all I/Os, other calls and requests shown)
    #[arg(long, value_name = "FILE")]
    pub json_lines: Option<PathBuf>,
    /// Write a trace for the Perfetto UI (ui.perfetto.dev) to FILE
    #[arg(long, value_name = "FILE")]
    pub perfetto: Option<PathBuf>,
    /// Keep the kernel's raw trace in DIR, for later reading
    #[arg(long, value_name = "DIR", conflicts_with = "files")]
    pub keep: Option<PathBuf>,
    /// Memory for the trace, for example 64MiB. When it is full, the trace goes on in the DIR of
    /// --keep, or tracing ends
    #[arg(long, value_name = "SIZE", value_parser = quantity::size, conflicts_with = "files", default_value = "256MiB")]
    pub memory: u64,
    /// Keep only the newest part of the trace: when half of --memory is full, discard everything
    /// older than that half
    #[arg(long, conflicts_with = "files")]
    pub ring: bool,
    /// Trace like --ring until a request, a sync or a pause by dirty throttling takes longer than
    /// TIME, for example 20ms
    #[arg(long, value_name = "TIME", value_parser = quantity::duration, conflicts_with = "files")]
    pub trigger_above: Option<Duration>,
    /// With --trigger-above, consider only requests of this I/O priority class, and no calls. The
    /// worst requests shown are also of this class
    #[arg(long, value_name = "CLASS", requires = "trigger_above")]
    pub trigger_class: Option<TriggerClass>,
    /// Trace like --ring until a real-time request takes longer than k2's rt_deadline_us of its
    /// level
    #[arg(long, conflicts_with_all = ["files", "trigger_above"])]
    pub trigger_late: bool,
    /// Print request and sync statistics at this interval while tracing, for example 1s (at least
    /// 100ms)
    #[arg(long, value_name = "TIME", value_parser = quantity::duration, conflicts_with = "files")]
    pub interval: Option<Duration>,
    /// Program to trace while it runs, with its arguments, after --
    #[arg(last = true, value_name = "PROGRAM", conflicts_with = "files")]
    pub program: Vec<String>,
}

/// I/O priority classes of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TriggerClass {
    /// Real-time
    Rt,
    /// Best effort
    Be,
    Idle,
}

impl From<TriggerClass> for Class {
    fn from(class: TriggerClass) -> Class {
        match class {
            TriggerClass::Rt => Class::Rt,
            TriggerClass::Be => Class::Be,
            TriggerClass::Idle => Class::Idle,
        }
    }
}

/// Further calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Calls {
    /// open, close, stat, getdents, unlink, rename, mkdir, rmdir, truncate, in all their forms
    Metadata,
}

/// Format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text output of ftrace (trace, trace_pipe) or trace-cmd report
    Ftrace,
    /// Text output of perf script
    Perf,
    /// trace.dat, read through trace-cmd
    TraceDat,
}

impl From<Format> for detect::Format {
    fn from(format: Format) -> detect::Format {
        match format {
            Format::Ftrace => detect::Format::Ftrace,
            Format::Perf => detect::Format::Perf,
            Format::TraceDat => detect::Format::TraceDat,
        }
    }
}

/// The source of the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Files.
    Files,
    /// This kernel.
    Kernel,
}

impl Arguments {
    /// The trigger that ends the trace, if it is a flight recorder.
    pub fn trigger(&self) -> Option<Trigger> {
        let class = self.trigger_class.map(Class::from);
        let above = self.trigger_above.map(|above| Trigger::Above(above, class));
        above.or(self.trigger_late.then_some(Trigger::Late))
    }

    /// The class of the requests that fire the trigger.
    pub fn worst_class(&self) -> Option<Class> {
        match self.trigger()? {
            Trigger::Above(_, class) => class,
            Trigger::Late => Some(Class::Rt),
        }
    }

    /// Checks the conditions that clap cannot check.
    pub fn check(&self) -> anyhow::Result<Source> {
        if let Some(path) = self.cgroup.as_ref().filter(|path| !path.starts_with('/')) {
            bail!("--cgroup {path}: must begin with / (as in /proc/PID/cgroup)");
        }
        if !self.files.is_empty() {
            return Ok(Source::Files);
        }
        // clap does not require files where another option conflicts with them.
        if self.format.is_some() {
            bail!("--format: needs files");
        }
        if self.memory < MEMORY_BYTES_MIN {
            bail!("--memory {}: must be at least 1MiB", size_text(self.memory));
        }
        if self.duration == Some(Duration::ZERO) {
            bail!("--duration 0: must be greater than 0");
        }
        if let Some(interval) = self.interval.filter(|interval| *interval < INTERVAL_MIN) {
            bail!("--interval {interval:?}: must be at least 100ms");
        }
        let asked = self.pid.is_some() || self.cgroup.is_some() || self.device.is_some();
        let asked = asked || self.duration.is_some();
        if asked || !self.program.is_empty() { Ok(Source::Kernel) } else { Err(anyhow!(NO_SOURCE)) }
    }
}
