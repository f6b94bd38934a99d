// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tracing this kernel now.
//!
//! `start` makes a tracefs instance, enables the wanted events in it and starts a thread that moves the pages of its
//! buffers into memory; `stop` removes the instance. Nothing is decoded and nothing is written to a disk meanwhile, so
//! that the tracer does not disturb the I/O; [`Captured`] is read afterwards.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;

use super::pid_namespace;
use super::tracefs::{Instance, Tracefs, TracefsError};
use super::wanted::Detail;
use crate::event::Dev;

mod captured;
mod cpu_data;
pub mod devices;
mod enable;
mod folder;
pub mod names;
mod program;
mod reader;
pub mod threads;

pub use captured::Captured;
pub use enable::EnabledEvent;
pub use folder::{CpuMeta, Meta, Moment, SCHEMA};

use super::Problem;
use super::format::PageFormat;
use enable::{Enabled, enable};
use folder::Course;
use reader::{Reader, Taken};

/// What to trace, and what that may cost.
#[derive(Clone, Debug)]
pub struct Options {
    /// Only block events of these devices, and of what they lie on; of all devices if empty. Other events do
    /// not say whose they are.
    pub devices: Vec<Dev>,
    /// How much of the path.
    pub detail: Detail,
    /// Whether to trace `sched_switch` and `sched_waking` too: of all threads, because any can run on the CPU that a
    /// thread waits for.
    pub sched: bool,
    /// The kernel's buffer per CPU, in KiB. It must hold what happens in [`Options::period`], or in as long as
    /// other programs keep the reading thread from running.
    pub buffer_kib: u32,
    /// How often the reading thread looks at the buffers.
    pub period: Duration,
    /// What it may hold in memory, in bytes.
    pub memory_bytes_max: u64,
    /// Where to go on if that is full, and where the capture is kept. Without it, tracing ends there.
    pub keep: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            devices: Vec::new(),
            detail: Detail::Summary,
            sched: false,
            buffer_kib: 8 << 10,
            period: Duration::from_millis(25),
            memory_bytes_max: 256 << 20,
            keep: None,
        }
    }
}

