// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces made elsewhere: what each file is, and its events.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use steadyio::interrupt::Interrupt;
use steadyio::trace::source::text::Text;
use steadyio::trace::source::{ftrace_text, perf_script};

use super::arguments::{Arguments, Format};
use super::family::Family;
use super::reading::{Found, Reading};
use crate::exit::{Failure, Status};

/// So much of a file is looked at to tell what it is.
const HEAD_BYTES: u64 = 1 << 18;
/// The formats of text.
const TEXTS: [Format; 2] = [Format::Ftrace, Format::Perf];

/// Reads all files, one behind the other.
pub fn read(arguments: &Arguments, stop: &Interrupt) -> Result<(Found, Status), Failure> {
    let mut reading = Reading::new(arguments.pid.map(Family::of));
    let mut ended = Status::Done;
    for path in &arguments.files {
        let format = format(path, arguments.format).map_err(Failure::with(Status::Usage))?;
        let file = open(path).map_err(Failure::with(Status::Usage))?;
        let text = text(format, BufReader::new(file), &path.display().to_string());
        if !reading.take_all(text, stop) {
            ended = Status::Interrupted;
            break;
        }
    }
    let found = reading.finish();
    match (found.trace.account.events, found.problems.kept()) {
        (0, [problem, ..]) => {
            Err(Failure::with(Status::Usage)(anyhow!("no event could be read: {problem}")))
        }
        _ => Ok((found, ended)),
    }
}

fn open(path: &Path) -> anyhow::Result<File> {
    File::open(path).with_context(|| path.display().to_string())
}

fn text<'a>(format: Format, reader: impl BufRead + 'a, name: &str) -> Text<'a> {
    match format {
        Format::Ftrace => ftrace_text::read(reader, name),
        Format::Perf => perf_script::read(reader, name),
    }
}

/// What it is said to be, or else what its beginning is.
fn format(path: &Path, said: Option<Format>) -> anyhow::Result<Format> {
    if let Some(format) = said {
        return Ok(format);
    }
    let mut head = Vec::new();
    let read = open(path)?.take(HEAD_BYTES).read_to_end(&mut head);
    read.with_context(|| path.display().to_string())?;
    match detect(&head) {
        Some(format) => Ok(format),
        None => bail!(
            "{}: is no trace that is known: ftrace's text (trace, trace_pipe, trace-cmd report) or \
             perf script's; --format says what it is",
            path.display()
        ),
    }
}

/// The format in which most lines make sense.
fn detect(head: &[u8]) -> Option<Format> {
    // The last line may be cut.
    let whole = head.iter().rposition(|byte| *byte == b'\n').map_or(head, |end| &head[..end]);
    let sense = |format: &Format| {
        let mut text = text(*format, whole, "");
        let (mut events, mut problems) = (0, 0);
        for item in text.by_ref() {
            *(if item.is_ok() { &mut events } else { &mut problems }) += 1;
        }
        (events + text.skipped().count()).saturating_sub(problems)
    };
    let sense = TEXTS.into_iter().map(|format| (sense(&format), format));
    sense.filter(|(sense, _)| *sense > 0).max_by_key(|(sense, _)| *sense).map(|(_, format)| format)
}
