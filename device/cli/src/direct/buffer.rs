// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady direct buffer`: shows which I/O the kernel allows with the memory of a file.

use std::fs::OpenOptions;
use std::os::fd::AsFd;
use std::path::PathBuf;

use anyhow::{Context, anyhow};
use serde_json::json;
use steadyio_direct::buffer::{Buffer, SCRATCH, Use, Verdict};

use crate::exit::{Failure, Status};
use crate::output::print;
use crate::quantity;
use crate::table::align;

const SCHEMA: &str = "steadyio.direct-buffer/1";

/// Test which I/O the kernel allows with a file's memory, and print the rejecting rule
///
/// FILE is a reserved region (/dev/daxN.M), a file on tmpfs or hugetlbfs, or memory that a driver
/// offers to map. The command maps FILE, reads a block into its first and last page, and then
/// restores the contents of both pages.
#[derive(clap::Args)]
pub struct Arguments {
    /// File to map, opened for reading and writing
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Number of bytes to map
    #[arg(long, value_name = "SIZE", value_parser = quantity::size, default_value = "2M")]
    bytes: u64,
    /// Source of the reads: a directory on a device, a block device or /dev/chardiskN
    #[arg(long, value_name = "TARGET", default_value = SCRATCH)]
    target: PathBuf,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<Status, Failure> {
    let Arguments { file, bytes, target, json } = arguments;
    let opened = OpenOptions::new().read(true).write(true).open(file);
    let opened = opened.with_context(|| file.display().to_string());
    let opened = opened.map_err(Failure::with(Status::Usage))?;
    let buffer = Buffer::from_fd(opened.as_fd(), *bytes, target).map_err(|error| {
        // Of the library, the text names its parameter.
        let text = error.to_string();
        let text =
            text.strip_prefix("bytes = ").map_or(text.clone(), |rest| format!("--bytes {rest}"));
        Failure::with(Status::Usage)(anyhow!(text))
    })?;
    print(&if *json { document(arguments, &buffer) } else { table(&buffer) })?;
    let any = buffer.verdicts.iter().any(|verdict| verdict.works);
    Ok(if any { Status::Done } else { Status::Flawed })
}

fn word(way: Use) -> &'static str {
    match way {
        Use::Direct => "pinned for each call",
        Use::IoUringFixed => "io_uring, fixed buffer",
        Use::Chardisk => "character device, registered buffer",
    }
}

fn table(buffer: &Buffer) -> String {
    let row = |verdict: &Verdict| {
        let works = if verdict.works { "works" } else { "refused" };
        [word(verdict.way).into(), works.into(), verdict.reason.clone()]
    };
    let rows: Vec<[String; 3]> = buffer.verdicts.iter().map(row).collect();
    format!("{}\n{}", buffer.kind.word(), align(&rows, &[0, 1, 2]))
}

fn document(arguments: &Arguments, buffer: &Buffer) -> String {
    let document = json!({
        "schema": SCHEMA,
        "tool": { "steady": env!("CARGO_PKG_VERSION") },
        "memory": buffer.kind.word(),
        "bytes": arguments.bytes,
        "uses": buffer.verdicts,
    });
    format!("{document:#}\n")
}
