// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady incidents`: lists, keeps and releases the incidents of a pool.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, anyhow};
use clap::Subcommand;
use serde_json::{Value, json};
use steadyio_recorder::control::client::{ask, ask_within, patience_to_keep};
use steadyio_recorder::incident::{Incident, Kept, files};
use steadyio_recorder::mcap::files::{FilesError, lock_directory, recordings};
use steadyio_recorder::mcap::private::Identity;
use steadyio_recorder::mcap::reading::life;

use crate::exit::{Failure, Status};
use crate::output::{print, print_done};
use crate::quantity::duration;
use crate::table;

const SCHEMA: &str = "steadyio.incidents/1";

const HELP: &str = "Exit status: 0 success; 1 failure or rejection; 2 usage error; 3 kept, but \
part of the requested time is missing or not durable, or a listed incident lacks segments. `steady \
export DIR --incident NAME` makes one MCAP file of an incident.";

/// Protect the most recent recorded data from being overwritten, until released
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List the incidents of a recording, even while a recorder runs
    #[command(after_help = HELP)]
    List {
        /// Directory of the recording
        #[arg(value_name = "DIR")]
        dir: PathBuf,
        /// Print JSON instead of a table (docs/spec/incidents-1.schema.json)
        #[arg(long)]
        json: bool,
    },
    /// Ask a running recorder to keep the segments of the last TIME
    #[command(after_help = HELP)]
    Keep {
        /// Name of the new incident: letters, digits, '.', '_' and '-'
        #[arg(value_name = "NAME")]
        name: String,
        /// Control socket of the recorder, see steady record --control
        #[arg(long, value_name = "PATH")]
        control: PathBuf,
        /// Time span to keep, ending now; with steady record --ram, ending --incident-after later
        #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
        last: Duration,
        /// Print JSON instead of text (the recorder's answer, docs/spec/control-1.md)
        #[arg(long)]
        json: bool,
    },
    /// Release an incident, so that its segments may be overwritten
    #[command(after_help = HELP)]
    Release {
        /// Name of the incident
        #[arg(value_name = "NAME")]
        name: String,
        /// Control socket of the running recorder, see steady record --control
        #[arg(long, value_name = "PATH", group = "where", required = true)]
        control: Option<PathBuf>,
        /// Directory of the recording, if no recorder runs
        #[arg(long, value_name = "DIR", group = "where")]
        dir: Option<PathBuf>,
        /// Print JSON instead of text (docs/spec/control-1.md)
        #[arg(long)]
        json: bool,
    },
}

pub fn run(arguments: &Arguments) -> Result<Status, Failure> {
    match &arguments.action {
        Action::List { dir, json } => list(dir, *json),
        Action::Keep { name, control, last, json } => keep(name, control, *last, *json),
        Action::Release { name, control: Some(control), json, .. } => {
            let request = json!({ "do": "release-incident", "name": name });
            let answer = ask(control, &request).map_err(Failure::with(Status::Failed))?;
            tell_released(name, &answer, *json)
        }
        Action::Release { name, dir, json, .. } => {
            let dir = dir.as_deref().unwrap_or(Path::new("."));
            release(dir, name).map_err(Failure::with(Status::Failed))?;
            tell_released(name, &json!({ "schema": "steadyio.control/1", "released": name }), *json)
        }
    }
}

fn keep(name: &str, control: &Path, last: Duration, as_json: bool) -> Result<Status, Failure> {
    let request = json!({ "do": "keep-incident", "name": name, "last_s": last.as_secs_f64() });
    let patience = patience_to_keep(control).map_err(Failure::with(Status::Failed))?;
    let answer = ask_within(control, &request, patience).map_err(Failure::with(Status::Failed))?;
    let kept: Kept = serde_json::from_value(answer.clone())
        .context("the recorder is of another version")
        .map_err(Failure::with(Status::Failed))?;
    print_done(&if as_json { format!("{answer:#}\n") } else { format!("{kept}\n") });
    Ok(if kept.is_whole() { Status::Done } else { Status::Flawed })
}

/// Releases an incident under the lock of the directory, so that no recorder is about to use its
/// segments.
fn release(dir: &Path, name: &str) -> anyhow::Result<()> {
    let _lock = lock_directory(dir).map_err(|error| match error {
        FilesError::Busy(_) => {
            anyhow!("{}: in use by a recorder (release {name} with --control PATH)", dir.display())
        }
        error => error.into(),
    })?;
    Ok(files::remove(dir, name)?)
}

fn tell_released(name: &str, answer: &Value, as_json: bool) -> Result<Status, Failure> {
    let text = format!("incident {name}: released\n");
    print_done(&if as_json { format!("{answer:#}\n") } else { text });
    Ok(Status::Done)
}

/// An incident, and the number of its segments in the pool.
type Found = (Incident, usize);

fn list(dir: &Path, as_json: bool) -> Result<Status, Failure> {
    let found = find(dir).map_err(Failure::with(Status::Failed))?;
    if found.is_empty() && matches!(recordings(dir), Err(FilesError::NoFiles(_))) {
        let place = dir.display();
        let text = "no recording here (name the directory of steady record --dir)";
        return Err(Failure::with(Status::Failed)(anyhow!("{place}: {text}")));
    }
    print(&if as_json { to_json(&found) } else { to_text(dir, &found) })?;
    let whole = |(incident, there): &Found| *there == incident.segments.len();
    Ok(if found.iter().all(whole) { Status::Done } else { Status::Flawed })
}

fn find(dir: &Path) -> anyhow::Result<Vec<Found>> {
    let incidents = files::read_all(dir)?;
    let lives = lives(dir)?;
    let with_count = |incident: Incident| {
        let there = lives.iter().filter(|life| incident.holds(life)).count();
        (incident, there)
    };
    Ok(incidents.into_iter().map(with_count).collect())
}

/// The lives of the segments, except damaged ones.
fn lives(dir: &Path) -> anyhow::Result<Vec<Identity>> {
    let paths = match recordings(dir) {
        Err(FilesError::NoFiles(_)) => Vec::new(),
        found => found?,
    };
    let read = |path: PathBuf| life(&File::open(path).ok()?).ok()?;
    Ok(paths.into_iter().filter_map(read).map(|life| life.identity).collect())
}

fn to_json(found: &[Found]) -> String {
    let one = |(incident, there): &Found| {
        let covered_ns = incident.covered_ns();
        json!({ "incident": incident, "covered_ns": covered_ns, "segments_there": there })
    };
    let incidents: Vec<Value> = found.iter().map(one).collect();
    format!("{:#}\n", json!({ "schema": SCHEMA, "incidents": incidents }))
}

fn to_text(dir: &Path, found: &[Found]) -> String {
    if found.is_empty() {
        return format!("{}: no incidents\n", dir.display());
    }
    let mut rows = vec![["name", "taken", "asked", "there", "segments"].map(String::from)];
    for (incident, there) in found {
        let taken = UNIX_EPOCH + Duration::from_nanos(incident.to_ns);
        let seconds = |ns: u64| format!("{:.1} s", ns as f64 / 1e9);
        rows.push([
            incident.name.clone(),
            humantime::format_rfc3339_seconds(taken).to_string(),
            seconds(incident.asked_ns),
            seconds(incident.covered_ns()),
            format!("{there} of {}", incident.segments.len()),
        ]);
    }
    table::align(&rows, &[0, 1])
}
