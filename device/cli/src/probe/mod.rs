// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady probe`: measure how long a device's commands take, and write a profile of it.
//!
//! What is measured and what is made of it is in `steadyio_probe`; here are arguments, knobs,
//! progress and words.

mod target;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use steadyio_core::device::Device;
use steadyio_core::interrupt::Interrupt;
use steadyio_core::kernel::Kernel;
use steadyio_core::knob_guard::KnobGuard;
use steadyio_core::value::Value;
use steadyio_probe::cache::Flushes;
use steadyio_probe::fit::Times;
use steadyio_probe::place::{Place, ProbeError, Way};
use steadyio_probe::profile::{
    AllSeen, Base, Cache, Card, Cost, Depth, Limits, PROFILE_SCHEMA, Parts, Probe, Profile, Seen,
    Slow, WriteCost,
};
use steadyio_probe::queue::Queue;
use steadyio_probe::{cache, discard, queue, rounds};

use crate::exit::{Failure, Status};
use crate::output::print;
use crate::progress::Pace;
use crate::record_file::RecordFile;
use target::WriteTarget;

const HELP: &str = "Exit status: 0 success; 1 failure; 2 usage error, or the target of --write is \
in use or holds data (nothing was changed); 130 interrupted. Knobs are restored and a created file \
is removed, except after SIGKILL. After SIGKILL, the next run restores the knobs.";

/// Of all that is measured, by --quick and without.
const QUICK: Lengths = Lengths { reads: 20, queue: 2, writes: 20 };
const FULL: Lengths = Lengths { reads: 270, queue: 10, writes: 270 };

#[derive(Clone, Copy)]
struct Lengths {
    reads: u64,
    /// Each of two.
    queue: u64,
    /// Each of durable and cached ones.
    writes: u64,
}

/// Measure the command times of a block device, and write a profile
///
/// Only reads, unless --write names a partition, disk or file to overwrite. Measures reads of
/// several sizes at random offsets, one at a time and many at once. With --write, also measures
/// writes, flushes, the volatile cache and discards. The profile is the input of `steady bound`,
/// and a device of the lab.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Arguments {
    /// Block device, for example /dev/mmcblk0
    #[arg(value_name = "DEV")]
    device: PathBuf,
    /// Also measure writes: on REGION, a partition or disk whose contents are lost, or in FILE, a
    /// new file of 256 MiB on the device that is removed afterwards
    #[arg(long, value_name = "REGION|FILE")]
    write: Option<PathBuf>,
    /// Measure for one minute instead of ten
    #[arg(long)]
    quick: bool,
    /// Write the profile (TOML) to FILE instead of printing it
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Result<Status, Failure> {
    let stop = Interrupt::on_signals().map_err(Failure::with(Status::Failed))?;
    let usage = Failure::with(Status::Usage);
    let device = Device::open(&arguments.device).map_err(usage)?;
    let write = match &arguments.write {
        Some(path) => match WriteTarget::open(path, &device, &stop) {
            Err(error) if is_interruption(&error) => return Ok(Status::Interrupted),
            opened => Some(opened.map_err(Failure::with(Status::Usage))?),
        },
        None => None,
    };
    let out = arguments.out.as_deref().map(named).transpose();
    let out = out.map_err(Failure::with(Status::Usage))?;
    match measure(arguments, &device, write.as_ref(), &stop) {
        Ok(profile) => {
            write_out(&profile, out).map_err(Failure::with(Status::Failed))?;
            if arguments.out.is_some() {
                print(&text::summary(&profile))?;
            }
            Ok(Status::Done)
        }
        Err(error) if is_interruption(&error) => Ok(Status::Interrupted),
        Err(error) => Err(Failure { status: Status::Failed, source: error }),
    }
}

fn is_interruption(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref::<ProbeError>(), Some(ProbeError::Interrupted))
}

fn named(path: &Path) -> anyhow::Result<RecordFile> {
    RecordFile::create(path).with_context(|| path.display().to_string())
}

fn write_out(profile: &Profile, out: Option<RecordFile>) -> anyhow::Result<()> {
    let text = toml::to_string(profile)?;
    match out {
        Some(file) => Ok(file.finish(&text)?),
        None => print(&text).map_err(|failure| failure.source),
    }
}

/// Sets no scheduler while it measures: what a scheduler adds is not the device's.
fn measure(
    arguments: &Arguments,
    device: &Device,
    write: Option<&WriteTarget>,
    stop: &Interrupt,
) -> anyhow::Result<Profile> {
    let started = Instant::now();
    let guard = KnobGuard::take(device, &mut |text| eprintln!("steady: {text}"))?;
    let knobs = BTreeMap::from([("scheduler".to_string(), Value::from_text("none"))]);
    guard.queue().apply("probe", &knobs, &BTreeSet::new())?;
    let lengths = if arguments.quick { QUICK } else { FULL };
    let measured = Measuring { device, guard: &guard, lengths, stop }.all(write);
    guard.finish()?;
    let mut profile = measured?;
    profile.probe.seconds = started.elapsed().as_secs();
    Ok(profile)
}

struct Measuring<'a> {
    device: &'a Device,
    guard: &'a KnobGuard,
    lengths: Lengths,
    stop: &'a Interrupt,
}

