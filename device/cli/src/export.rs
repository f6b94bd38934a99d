// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady export`: one MCAP file out of the segments of a recording.

use std::fs;
use std::io::{self, Seek};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, UNIX_EPOCH};

use anyhow::{Context, anyhow, bail, ensure};
use steadyio_core::diagnostic;
use steadyio_core::interrupt::Interrupt;
use steadyio_export::export::{Compression, Export, ExportError};
use steadyio_export::merge::HELD_BYTES_MAX;
use steadyio_export::selection::{Selection, TopicPattern};
use steadyio_export::summary::{IncidentSummary, LossSummary, Summary};
use steadyio_export::survey::{Survey, SurveyError};
use steadyio_recorder::incident::files;
use steadyio_recorder::mcap::names::is_segment;

use crate::exit::{Failure, Status};
use crate::output::print;
use crate::progress::Pace;
use crate::quantity::duration;
use crate::record_file::RecordFile;

const NS_PER_S: u64 = 1_000_000_000;
const MIB: f64 = 1_048_576.0;

const HELP: &str = "Exit status: 0 success; 1 failure, or nothing selected; 2 usage error; 3 \
finished, but durable data is missing (damaged blocks or segments, or data that a recorder has \
overwritten); 130 interrupted. Only status 0 and 3 leave an output file.";

/// Merge a recording's segments into one compressed MCAP file, sorted by log time
///
/// Changes nothing and takes no lock. Works while a recorder runs, and after a power cut without
/// recovery. Exports every whole block of the segments. If a recorder runs, this includes at least
/// all blocks that were durable when the export began.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Arguments {
    /// Directory of a recording, or a segment
    #[arg(required = true, value_name = "PATH")]
    path: Vec<PathBuf>,
    /// Output file; an existing file is replaced when the export is complete
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Export only these topics; * matches any characters [default: all]
    #[arg(long, value_name = "TOPIC", num_args = 1..)]
    topics: Vec<String>,
    /// Start log time: seconds since 1970, a time such as 2026-01-31T12:00:00Z, or -10min for 10
    /// minutes before the last message
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    from: Option<Time>,
    /// End log time, exclusive
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    to: Option<Time>,
    /// Export only the segments that this incident keeps, see steady incidents
    #[arg(long, value_name = "NAME")]
    incident: Option<String>,
    /// Compression of the chunks: lz4 takes less CPU time, zstd less space
    #[arg(long, default_value = "zstd", value_parser = ["zstd", "lz4", "none"])]
    compression: String,
    /// Print JSON instead of text (docs/spec/export-1.schema.json)
    #[arg(long)]
    json: bool,
}

/// A log time on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Time {
    AtNs(u64),
    BeforeTheLast(Duration),
}

impl Time {
    fn ns(self, last_ns: u64) -> u64 {
        match self {
            Time::AtNs(ns) => ns,
            Time::BeforeTheLast(time) => last_ns.saturating_sub(time.as_nanos() as u64),
        }
    }
}

fn time(text: &str) -> Result<Time, String> {
    if let Some(before) = text.strip_prefix('-') {
        return duration(before).map(Time::BeforeTheLast);
    }
    if let Ok(time) = humantime::parse_rfc3339(text) {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        return u64::try_from(since.as_nanos()).map(Time::AtNs).map_err(|error| error.to_string());
    }
    seconds(text).map(Time::AtNs).ok_or_else(|| {
        "must be seconds since 1970, a time in UTC such as 2026-01-31T12:00:00Z, or -10min".into()
    })
}

/// With at most nine decimals, in ns.
fn seconds(text: &str) -> Option<u64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(decimals) || decimals.len() > 9 {
        return None;
    }
    let ns: u64 = format!("{decimals:0<9}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(NS_PER_S)?.checked_add(ns)
}

