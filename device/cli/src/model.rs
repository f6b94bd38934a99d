// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady model`: computes the throughput that a storage stack could reach, from measured spans.
//!
//! The arithmetic is in `steadyio_model`. This has files, arguments and JSON; `model_tables` has
//! the tables.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::ValueEnum;
use serde_json::{Value, json};
use steadyio_model::ModelError;
use steadyio_model::pipeline::Queue;
use steadyio_model::report::{ASSUMED, MODEL_SCHEMA, Overlap, Prediction, predict};
use steadyio_model::spans::{self, Entry, SpansFile, Times};

use crate::exit::{Failure, Status};
use crate::model_tables;
use crate::output::print;
use crate::quantity;

const HELP: &str = "Exit status: 0 success; 2 usage error or invalid file.";

const NO_INPUT: &str = "spans are missing: give a file of spans, or --size, \
--pre-us (or --submission-us and --block-us), --device-us and --post-us";

/// Compute the throughput limits of a storage stack from the request time in each layer
///
/// Takes measured spans from a file, or one request from the command line. Prints the throughput of
/// a single thread, with an infinitely fast device, and with overlapping requests on one core and
/// on many cores. Also prints the time for a number of requests, and the gain from halving each
/// span.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Arguments {
    /// Measured spans (TOML or JSON), or a record of `steady trace --json`; - for standard input
    #[arg(value_name = "SPANS")]
    file: Option<PathBuf>,
    #[command(flatten)]
    request: Request,
    /// Number of requests in flight, for computing the time of --requests
    #[arg(long, value_name = "N", default_value_t = 32)]
    depth: u64,
    /// Number of requests [default: the value of --depth]
    #[arg(long, value_name = "N")]
    requests: Option<u64>,
    /// Sort the halved spans by their gain in this case
    #[arg(long, value_name = "CASE", default_value = "single-thread")]
    rank: Rank,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
}

/// One request, instead of a file.
#[derive(clap::Args)]
#[group(conflicts_with = "file", multiple = true)]
struct Request {
    /// Size of the request, for example 64K
    #[arg(long, value_name = "SIZE", value_parser = quantity::size)]
    size: Option<u64>,
    /// Request-pre time: from the system call to the device queue
    #[arg(long, value_name = "US", allow_negative_numbers = true)]
    pre_us: Option<f64>,
    /// First part of request-pre: system call and file system (with --block-us)
    #[arg(long, value_name = "US", allow_negative_numbers = true)]
    submission_us: Option<f64>,
    /// Second part of request-pre: block layer and driver (with --submission-us)
    #[arg(long, value_name = "US", allow_negative_numbers = true)]
    block_us: Option<f64>,
    /// Device time: from the device queue to the interrupt
    #[arg(long, value_name = "US", allow_negative_numbers = true)]
    device_us: Option<f64>,
    /// Request-post time: from the interrupt to the end of the request
    #[arg(long, value_name = "US", allow_negative_numbers = true)]
    post_us: Option<f64>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Rank {
    SingleThread,
    OneCore,
    ManyCores,
}

impl From<Rank> for Overlap {
    fn from(rank: Rank) -> Overlap {
        match rank {
            Rank::SingleThread => Overlap::SingleThread,
            Rank::OneCore => Overlap::OneCore,
            Rank::ManyCores => Overlap::ManyCores,
        }
    }
}

pub fn run(arguments: &Arguments) -> Result<Status, Failure> {
    let file = input(arguments).map_err(Failure::with(Status::Usage))?;
    let requests = arguments.requests.unwrap_or(arguments.depth);
    let queue = Queue::new(requests, arguments.depth)
        .map_err(|error| Failure::with(Status::Usage)(anyhow!("--{error}")))?;
    let of = |entry| predict(entry, queue, arguments.rank.into());
    let predictions: Vec<Prediction> = file.entries.iter().map(of).collect();
    print(&if arguments.json {
        format!("{:#}\n", document(&file, &predictions))
    } else {
        model_tables::predictions(&predictions, queue)
    })?;
    Ok(Status::Done)
}

fn input(arguments: &Arguments) -> anyhow::Result<SpansFile> {
    match &arguments.file {
        Some(path) => read(path),
        None => Ok(arguments.request.spans()?),
    }
}

impl Request {
    fn spans(&self) -> Result<SpansFile, ModelError> {
        let Request { pre_us, submission_us, block_us, device_us, post_us, .. } = *self;
        let times = Times { submission_us, block_us, pre_us, device_us, post_us };
        let Some(size_bytes) = self.size else {
            return Err(ModelError(NO_INPUT.into()));
        };
        let entry = Entry::new("request", size_bytes, times)?;
        let (name, source) = ("command-line".into(), String::new());
        Ok(SpansFile { name, source, entries: vec![entry] })
    }
}

fn read(path: &Path) -> anyhow::Result<SpansFile> {
    let (name, text) = if path.as_os_str() == "-" {
        ("standard input".into(), io::read_to_string(io::stdin()))
    } else {
        (path.display().to_string(), fs::read_to_string(path))
    };
    let name = || name.clone();
    spans::parse(&text.with_context(name)?).with_context(name)
}

fn document(file: &SpansFile, predictions: &[Prediction]) -> Value {
    json!({
        "schema": MODEL_SCHEMA,
        "tool": { "steady": env!("CARGO_PKG_VERSION") },
        "name": file.name,
        "source": file.source,
        "limits_assume": ASSUMED,
        "predictions": predictions,
    })
}
