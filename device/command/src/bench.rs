// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady bench`: measures the latency of a workload on a block device.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use steadyio_bench::record::Record;
use steadyio_bench::run::bench::Bench;
use steadyio_bench::run::error::BenchError;
use steadyio_bench::spec::expand::{PlannedVariant, Selection, Setting, Spec};
use steadyio_core::device::Device;
use steadyio_core::diagnostic;
use steadyio_core::interrupt::Interrupt;

use crate::exit::{BENCH_HELP, Failure, Status};
use crate::output::print;
use crate::progress::Progress;
use crate::record_file::RecordFile;
use crate::table;

/// Measure the latency of a workload on a block device, once per variant
///
/// A variant is a scheduler with its knobs. Generates the load with fio (3.33 or newer, from PATH),
/// or with its own threads if the workload has a host section. Sets the scheduler and queue
/// settings of each variant, and always restores them. A workload that writes needs an unused
/// device without partitions or data; see --destroy-data.
#[derive(clap::Args)]
#[command(after_help = BENCH_HELP)]
pub struct Arguments {
    /// Workload file (docs/spec/workload-1.md; `steady examples` lists some)
    #[arg(value_name = "SPEC.toml")]
    spec: PathBuf,
    /// Block device to measure, for example mmcblk0
    #[arg(long, value_name = "DEV", required_unless_present = "print_spec")]
    device: Option<PathBuf>,
    /// Run only this variant (repeatable)
    #[arg(long, value_name = "NAME")]
    variant: Vec<String>,
    /// Run only this sweep point (repeatable)
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    point: Vec<String>,
    /// Replace a value of the workload, for example rt.op=randwrite (repeatable)
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<Setting>,
    /// Write JSON to FILE (the bench record)
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print JSON instead of a table (the bench record)
    #[arg(long)]
    json: bool,
    /// Do everything but the I/O: check workload, device, rights and fio, set the knobs and restore
    /// them; then print the planned runs
    #[arg(long, conflicts_with_all = ["json", "out"])]
    check: bool,
    /// Check the workload, and print it as JSON with the values of --set
    #[arg(long, conflicts_with_all = ["device", "variant", "point", "out", "json", "check"])]
    print_spec: bool,
    /// Allow overwriting the data on this device, for example mmcblk0
    #[arg(long, value_name = "NAME")]
    destroy_data: Option<String>,
    /// Keep fio's job files and output in DIR
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Result<Status, Failure> {
    let spec = read_spec(&arguments.spec, &arguments.set).map_err(Failure::with(Status::Usage))?;
    // clap ensures that there is either --device or --print-spec.
    let Some(node) = &arguments.device else {
        let json = spec.to_json().map_err(Failure::with(Status::Failed))?;
        return print(&format!("{json}\n")).map(|()| Status::Done);
    };
    let device = Device::open(node).map_err(Failure::with(Status::Usage))?;
    let stop = Interrupt::on_signals().map_err(Failure::with(Status::Failed))?;
    let selection =
        Selection { variants: arguments.variant.clone(), points: arguments.point.clone() };
    let bench = Bench {
        spec: &spec,
        selection: &selection,
        device: &device,
        destroy_data: arguments.destroy_data.as_deref(),
        keep: arguments.keep.as_deref(),
        stop: &stop,
    };
    if arguments.check {
        let mut progress = Progress::new();
        let plan = bench.check(&mut |event| progress.event(event)).map_err(bench_failure)?;
        return print(&plan_text(&plan, &device)).map(|()| Status::Done);
    }
    let out = arguments.out.as_deref().map(record_file).transpose()?;
    let mut progress = Progress::new();
    let (record, restored) =
        bench.run(&mut |event| progress.event(event)).map_err(bench_failure)?;
    let delivered = deliver(&record, out, arguments.json);
    restored.map_err(Failure::with(Status::Failed))?;
    delivered?;
    Ok(if record.errors() > 0 || !record.unmet.is_empty() { Status::Flawed } else { Status::Done })
}

pub fn read_spec(path: &Path, settings: &[Setting]) -> anyhow::Result<Spec> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    Spec::parse_with(&text, settings).with_context(|| path.display().to_string())
}

fn bench_failure(error: BenchError) -> Failure {
    let status = match &error {
        BenchError::Spec(_) => Status::Usage,
        error if error.interrupted() => Status::Interrupted,
        _ => Status::Failed,
    };
    Failure { status, source: error.into() }
}

pub fn record_file(path: &Path) -> Result<RecordFile, Failure> {
    let file = RecordFile::create(path).with_context(|| format!("--out {}", path.display()));
    file.map_err(Failure::with(Status::Failed))
}

fn deliver(record: &Record, out: Option<RecordFile>, json: bool) -> Result<(), Failure> {
    let text = record.to_json().map_err(Failure::with(Status::Failed))?;
    if let Some(file) = out {
        file.finish(&text).context("--out").map_err(Failure::with(Status::Failed))?;
    }
    for unmet in &record.unmet {
        let (variant, knob) = (&unmet.variant, &unmet.knob);
        diagnostic!("steady: {variant}: {knob} = {} was not set: {}", unmet.wanted, unmet.reason);
    }
    match record.errors() {
        0 => {}
        errors => diagnostic!("steady: {errors} I/Os failed"),
    }
    if json { print(&text) } else { print(&table::render(record)) }
}

fn plan_text(plan: &[PlannedVariant], device: &Device) -> String {
    let mut text = format!("{}: {} bytes\n", device.name, device.size_bytes);
    for variant in plan {
        for group in &variant.groups {
            let knobs: Vec<String> =
                group.knobs.iter().map(|(key, value)| format!("{key}={value}")).collect();
            let points: Vec<String> = group
                .points
                .iter()
                .map(|point| point.value.as_ref().map_or("-".into(), ToString::to_string))
                .collect();
            let knobs = if knobs.is_empty() { "as they are".into() } else { knobs.join(" ") };
            let name = &variant.name;
            text += &format!("{name}: knobs {knobs}; points {}\n", points.join(" "));
        }
    }
    text
}