pub fn run(arguments: &Arguments) -> Result<Status, Failure> {
    let stop = Interrupt::on_signals().map_err(Failure::with(Status::Failed))?;
    check_output(&arguments.output).map_err(Failure::with(Status::Usage))?;
    let mut survey = survey(&arguments.path, &stop)?;
    if let Some(name) = &arguments.incident {
        let chosen = choose(&mut survey, &arguments.path, name);
        chosen.map_err(Failure::with(Status::Usage))?;
    }
    check_is_no_segment(&arguments.output, &survey).map_err(Failure::with(Status::Usage))?;
    let (first_ns, last_ns) =
        survey.times_ns().ok_or_else(|| empty(&survey)).map_err(Failure::with(Status::Failed))?;
    let counted_from_ns = survey.last_ns().unwrap_or(last_ns);
    let selection =
        arguments.selection(&survey, counted_from_ns).map_err(Failure::with(Status::Usage))?;
    let summary = write(arguments, &survey, &selection, &stop).map_err(|failure| {
        let source = match failure.source.downcast_ref() {
            Some(ExportError::Nothing) => nothing_between(&selection, first_ns, last_ns),
            _ => failure.source,
        };
        Failure { source, ..failure }
    })?;
    let json = serde_json::to_string_pretty(&summary).map_err(Failure::with(Status::Failed))?;
    let text = to_text(&arguments.output, &summary);
    print(&if arguments.json { json + "\n" } else { text })?;
    tell(&summary);
    Ok(if summary.is_damaged() { Status::Flawed } else { Status::Done })
}

fn survey(paths: &[PathBuf], stop: &Interrupt) -> Result<Survey, Failure> {
    let (began, mut pace) = (Instant::now(), Pace::new());
    let mut progress = |done: usize, all: usize| {
        if pace.is_due(began.elapsed()) {
            let seconds = began.elapsed().as_secs();
            diagnostic!("steady: looked at {done} of {all} segments in {seconds} s");
        }
    };
    Survey::of(paths, stop, &mut progress).map_err(|error| {
        let status = match error {
            SurveyError::Interrupted => Status::Interrupted,
            _ => Status::Usage,
        };
        Failure { status, source: error.into() }
    })
}

/// What one incident keeps.
fn choose(survey: &mut Survey, paths: &[PathBuf], name: &str) -> anyhow::Result<()> {
    let incidents = paths.iter().map(|path| files::read(path, name));
    let incidents = incidents.collect::<Result<Vec<_>, _>>().context("--incident")?;
    survey.only(&incidents);
    Ok(())
}

impl Arguments {
    fn selection(&self, survey: &Survey, last_ns: u64) -> anyhow::Result<Selection> {
        let from_ns = self.from.map_or(0, |time| time.ns(last_ns));
        let to_ns = self.to.map_or(u64::MAX, |time| time.ns(last_ns));
        ensure!(from_ns < to_ns, "--from {}: must be before --to {}", text(from_ns), text(to_ns));
        let topics = self.topics.iter().map(|topic| TopicPattern::new(topic)).collect();
        let selection = Selection { topics, times_ns: from_ns..to_ns };
        if let Some(unknown) = selection.unknown_topic(&survey.topics) {
            let known: Vec<&str> = survey.topics.iter().map(String::as_str).collect();
            bail!("--topics {unknown}: no such topic; must be one of {}", known.join(", "));
        }
        Ok(selection)
    }

    fn compression(&self) -> Compression {
        match self.compression.as_str() {
            "lz4" => Compression::Lz4,
            "none" => Compression::None,
            _ => Compression::Zstd,
        }
    }
}

/// Nothing but a regular file is ever replaced.
fn check_output(path: &Path) -> anyhow::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => {
            bail!("--output {}: exists and is not a regular file", path.display())
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(anyhow!("--output {}: {error}", path.display())),
    }
}

/// Nor a file of the pool, nor anything that a recorder would take for one.
fn check_is_no_segment(path: &Path, survey: &Survey) -> anyhow::Result<()> {
    let named_so = path.file_name().is_some_and(is_segment);
    let is_same = |segment: &Path| {
        let inode = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
        inode(segment).is_some() && inode(segment) == inode(path)
    };
    let is_segment = survey.segments.iter().any(|segment| is_same(&segment.path));
    ensure!(
        !named_so && !is_segment,
        "--output {}: is a segment, or has the name of one: give another name",
        path.display()
    );
    Ok(())
}

fn empty(survey: &Survey) -> anyhow::Error {
    match survey.unreadable.first() {
        Some(first) => anyhow!("no segment can be read; {}: {}", first.path.display(), first.why),
        None => anyhow!("nothing was recorded: all {} segments are empty", survey.empty),
    }
}

