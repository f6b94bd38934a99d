// SPDX-License-Identifier: MIT OR Apache-2.0
//! The status of a recording: each topic's record counts, and the writer thread's statistics.
//! `control` answers with it, and `steady record` prints it.
//!
//! `docs/spec/status-1.schema.json` describes it. Reading it takes no lock for which append() or
//! the writer thread waits.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use super::Control;
use crate::ledger::Account;
use crate::pool::meters::{Ended, RecordingState};
use crate::pool::registry::ChannelStats;
use crate::source::{now_ns, wall_ns};

pub const SCHEMA: &str = "steadyio.status/1";

/// The status, as JSON.
#[derive(Debug, Serialize)]
pub struct Status {
    schema: &'static str,
    tool: Tool,
    recording_id: String,
    /// The time of this status, on the wall clock.
    now_ns: u64,
    started_ns: u64,
    state: &'static str,
    /// The time for which the device has been failing.
    waiting_ns: Option<u64>,
    trouble: Option<String>,
    config: Config,
    incidents: Incidents,
    writer: Writer,
    total: Account,
    channels: Vec<Channel>,
}

#[derive(Debug, Serialize)]
struct Tool {
    steady: &'static str,
}

#[derive(Debug, Serialize)]
struct Config {
    loss_window_ns: u64,
    segments: u64,
    segment_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ram_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    incident_after_ns: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Incidents {
    count: u64,
    kept_segments: u64,
}

#[derive(Debug, Serialize)]
struct Writer {
    poll_gap_ns_max: u64,
    durable_lag_ns: u64,
    durable_lag_ns_max: u64,
    window_exceeded: u64,
    rotations: u64,
    device_bytes: u64,
    failures: u64,
    failed_segments: u64,
}

#[derive(Debug, Serialize)]
struct Channel {
    topic: String,
    account: Account,
}

impl Control {
    pub fn status(&self) -> Status {
        let (state, waiting_ns) = match self.meters.state() {
            RecordingState::Recording => ("recording", None),
            RecordingState::Waiting { since_ns, .. } => {
                ("waiting", Some(now_ns().saturating_sub(since_ns)))
            }
            RecordingState::Ended(Ended::Finished) => ("finished", None),
            RecordingState::Ended(Ended::Full) => ("full", None),
            RecordingState::Ended(Ended::Failed) => ("failed", None),
        };
        let facts = &self.facts;
        let channels = self.registry.channels();
        let accounts = channels.iter().map(|channel| channel.account);
        let total = accounts.fold(Account::default(), |sum, more| sum.plus(&more));
        let channel = |ChannelStats { topic, account }| Channel { topic, account };
        Status {
            schema: SCHEMA,
            tool: Tool { steady: env!("CARGO_PKG_VERSION") },
            recording_id: facts.recording_id.iter().map(|byte| format!("{byte:02x}")).collect(),
            now_ns: wall_ns(),
            started_ns: facts.started_ns,
            state,
            waiting_ns,
            trouble: self.meters.trouble(),
            config: Config {
                loss_window_ns: facts.loss_window_ns,
                segments: facts.segments,
                segment_bytes: facts.segment_bytes,
                ram_bytes: facts.ram.map(|ram| ram.bytes),
                incident_after_ns: facts.ram.map(|ram| ram.after.as_nanos() as u64),
            },
            incidents: Incidents {
                count: self.meters.incidents.load(Ordering::Relaxed),
                kept_segments: self.meters.kept_segments.load(Ordering::Relaxed),
            },
            writer: self.writer(),
            total,
            channels: channels.into_iter().map(channel).collect(),
        }
    }

    fn writer(&self) -> Writer {
        let of = |meter: &AtomicU64| meter.load(Ordering::Relaxed);
        let meters = &self.meters;
        Writer {
            poll_gap_ns_max: of(&meters.poll_gap_ns_max),
            durable_lag_ns: of(&meters.durable_lag_ns),
            durable_lag_ns_max: of(&meters.durable_lag_ns_max),
            window_exceeded: of(&meters.window_exceeded),
            rotations: of(&meters.rotations),
            device_bytes: of(&meters.device_bytes),
            failures: of(&meters.failures),
            failed_segments: of(&meters.failed_segments),
        }
    }
}
