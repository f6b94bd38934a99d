// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady recover`: completes unfinished recordings.
//!
//! The work is in `steadyio_recorder::mcap`; this prints its results.

use std::cell::RefCell;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::{Value, json};
use steadyio_core::diagnostic;
use steadyio_recorder::audit::{self, Loss, manifest};
use steadyio_recorder::mcap::account::Gaps;
use steadyio_recorder::mcap::files::{
    DirectoryLock, FilesError, NO_DEFINITIONS, ReadLimit, Recovered, WIPED, audited, distinct,
    examine_file, lock_directory, recordings, recover_segment, set_aside,
};
use steadyio_recorder::mcap::private::Life;
use steadyio_recorder::mcap::recover::{ChannelFound, Contents, State};

use crate::exit::{Failure, Status};
use crate::output::{print, print_done};
use crate::progress::Pace;
use crate::table;

/// The interval of checks whether a line is due.
const LOOK_EVERY: Duration = Duration::from_millis(200);
const SCHEMA: &str = "steadyio.recover/1";

const HELP: &str = "Exit status: 0 all files are finished, unused or blank; 1 a file is in use, \
unreadable or not completed; 2 usage error; 3 a file is damaged, partly unreadable, lacks durable \
blocks, or is incomplete (--dry-run).";

/// Complete recordings in place after a power cut or a crash
///
/// Takes segments of `steady record` or libsteadyio. Keeps every whole block, and adds the missing
/// summary and footer. Leaves other MCAP files as they are: one without an end needs the project
/// MCAP's own `mcap recover`. Interrupting and repeating the command is safe.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Arguments {
    /// MCAP file, or a directory: all its *.mcap files and segments
    #[arg(required = true, value_name = "PATH")]
    path: Vec<PathBuf>,
    /// Print the state of each file and the planned changes, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Read all finished files completely, and verify the checksum of each block; otherwise files
    /// are read for one second, at least 64 MiB of them
    #[arg(long)]
    verify: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

struct Outcome {
    /// The present path.
    path: PathBuf,
    result: Result<Recovered, FilesError>,
}

pub fn run(arguments: &Arguments) -> Result<Status, Failure> {
    let named = distinct(&arguments.path);
    let paths = files(&named).map_err(Failure::with(Status::Usage))?;
    let locks = if arguments.dry_run {
        Vec::new()
    } else {
        lock_all(&paths).map_err(Failure::with(Status::Failed))?
    };
    let limit = RefCell::new(ReadLimit::default());
    let verify = |path: &Path| arguments.verify || limit.borrow_mut().takes(path);
    let examine = |path: &Path| Ok((path.into(), examine_file(path, verify(path))?));
    let recover = |path: &Path| recover_segment(path, verify(path));
    let outcomes = if arguments.dry_run { each(paths, examine) } else { each(paths, recover) };
    let losses = losses(&named, &outcomes);
    drop(locks);
    let text = match arguments.json {
        true => format!("{:#}\n", document(&outcomes, &losses)),
        false => render(&outcomes),
    };
    if arguments.dry_run {
        print(&text)?
    } else {
        print_done(&text)
    }
    for said in outcomes.iter().filter_map(trouble) {
        diagnostic!("steady: {said}");
    }
    let is_unread =
        |outcome: &&Outcome| outcome.result.as_ref().is_ok_and(|one| one.found.is_unread());
    let unread = outcomes.iter().filter(is_unread).count();
    if unread > 0 {
        diagnostic!("steady: {unread} finished files were not checked for damage: use --verify");
    }
    for loss in &losses {
        diagnostic!("steady: {}", loss.describe());
    }
    let lists: Vec<PathBuf> = named.iter().filter_map(|path| manifest::damaged(path)).collect();
    for path in &lists {
        diagnostic!("steady: {}: {}", path.display(), manifest::DAMAGED);
    }
    Ok(match status(&outcomes) {
        Status::Done if losses.len() + lists.len() > 0 => Status::Flawed,
        status => status,
    })
}

/// The losses found by comparing the segments of each directory, and those that single files show.
fn losses(paths: &[PathBuf], outcomes: &[Outcome]) -> Vec<Loss> {
    let audited = |outcome: &&Outcome| audited(&outcome.path, outcome.result.as_ref());
    let mut losses = Vec::new();
    for path in paths {
        let of_path = |outcome: &&Outcome| {
            outcome.path == *path || outcome.path.parent() == Some(path.as_path())
        };
        let mut found: Vec<_> =
            outcomes.iter().filter(of_path).filter_map(|one| audited(&one)).collect();
        let list = if path.is_dir() { manifest::read(path) } else { None };
        if !audit::losses(&found, list.as_ref()).is_empty() {
            found.extend(set_aside(path));
        }
        losses.extend(audit::losses(&found, list.as_ref()));
    }
    losses
}

