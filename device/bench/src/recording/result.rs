// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result of a recording (`docs/spec/recording-1.schema.json`), as JSON and as text. `steady
//! record` and `steady-recipe` write it.
//!
//! It has no clock times, host names or paths. Fields are written in the order of the declaration.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};
use steadyio_core::histogram::Percentiles;
use steadyio_core::kernel::Kernel;
use steadyio_core::latency::Latencies;
use steadyio_recorder::ledger::Account;
use steadyio_recorder::mcap::compression::Compression;
use steadyio_recorder::pool::meters::{Ended, Meters, WriterReport};
use steadyio_recorder::task::Counters;

use super::caller::{CallerReport, WorstCall};
use super::place::Filesystem;
use super::recipes::background::BackgroundReport;
use super::recipes::caller_writes::WriteReport;
use super::session::{Beside, Outcome, Plan};
use crate::record::rounded;

/// Schema written by this version.
pub const RESULT_SCHEMA: &str = "steadyio.recording/1";
const MIB: f64 = 1_048_576.0;
/// The recorder's own way to record, next to the names of the paper's.
const POOL: &str = "pool";

/// The result of one `steady record`.
#[derive(Debug, Serialize)]
pub struct RecordingResult {
    schema: &'static str,
    tool: Tool,
    kernel: Kernel,
    filesystem: Option<Filesystem>,
    flusher: BTreeMap<String, u64>,
    recipe: RecipeNames,
    config: Config,
    ended: End,
    duration_ns: u64,
    payload_mib_s: f64,
    cpu_ns_per_mib: Option<u64>,
    caller: Caller,
    pool: Option<PoolPart>,
    caller_writes: Option<CallerWritesPart>,
    ledger: LedgerPart,
}

#[derive(Debug, Serialize)]
struct Tool {
    steady: &'static str,
}

#[derive(Debug, Serialize)]
struct RecipeNames {
    name: &'static str,
    paper_column: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct Config {
    period_ns: u64,
    record_bytes: u64,
    total_bytes: Option<u64>,
    unit_bytes: u64,
    segment_bytes: u64,
    segments: Option<u64>,
    loss_window_ns: Option<u64>,
    poll_ns: Option<u64>,
    ring_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ram_bytes: Option<u64>,
    compression: Option<&'static str>,
    memory_locked: bool,
    process_locked: bool,
    caller_fifo_priority: Option<u8>,
    writer_fifo_priority: Option<u8>,
}

/// The end of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The source ended.
    Finished,
    /// A signal ended it. The records received until then are recorded.
    Interrupted,
    /// All segments were full.
    Full,
    /// The device, the file system or the source failed.
    Failed,
}

/// Latencies with their percentiles.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Distribution {
    pub count: u64,
    pub latency_ns: Percentiles,
    pub histogram_ns: Vec<(u64, u64)>,
}

impl Distribution {
    fn of(latencies: &Latencies) -> Distribution {
        let histogram = latencies.histogram();
        Distribution {
            count: histogram.count(),
            latency_ns: histogram.percentiles(),
            histogram_ns: histogram.bins(),
        }
    }
}

#[derive(Debug, Serialize)]
struct Caller {
    call: &'static str,
    calls: Distribution,
    blocked_calls: u64,
    preempted_calls: u64,
    worst: Vec<WorstCall>,
    lateness: Distribution,
    late_records: u64,
    too_long_records: u64,
    kernel: Counters,
    error: Option<String>,
}

#[derive(Debug, Serialize)]
struct PoolPart {
    engine: &'static str,
    direct: bool,
    poll_gap_ns_max: u64,
    durable_lag_ns_max: u64,
    window_exceeded: u64,
    rotations: Distribution,
    writes: Distribution,
    syncs: Distribution,
    device_bytes: u64,
    failures: u64,
    failed_segments: u64,
    missing_messages: u64,
    trouble: Option<String>,
    kernel: Counters,
}

#[derive(Debug, Serialize)]
struct CallerWritesPart {
    files: u64,
    syncs: Distribution,
    file_ends: Distribution,
    file_changes: Distribution,
    background: Option<BackgroundPart>,
    kernel: Counters,
}

#[derive(Debug, Serialize)]
struct BackgroundPart {
    truncates: Distribution,
    fallocates: Distribution,
}

#[derive(Debug, Serialize)]
struct LedgerPart {
    channels: Vec<ChannelPart>,
    total: Account,
}

#[derive(Debug, Serialize)]
struct ChannelPart {
    topic: String,
    account: Account,
}