/// Tracing could not be started, or its data not be held.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// Of the tracing files.
    #[error(transparent)]
    Tracefs(#[from] TracefsError),
    /// A file of tracefs has unknown content.
    #[error("{file}: {what}")]
    Unknown { file: String, what: String },
    /// This kernel's layout cannot be read.
    #[error(transparent)]
    Read(#[from] Problem),
    /// No block events.
    #[error("the kernel has no block events: it needs CONFIG_BLK_DEV_IO_TRACE")]
    NoBlockEvents,
    /// The program that is to be traced.
    #[error(transparent)]
    Program(std::io::Error),
    /// Memory or a file for what is captured.
    #[error("{what}: {error}")]
    Hold {
        what: String,
        /// Why it failed.
        error: std::io::Error,
    },
}

/// Tracing in progress. Dropping it ends the tracing and discards the capture.
#[derive(Debug)]
pub struct Capture {
    // Dropped in this order: the reader holds files of the instance.
    reader: Reader,
    instance: Instance,
    enabled: Enabled,
    options: Options,
    started: Moment,
    threads: BTreeMap<u32, String>,
    /// The calling thread as events number it, if not as this process does.
    tracer: Option<u32>,
}

impl Capture {
    /// Begins. `note` gets messages for people, such as of an instance left by a killed run.
    pub fn start(options: &Options, note: &mut dyn FnMut(String)) -> Result<Capture, CaptureError> {
        let instance = Instance::create(Tracefs::find()?, note)?;
        instance.write("trace_clock", "mono")?;
        instance.write("buffer_size_kb", &options.buffer_kib.to_string())?;
        // Names come from the events and from /proc; noting them at each switch of threads costs time.
        instance.write("trace_options", "norecord-cmd")?;
        // An instance begins with what is set for the whole kernel. If old records make room for new ones, the
        // pages say where any are missing.
        instance.write("trace_options", "overwrite")?;
        let devices = devices::related(&options.devices).map_err(|error| {
            let what = "looking the devices up in sysfs".into();
            CaptureError::Hold { what, error }
        })?;
        let enabled = enable(&instance, (options.detail, options.sched), &devices)?;
        let reader = Reader::start(&instance, page_size(&enabled)?, options)?;
        let mut threads = BTreeMap::new();
        names::add_names(&mut threads);
        let started = Moment::now();
        instance.write("tracing_on", "1")?;
        let options = options.clone();
        Ok(Capture { reader, instance, enabled, options, started, threads, tracer: None })
    }

    /// Starts a program; also returns which number events have for it.
    pub fn spawn(
        &mut self,
        command: &mut Command,
        note: &mut dyn FnMut(String),
    ) -> Result<(Child, u32), CaptureError> {
        if pid_namespace::other_than_initial().is_none() {
            let child = command.spawn().map_err(CaptureError::Program)?;
            let number = child.id();
            return Ok((child, number));
        }
        let (child, numbers) = program::spawn(command, note)?;
        self.tracer = Some(numbers.parent);
        Ok((child, numbers.child))
    }

    /// Wanted events that this kernel lacks, as `system:name`, and why.
    pub fn unavailable(&self) -> impl Iterator<Item = (&str, &str)> {
        self.enabled
            .unavailable
            .iter()
            .map(|missing| (missing.event.as_str(), missing.why.as_str()))
    }

    /// Whether it has ended by itself, because memory is full or reading failed; `stop` says which.
    pub fn has_ended(&self) -> bool {
        self.reader.has_ended()
    }

    /// Ends the tracing, restores everything and returns the capture; keeps it in the folder if one was named (if it
    /// cannot, see [`Captured::not_kept`]). `asked_for`: the requested threads, without those that they started; none
    /// for all.
    pub fn stop(self, asked_for: &[u32]) -> Result<Captured, CaptureError> {
        let Capture { reader, instance, enabled, options, started, mut threads, tracer } = self;
        instance.write("tracing_on", "0")?;
        let (stopped, memory_full) = (Moment::now(), reader.has_ended());
        let Taken { mut held, no_room } = reader.finish()?;
        names::add_names(&mut threads);
        let mut cpus = Vec::new();
        for held in &held {
            let stats = instance.read(&format!("per_cpu/cpu{}/stats", held.cpu))?;
            cpus.push(CpuMeta {
                cpu: held.cpu,
                file: folder::pages_name(held.cpu),
                bytes: held.bytes,
                records_lost: sum(&stats, &["overrun", "commit overrun", "dropped events"]),
                records_lost_unplaced: sum(&stats, &["commit overrun", "dropped events"]),
            });
        }
        drop(instance);
        let asked_for = asked_for.to_vec();
        let tracer = tracer.map_or_else(names::own_threads, |thread| vec![thread]);
        let course = Course { started, stopped, memory_full, asked_for, tracer, threads };
        let meta = Meta::new(&enabled, &options, course, cpus);
        let keep = options.keep.as_deref();
        let kept = keep.map(|dir| match no_room {
            Some(error) => Err(folder::not_kept(dir, error)),
            None => folder::save(dir, &meta, &enabled, &mut held),
        });
        let name = match (&kept, keep) {
            (Some(Ok(())), Some(dir)) => dir.display().to_string(),
            _ => "this kernel".into(),
        };
        let mut captured = Captured::new(meta, &enabled, held, name)?;
        captured.not_kept = kept.and_then(Result::err);
        Ok(captured)
    }
}

fn page_size(enabled: &Enabled) -> Result<usize, CaptureError> {
    let format = PageFormat::parse(&enabled.header_page);
    let unknown = |what| CaptureError::Unknown { file: "events/header_page".into(), what };
    Ok(format.map_err(|error| unknown(error.to_string()))?.page_size)
}

/// How many records a CPU's buffer lost for one of these reasons, from its `stats`.
fn sum(stats: &str, reasons: &[&str]) -> u64 {
    let values = stats.lines().filter_map(|line| line.split_once(": "));
    let lost = values.filter(|(reason, _)| reasons.contains(reason));
    lost.filter_map(|(_, value)| value.trim().parse::<u64>().ok()).sum()
}
