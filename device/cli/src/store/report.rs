// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady store list` and `check`: prints the extents and the errors of a store.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};
use steadyio_core::diagnostic;
use steadyio_core::interrupt::Interrupt;
use steadyio_store::AlignedBuffer;
use steadyio_store::check::{self, Contents, Report, ReportedExtent};
use steadyio_store::storage::file::{Access, FileStorage};

use super::{failure, open_to_read};
use crate::exit::{Failure, Status};
use crate::output::print;
use crate::progress::Pace;
use crate::table;

const SCHEMA: &str = "steadyio.store/1";
const BUFFER_BYTES: usize = 4 << 20;

#[derive(clap::Args)]
pub struct Arguments {
    /// Device or file of the store
    #[arg(value_name = "DEVICE")]
    device: PathBuf,
    /// Print JSON instead of a table (docs/spec/store-1.schema.json)
    #[arg(long)]
    json: bool,
}

pub fn list(arguments: &Arguments) -> Result<Status, Failure> {
    let report = check::describe(&open_to_read(&arguments.device)?);
    tell(arguments, &report)?;
    Ok(Status::Done)
}

pub fn check(arguments: &Arguments, stop: &Interrupt) -> Result<Status, Failure> {
    let device = &arguments.device;
    let storage = FileStorage::open(device, Access::Read).map_err(Failure::with(Status::Failed))?;
    let buffer = AlignedBuffer::new(BUFFER_BYTES, false).map_err(Failure::with(Status::Failed));
    let (mut pace, began) = (Pace::new(), Instant::now());
    let mut progress = |done: u64, all: u64| {
        if pace.is_due(began.elapsed()) {
            let (done, all, seconds) = (done >> 20, all >> 20, began.elapsed().as_secs());
            diagnostic!("steady: {done} of {all} MiB read in {seconds} s");
        }
        !stop.requested()
    };
    let report = check::check(storage, &mut buffer?, &mut progress).map_err(failure(device))?;
    tell(arguments, &report)?;
    for problem in &report.problems {
        diagnostic!("steady: {}: {problem}", device.display());
    }
    Ok(if report.is_good() { Status::Done } else { Status::Flawed })
}

fn tell(arguments: &Arguments, report: &Report) -> Result<(), Failure> {
    if arguments.json {
        print(&format!("{:#}\n", document(report)))
    } else {
        print(&text(&arguments.device, report))
    }
}

fn document(report: &Report) -> Value {
    let mut document = json!(report);
    document["schema"] = json!(SCHEMA);
    document["good"] = json!(report.is_good());
    document
}

fn text(device: &Path, report: &Report) -> String {
    let mut rows =
        vec![["id", "bytes", "room", "start", "places", "checksum", "contents"].map(String::from)];
    rows.extend(report.extents.iter().map(row));
    let table =
        if report.extents.is_empty() { String::new() } else { table::align(&rows, &[5, 6]) };
    let Report { store_bytes, align_bytes, extents_max, free, .. } = report;
    format!(
        "{table}{}: {} of {extents_max} extents, aligned to {align_bytes} bytes; of {store_bytes} \
         bytes {} are free, in pieces of {} at most\n",
        device.display(),
        report.extents.len(),
        free.total_bytes,
        free.largest_bytes
    )
}

fn row(found: &ReportedExtent) -> [String; 7] {
    let extent = &found.extent;
    let contents = match found.contents {
        None => "-",
        Some(Contents::Good) => "good",
        Some(Contents::Unchecked) => "readable",
        Some(Contents::Damaged) => "DAMAGED",
        Some(Contents::Unreadable) => "UNREADABLE",
    };
    [
        found.id.to_string(),
        extent.valid_bytes.to_string(),
        extent.bytes.to_string(),
        extent.start.to_string(),
        if extent.spare.is_some() { "2" } else { "1" }.into(),
        extent.crc.map_or("none".into(), |crc| format!("{crc:08x}")),
        contents.into(),
    ]
}