fn pool_part(report: &WriterReport, meters: &Meters) -> PoolPart {
    let get = |meter: &std::sync::atomic::AtomicU64| meter.load(Ordering::Relaxed);
    PoolPart {
        engine: report.engine,
        direct: report.direct,
        poll_gap_ns_max: get(&meters.poll_gap_ns_max),
        durable_lag_ns_max: get(&meters.durable_lag_ns_max),
        window_exceeded: get(&meters.window_exceeded),
        rotations: Distribution::of(&report.rotations),
        writes: Distribution::of(&report.writes),
        syncs: Distribution::of(&report.syncs),
        device_bytes: get(&meters.device_bytes),
        failures: get(&meters.failures),
        failed_segments: get(&meters.failed_segments),
        missing_messages: get(&meters.missing_messages),
        trouble: meters.trouble(),
        kernel: report.kernel,
    }
}

fn caller_writes_part(
    report: &WriteReport,
    background: Option<&BackgroundReport>,
) -> CallerWritesPart {
    CallerWritesPart {
        files: report.files,
        syncs: Distribution::of(&report.sync.syncs),
        file_ends: Distribution::of(&report.sync.ends),
        file_changes: Distribution::of(&report.changes),
        background: background.map(|report| BackgroundPart {
            truncates: Distribution::of(&report.truncates),
            fallocates: Distribution::of(&report.fallocates),
        }),
        kernel: report.sync.kernel,
    }
}

fn caller_part(report: &CallerReport, too_long: u64, call: &'static str) -> Caller {
    Caller {
        call,
        calls: Distribution::of(&report.calls),
        blocked_calls: report.blocked_calls,
        preempted_calls: report.preempted_calls,
        worst: report.worst.clone(),
        lateness: Distribution::of(&report.lateness),
        late_records: report.late,
        too_long_records: too_long,
        kernel: report.kernel,
        error: report.error.clone(),
    }
}

impl Config {
    fn of(plan: &Plan, outcome: &Outcome, pool: bool) -> Config {
        let config = &plan.config;
        let ns = |duration: std::time::Duration| duration.as_nanos() as u64;
        Config {
            period_ns: ns(plan.period),
            record_bytes: config.channels.iter().map(|c| c.record_bytes_max).max().unwrap_or(0),
            total_bytes: plan.total_bytes,
            unit_bytes: config.unit_bytes,
            segment_bytes: config.segment_bytes,
            segments: config.check().ok().filter(|_| pool),
            loss_window_ns: pool.then(|| ns(config.loss_window)),
            poll_ns: pool.then(|| ns(config.poll())),
            ring_bytes: pool.then(|| config.rings_bytes()),
            ram_bytes: config.writer.ram.map(|ram| ram.bytes),
            compression: config.writer.compression.map(Compression::name),
            memory_locked: config.lock_memory,
            process_locked: outcome.process_locked,
            caller_fifo_priority: plan.caller.fifo_priority,
            writer_fifo_priority: config.writer.fifo_priority.filter(|_| pool),
        }
    }
}

impl RecordingResult {
    pub fn new(plan: &Plan, outcome: &Outcome) -> RecordingResult {
        let mut recipe = RecipeNames { name: POOL, paper_column: None };
        let (pool, caller_writes) = match &outcome.beside {
            Beside::Pool(report, meters) => (Some(pool_part(report, meters)), None),
            Beside::CallerWrites(of_paper, report, background) => {
                let paper_column = Some(of_paper.paper_column);
                recipe = RecipeNames { name: of_paper.name, paper_column };
                (None, Some(caller_writes_part(report, background.as_deref())))
            }
        };
        let channels = outcome.channels.iter();
        let total = channels.clone().fold(Account::default(), |sum, (_, more)| sum.plus(more));
        let mib = total.durable.bytes as f64 / MIB;
        let call = if pool.is_some() { "append" } else { "write" };
        RecordingResult {
            schema: RESULT_SCHEMA,
            tool: Tool { steady: env!("CARGO_PKG_VERSION") },
            kernel: Kernel::running(),
            filesystem: outcome.filesystem.clone(),
            flusher: outcome.flusher.clone(),
            recipe,
            config: Config::of(plan, outcome, pool.is_some()),
            ended: outcome.end(),
            duration_ns: outcome.duration_ns,
            payload_mib_s: rounded(mib / (outcome.duration_ns.max(1) as f64 / 1e9)),
            cpu_ns_per_mib: (mib > 0.0).then(|| (outcome.cpu_ns as f64 / mib) as u64),
            caller: caller_part(&outcome.caller, outcome.too_long, call),
            pool,
            caller_writes,
            ledger: LedgerPart {
                channels: channels
                    .map(|(topic, account)| ChannelPart { topic: topic.clone(), account: *account })
                    .collect(),
                total,
            },
        }
    }

