// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady tune`: chooses k2's knobs for a device and a load, from few measurements.
//!
//! `steadyio_tune` searches and measures. This has arguments, progress and text.

pub mod bound;
mod goal;
mod progress;
mod text;

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, anyhow};
use steadyio_bench::run::error::BenchError;
use steadyio_bench::spec::expand::Setting;
use steadyio_core::device::Device;
use steadyio_core::diagnostic;
use steadyio_core::interrupt::Interrupt;
use steadyio_core::value::Value;
use steadyio_tune::confidence::Quantile;
use steadyio_tune::goal::Wanted;
use steadyio_tune::knob::{Choice, Choices};
use steadyio_tune::report::Report;
use steadyio_tune::run::{Tune, TuneError};

use crate::bench::{read_spec, record_file};
use crate::exit::{Failure, Status, TUNE_HELP};
use crate::output::print;
use crate::record_file::RecordFile;
use crate::tune::goal::{TailMax, ThroughputMin};
use crate::tune::progress::Progress;
use crate::with;

/// Choose k2 knobs for a block device and a workload, with few measurements
///
/// Measures the workload without a scheduler, and then under k2 with values chosen by bisection.
/// Checks that the measured values rise, as bisection requires. Prints the frontier of latency and
/// throughput, the pick, and the commands that set it. Always restores the knobs, except with
/// --apply. Ignores the variants of the workload. Needs k2, and everything that `steady bench`
/// needs. With --bound it measures nothing: it takes a device profile and a task set, as `steady
/// bound` does, and finds the knobs that meet all deadlines and leave the background most.
#[derive(clap::Args)]
#[command(after_help = TUNE_HELP)]
pub struct Arguments {
    /// Block device to tune, for example mmcblk0; with --bound, its profile (TOML)
    #[arg(value_name = "DEV")]
    device: PathBuf,
    /// Workload file with a job of class rt (docs/spec/workload-1.md); with --bound, the tasks
    /// (docs/spec/tasks-1.md)
    #[arg(value_name = "SPEC.toml")]
    spec: PathBuf,
    #[command(flatten)]
    objective: Objective,
    /// Quantile of the real-time latency
    #[arg(long, value_name = "PERCENT", default_value = "99.9")]
    quantile: Quantile,
    /// Treat candidates within this percentage of the best as tied, and break ties by the other
    /// metric
    #[arg(long, value_name = "PERCENT", default_value = "0", value_parser = near)]
    near: f64,
    /// Knob to choose: inflight_max, split_kib or rt_block_us, with its values or those of the
    /// reference page (repeatable) [default: inflight_max]
    #[arg(long, value_name = "NAME[=VALUE,..]")]
    knob: Vec<Choice>,
    /// Setting for all measurements, for example queue/nomerges=2 (repeatable)
    #[arg(long, value_name = "KEY=VALUE", value_parser = with::knob)]
    with: Vec<(String, Value)>,
    /// Measure all candidates
    #[arg(long)]
    all: bool,
    /// Set the pick, and leave it set
    #[arg(long)]
    apply: bool,
    /// Point of the workload's sweep, if it has one
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    point: Option<String>,
    /// Replace a value of the workload, for example length.ios=20000 (repeatable)
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<Setting>,
    /// Write JSON to FILE (the report); with --bound, write the tasks with the knobs picked (TOML)
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print JSON instead of a table (the report)
    #[arg(long)]
    json: bool,
    /// Do everything but the I/O: check workload, device, rights and fio, set the knobs and restore
    /// them; then print the candidates
    #[arg(long, conflicts_with_all = ["json", "out", "apply"])]
    check: bool,
    /// Allow overwriting the data on this device, for example mmcblk0
    #[arg(long, value_name = "NAME")]
    destroy_data: Option<String>,
    /// Keep fio's job files and output in DIR
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

/// One of the two objectives.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct Objective {
    /// Maximize throughput with the quantile at most LIMIT: a share of the quantile without a
    /// scheduler (50%), or a time (500us)
    #[arg(long, value_name = "LIMIT")]
    tail_max: Option<TailMax>,
    /// Minimize the quantile with a total throughput of at least LIMIT: a share of the throughput
    /// without a scheduler (50%), or bytes per second (200MiB)
    #[arg(long, value_name = "LIMIT")]
    throughput_min: Option<ThroughputMin>,
    /// Maximize the throughput of the background while all tasks meet their deadlines
    #[arg(long, conflicts_with_all = MEASURES)]
    bound: bool,
}

/// The options for measuring.
const MEASURES: [&str; 11] = [
    "quantile",
    "near",
    "knob",
    "with",
    "all",
    "apply",
    "point",
    "set",
    "check",
    "destroy_data",
    "keep",
];