fn nothing_between(selection: &Selection, first_ns: u64, last_ns: u64) -> anyhow::Error {
    let topics = if selection.topics.is_empty() { "" } else { " of these topics" };
    anyhow!(
        "no message{topics} from {} to {}: the recording has log times from {} to {}",
        text(selection.times_ns.start),
        text(selection.times_ns.end),
        text(first_ns),
        text(last_ns)
    )
}

fn write(
    arguments: &Arguments,
    survey: &Survey,
    selection: &Selection,
    stop: &Interrupt,
) -> Result<Summary, Failure> {
    let output = &arguments.output;
    let context = || format!("--output {}", output.display());
    let file = RecordFile::create(output).with_context(context);
    let file = file.map_err(Failure::with(Status::Usage))?;
    let (began, mut pace) = (Instant::now(), Pace::new());
    let mut progress = |done: u64, all: u64| {
        if pace.is_due(began.elapsed()) {
            let (done, all) = (done as f64 / MIB, all as f64 / MIB);
            let seconds = began.elapsed().as_secs();
            diagnostic!("steady: read {done:.0} of {all:.0} MiB in {seconds} s");
        }
    };
    let export = Export {
        survey,
        selection,
        compression: arguments.compression(),
        held_bytes_max: HELD_BYTES_MAX,
        stop,
        progress: &mut progress,
    };
    let filled = file.fill(|out| -> anyhow::Result<Summary> {
        let mut summary = export.write(&mut *out)?;
        summary.bytes = out.stream_position()?;
        Ok(summary)
    });
    filled.map_err(|source| {
        let status = match source.downcast_ref() {
            Some(ExportError::Interrupted) => Status::Interrupted,
            _ => Status::Failed,
        };
        let of_output = match source.downcast_ref() {
            Some(ExportError::Write(_) | ExportError::Mcap(_)) => true,
            of_export => of_export.is_none(),
        };
        let source = if of_output { source.context(context()) } else { source };
        Failure { status, source }
    })
}

fn to_text(path: &Path, summary: &Summary) -> String {
    let topics = summary.channels.iter().filter(|channel| channel.messages > 0).count();
    let late = match summary.out_of_order {
        0 => String::new(),
        late => format!("; {late} stand behind later ones, but the index has their order"),
    };
    format!(
        "{}: {} messages of {topics} topics, log times {} to {}, {:.2} MiB ({}){late}\n",
        path.display(),
        summary.messages,
        text(summary.start_ns),
        text(summary.end_ns),
        summary.bytes as f64 / MIB,
        summary.compression,
    )
}

/// What is missing, on standard error.
fn tell(summary: &Summary) {
    for line in summary.missing.damage() {
        diagnostic!("steady: {line}");
    }
    for LossSummary { place, messages, at_most } in &summary.losses {
        let at_most = if *at_most { "at most " } else { "" };
        diagnostic!("steady: {place}: {at_most}{messages} messages are missing");
    }
    for IncidentSummary { name, segments, missing_segments } in &summary.incidents {
        if *missing_segments > 0 {
            diagnostic!(
                "steady: incident {name}: {missing_segments} of {segments} segments are missing"
            );
        }
    }
    for unreadable in &summary.unreadable {
        diagnostic!("steady: {}: {}; it is left out", unreadable.path, unreadable.why);
    }
}

/// A log time as `steady recover` has it.
fn text(ns: u64) -> String {
    match ns {
        u64::MAX => "the end".into(),
        ns => format!("{}.{:06}", ns / NS_PER_S, ns % NS_PER_S / 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_seconds_or_a_date_or_before_the_last_message() {
        for (text, found) in [
            ("12", Time::AtNs(12 * NS_PER_S)),
            ("12.5", Time::AtNs(12_500_000_000)),
            ("0.000000001", Time::AtNs(1)),
            ("1970-01-01T00:01:00.5Z", Time::AtNs(60_500_000_000)),
            ("-10min", Time::BeforeTheLast(Duration::from_secs(600))),
        ] {
            assert_eq!(time(text), Ok(found), "{text}");
        }
        for text in ["", "yesterday", "1.0000000001", "-5", "99999999999999", "1e9"] {
            assert!(time(text).is_err(), "{text}");
        }
        assert_eq!(Time::BeforeTheLast(Duration::from_secs(2)).ns(5 * NS_PER_S), 3 * NS_PER_S);
    }
}
