// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--plan`: which ring and which loss window hold on this device.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow, ensure};
use serde_json::{Value, json};
use steadyio::interrupt::Interrupt;
use steadyio::recorder::result::RecordingResult;
use steadyio::recorder::session::Plan;
use steadyio::recorder::sizing::{MARGIN, Sizing, sizing};
use steadyio::recorder::source::Source;

/// Beside the segments of other recordings, and removed afterwards.
const MEASURED_IN: &str = "steady-plan";

/// Where the worst stall is known from.
#[derive(clap::Args)]
pub struct SizingArguments {
    /// Say which ring and which loss window hold for --size and --period on this device. Records for
    /// --duration (10s) into a directory in --dir that is removed, or takes the worst stall from
    /// --worst-stall-ms or --measured
    #[arg(long, conflicts_with_all = ["input", "total", "out", "account_log"])]
    pub plan: bool,
    /// Longest time that the device is known not to answer
    #[arg(long, value_name = "N", requires = "plan", conflicts_with = "measured")]
    worst_stall_ms: Option<u64>,
    /// Result of a recording on this device (--out), the longer the better
    #[arg(long, value_name = "FILE", requires = "plan")]
    measured: Option<PathBuf>,
}

/// A worst stall, and what is to be said about it.
struct Stall {
    worst: Duration,
    source: String,
}

impl SizingArguments {
    /// Prints what holds. `measure` is a recording by the pool, at the rate that is asked about.
    pub fn run(
        &self,
        record_bytes: u64,
        measure: (Plan, Box<dyn Source + Send>),
        stop: &Interrupt,
        as_json: bool,
    ) -> anyhow::Result<String> {
        let period = measure.0.period;
        let stall = match (self.worst_stall_ms, &self.measured) {
            (Some(ms), _) => {
                ensure!(ms <= 3_600_000, "--worst-stall-ms {ms}: must be at most 3600000, an hour");
                Stall { worst: Duration::from_millis(ms), source: "as given".into() }
            }
            (_, Some(file)) => measured(file)?,
            _ => measure_here(measure, stop)?,
        };
        let holds = sizing(record_bytes, period, stall.worst);
        Ok(if as_json { to_json(&stall, &holds) } else { to_text(&stall, &holds) })
    }
}

/// In the result of a recording: the longest write, sync, or time between two looks at the rings
/// that is more than the usual one, which rotations and scheduling are part of.
fn stall_in(result: &Value) -> anyhow::Result<Stall> {
    let ns = |pointer: &str| {
        let value = result.pointer(pointer).and_then(Value::as_u64);
        value
            .ok_or_else(|| anyhow!("no {pointer} in it: must be the result of a recording by pool"))
    };
    let lost = ns("/ledger/total/lost_ring_full/records")?;
    ensure!(
        lost == 0,
        "{lost} records were lost while measuring: the device is too slow for this \
        rate, or stalled for longer than the ring lasted; record with a larger --ring"
    );
    let gap_ns = ns("/pool/look_gap_ns_max")?.saturating_sub(ns("/config/poll_ns")?);
    let worst_ns =
        gap_ns.max(ns("/pool/writes/latency_ns/max")?).max(ns("/pool/syncs/latency_ns/max")?);
    let source = format!(
        "in {:.1} s with {} rotations",
        ns("/duration_ns")? as f64 / 1e9,
        ns("/pool/rotations/count")?
    );
    Ok(Stall { worst: Duration::from_nanos(worst_ns), source })
}

fn measured(file: &Path) -> anyhow::Result<Stall> {
    let context = || format!("--measured {}", file.display());
    let text = fs::read_to_string(file).with_context(context)?;
    stall_in(&serde_json::from_str(&text).with_context(context)?).with_context(context)
}

fn measure_here(
    measure: (Plan, Box<dyn Source + Send>),
    stop: &Interrupt,
) -> anyhow::Result<Stall> {
    let (mut plan, source) = measure;
    fs::create_dir_all(&plan.config.dir).with_context(|| plan.config.dir.display().to_string())?;
    plan.config.dir.push(MEASURED_IN);
    let dir = plan.config.dir.clone();
    let outcome = plan.record(source, stop, &mut |text| eprintln!("steady: {text}"), None);
    fs::remove_dir_all(&dir).with_context(|| dir.display().to_string())?;
    ensure!(!stop.requested(), "stopped before the device was measured");
    stall_in(&serde_json::from_str(&RecordingResult::new(&plan, &outcome?).to_json()?)?)
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn to_text(stall: &Stall, holds: &Sizing) -> String {
    format!(
        "worst stall {:.1} ms ({}); planned for {MARGIN} times as long, {:.1} ms\n\
         --ring {}  holds {} records: what comes in that time, and in the {:.0} ms between two looks\n\
         --loss-window {}ms  is the shortest that is kept\n",
        ms(stall.worst),
        stall.source,
        ms(holds.stall),
        holds.ring_bytes,
        holds.ring_records,
        ms(holds.poll),
        holds.loss_window.as_millis(),
    )
}

fn to_json(stall: &Stall, holds: &Sizing) -> String {
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let document = json!({
        "schema": "steadyio.recording-plan/1",
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
