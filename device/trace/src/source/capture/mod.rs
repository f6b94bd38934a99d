// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tracing this kernel now.
//!
//! `start` makes a tracefs instance, enables the wanted events in it and starts a thread that moves the pages of its
//! buffers into memory; `stop` removes the instance. Nothing is decoded and nothing is written to a disk meanwhile, so
//! that the tracer does not disturb the I/O; [`Captured`] is read afterwards.

use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;

use super::pid_namespace;
use super::table::{Detail, Need};
use super::tracefs::{Instance, Tracefs, TracefsError};
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
mod watch;

pub use captured::Captured;
pub use enable::EnabledEvent;
pub use folder::{CpuMeta, Meta, Moment, SCHEMA};
pub use reader::EndReason;
pub use watch::Slow;

use super::Problem;
use super::format::PageFormat;
use enable::{Enabled, Places, enable};
use reader::{Reader, Taken};
use watch::Watch;

/// What to trace, and what that may cost.
#[derive(Clone, Debug)]
pub struct Options {
    /// Only block events of these devices, and of what they lie on; of all devices if empty. Other events do
    /// not say whose they are.
    pub devices: Vec<Dev>,
    /// How much of the path.
    pub detail: Detail,
    /// Whether to trace `sched_switch` and `sched_waking` of all threads, because any can run on the CPU that a
    /// thread waits for.
    pub sched: bool,
    /// Calls about names and attributes of files too.
    pub metadata: bool,
    /// Events of what threads do only of these and of what they start, and of the program that [`Capture::spawn`]
    /// starts; the kernel leaves out the others. `None`: of all threads.
    pub threads: Option<Vec<u32>>,
    /// The kernel's buffer per CPU, in KiB. It must hold what happens in [`Options::period`], or in as long as
    /// other programs keep the reading thread from running.
    pub buffer_kib: u32,
    /// How often the reading thread looks at the buffers.
    pub period: Duration,
    /// What it may hold in memory, in bytes.
    pub memory_bytes_max: u64,
    /// If that is full, throw the oldest half of it away instead of ending.
    pub ring: bool,
    /// End when an I/O has taken longer than this, and keep what came before, as a ring does.
    pub trigger_above: Option<Duration>,
    /// Where to go on if that is full, and where the capture is kept. Without it, tracing ends there.
    pub keep: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            devices: Vec::new(),
            detail: Detail::Summary,
            sched: false,
            metadata: false,
            threads: None,
            buffer_kib: 8 << 10,
            period: Duration::from_millis(25),
            memory_bytes_max: 256 << 20,
            ring: false,
            trigger_above: None,
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
    // Dropped in this order: the reader holds files of the instances.
    reader: Reader,
    instance: Instance,
    /// With what the requested threads do, if only that is traced.
    of_threads: Option<Instance>,
    enabled: Enabled,
    options: Options,
    meta: Meta,
    /// The thread that started the program, as events number it.
    starter: Option<u32>,
}

impl Capture {
    /// Begins. `note` gets messages for people, such as of an instance left by a killed run.
    pub fn start(options: &Options, note: &mut dyn FnMut(String)) -> Result<Capture, CaptureError> {
        let instance = new_instance(options, note)?;
        let of_threads =
            options.threads.is_some().then(|| new_instance(options, note)).transpose()?;
        let devices = devices::related(&options.devices).map_err(|error| {
            let what = "looking the devices up in sysfs".into();
            CaptureError::Hold { what, error }
        })?;
        let places =
            Places { all: &instance, of_threads: of_threads.as_ref(), all_switches: options.sched };
        // Of few threads it costs little, and says what they wait for.
        let threads = options.sched || of_threads.is_some();
        let optional = [
            (options.detail == Detail::Fine, Need::Fine),
            (threads, Need::Threads),
            (options.metadata, Need::Metadata),
        ];
        let optional = optional.into_iter().filter_map(|(wanted, need)| wanted.then_some(need));
        let needs: Vec<Need> = [Need::Summary].into_iter().chain(optional).collect();
        let enabled = enable(places, &needs, &devices)?;
        let instances: Vec<&Instance> = [&instance].into_iter().chain(&of_threads).collect();
        let format = page_format(&enabled)?;
        let watch = match options.trigger_above {
            Some(above) => Some(Watch::new(enabled.decoder("this kernel")?, format, above)),
            None => None,
        };
        let reader = Reader::start(&instances, format.page_size, options, watch)?;
        let meta = Meta::begin(&enabled, options);
        if let Some((of_threads, pids)) = of_threads.as_ref().zip(options.threads.as_ref()) {
            of_threads.write("trace_options", "event-fork")?;
            // Without any, the kernel would trace all.
            if !pids.is_empty() {
                add_pids(of_threads, pids)?;
                of_threads.write("tracing_on", "1")?;
            }
        }
        instance.write("tracing_on", "1")?;
        let (options, starter) = (options.clone(), None);
        Ok(Capture { reader, instance, of_threads, enabled, options, meta, starter })
    }

