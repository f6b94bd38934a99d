// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady record --plan`: finds the ring size and the loss window that suffice on this device.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow, ensure};
use serde_json::{Value, json};
use steadyio_bench::recording::result::RecordingResult;
use steadyio_bench::recording::session::Plan;
use steadyio_core::diagnostic;
use steadyio_core::interrupt::Interrupt;
use steadyio_recorder::pool::making::make_directory;
use steadyio_recorder::sizing::{MARGIN, Sizing, sizing};
use steadyio_recorder::source::{Periodic, Record, Source, now_ns};

/// The folder for measuring, next to the segments of other recordings; removed afterwards.
const MEASURED_IN: &str = "steady-plan";
/// The time for which it records as fast as the device allows.
const SPEED_TIME: Duration = Duration::from_secs(2);
/// The size of the ring meanwhile, which is never the bottleneck.
const SPEED_RING_UNITS: u64 = 16;
const MIB: f64 = 1_048_576.0;

/// How the worst stall is found.
#[derive(clap::Args)]
pub struct SizingArguments {
    /// Print the ring and the loss window that suffice for --size and --period on this device.
    /// Measures for --duration (10s) in a temporary directory in --dir, or takes the worst stall
    /// from --worst-stall-ms, --measured or --bound
    #[arg(long, conflicts_with_all = ["input", "total", "out", "account_log"])]
    pub plan: bool,
    /// With --plan, the longest known stall of the device in milliseconds, instead of measuring
    #[arg(long, value_name = "N", requires = "plan", conflicts_with = "measured")]
    worst_stall_ms: Option<u64>,
    /// With --plan, take the stall from FILE, the result (--out) of an earlier recording on this
    /// device
    #[arg(long, value_name = "FILE", requires = "plan")]
    measured: Option<PathBuf>,
    /// With --plan, take the stall from FILE, the bounds of steady bound --json: the longest bound of
    /// a task
    #[arg(long, value_name = "FILE", requires = "plan", conflicts_with_all = ["measured", "worst_stall_ms"])]
    bound: Option<PathBuf>,
}

/// A worst stall, and its source.
struct Stall {
    worst: Duration,
    source: String,
    /// The highest rate of the device; None if it was not measured.
    payload_bytes_s_max: Option<f64>,
}

impl SizingArguments {
    /// Returns the text to print. `measure` is a recording to the pool at the given rate.
    pub fn run(
        &self,
        record_bytes: u64,
        measure: (Plan, Box<dyn Source + Send>),
        stop: &Interrupt,
        as_json: bool,
    ) -> anyhow::Result<String> {
        let period = measure.0.period;
        let rate_bytes_s = record_bytes as f64 / period.as_secs_f64();
        let stall = match (self.worst_stall_ms, &self.measured, &self.bound) {
            (Some(ms), _, _) => {
                ensure!(ms <= 3_600_000, "--worst-stall-ms {ms}: must be at most 3600000, an hour");
                let worst = Duration::from_millis(ms);
                Stall { worst, source: "as given".into(), payload_bytes_s_max: None }
            }
            (_, Some(file), _) => measured(file)?,
            (_, _, Some(file)) => bounded(file)?,
            _ => measure_here(measure, rate_bytes_s, stop)?,
        };
        let holds = sizing(record_bytes, period, stall.worst);
        Ok(if as_json {
            to_json(&stall, &holds, rate_bytes_s)
        } else {
            to_text(&stall, &holds, rate_bytes_s)
        })
    }
}

