// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options of `export` and `cat` that select messages of a recording.

use std::path::PathBuf;
use std::time::{Duration, Instant, UNIX_EPOCH};

use anyhow::{Context, anyhow, bail, ensure};
use steadyio_core::diagnostic;
use steadyio_core::interrupt::Interrupt;
use steadyio_export::selection::Selection;
use steadyio_export::summary::Damage;
use steadyio_export::survey::{Survey, SurveyError};
use steadyio_recorder::audit::Loss;
use steadyio_recorder::incident::files;
use steadyio_recorder::mcap::files::distinct;
use steadyio_recorder::stream::filter::TopicPattern;

use crate::exit::{Failure, Status};
use crate::progress::Pace;
use crate::quantity::duration;

const NS_PER_S: u64 = 1_000_000_000;

/// Topics, times and incident.
#[derive(clap::Args)]
pub struct SelectionArguments {
    /// Take only these topics; * matches any characters [default: all]
    #[arg(long, value_name = "TOPIC", num_args = 1..)]
    topics: Vec<String>,
    /// Start log time: seconds since 1970, a time such as 2026-01-31T12:00:00Z, or -10min for 10
    /// minutes before the last message
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    from: Option<Time>,
    /// End log time, exclusive
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    to: Option<Time>,
    /// Take only the segments that this incident keeps, see steady incidents
    #[arg(long, value_name = "NAME")]
    incident: Option<String>,
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

/// Parses a number with at most nine decimals, in ns.
fn seconds(text: &str) -> Option<u64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(decimals) || decimals.len() > 9 {
        return None;
    }
    let ns: u64 = format!("{decimals:0<9}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(NS_PER_S)?.checked_add(ns)
}

pub fn survey(paths: &[PathBuf], stop: &Interrupt) -> Result<Survey, Failure> {
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

/// Limits the survey to the segments that this incident keeps.
fn only_incident(survey: &mut Survey, paths: &[PathBuf], name: &str) -> anyhow::Result<()> {
    let paths = distinct(paths);
    let incidents = paths.iter().map(|path| files::read(path, name));
    let incidents = incidents.collect::<Result<Vec<_>, _>>().context("--incident")?;
    survey.only(&incidents);
    Ok(())
}

/// The segments to read, and the selection of their messages.
pub struct Chosen {
    pub survey: Survey,
    pub selection: Selection,
    /// The earliest and the latest log time of the segments.
    times_ns: (u64, u64),
}

impl Chosen {
    /// The error for a selection without a message.
    pub fn nothing(&self) -> anyhow::Error {
        let Selection { topics, times_ns } = &self.selection;
        let topics = if topics.is_empty() { "" } else { " of these topics" };
        anyhow!(
            "no message{topics} from {} to {}: the recording has log times from {} to {}",
            text(times_ns.start),
            text(times_ns.end),
            text(self.times_ns.0),
            text(self.times_ns.1)
        )
    }
}

impl SelectionArguments {
    /// Surveys the segments of these paths.
    pub fn choose(&self, paths: &[PathBuf], stop: &Interrupt) -> Result<Chosen, Failure> {
        let mut survey = survey(paths, stop)?;
        if let Some(name) = &self.incident {
            only_incident(&mut survey, paths, name).map_err(Failure::with(Status::Usage))?;
        }
        let times_ns = survey.times_ns().ok_or_else(|| empty(&survey));
        let times_ns = times_ns.map_err(Failure::with(Status::Failed))?;
        let last_ns = survey.last_ns().unwrap_or(times_ns.1);
        let selection = self.selection(&survey, last_ns).map_err(Failure::with(Status::Usage))?;
        Ok(Chosen { survey, selection, times_ns })
    }

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
}

fn empty(survey: &Survey) -> anyhow::Error {
    let losses: Vec<String> = survey.losses.iter().map(Loss::describe).collect();
    match survey.unreadable.first() {
        Some(first) => anyhow!("no segment can be read; {}: {}", first.path.display(), first.why),
        None if losses.is_empty() => {
            anyhow!("nothing was recorded: all {} segments are empty", survey.empty)
        }
        None => anyhow!("no message is left: {}", losses.join("; ")),
    }
}

/// Prints all losses on standard error.
pub fn tell(damage: &Damage) {
    for line in damage.lines() {
        diagnostic!("steady: {line}");
    }
}

/// A log time in the form of `steady recover`.
pub fn text(ns: u64) -> String {
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
