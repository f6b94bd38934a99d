// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady trace`: which layer spends the time of each I/O.
//!
//! `files` gives events, `reading` follows them, `steadyio::trace::report` makes the record; `tables` and `words`
//! show it to people.

mod arguments;
mod devices;
mod family;
mod files;
mod reading;
mod tables;
mod words;

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use steadyio::interrupt::Interrupt;
use steadyio::trace::io::Trace;
use steadyio::trace::perfetto;
use steadyio::trace::report::record::{Question, Record, Unread};
use steadyio::trace::report::spans_file;
use steadyio::trace::source::Problems;

pub use self::arguments::Arguments;
use self::reading::Found;
use crate::exit::{Failure, Status};
use crate::output::print;

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> Result<Status, Failure> {
    let stop = Interrupt::on_signals().map_err(Failure::with(Status::Failed))?;
    let devices = arguments.device.as_deref().map(devices::find_number).transpose();
    let devices = devices.map_err(Failure::with(Status::Usage))?;
    let (found, ended) = files::read(arguments, &stop)?;
    let Found { trace, pids, problems } = found;
    let problems = unread(&problems);
    let worst = arguments.worst;
    let question = Question { worst, pids, devices, problems, ..Question::default() };
    let record = Record::new(&trace, question);
    write_files(arguments, &trace, &record).map_err(Failure::with(Status::Failed))?;
    print(&match arguments.json {
        true => record.to_json().map_err(Failure::with(Status::Failed))?,
        false => text(&record, arguments.fine),
    })?;
    Ok(match ended {
        Status::Done if record.is_flawed() => Status::Flawed,
        ended => ended,
    })
}

fn write_files(arguments: &Arguments, trace: &Trace, record: &Record) -> anyhow::Result<()> {
    if let Some(path) = &arguments.perfetto {
        write_perfetto(path, trace).with_context(|| format!("--perfetto {}", path.display()))?;
    }
    if let Some(path) = &arguments.spans {
        let spans = spans_file::of_record(record).context("--spans")?;
        let written = fs::write(path, format!("{spans:#}\n"));
        written.with_context(|| format!("--spans {}", path.display()))?;
    }
    Ok(())
}

fn write_perfetto(path: &Path, trace: &Trace) -> anyhow::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    perfetto::write(trace, &mut out)?;
    Ok(out.flush()?)
}

fn text(record: &Record, fine: bool) -> String {
    tables::tables(record, fine) + &words::worst(record) + &words::account(record)
}

fn unread(problems: &Problems) -> Unread {
    Unread {
        count: problems.count(),
        first: problems.kept().iter().map(ToString::to_string).collect(),
    }
}