/// The worst stall in the result of a recording: the longest of all writes, syncs, and times
/// between two polls of the rings beyond the usual interval. It includes rotations and scheduling
/// delays.
fn stall_in(result: &Value) -> anyhow::Result<Stall> {
    let ns = |pointer: &str| {
        let value = result.pointer(pointer).and_then(Value::as_u64);
        value.ok_or_else(|| {
            anyhow!("{pointer} is missing: must be the result of a recording by pool")
        })
    };
    let lost = ns("/ledger/total/lost_ring_full/records")?;
    ensure!(
        lost == 0,
        "{lost} records were lost while measuring: the device is too slow for this \
        rate, or stalled for longer than the ring lasted; record with a larger --ring"
    );
    let gap_ns = ns("/pool/poll_gap_ns_max")?.saturating_sub(usual_gap_ns(result).unwrap_or(0));
    let worst_ns =
        gap_ns.max(ns("/pool/writes/latency_ns/max")?).max(ns("/pool/syncs/latency_ns/max")?);
    let source = format!(
        "in {:.1} s with {} rotations",
        ns("/duration_ns")? as f64 / 1e9,
        ns("/pool/rotations/count")?
    );
    Ok(Stall { worst: Duration::from_nanos(worst_ns), source, payload_bytes_s_max: None })
}

/// The usual interval between two polls. None if the writer polls sooner at this rate, or if the
/// rate is unknown; then the whole gap counts.
fn usual_gap_ns(result: &Value) -> Option<u64> {
    let config = |key: &str| result.get("config")?.get(key)?.as_u64();
    let poll_ns = config("poll_ns")?;
    let records = poll_ns.checked_div(config("period_ns")?)?;
    let found_bytes = records.saturating_mul(config("record_bytes")?);
    (found_bytes < config("unit_bytes")? / 4).then_some(poll_ns)
}

fn measured(file: &Path) -> anyhow::Result<Stall> {
    let context = || format!("--measured {}", file.display());
    let text = fs::read_to_string(file).with_context(context)?;
    stall_in(&serde_json::from_str(&text).with_context(context)?).with_context(context)
}

/// The longest bound of the tasks: none of them waits longer.
fn bounded(file: &Path) -> anyhow::Result<Stall> {
    let context = || format!("--bound {}", file.display());
    let text = fs::read_to_string(file).with_context(context)?;
    let document: Value = serde_json::from_str(&text).with_context(context)?;
    bound_in(&document).with_context(context)
}

fn bound_in(document: &Value) -> anyhow::Result<Stall> {
    let wanted = || anyhow!("must be the output of steady bound --json");
    let tasks = document.get("tasks").and_then(Value::as_array).ok_or_else(wanted)?;
    let mut longest: Option<(u64, &str)> = None;
    for task in tasks {
        let name = task.get("name").and_then(Value::as_str).ok_or_else(wanted)?;
        let bound = task.pointer("/job/bound_ns").and_then(Value::as_u64);
        let ns = bound.ok_or_else(|| anyhow!("task {name} has no bound"))?;
        longest = longest.max(Some((ns, name)));
    }
    let (ns, name) = longest.ok_or_else(wanted)?;
    let source = format!("the bound of task {name}");
    Ok(Stall { worst: Duration::from_nanos(ns), source, payload_bytes_s_max: None })
}

fn measure_here(
    measure: (Plan, Box<dyn Source + Send>),
    rate_bytes_s: f64,
    stop: &Interrupt,
) -> anyhow::Result<Stall> {
    let (mut plan, source) = measure;
    make_directory(&plan.config.dir).with_context(|| plan.config.dir.display().to_string())?;
    plan.config.dir.push(MEASURED_IN);
    let dir = plan.config.dir.clone();
    let measured = measure_both(&plan, source, rate_bytes_s, stop);
    let removed = fs::remove_dir_all(&dir);
    ensure!(!stop.requested(), "stopped before the device was measured");
    let stall = measured?;
    removed.with_context(|| dir.display().to_string())?;
    Ok(stall)
}