/// Handles one file after the other, with progress: a large one on a slow device takes minutes.
fn each(
    paths: Vec<PathBuf>,
    act: impl Fn(&Path) -> Result<(PathBuf, Recovered), FilesError>,
) -> Vec<Outcome> {
    let (files, done) = (paths.len(), AtomicUsize::new(0));
    let (end, ended) = sync_channel::<()>(0);
    thread::scope(|scope| {
        let now_done = &done;
        scope.spawn(move || {
            let (began, mut pace) = (Instant::now(), Pace::new());
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(LOOK_EVERY) {
                if pace.is_due(began.elapsed()) {
                    let (done, seconds) =
                        (now_done.load(Ordering::Relaxed), began.elapsed().as_secs());
                    diagnostic!("steady: {done} of {files} files done in {seconds} s");
                }
            }
        });
        let outcome = |path: PathBuf| {
            let outcome = match act(&path) {
                Ok((path, recovered)) => Outcome { path, result: Ok(recovered) },
                Err(error) => Outcome { path, result: Err(error) },
            };
            done.fetch_add(1, Ordering::Relaxed);
            outcome
        };
        let outcomes = paths.into_iter().map(outcome).collect();
        drop(end);
        outcomes
    })
}

fn files(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        let metadata = fs::metadata(path).with_context(|| path.display().to_string())?;
        if metadata.is_dir() {
            files.append(&mut recordings(path)?)
        } else {
            files.push(path.clone())
        }
    }
    Ok(files)
}

/// Locks each directory once; a second lock would fail.
fn lock_all(files: &[PathBuf]) -> Result<Vec<DirectoryLock>, FilesError> {
    let directory = |file: &PathBuf| match file.parent() {
        Some(parent) if parent != Path::new("") => parent.to_path_buf(),
        _ => PathBuf::from("."),
    };
    let mut directories: Vec<PathBuf> = files.iter().map(directory).collect();
    directories.iter_mut().for_each(|path| *path = path.canonicalize().unwrap_or(path.clone()));
    directories.sort();
    directories.dedup();
    directories.iter().map(|path| lock_directory(path)).collect()
}

fn status(outcomes: &[Outcome]) -> Status {
    let flawed = |recovered: &Recovered| {
        let found = &recovered.found;
        found.damaged
            || recovered.wiped
            || found.gaps.durable_blocks > 0
            || found.state.is_incomplete()
    };
    if outcomes.iter().any(|outcome| outcome.result.is_err()) {
        Status::Failed
    } else if outcomes.iter().flat_map(|outcome| &outcome.result).any(flawed) {
        Status::Flawed
    } else {
        Status::Done
    }
}

/// A message that does not fit into the table.
fn trouble(outcome: &Outcome) -> Option<String> {
    let path = outcome.path.display();
    let found = match &outcome.result {
        Err(error) => return Some(error.to_string()),
        Ok(recovered) if recovered.wiped => return Some(format!("{path}: {WIPED}")),
        Ok(recovered) => &recovered.found,
    };
    let Gaps { blocks, bytes, durable_blocks } = found.gaps;
    if let Some(unreadable) = found.unreadable {
        Some(format!(
            "{path}: {unreadable}: it was not changed; {blocks} blocks are known to be missing, and \
             steady export takes the others"
        ))
    } else if found.state == State::Damaged {
        Some(format!("{path}: {NO_DEFINITIONS}"))
    } else if durable_blocks > 0 {
        Some(format!(
            "{path}: is damaged: {blocks} blocks, {bytes} bytes, are missing; {durable_blocks} of \
             the blocks had been durable"
        ))
    } else {
        None
    }
}

fn verdict(recovered: &Recovered) -> &'static str {
    match (recovered.completed, recovered.found.damaged) {
        (true, _) => "completed",
        (false, true) => "damaged",
        (false, false) => recovered.found.state.describe(),
    }
}

fn messages(contents: &Contents) -> u64 {
    contents.channels.iter().map(|channel| channel.messages).sum()
}

/// The number of lost messages since the recording began.
fn lost(contents: &Contents) -> u64 {
    contents.channels.iter().map(|channel| channel.ledger.lost).sum()
}

