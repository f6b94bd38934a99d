// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces the running kernel. `steady trace` calls it.
//!
//! [`Capture::start`] makes a tracefs instance, enables the needed events in it, and starts a
//! thread that moves the pages of its buffers into memory. [`Capture::stop`] removes the instance.
//! Meanwhile nothing is decoded or written to a disk, so that the tracer does not disturb the I/O.
//! [`Captured`] is read afterwards.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use super::pid_namespace;
use super::tracefs::{Instance, Tracefs};

mod captured;
pub mod cpu_data;
pub mod devices;
mod enable;
mod errors;
mod folder;
mod looks;
pub mod names;
mod options;
pub mod program;
mod reader;
pub mod threads;
pub mod watch;

pub use captured::Captured;
pub use folder::{CpuMeta, Meta, Moment, SCHEMA};
pub use options::{Options, Trigger};
pub use reader::{EndReason, Reader};
pub use watch::{Interval, Slow};

use enable::enable;
use errors::because;
use looks::Looks;
use reader::Taken;
use watch::Watch;

/// A running capture. Dropping it ends the tracing and discards the data.
#[derive(Debug)]
pub struct Capture {
    // Fields are dropped in this order: the reader has open files of the instances.
    pub reader: Reader,
    instance: Instance,
    /// The instance with the events of the requested threads; `None` if all threads are traced.
    of_threads: Option<Instance>,
    keep: Option<PathBuf>,
    meta: Meta,
    looks: Looks,
}

impl Capture {
    /// Starts tracing. `note` gets messages for users, such as about the leftover instance of a
    /// killed run.
    pub fn start(options: &Options, note: &mut dyn FnMut(String)) -> io::Result<Capture> {
        Tracefs::find()?.remove_leftovers(note)?;
        let instance = new_instance(options)?;
        let of_threads = options.threads.is_some().then(|| new_instance(options)).transpose()?;
        let devices = devices::related(&options.devices)
            .map_err(because("looking the devices up in sysfs"))?;
        let header_page = instance.read("events/header_page")?;
        let enabled = enable((&instance, of_threads.as_ref()), options, &devices)?;
        let mut meta = Meta::begin(options, enabled, header_page);
        let decoder = meta.decoder(Path::new(THIS_KERNEL)).map_err(io::Error::other)?;
        options.trigger.map_or(Ok(()), |trigger| meta.check_trigger(trigger))?;
        let page_size = decoder.page.page_size;
        let is_watched = options.trigger.is_some() || options.interval.is_some();
        let watch = is_watched.then(|| Watch::new(decoder, options));
        let instances: Vec<&Instance> = [&instance].into_iter().chain(&of_threads).collect();
        let reader = Reader::start(&instances, page_size, options, watch)?;
        if let Some((of_threads, pids)) = of_threads.as_ref().zip(options.threads.as_ref()) {
            of_threads.write("trace_options", "event-fork")?;
            // With an empty list, the kernel would trace all threads.
            if !pids.is_empty() {
                add_pids(of_threads, pids)?;
                of_threads.write("tracing_on", "1")?;
            }
        }
        instance.write("tracing_on", "1")?;
        // Events show the threads that start from now on.
        meta.add_threads();
        let (keep, looks) = (options.keep.clone(), Looks::new());
        Ok(Capture { reader, instance, of_threads, keep, meta, looks })
    }

    /// Looks at the files that the traced processes have open, if a look is due. The more often it
    /// is called, the more files have a path.
    pub fn look_at_files(&mut self) {
        if self.looks.is_due() {
            self.look();
        }
    }

    fn look(&mut self) {
        if self.reader.has_ended() || pid_namespace::other_than_initial().is_some() {
            return;
        }
        let of_calls = self.of_threads.as_ref().unwrap_or(&self.instance);
        let mut processes = names::numbers("/proc");
        processes.remove(&std::process::id());
        if self.of_threads.is_some() {
            let traced = of_calls.read("set_event_pid").unwrap_or_default();
            let traced: HashSet<u32> = traced.lines().filter_map(|pid| pid.parse().ok()).collect();
            processes.retain(|process| traced.contains(process));
        }
        let is_traced = || of_calls.read("tracing_on").is_ok_and(|on| on.trim() == "1");
        self.looks.look(processes, &mut self.meta.open_files, is_traced);
    }

    /// Traces these threads too.
    pub fn add_threads(&self, pids: &[u32]) -> io::Result<()> {
        self.of_threads.iter().try_for_each(|of_threads| add_pids(of_threads, pids))
    }

    /// Starts a program; also returns its number in events.
    pub fn spawn(&mut self, command: &mut Command) -> io::Result<(Child, u32)> {
        let (child, number, starter) = program::spawn(command, self.of_threads.as_ref())?;
        self.meta.tracer.push(starter);
        Ok((child, number))
    }

    /// Ends the tracing, restores everything and returns the capture. If a folder was named, it
    /// keeps the capture there ([`Captured::not_kept`] has the error if it cannot). `asked_for`:
    /// the requested threads, without those that they started; empty for all.
    pub fn stop(mut self, asked_for: &[u32]) -> io::Result<Captured> {
        self.look();
        let Capture { mut reader, instance, of_threads, keep, mut meta, .. } = self;
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

/// The name in problems where a file's path would be.
const THIS_KERNEL: &str = "this kernel";

/// A new instance that traces nothing yet.
fn new_instance(options: &Options) -> io::Result<Instance> {
    let instance = Instance::create(Tracefs::find()?)?;
    instance.write("trace_clock", "mono")?;
    instance.write("buffer_size_kb", &options.buffer_kib.to_string())?;
    // Names come from the events and from /proc. Recording them at each switch costs time.
    instance.write("trace_options", "norecord-cmd")?;
    // A new instance inherits the settings of the whole kernel. With `overwrite`, the pages show
    // where records are missing.
    instance.write("trace_options", "overwrite")?;
    Ok(instance)
}

/// The number of PIDs that fit in one write.
const PIDS_AT_ONCE: usize = 256;

/// Adds threads to those that the kernel traces. It ignores an unknown number.
fn add_pids(of_threads: &Instance, pids: &[u32]) -> io::Result<()> {
    pids.chunks(PIDS_AT_ONCE).try_for_each(|pids| {
        let numbers: Vec<String> = pids.iter().map(u32::to_string).collect();
        of_threads.write("set_event_pid", &numbers.join(" "))
    })
}

/// The number of records that a CPU's buffer lost for one of these reasons, from its `stats`.
fn sum(stats: &str, reasons: &[&str]) -> u64 {
    let values = stats.lines().filter_map(|line| line.split_once(": "));
    let lost = values.filter(|(reason, _)| reasons.contains(reason));
    lost.filter_map(|(_, value)| value.trim().parse::<u64>().ok()).sum()
}