impl Objective {
    /// The requested form. clap ensures that there is one.
    fn wanted(&self) -> Option<Wanted> {
        let tail = self.tail_max.map(|limit| Wanted::MostThroughput(limit.0));
        tail.or(self.throughput_min.map(|limit| Wanted::LeastTail(limit.0)))
    }
}

fn near(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').parse::<f64>() {
        Ok(percent) if (0.0..100.0).contains(&percent) => Ok(percent),
        _ => Err("must be a percentage from 0 to below 100".into()),
    }
}

pub fn run(arguments: &Arguments) -> Result<Status, Failure> {
    if arguments.objective.bound {
        let (device, tasks) = (&arguments.device, &arguments.spec);
        return bound::run(device, tasks, arguments.out.as_deref(), arguments.json);
    }
    let usage = |text: String| Failure { status: Status::Usage, source: anyhow!(text) };
    let wanted = arguments.objective.wanted();
    let wanted = wanted.ok_or_else(|| usage("--tail-max or --throughput-min is missing".into()))?;
    let knob = |error| usage(format!("--knob: {error}"));
    let choices = Choices::new(arguments.knob.clone()).map_err(knob)?;
    let with = settings(&arguments.with, &choices).map_err(usage)?;
    let spec = read_spec(&arguments.spec, &arguments.set).map_err(Failure::with(Status::Usage))?;
    let device = Device::open(&arguments.device).map_err(Failure::with(Status::Usage))?;
    let stop = Interrupt::on_signals().map_err(Failure::with(Status::Failed))?;
    let tune = Tune {
        spec: &spec,
        point: arguments.point.as_deref(),
        device: &device,
        choices: &choices,
        wanted,
        quantile: arguments.quantile,
        near_percent: arguments.near,
        with: &with,
        all: arguments.all,
        apply: arguments.apply,
        destroy_data: arguments.destroy_data.as_deref(),
        keep: arguments.keep.as_deref(),
        stop: &stop,
    };
    // A run checks the rest itself, before it changes anything.
    let checked = match arguments.check {
        true => tune.check(&mut |event| Progress::new(&choices).event(event)),
        false => tune.plan().map(drop),
    };
    checked.map_err(|error| failure(error, &arguments.spec))?;
    tune.warnings().iter().for_each(|warning| diagnostic!("steady: {warning}"));
    if arguments.check {
        return print(&text::plan(&tune)).map(|()| Status::Done);
    }
    let out = arguments.out.as_deref().map(record_file).transpose()?;
    let mut progress = Progress::new(&choices);
    let (report, left) = tune
        .run(&mut |event| progress.event(event))
        .map_err(|error| failure(error, &arguments.spec))?;
    let delivered = deliver(&report, out, arguments.json);
    left.map_err(Failure::with(Status::Failed))?;
    delivered?;
    let is_whole = report.pick.is_some() && report.confidence.is_enough && report.errors() == 0;
    Ok(if is_whole { Status::Done } else { Status::Flawed })
}

/// The settings besides the knobs to choose. A collision with them is a usage error.
fn settings(
    with: &[(String, Value)],
    choices: &Choices,
) -> Result<BTreeMap<String, Value>, String> {
    let settings: BTreeMap<String, Value> = with.iter().cloned().collect();
    if settings.len() != with.len() {
        return Err("--with: a key is given twice".into());
    }
    if settings.contains_key("scheduler") {
        return Err("--with scheduler: the scheduler is k2, or none to compare with".into());
    }
    let names = choices.all.iter().map(|choice| choice.knob.name);
    let mut keys = names.map(|name| format!("iosched/{name}"));
    match keys.find(|key| settings.contains_key(key)) {
        Some(key) => Err(format!("--with {key}: is a knob to choose; give --knob a single value")),
        None => Ok(settings),
    }
}

fn failure(error: TuneError, spec: &std::path::Path) -> Failure {
    let status = match &error {
        TuneError::Spec(_) | TuneError::NoK2 { .. } | TuneError::Bench(BenchError::Spec(_)) => {
            Status::Usage
        }
        error if error.interrupted() => Status::Interrupted,
        _ => Status::Failed,
    };
    let is_spec = matches!(error, TuneError::Spec(_) | TuneError::Bench(BenchError::Spec(_)));
    let source = anyhow::Error::from(error);
    let source = if is_spec { source.context(spec.display().to_string()) } else { source };
    Failure { status, source }
}

fn deliver(report: &Report, out: Option<RecordFile>, json: bool) -> Result<(), Failure> {
    let text = report.to_json().map_err(Failure::with(Status::Failed))?;
    if let Some(file) = out {
        file.finish(&text).context("--out").map_err(Failure::with(Status::Failed))?;
    }
    match report.errors() {
        0 => {}
        errors => diagnostic!("steady: {errors} I/Os failed"),
    }
    if json { print(&text) } else { print(&text::render(report)) }
}