impl Measuring<'_> {
    fn number(&self, attribute: &str) -> u64 {
        self.guard.queue().read(attribute).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    fn all(&self, write: Option<&WriteTarget>) -> anyhow::Result<Profile> {
        let (path, size_bytes) = (&self.device.node, self.device.size_bytes);
        let mut reading = Place::open(path, size_bytes, Way::Read)?;
        let reads = self.times("reads", &mut reading, self.lengths.reads)?;
        let tags = self.number("nr_requests");
        let length = Duration::from_secs(self.lengths.queue);
        eprintln!("steady: reads, several at once");
        let queue = queue::find(path, size_bytes, &reads, tags, length, self.stop)?;
        let mut profile = self.profile(&reads, queue.as_ref());
        if let Some(write) = write {
            self.writes(write, queue.as_ref(), &mut profile)?;
        }
        Ok(profile)
    }

    fn times(&self, what: &str, place: &mut Place, seconds: u64) -> anyhow::Result<Times> {
        eprintln!("steady: {what}, {seconds} s");
        let (started, mut pace) = (Instant::now(), Pace::new());
        let mut tick = || {
            if pace.is_due(started.elapsed()) {
                eprintln!("steady: {what}: {} of {seconds} s", started.elapsed().as_secs());
            }
        };
        let samples = rounds::run(place, Duration::from_secs(seconds), self.stop, &mut tick)?;
        Times::of(&samples, place.writes())
            .ok_or_else(|| anyhow!("{what}: too few samples for a fit"))
    }

    fn profile(&self, reads: &Times, queue: Option<&Queue>) -> Profile {
        let info = self.device.info();
        let kernel = Kernel::running();
        let model = info.model.unwrap_or_default();
        let size_mib = self.device.size_bytes >> 20;
        let steady = env!("CARGO_PKG_VERSION");
        Profile {
            schema: PROFILE_SCHEMA,
            name: profile_name(&model),
            title: format!("{model}, {size_mib} MiB, as measured").trim_matches([' ', ',']).into(),
            source: format!("steady probe {steady} on {}", kernel.release),
            card: Card::new(&model, self.device.size_bytes, queue),
            queue: queue.map(|queue| Depth { depth: queue.depth }),
            read: Cost::of(reads, queue),
            write: None,
            cache: None,
            flush: None,
            erase: None,
            slow: Slow::of(reads),
            seen: AllSeen { read: Seen::of(reads), write: None },
            limits: Limits {
                max_sectors_kb: self.number("max_sectors_kb"),
                nr_requests: self.number("nr_requests"),
            },
            probe: Probe {
                steady: steady.into(),
                kernel: kernel.release,
                disk: self.device.disk.clone(),
                seconds: 0,
            },
        }
    }

    fn writes(
        &self,
        write: &WriteTarget,
        queue: Option<&Queue>,
        profile: &mut Profile,
    ) -> anyhow::Result<()> {
        let mut place = Place::open(write.path(), write.size_bytes(), Way::Write)?;
        let is_volatile =
            self.guard.queue().read("write_cache").is_ok_and(|text| text == "write back");
        let mut flushes = None;
        if is_volatile {
            eprintln!("steady: flushes");
            flushes = Some(Flushes::of(&mut place, self.stop)?);
        }
        let writes = match flushes.filter(|flushes| flushes.show_a_cache()) {
            Some(flushes) => self.cached(write, &mut place, flushes, profile)?,
            None => self.times("writes", &mut place, self.lengths.writes)?,
        };
        if let Some(flushes) = flushes {
            let base_ns = flushes.base_ns().round() as u64;
            profile.flush = Some(Base { base_ns });
            // The device says that it has one: less than any write.
            profile.cache.get_or_insert(Cache { kib: 1, base_ns: 0, per_kib_ns: 0 });
        }
        profile.write = Some(WriteCost::of(&writes, queue));
        profile.seen.write = Some(Seen::of(&writes));
        let limit_bytes = self.number("discard_max_bytes");
        if write.is_device() && limit_bytes > 0 {
            eprintln!("steady: discards");
            profile.erase = discard::line(&place, limit_bytes, self.stop)?.map(Parts::of);
        }
        Ok(())
    }

    /// The times of the flash itself are those of durable writes, which are followed by a flush.
    fn cached(
        &self,
        write: &WriteTarget,
        place: &mut Place,
        flushes: Flushes,
        profile: &mut Profile,
    ) -> anyhow::Result<Times> {
        eprintln!("steady: the volatile cache");
        if let Some(kib) = cache::capacity_kib(place, self.stop)? {
            let accepts = Parts::of(cache::accepts(place, kib, self.stop)?);
            let Parts { base_ns, per_kib_ns } = accepts;
            profile.cache = Some(Cache { kib, base_ns, per_kib_ns });
        }
        let mut durable = Place::open(write.path(), write.size_bytes(), Way::DurableWrite)?;
        let mut writes = self.times("durable writes", &mut durable, self.lengths.writes)?;
        writes.line.base = (writes.line.base - flushes.base_ns()).max(0.0);
        Ok(writes)
    }
}

/// Of the model: lower case letters, digits and '-'.
fn profile_name(model: &str) -> String {
    let word = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = model.trim().chars().map(word).collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "probed".into() } else { name.into() }
}