/// Measures the device's speed, and if it suffices, the stalls at the given rate.
fn measure_both(
    plan: &Plan,
    source: Box<dyn Source + Send>,
    rate_bytes_s: f64,
    stop: &Interrupt,
) -> anyhow::Result<Stall> {
    diagnostic!("steady: measuring the device's speed for {} s", SPEED_TIME.as_secs());
    let max_bytes_s = payload_bytes_s_max(plan, stop)?;
    ensure!(
        rate_bytes_s <= max_bytes_s || stop.requested(),
        "--size and --period make {:.3} MiB/s, but this device takes {:.3}, measured for {} s: no ring \
         suffices; record less, or on another device",
        rate_bytes_s / MIB,
        max_bytes_s / MIB,
        SPEED_TIME.as_secs()
    );
    let bytes = plan.total_bytes.unwrap_or(0) as f64;
    diagnostic!("steady: recording at the rate for {:.0} s", bytes / rate_bytes_s);
    let outcome =
        plan.record(source, None, stop, &mut |text| diagnostic!("steady: {text}"), None)?;
    let stall = stall_in(&serde_json::from_str(&RecordingResult::new(plan, &outcome).to_json()?)?)?;
    Ok(Stall { payload_bytes_s_max: Some(max_bytes_s), ..stall })
}

/// A source of records of the same size, as fast as the recorder takes them.
struct Unpaced {
    records: Periodic,
    end_ns: u64,
}

impl Source for Unpaced {
    fn next(&mut self) -> io::Result<Option<Record<'_>>> {
        if now_ns() < self.end_ns { self.records.next() } else { Ok(None) }
    }
}

fn payload_bytes_s_max(plan: &Plan, stop: &Interrupt) -> anyhow::Result<f64> {
    let mut plan =
        Plan { period: Duration::ZERO, back_pressure: true, measure_calls: false, ..plan.clone() };
    // Locking does not change the speed, and such a ring exceeds the limit on most systems.
    plan.config.lock_memory = false;
    for channel in &mut plan.config.channels {
        channel.period = None;
        let unit = plan.config.unit_bytes.max(channel.record_bytes_max);
        channel.ring_bytes = SPEED_RING_UNITS * unit;
    }
    let bytes = usize::try_from(plan.config.channels[0].record_bytes_max)?;
    let records = Periodic::new(Duration::ZERO, bytes, u64::MAX);
    let end_ns = now_ns() + SPEED_TIME.as_nanos() as u64;
    let source = Box::new(Unpaced { records, end_ns });
    let outcome =
        plan.record(source, None, stop, &mut |text| diagnostic!("steady: {text}"), None)?;
    let durable_bytes: u64 =
        outcome.channels.iter().map(|(_, account)| account.durable.bytes).sum();
    Ok(durable_bytes as f64 / (outcome.duration_ns.max(1) as f64 / 1e9))
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn to_text(stall: &Stall, holds: &Sizing, rate_bytes_s: f64) -> String {
    let speed = stall.payload_bytes_s_max.map_or(String::new(), |max_bytes_s| {
        format!(
            "{:.3} MiB/s are recorded, {:.0} % of the {:.1} that this device takes, measured for {} s\n",
            rate_bytes_s / MIB,
            100.0 * rate_bytes_s / max_bytes_s,
            max_bytes_s / MIB,
            SPEED_TIME.as_secs()
        )
    });
    format!(
        "{speed}worst stall {:.1} ms ({}); planned for {MARGIN} times as long, {:.1} ms\n\
         --ring {}  holds the {} records of that time and of the {:.0} ms between two polls\n\
         --loss-window {}ms  is the shortest that can be kept\n",
        ms(stall.worst),
        stall.source,
        ms(holds.stall),
        holds.ring_bytes,
        holds.ring_records,
        ms(holds.poll),
        holds.loss_window.as_millis(),
    )
}

fn to_json(stall: &Stall, holds: &Sizing, rate_bytes_s: f64) -> String {
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let document = json!({
        "schema": "steadyio.recording-plan/1",
        "rate_bytes_s": rate_bytes_s as u64,
        "payload_bytes_s_max": stall.payload_bytes_s_max.map(|bytes_s| bytes_s as u64),
        "worst_stall_ns": ns(stall.worst),
        "margin": MARGIN,
        "planned_stall_ns": ns(holds.stall),
        "poll_ns": ns(holds.poll),
        "ring_records": holds.ring_records,
        "ring_bytes": holds.ring_bytes,
        "loss_window_ns": ns(holds.loss_window),
    });
    format!("{document}\n")
}