const HEAD: [&str; 7] = ["file", "state", "segment", "messages", "lost", "from s", "to s"];

fn render(outcomes: &[Outcome]) -> String {
    let mut rows = vec![HEAD.map(String::from)];
    for Outcome { path, result } in outcomes {
        let file = path.display().to_string();
        rows.push(match result {
            Ok(recovered) => row(file, recovered),
            Err(_) => cells([Some(file), Some("failed".into()), None, None, None, None, None]),
        });
    }
    table::align(&rows, &[0, 1])
}

fn row(file: String, recovered: &Recovered) -> [String; 7] {
    let found = &recovered.found;
    let contents = found.contents.as_ref();
    let times = contents.filter(|contents| messages(contents) > 0).map(|found| found.times_ns);
    cells([
        Some(file),
        Some(verdict(recovered).into()),
        found.life.map(|life| life.identity.sequence.to_string()),
        contents.map(|contents| messages(contents).to_string()),
        contents.map(|contents| lost(contents).to_string()),
        times.map(|(start_ns, _)| seconds(start_ns)),
        times.map(|(_, end_ns)| seconds(end_ns)),
    ])
}

fn cells(cells: [Option<String>; 7]) -> [String; 7] {
    cells.map(|cell| cell.unwrap_or("-".into()))
}

fn seconds(ns: u64) -> String {
    format!("{}.{:06}", ns / 1_000_000_000, ns % 1_000_000_000 / 1_000)
}

fn document(outcomes: &[Outcome], losses: &[Loss]) -> Value {
    let files: Vec<Value> = outcomes.iter().map(file).collect();
    json!({
        "schema": SCHEMA,
        "tool": { "steady": env!("CARGO_PKG_VERSION") },
        "files": files,
        "losses": losses.iter().map(loss).collect::<Vec<_>>(),
    })
}

fn loss(Loss { place, messages, at_most, .. }: &Loss) -> Value {
    json!({ "place": place, "messages": messages, "at_most": at_most })
}

fn file(outcome: &Outcome) -> Value {
    let path = outcome.path.display().to_string();
    let recovered = match &outcome.result {
        Ok(recovered) => recovered,
        Err(error) => return json!({ "path": path, "error": error.to_string() }),
    };
    let found = &recovered.found;
    json!({
        "path": path,
        "before": recovered.before.describe(),
        "after": found.state.describe(),
        "completed": recovered.completed,
        "damaged": found.damaged,
        "missing": {
            "blocks": found.gaps.blocks,
            "bytes": found.gaps.bytes,
            "durable_blocks": found.gaps.durable_blocks,
        },
        "unreadable_bytes": found.unreadable.map_or(0, |unreadable| unreadable.bytes),
        "segment": found.life.as_ref().map(segment),
        "data_ends_at": found.stop.map(|stop| stop.describe()),
        "contents": found.contents.as_ref().map(contents),
    })
}

fn segment(life: &Life) -> Value {
    let hex = life.identity.recording_id.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    });
    json!({
        "recording_id": hex,
        "sequence": life.identity.sequence,
        "created_ns": life.created_ns,
        "segment_bytes": life.segment_bytes,
    })
}

fn contents(contents: &Contents) -> Value {
    json!({
        "messages": messages(contents),
        "chunks": contents.chunks,
        "start_ns": contents.times_ns.0,
        "end_ns": contents.times_ns.1,
        "data_bytes": contents.data_end,
        "channels": contents.channels.iter().map(channel).collect::<Vec<_>>(),
    })
}

fn channel(channel: &ChannelFound) -> Value {
    let ledger = channel.ledger;
    let ledger = json!({
        "received": ledger.received,
        "written": ledger.written,
        "durable": ledger.durable,
        "lost": ledger.lost,
        "lost_bytes": ledger.lost_bytes,
        "lost_first_ns": ledger.lost_first_ns,
        "lost_last_ns": ledger.lost_last_ns,
    });
    let digest = channel.digest.map(|digest| {
        json!({
            "payload_bytes": digest.payload_bytes,
            "payload_crc32": digest.payload_crc32,
            "sequence_first": digest.sequence_first,
            "sequence_last": digest.sequence_last,
            "sequence_gaps": digest.sequence_gaps,
        })
    });
    json!({
        "id": channel.id,
        "topic": channel.topic,
        "messages": channel.messages,
        "ledger": ledger,
        "digest": digest,
    })
}
