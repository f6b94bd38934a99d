// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady direct bench`: measures single reads and writes, with memory pinned for each and with
//! memory pinned once.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::ensure;
use clap::ValueEnum;
use serde_json::json;
use steadyio_core::diagnostic;
use steadyio_core::histogram::Histogram;
use steadyio_direct::background::{Background, Reading};
use steadyio_direct::disk::Disk;
use steadyio_direct::nvme::order::{Level, Limits, Order};
use steadyio_direct::timing::{Load, Way, measure};

use crate::exit::{Failure, Status};
use crate::output::print;
use crate::progress::Pace;
use crate::quantity;
use crate::table::align;

const SCHEMA: &str = "steadyio.direct-bench/1";
/// The longest call: any chardisk registers at least this much.
const BYTES_MAX: u64 = 64 << 20;

/// Measure single reads or writes at random offsets
///
/// Issues one call at a time and measures it from start to end, in two ways: with memory that the
/// kernel pins for each call, and with memory that the kernel pins once.
#[derive(clap::Args)]
pub struct Arguments {
    /// Block device, chardiskN or ngXnY, by name or node
    #[arg(value_name = "DEVICE")]
    device: PathBuf,
    /// Operation of each call
    #[arg(long, value_name = "OP", default_value = "read")]
    op: Op,
    /// Number of bytes per call
    #[arg(long, value_name = "SIZE", value_parser = quantity::size, default_value = "4K")]
    size: u64,
    /// Start of the part of the device to measure [default: 0, or the first region]
    #[arg(long, value_name = "SIZE", value_parser = quantity::size)]
    offset: Option<u64>,
    /// Length of the part to measure [default: up to the end of the device or region]
    #[arg(long, value_name = "SIZE", value_parser = quantity::size)]
    bytes: Option<u64>,
    /// Number of calls for each way
    #[arg(long, value_name = "N", default_value_t = 1000,
          value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    count: u64,
    /// Read with this many threads of the idle class meanwhile; use `ionice -c 1` to measure calls
    /// of a higher level
    #[arg(long, value_name = "N", default_value_t = 0,
          value_parser = clap::value_parser!(u64).range(0..=64))]
    background: u64,
    /// Number of bytes per background call
    #[arg(long, value_name = "SIZE", value_parser = quantity::size, default_value = "512K")]
    background_size: u64,
    /// Seed of the random offsets
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Allow overwriting the data on this device, for example mmcblk0
    #[arg(long, value_name = "NAME")]
    destroy_data: Option<String>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Op {
    Read,
    Write,
}

pub fn run(arguments: &Arguments) -> Result<Status, Failure> {
    let writes = arguments.op == Op::Write;
    let mut disk = super::open(&arguments.device, writes)?;
    let (start, range_bytes) = part(arguments, &disk).map_err(Failure::with(Status::Usage))?;
    let sizes = [("--size", arguments.size), ("--background-size", arguments.background_size)];
    // Without background readers their size does not matter.
    for (key, size) in &sizes[..if arguments.background > 0 { 2 } else { 1 }] {
        check_size((key, *size), &disk, range_bytes).map_err(Failure::with(Status::Usage))?;
    }
    let bytes = arguments.size as usize;
    let consent = arguments.destroy_data.as_deref();
    let claim = writes.then(|| super::allow_writes(&disk, &arguments.device, consent));
    let _claim = claim.transpose()?;
    let Arguments { count, seed, .. } = *arguments;
    let load = Load { writes, bytes, start, range_bytes, count, seed };
    let background = start_background(arguments, &mut disk, &load)?;
    let mut found = Vec::new();
    for way in [Way::Plain, Way::Registered] {
        found.push((way.word(&disk), one(arguments, &disk, way, &load)?));
    }
    let mib_s =
        background.map(Background::finish).transpose().map_err(Failure::with(Status::Failed))?;
    let text = match arguments.json {
        true => document(arguments, &load, &found, mib_s),
        false => {
            table(&found)
                + &mib_s.map_or(String::new(), |mib_s| {
                    format!("{} in the background: {mib_s:.1} MiB/s\n", arguments.background)
                })
        }
    };
    print(&text)?;
    Ok(Status::Done)
}

