// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady info`: prints the contents of a recording.

use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use steadyio_core::interrupt::Interrupt;
use steadyio_export::overview::{ChannelOverview, Overview, SegmentCounts};
use steadyio_export::summary::{ChannelAccount, IncidentSummary, RecordingSummary};
use steadyio_recorder::incident::{Incident, files};
use steadyio_recorder::mcap::files::distinct;

use crate::exit::{Failure, Status};
use crate::output::print;
use crate::selection::{survey, text};
use crate::table;

const MIB: f64 = 1_048_576.0;

const HELP: &str = "Exit status: 0 success; 1 failure; 2 usage error; 3 durable data is missing, \
as printed; 130 interrupted. `steady recover --verify` also reads every block.";

/// Show the topics, times, losses and incidents of a recording
///
/// Changes nothing and takes no lock. Works while a recorder runs, and after a power cut without
/// recovery. Reads the summaries of the segments, and only unfinished segments block by block.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Arguments {
    /// Directory of a recording, or a segment
    #[arg(required = true, value_name = "PATH")]
    path: Vec<PathBuf>,
    /// Print JSON instead of text (docs/spec/info-1.schema.json)
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<Status, Failure> {
    let stop = Interrupt::on_signals().map_err(Failure::with(Status::Failed))?;
    let survey = survey(&arguments.path, &stop)?;
    let incidents = incidents(&arguments.path).map_err(Failure::with(Status::Failed))?;
    let overview = Overview::of(&survey, &incidents).map_err(Failure::with(Status::Failed))?;
    if arguments.json {
        let json = serde_json::to_string_pretty(&overview);
        print(&(json.map_err(Failure::with(Status::Failed))? + "\n"))?;
    } else {
        print(&to_text(&overview))?;
    }
    Ok(if overview.damage.is_any() { Status::Flawed } else { Status::Done })
}

fn incidents(paths: &[PathBuf]) -> anyhow::Result<Vec<Incident>> {
    let mut incidents = Vec::new();
    for dir in distinct(paths).iter().filter(|path| path.is_dir()) {
        incidents.extend(files::read_all(dir)?);
    }
    Ok(incidents)
}

fn to_text(overview: &Overview) -> String {
    let Overview { profile, segments, messages, bytes, .. } = overview;
    let SegmentCounts { with_messages, empty, unreadable } = segments;
    let mut lines = vec![
        format!("messages:    {messages}"),
        format!("size:        {:.2} MiB", *bytes as f64 / MIB),
        format!(
            "segments:    {with_messages} with messages, {empty} empty, {unreadable} unreadable"
        ),
    ];
    if !profile.is_empty() {
        lines.insert(0, format!("profile:     {}", visible(profile)));
    }
    if let (Some(start_ns), Some(end_ns)) = (overview.start_ns, overview.end_ns) {
        lines.push(format!("duration:    {:.3} s", (end_ns - start_ns) as f64 / 1e9));
        lines.push(format!("start:       {}", time(start_ns)));
        lines.push(format!("end:         {}", time(end_ns)));
    }
    section(&mut lines, "topics", &channels(overview));
    section(&mut lines, "recordings", &recordings(&overview.recordings));
    section(&mut lines, "incidents", &incident_rows(&overview.damage.incidents));
    let damage = overview.damage.lines();
    if damage.is_empty() {
        lines.push("missing:     nothing".into());
    } else {
        lines.push("missing:".into());
        lines.extend(damage.iter().map(|line| format!("  {line}")));
    }
    lines.join("\n") + "\n"
}

/// A table under its name; the first row is the header.
fn section<const N: usize>(lines: &mut Vec<String>, name: &str, rows: &[[String; N]]) {
    if rows.len() > 1 {
        lines.push(format!("{name}:"));
        lines.extend(table::align(rows, &[0, 1, 2]).lines().map(|line| format!("  {line}")));
    }
}

fn time(ns: u64) -> String {
    let date = humantime::format_rfc3339_nanos(UNIX_EPOCH + Duration::from_nanos(ns));
    format!("{date} ({})", text(ns))
}

fn channels(overview: &Overview) -> Vec<[String; 6]> {
    let mut rows =
        vec![["topic", "schema", "encoding", "messages", "Hz", "lost"].map(String::from)];
    let times_ns = overview.start_ns.zip(overview.end_ns);
    let seconds = times_ns.map_or(0.0, |(start_ns, end_ns)| (end_ns - start_ns) as f64 / 1e9);
    for channel in &overview.channels {
        let ChannelOverview { topic, encoding, messages, lost, .. } = channel;
        let hz = if seconds > 0.0 && *messages > 1 {
            format!("{:.2}", (*messages - 1) as f64 / seconds)
        } else {
            "-".into()
        };
        let encoding = if encoding.is_empty() { "-".into() } else { visible(encoding) };
        let (schema, messages) = (visible(&schema(channel)), messages.to_string());
        rows.push([visible(topic), schema, encoding, messages, hz, lost.to_string()]);
    }
    rows
}

/// A text that a producer chose. A terminal must not obey its control characters.
fn visible(text: &str) -> String {
    let shown = |letter: char| match letter.is_control() {
        true => letter.escape_default().to_string(),
        false => letter.to_string(),
    };
    text.chars().map(shown).collect()
}

fn schema(channel: &ChannelOverview) -> String {
    let ChannelOverview { schema_name, schema_encoding, .. } = channel;
    match (schema_name.as_str(), schema_encoding.as_str()) {
        ("", _) => "-".into(),
        (name, "") => name.into(),
        (name, encoding) => format!("{name} [{encoding}]"),
    }
}

fn recordings(recordings: &[RecordingSummary]) -> Vec<[String; 5]> {
    let mut rows = vec![["id", "begun", "segments", "received", "lost"].map(String::from)];
    for recording in recordings {
        let sum = |of: fn(&ChannelAccount) -> u64| {
            recording.channels.values().map(of).sum::<u64>().to_string()
        };
        let begun = UNIX_EPOCH + Duration::from_nanos(recording.created_ns);
        rows.push([
            recording.recording_id.clone(),
            humantime::format_rfc3339_seconds(begun).to_string(),
            format!("{} to {}", recording.first_sequence, recording.last_sequence),
            sum(|account| account.received),
            sum(|account| account.lost),
        ]);
    }
    rows
}

fn incident_rows(incidents: &[IncidentSummary]) -> Vec<[String; 2]> {
    let mut rows = vec![["name", "segments"].map(String::from)];
    for IncidentSummary { name, segments, missing_segments } in incidents {
        rows.push([name.clone(), format!("{} of {segments}", segments - missing_segments)]);
    }
    rows
}
