// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tracing this kernel now.
//!
//! `start` makes a tracefs instance, enables the wanted events in it and starts a thread that moves the pages of its
//! buffers into memory; `stop` removes the instance. Nothing is decoded and nothing is written to a disk meanwhile, so
//! that the tracer does not disturb the I/O; [`Captured`] is read afterwards.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use super::pid_namespace;
use super::table::Detail;
use super::tracefs::{Instance, Tracefs};
use crate::event::Dev;

mod captured;
pub mod cpu_data;
pub mod devices;
mod enable;
mod folder;
pub mod names;
mod program;
mod reader;
pub mod threads;
pub mod watch;

pub use captured::Captured;
pub use folder::{CpuMeta, Meta, Moment, SCHEMA};
pub use reader::{EndReason, Reader};
pub use watch::{Interval, Slow, Trigger};

use enable::enable;
use reader::Taken;
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
    /// End when an I/O has taken too long, and keep what came before, as a ring does.
    pub trigger: Option<Trigger>,
    /// How often [`Reader::intervals`] has new figures.
    pub interval: Option<Duration>,
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
            trigger: None,
            interval: None,
            keep: None,
        }
    }
}

fn because(what: impl Display) -> impl FnOnce(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{what}: {error}"))
}

/// Tracing in progress. Dropping it ends the tracing and discards the capture.
#[derive(Debug)]
pub struct Capture {
    // Dropped in this order: the reader holds files of the instances.
    pub reader: Reader,
    instance: Instance,
    /// With what the requested threads do, if only that is traced.
    of_threads: Option<Instance>,
    keep: Option<PathBuf>,
    meta: Meta,
}

impl Capture {
    /// Begins. `note` gets messages for people, such as of an instance left by a killed run.
    pub fn start(options: &Options, note: &mut dyn FnMut(String)) -> io::Result<Capture> {
        Tracefs::find()?.remove_leftovers(note)?;
        let instance = new_instance(options)?;
        let of_threads = options.threads.is_some().then(|| new_instance(options)).transpose()?;
        let devices = devices::related(&options.devices)
            .map_err(because("looking the devices up in sysfs"))?;
        let header_page = instance.read("events/header_page")?;
        let enabled = enable((&instance, of_threads.as_ref()), options, &devices)?;
        let meta = Meta::begin(options, enabled, header_page);
        let decoder = meta.decoder(Path::new(THIS_KERNEL)).map_err(io::Error::other)?;
        options.trigger.map_or(Ok(()), |trigger| meta.check_trigger(trigger))?;
        let page_size = decoder.page.page_size;
        let is_watched = options.trigger.is_some() || options.interval.is_some();
        let watch = is_watched.then(|| Watch::new(decoder, options));
        let instances: Vec<&Instance> = [&instance].into_iter().chain(&of_threads).collect();
        let reader = Reader::start(&instances, page_size, options, watch)?;
        if let Some((of_threads, pids)) = of_threads.as_ref().zip(options.threads.as_ref()) {
            of_threads.write("trace_options", "event-fork")?;
            // Without any, the kernel would trace all.
            if !pids.is_empty() {
                add_pids(of_threads, pids)?;
                of_threads.write("tracing_on", "1")?;
            }
        }
        instance.write("tracing_on", "1")?;
        Ok(Capture { reader, instance, of_threads, keep: options.keep.clone(), meta })
    }

    /// Traces these threads too.
    pub fn add_threads(&self, pids: &[u32]) -> io::Result<()> {
        self.of_threads.iter().try_for_each(|of_threads| add_pids(of_threads, pids))
    }

    /// Starts a program; also returns which number events have for it.
    pub fn spawn(&mut self, command: &mut Command) -> io::Result<(Child, u32)> {
        let (child, number, starter) = program::spawn(command, self.of_threads.as_ref())?;
        self.meta.tracer.push(starter);
        Ok((child, number))
    }

    /// Ends the tracing, restores everything and returns the capture; keeps it in the folder if one was named (if it
    /// cannot, see [`Captured::not_kept`]). `asked_for`: the requested threads, without those that they started; none
    /// for all.
    pub fn stop(self, asked_for: &[u32]) -> io::Result<Captured> {
        let Capture { mut reader, instance, of_threads, keep, mut meta } = self;
        for instance in [&instance].into_iter().chain(&of_threads) {
            instance.write("tracing_on", "0")?;
        }
        meta.stopped = Moment::now();
        meta.memory_full = reader.end_reason() == Some(EndReason::MemoryFull);
        let Taken { mut held, no_room, kept_since_ns } = reader.finish()?;
        meta.add_threads();
        meta.kept_since_ns = kept_since_ns;
        for held in &held {
            let place = of_threads.as_ref().filter(|_| held.of_threads).unwrap_or(&instance);
            let stats = place.read(&format!("per_cpu/cpu{}/stats", held.cpu))?;
            meta.cpus.push(CpuMeta {
                cpu: held.cpu,
                of_threads: held.of_threads,
                file: held.file_name(),
                bytes: held.bytes_with_older(),
                records_lost: sum(&stats, &["overrun", "commit overrun", "dropped events"]),
                records_lost_unplaced: sum(&stats, &["commit overrun", "dropped events"]),
            });
        }
        drop((instance, of_threads));
        meta.asked_for = asked_for.to_vec();
        if pid_namespace::other_than_initial().is_none() {
            meta.tracer.extend(names::threads_of(std::process::id()));
        }
        let kept = keep.as_deref().map(|dir| {
            let saved = no_room.map_or_else(|| folder::save(dir, &meta, &mut held), Err);
            saved.map_err(because(format!("keeping the trace in {}", dir.display())))
        });
        let name = keep.as_deref().filter(|_| matches!(kept, Some(Ok(()))));
        let captured = Captured::new(meta, held, name.unwrap_or(Path::new(THIS_KERNEL)));
        let mut captured = captured.map_err(io::Error::other)?;
        captured.not_kept = kept.and_then(Result::err);
        Ok(captured)
    }
}

/// Where problems say the file that they are in.
const THIS_KERNEL: &str = "this kernel";

/// That traces nothing yet.
fn new_instance(options: &Options) -> io::Result<Instance> {
    let instance = Instance::create(Tracefs::find()?)?;
    instance.write("trace_clock", "mono")?;
    instance.write("buffer_size_kb", &options.buffer_kib.to_string())?;
    // Names come from the events and from /proc; noting them at each switch of threads costs time.
    instance.write("trace_options", "norecord-cmd")?;
    // An instance begins with the settings of the whole kernel. If new records overwrite old ones,
    // the pages show where some are missing.
    instance.write("trace_options", "overwrite")?;
    Ok(instance)
}

/// Few enough for one write.
const PIDS_AT_ONCE: usize = 256;

/// The kernel traces these too; an unknown one is no error to it.
fn add_pids(of_threads: &Instance, pids: &[u32]) -> io::Result<()> {
    pids.chunks(PIDS_AT_ONCE).try_for_each(|pids| {
        let numbers: Vec<String> = pids.iter().map(u32::to_string).collect();
        of_threads.write("set_event_pid", &numbers.join(" "))
    })
}

/// How many records a CPU's buffer lost for one of these reasons, from its `stats`.
fn sum(stats: &str, reasons: &[&str]) -> u64 {
    let values = stats.lines().filter_map(|line| line.split_once(": "));
    let lost = values.filter(|(reason, _)| reasons.contains(reason));
    lost.filter_map(|(_, value)| value.trim().parse::<u64>().ok()).sum()
}