/// Starts the background readers, and gives the measured calls the level of this thread.
fn start_background(
    arguments: &Arguments,
    disk: &mut Disk,
    load: &Load,
) -> Result<Option<Background>, Failure> {
    if arguments.background == 0 {
        return Ok(None);
    }
    let order = Arc::new(Order::new(Limits::default()));
    disk.set_order(&order, Level::of_caller());
    let reading = Reading {
        bytes: arguments.background_size as usize,
        start: load.start,
        range_bytes: load.range_bytes,
        seed: load.seed,
    };
    Background::start(&arguments.device, arguments.background, reading, &order)
        .map(Some)
        .map_err(Failure::with(Status::Usage))
}

/// The offset and length of the measured part.
fn part(arguments: &Arguments, disk: &Disk) -> anyhow::Result<(u64, u64)> {
    let writes = arguments.op == Op::Write;
    let (start, rest) = super::rest(disk, arguments.offset, writes);
    let bytes = arguments.bytes.unwrap_or(rest);
    super::check_range(disk, &arguments.device, (start, bytes), writes)?;
    ensure!(bytes > 0, "--offset {start}, 0 bytes: there is nothing to measure (see --bytes)");
    Ok((start, bytes))
}

fn check_size((key, size): (&str, u64), disk: &Disk, range_bytes: u64) -> anyhow::Result<()> {
    let unit = disk.block_bytes;
    ensure!(
        size > 0 && size % unit == 0 && size <= BYTES_MAX.min(range_bytes),
        "{key} {size}: must be a multiple of the device's {unit} bytes, from {unit} to {}",
        BYTES_MAX.min(range_bytes)
    );
    Ok(())
}

fn one(arguments: &Arguments, disk: &Disk, way: Way, load: &Load) -> Result<Histogram, Failure> {
    let stop = super::stop()?;
    let (begun, mut pace) = (Instant::now(), Pace::new());
    let mut tick = |done| {
        if pace.is_due(begun.elapsed()) {
            diagnostic!("steady: {}: {done} of {}", way.word(disk), load.count);
        }
    };
    measure(disk, way, load, &stop, &mut tick).map_err(|error: io::Error| {
        let failure = super::at(&arguments.device, load.start, error);
        Failure { source: failure.source.context(way.word(disk)), ..failure }
    })
}

fn table(found: &[(&str, Histogram)]) -> String {
    let head = ["way", "p50 us", "p99 us", "p99.9 us", "max us", "calls"];
    let mut rows = vec![head.map(String::from)];
    for (way, histogram) in found {
        let us = |ns: Option<u64>| ns.map_or("-".into(), |ns| format!("{:.1}", ns as f64 / 1e3));
        let values = histogram.percentiles();
        let [p50, p99, p999, max] = [values.p50, values.p99, values.p999, values.max].map(us);
        rows.push([(*way).into(), p50, p99, p999, max, histogram.count().to_string()]);
    }
    align(&rows, &[0])
}

fn document(
    arguments: &Arguments,
    load: &Load,
    found: &[(&str, Histogram)],
    background_mib_s: Option<f64>,
) -> String {
    let one = |(way, histogram): &(&str, Histogram)| {
        json!({
            "way": way,
            "latency_ns": histogram.percentiles(),
            "count": histogram.count(),
        })
    };
    let document = json!({
        "schema": SCHEMA,
        "tool": { "steady": env!("CARGO_PKG_VERSION") },
        "device": arguments.device,
        "op": if arguments.op == Op::Write { "randwrite" } else { "randread" },
        "bytes": arguments.size,
        "offset": load.start,
        "range_bytes": load.range_bytes,
        "seed": arguments.seed,
        "background": background_mib_s.map(|mib_s| json!({
            "callers": arguments.background,
            "bytes": arguments.background_size,
            "mib_s": mib_s,
        })),
        "results": found.iter().map(one).collect::<Vec<_>>(),
    });
    format!("{document:#}\n")
}