    /// Traces these threads too.
    pub fn add_threads(&self, pids: &[u32]) -> Result<(), CaptureError> {
        match &self.of_threads {
            Some(of_threads) if !pids.is_empty() => Ok(add_pids(of_threads, pids)?),
            _ => Ok(()),
        }
    }

    /// Starts a program; also returns which number events have for it.
    pub fn spawn(
        &mut self,
        command: &mut Command,
        note: &mut (dyn FnMut(String) + Send),
    ) -> Result<(Child, u32), CaptureError> {
        let (child, numbers) = program::spawn(command, self.of_threads.as_ref(), note)?;
        self.starter = Some(numbers.parent);
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

    /// Why it has ended by itself, unless reading failed.
    pub fn end_reason(&self) -> Option<EndReason> {
        self.reader.end_reason()
    }

    /// Ends the tracing, restores everything and returns the capture; keeps it in the folder if one was named (if it
    /// cannot, see [`Captured::not_kept`]). `asked_for`: the requested threads, without those that they started; none
    /// for all.
    pub fn stop(self, asked_for: &[u32]) -> Result<Captured, CaptureError> {
        let Capture { reader, instance, of_threads, enabled, options, mut meta, starter } = self;
        for instance in [&instance].into_iter().chain(&of_threads) {
            instance.write("tracing_on", "0")?;
        }
        meta.stopped = Moment::now();
        meta.memory_full = reader.end_reason() == Some(EndReason::MemoryFull);
        let Taken { mut held, no_room, kept_since_ns } = reader.finish()?;
        names::add_threads(&mut meta.threads, &mut meta.processes);
        meta.kept_since_ns = kept_since_ns;
        for held in &held {
            let place = of_threads.as_ref().filter(|_| held.of_threads).unwrap_or(&instance);
            let stats = place.read(&format!("per_cpu/cpu{}/stats", held.cpu))?;
            meta.cpus.push(CpuMeta {
                cpu: held.cpu,
                of_threads: held.of_threads,
                file: held.file_name(),
                bytes: held.bytes,
                records_lost: sum(&stats, &["overrun", "commit overrun", "dropped events"]),
                records_lost_unplaced: sum(&stats, &["commit overrun", "dropped events"]),
            });
        }
        drop((instance, of_threads));
        meta.asked_for = asked_for.to_vec();
        if pid_namespace::other_than_initial().is_none() {
            meta.tracer = names::own_threads();
        }
        meta.tracer.extend(starter);
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

/// That traces nothing yet.
fn new_instance(options: &Options, note: &mut dyn FnMut(String)) -> Result<Instance, CaptureError> {
    let instance = Instance::create(Tracefs::find()?, note)?;
    instance.write("trace_clock", "mono")?;
    instance.write("buffer_size_kb", &options.buffer_kib.to_string())?;
    // Names come from the events and from /proc; noting them at each switch of threads costs time.
    instance.write("trace_options", "norecord-cmd")?;
    // An instance begins with what is set for the whole kernel. If old records make room for new ones, the
    // pages say where any are missing.
    instance.write("trace_options", "overwrite")?;
    Ok(instance)
}

/// Few enough for one write.
const PIDS_AT_ONCE: usize = 256;

/// The kernel traces these too; an unknown one is no error to it.
fn add_pids(of_threads: &Instance, pids: &[u32]) -> Result<(), TracefsError> {
    pids.chunks(PIDS_AT_ONCE).try_for_each(|pids| {
        let numbers: Vec<String> = pids.iter().map(u32::to_string).collect();
        of_threads.write("set_event_pid", &numbers.join(" "))
    })
}

fn page_format(enabled: &Enabled) -> Result<PageFormat, CaptureError> {
    let format = PageFormat::parse(&enabled.header_page);
    let unknown = |what| CaptureError::Unknown { file: "events/header_page".into(), what };
    format.map_err(|error| unknown(error.to_string()))
}

/// How many records a CPU's buffer lost for one of these reasons, from its `stats`.
fn sum(stats: &str, reasons: &[&str]) -> u64 {
    let values = stats.lines().filter_map(|line| line.split_once(": "));
    let lost = values.filter(|(reason, _)| reasons.contains(reason));
    lost.filter_map(|(_, value)| value.trim().parse::<u64>().ok()).sum()
}
