// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady probe`: measure how long a device's commands take, and write a profile of it.
//!
//! Measurements and fits are in `steadyio_probe`; here are arguments, knobs,
//! progress and words. [`comparing`] and [`verdict`] measure nothing.

mod blank;
mod blank_text;
mod comparing;
mod measuring;
mod target;
mod text;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use steadyio_core::device::Device;
use steadyio_core::diagnostic;
use steadyio_core::interrupt::Interrupt;
use steadyio_core::knob_guard::KnobGuard;
use steadyio_core::value::Value;
use steadyio_probe::place::ProbeError;
use steadyio_probe::profile::Profile;

use crate::exit::{Failure, Status};
use crate::output::{print, print_done};
use crate::quantity;
use crate::record_file::RecordFile;
use measuring::{Lengths, Measuring};
use target::WriteTarget;

const HELP: &str = "Exit status: 0 success; 1 failure; 2 usage error, an invalid profile, or the target \
of --write is in use or holds data (nothing was changed); 130 interrupted. With --compare, 3 means \
that the profiles differ. With --verdict, 3 means that the card does not hold the rate, loses data, \
that this is unknown, or that writes were not measured. With --blank, 3 means that the card loses \
data, which the profile says. Knobs are restored and a created file is removed, except after \
SIGKILL. After SIGKILL, the next run restores the knobs.";

/// Of all that is measured, by --quick and without.
const QUICK: Lengths = lengths(20, 2);
const FULL: Lengths = lengths(270, 10);
/// Of --duration. The samples are kept in memory.
const SHORTEST: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(12 * 3_600);
/// Of --verdict: 16 GiB/s, and 64 MiB.
const RATE_KIB_S_MAX: u64 = 16 << 20;
const BLOCK_KIB_MAX: u64 = 64 << 10;

const fn lengths(seconds: u64, queue_seconds: u64) -> Lengths {
    let each = Duration::from_secs(seconds);
    Lengths { reads: each, queue: Duration::from_secs(queue_seconds), writes: each }
}

/// Measure the command times of a block device, and write a profile
///
/// Only reads, unless --write names a partition, disk or file to overwrite. Measures reads of
/// several sizes at random offsets, one at a time and many at once. With --write, also measures
/// writes, flushes, the volatile cache and discards. Commands that meet other I/O on the disk are left
/// out. The profile is the input of `steady bound`, and a device of the lab.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Arguments {
    /// Block device, for example mmcblk0
    #[arg(value_name = "DEV", required_unless_present_any = ["compare", "verdict"])]
    device: Option<PathBuf>,
    /// Also measure writes: on REGION, a partition or disk whose contents are lost, or in FILE, a
    /// new file of 256 MiB on the device that is removed afterwards
    #[arg(long, value_name = "REGION|FILE")]
    write: Option<PathBuf>,
    /// Fill all of REGION first and read it back, then measure it 80 % full, and writes while data are
    /// deleted
    #[arg(long, requires = "write")]
    blank: bool,
    /// Measure for one minute instead of ten
    #[arg(long)]
    quick: bool,
    /// Measure reads for TIME, and writes for TIME: 10s to 12h [270s, or 20s with --quick]
    #[arg(long, value_name = "TIME", conflicts_with = "quick", value_parser = duration)]
    duration: Option<Duration>,
    /// Write the profile (TOML) to FILE instead of printing it
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Measure nothing; print which times of two profiles of a card differ by more than a probe is
    /// off by
    #[arg(long, num_args = 2, value_names = ["OLD", "NEW"], conflicts_with_all = ["device", "write", "quick", "duration", "out"])]
    compare: Option<Vec<PathBuf>>,
    /// Measure nothing; say whether the card of PROFILE holds --rate, and with which buffer
    #[arg(long, value_name = "PROFILE", requires = "rate", conflicts_with_all = ["compare", "device", "write", "quick", "duration", "out"])]
    verdict: Option<PathBuf>,
    /// Rate that a program writes at, in KiB/s
    #[arg(long, value_name = "KIB_S", requires = "verdict", value_parser = clap::value_parser!(u64).range(1..=RATE_KIB_S_MAX))]
    rate: Option<u64>,
    /// What it writes at a time, durably, in KiB
    #[arg(long, value_name = "KIB", requires = "verdict", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=BLOCK_KIB_MAX))]
    block: u64,
    /// Print the comparison or the verdict as JSON instead of a table
    #[arg(long, conflicts_with = "device")]
    json: bool,
}

fn duration(text: &str) -> Result<Duration, String> {
    let time = quantity::duration(text)?;
    if (SHORTEST..=LONGEST).contains(&time) {
        return Ok(time);
    }
    Err("must be 10s to 12h".into())
}

pub fn run(arguments: &Arguments) -> Result<Status, Failure> {
    if let Some([old, new]) = arguments.compare.as_deref() {
        return comparing::run(old, new, arguments.json);
    }
    if let (Some(profile), Some(rate_kib_s)) = (&arguments.verdict, arguments.rate) {
        return verdict::run(profile, rate_kib_s, arguments.block, arguments.json);
    }
    let Some(node) = &arguments.device else {
        return Err(Failure::with(Status::Usage)(anyhow!("a device is needed")));
    };
    let stop = Interrupt::on_signals().map_err(Failure::with(Status::Failed))?;
    let usage = Failure::with(Status::Usage);
    let device = Device::open(node).map_err(usage)?;
    let write = match &arguments.write {
        Some(path) => match WriteTarget::open(path, &device, arguments.blank, &stop) {
            Err(error) if is_interruption(&error) => return Ok(Status::Interrupted),
            opened => Some(opened.map_err(Failure::with(Status::Usage))?),
        },
        None => None,
    };
    let out = arguments.out.as_deref().map(named).transpose();
    let out = out.map_err(Failure::with(Status::Usage))?;
    match measure(arguments, &device, write.as_ref(), &stop) {
        Ok(profile) => {
            write_out(&profile, arguments.out.as_deref().zip(out))
                .map_err(Failure::with(Status::Failed))?;
            if arguments.out.is_some() {
                print_done(&text::summary(&profile));
            }
            let lost_data = profile.verified.is_some_and(|found| found.lost_data());
            Ok(if lost_data { Status::Flawed } else { Status::Done })
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

fn write_out(profile: &Profile, out: Option<(&Path, RecordFile)>) -> anyhow::Result<()> {
    let text = toml::to_string(profile)?;
    match out {
        Some((path, file)) => file.finish(&text).with_context(|| path.display().to_string()),
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
    let guard = KnobGuard::take(device, &mut |text| diagnostic!("steady: {text}"))?;
    let knobs = [("scheduler", "none"), ("queue/iostats", "1")];
    let knobs: BTreeMap<_, _> =
        knobs.into_iter().map(|(key, value)| (key.to_string(), Value::from_text(value))).collect();
    guard.queue().apply("probe", &knobs, &BTreeSet::new())?;
    let mut lengths = if arguments.quick { QUICK } else { FULL };
    if let Some(time) = arguments.duration {
        lengths = Lengths { reads: time, writes: time, ..lengths };
    }
    let measured =
        Measuring { device, guard: &guard, lengths, blank: arguments.blank, stop }.all(write);
    guard.finish()?;
    let mut profile = measured?;
    profile.probe.seconds = started.elapsed().as_secs();
    Ok(profile)
}
