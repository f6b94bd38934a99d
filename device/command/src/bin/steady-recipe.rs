// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records as the ext4 recording paper does, where `steady record` uses its pool. The lab's figures
//! and `tests/bench/recorder.py` compare both.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Parser;
use steadyio_bench::recording::recipe::{RECIPES, Recipe};
use steadyio_bench::recording::recipes::flusher::FlusherError;
use steadyio_bench::recording::recipes::session::{RecipeError, record};
use steadyio_bench::recording::result::{End, RecordingResult};
use steadyio_bench::recording::session::{CallerConfig, Plan};
use steadyio_command::bench::record_file;
use steadyio_command::exit::{Failure, Status};
use steadyio_command::output::print;
use steadyio_core::diagnostic;
use steadyio_core::interrupt::Interrupt;
use steadyio_core::quantity::{duration, size};
use steadyio_recorder::config::{ChannelConfig, RecorderConfig};
use steadyio_recorder::source::Periodic;

const HELP: &str = "Exit status: 0 success; 1 failure; 2 usage error, or no permission to switch \
the flusher off; 3 finished, but records are not durable; 130 interrupted. Settings are always \
restored.";
const TOPIC: &str = "/periodic";
/// The paper's size of a write-back. A larger one does not make its device faster.
const UNIT_BYTES: u64 = 2 << 20;

/// Record periodic data by write(), as in the ext4 recording paper
///
/// A second thread writes back each --unit bytes and finishes each file. The names of the recipes
/// are the paper's: how the file grows, what the second thread calls, whether the kernel's flusher
/// runs, and what runs in the background.
#[derive(Parser)]
#[command(version, after_help = HELP)]
struct Arguments {
    /// Method of the paper
    #[arg(value_parser = RECIPES.map(|recipe| recipe.name))]
    recipe: String,
    /// Directory of the recording, created if missing
    #[arg(long)]
    dir: PathBuf,
    /// Time between records; 0 means as fast as write() takes them
    #[arg(long, value_name = "TIME", default_value = "5ms", value_parser = duration)]
    period: Duration,
    /// Size of a record
    #[arg(long, default_value = "16KiB", value_parser = size)]
    size: u64,
    /// Size of all records
    #[arg(long, value_name = "SIZE", value_parser = size)]
    total: u64,
    /// Size of a file [default: one file]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    segment_size: Option<u64>,
    /// Bytes per write-back
    #[arg(long, value_name = "SIZE", default_value_t = UNIT_BYTES, value_parser = size)]
    unit: u64,
    /// Run the caller under SCHED_FIFO at this priority
    #[arg(long, value_name = "1..99", value_parser = clap::value_parser!(u8).range(1..=99))]
    priority: Option<u8>,
    /// Do not lock memory; page faults may then delay the caller
    #[arg(long)]
    no_lock: bool,
    /// Write JSON to FILE (docs/spec/recording-1.schema.json)
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(status) => status.into(),
        Err(error) => error.report(),
    }
}

fn run(arguments: &Arguments) -> Result<Status, Failure> {
    let stop = Interrupt::on_signals().map_err(Failure::with(Status::Failed))?;
    let recipe: Recipe = arguments.recipe.parse().map_err(Failure::with(Status::Usage))?;
    let (plan, records) = arguments.plan(recipe).map_err(Failure::with(Status::Usage))?;
    plan.caller.check().map_err(Failure::with(Status::Failed))?;
    let out = arguments.out.as_deref().map(record_file).transpose()?;
    let record_bytes = usize::try_from(arguments.size).map_err(Failure::with(Status::Usage))?;
    let source = Box::new(Periodic::new(plan.period, record_bytes, records));
    let total_bytes = records * arguments.size;
    let mut note = |text| diagnostic!("steady-recipe: {text}");
    let outcome = record(recipe, &plan, total_bytes, source, &stop, &mut note).map_err(failure)?;
    let result = RecordingResult::new(&plan, &outcome);
    let json = result.to_json().map_err(Failure::with(Status::Failed))?;
    if let Some(file) = out {
        let written = file.finish(&json).context("--out");
        written.map_err(Failure::with(Status::Failed))?;
    }
    print(&if arguments.json { json } else { result.to_text() })?;
    if let Some(trouble) = result.trouble() {
        diagnostic!("steady-recipe: {trouble}");
    }
    Ok(match result.end() {
        End::Failed | End::Full => Status::Failed,
        End::Interrupted => Status::Interrupted,
        End::Finished if result.not_durable() > 0 => Status::Flawed,
        End::Finished => Status::Done,
    })
}

fn failure(error: RecipeError) -> Failure {
    let status = match &error {
        RecipeError::Flusher(FlusherError::Refused { .. }) => Status::Usage,
        _ => Status::Failed,
    };
    Failure { status, source: error.into() }
}

impl Arguments {
    /// The plan, and the number of records.
    fn plan(&self, recipe: Recipe) -> anyhow::Result<(Plan, u64)> {
        let Arguments { size, total, unit, .. } = *self;
        ensure!(size > 0, "--size 0: must be at least 1");
        ensure!(total >= size, "--total {total}: must be at least one record (--size {size})");
        ensure!(unit > 0, "--unit 0: must be at least 1");
        let total_bytes = total / size * size;
        let segment_bytes = self.segment_size.unwrap_or(total_bytes);
        ensure!(segment_bytes >= size, "--segment-size {segment_bytes}: less than one record");
        let paced = !self.period.is_zero() || !recipe.name.contains("-BG");
        ensure!(paced, "{}: needs a --period", recipe.name);
        let channel = ChannelConfig::new(TOPIC, size);
        let plan = Plan {
            config: RecorderConfig {
                segment_bytes,
                unit_bytes: unit,
                lock_memory: !self.no_lock,
                ..RecorderConfig::new(self.dir.clone(), vec![channel])
            },
            caller: CallerConfig { fifo_priority: self.priority, cpu: None },
            period: self.period,
            total_bytes: Some(total_bytes),
            back_pressure: self.period.is_zero(),
            measure_calls: true,
        };
        Ok((plan, total / size))
    }
}