    pub fn end(&self) -> End {
        self.ended
    }

    /// The sum of all channels.
    pub fn total(&self) -> &Account {
        &self.ledger.total
    }

    /// The number of received records that are not durable, lost or not, except expired ones.
    pub fn not_durable(&self) -> u64 {
        self.ledger.total.not_durable()
    }

    /// Whether a failing device ended it.
    pub fn device_failed(&self) -> bool {
        self.ended == End::Failed && self.caller.error.is_none()
    }

    /// The number of failed writes and syncs of the recorder.
    pub fn failures(&self) -> u64 {
        self.pool.as_ref().map_or(0, |pool| pool.failures)
    }

    /// The number of records lost because they are longer than their channel allows.
    pub fn too_long(&self) -> u64 {
        self.caller.too_long_records
    }

    /// The number of messages that were durable and are gone, of earlier recordings or of this one.
    pub fn missing_messages(&self) -> u64 {
        self.pool.as_ref().map_or(0, |pool| pool.missing_messages)
    }

    /// Whether some segments cannot be used.
    pub fn lacks_segments(&self) -> bool {
        self.pool.as_ref().is_some_and(|pool| pool.failed_segments > 0)
    }

    /// The reason for the end, or the last failure.
    pub fn trouble(&self) -> Option<&str> {
        let of_pool = self.pool.as_ref().and_then(|pool| pool.trouble.as_deref());
        self.caller.error.as_deref().or(of_pool)
    }

    /// The result as one line of JSON.
    pub fn to_json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string(self)? + "\n")
    }

    /// The result as text for users.
    pub fn to_text(&self) -> String {
        let us = |ns: Option<u64>| ns.map_or("-".into(), |ns| format!("{:.1}", ns as f64 / 1e3));
        let (name, call) = (self.recipe.name, self.caller.call);
        let of = &self.caller.calls.latency_ns;
        let total = &self.ledger.total;
        let column = self.recipe.paper_column;
        let column = column.map(|column| format!(" (paper: {column})")).unwrap_or_default();
        let mut text = format!(
            "{name}{column}: {} records, {:.2} MiB in {:.1} s, {:.2} MiB/s\n",
            total.received.records,
            total.received.bytes as f64 / MIB,
            self.duration_ns as f64 / 1e9,
            self.payload_mib_s,
        );
        if self.caller.calls.count > 0 {
            text += &format!(
                "{call}() us: p50 {} p99 {} p99.9 {} max {}; blocked {}, preempted {}; late records \
                 {}\n",
                us(of.p50),
                us(of.p99),
                us(of.p999),
                us(of.max),
                self.caller.blocked_calls,
                self.caller.preempted_calls,
                self.caller.late_records,
            );
        }
        if let Some(pool) = &self.pool {
            text += &format!(
                "durable lag max {} us; longest gap between polls {} us; {} rotations; {}{}\n",
                us(Some(pool.durable_lag_ns_max)),
                us(Some(pool.poll_gap_ns_max)),
                pool.rotations.count,
                pool.engine,
                if pool.direct { ", direct" } else { ", page cache" },
            );
        }
        let of_ram = self.config.ram_bytes.map_or(String::new(), |_| {
            let lost = total.lost_ram_full.records;
            format!(", --ram too small {lost}); {} in no incident", total.expired.records)
        });
        text + &format!(
            "durable {} of {}, lost {} (ring full {}, too long {}, in writing {}{}\n",
            total.durable.records,
            total.received.records,
            total.lost().records,
            total.lost_ring_full.records - self.too_long(),
            self.too_long(),
            total.lost_in_writing.records,
            if of_ram.is_empty() { ")" } else { &of_ram },
        )
    }
}

impl Outcome {
    fn end(&self) -> End {
        match &self.beside {
            _ if self.caller.error.is_some() => End::Failed,
            Beside::Pool(report, _) if report.ended == Ended::Failed => End::Failed,
            Beside::Pool(report, _) if report.ended == Ended::Full => End::Full,
            _ if self.caller.interrupted => End::Interrupted,
            _ => End::Finished,
        }
    }
}
