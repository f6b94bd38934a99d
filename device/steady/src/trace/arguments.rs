// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arguments of `steady trace`.

use std::path::PathBuf;

use clap::ValueEnum;

const HELP: &str = "Exit status: 0 done; 1 failed; 2 the command line is wrong, or a file is no trace; 3 done, but \
events were lost, or could not be read, or requests could not be matched (see the account); 130 interrupted.";

/// Say which layer spends the time of each I/O, and why the worst ones took so long
///
/// Reads what ftrace, trace-cmd or perf has traced. Each I/O's time is divided into submission, block layer, device and post.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Arguments {
    /// Traces made elsewhere; several files are parts of one trace
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// What the files are; by default each is looked at
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// Show I/O of this device only: MAJOR:MINOR
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Show I/O of this process and its children only
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: Option<u32>,
    /// Show the finer spans too: queue, tag, insert, issue, hardware, completion, return
    #[arg(long)]
    pub fine: bool,
    /// How many of the worst I/Os, and of the worst other requests, to show
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub worst: usize,
    /// Print the record (docs/spec/steady-trace-record-1.schema.json) instead of tables
    #[arg(long)]
    pub json: bool,
    /// Write the spans for `steady model` to this file
    #[arg(long, value_name = "FILE")]
    pub spans: Option<PathBuf>,
    /// Write a file for the Perfetto UI (ui.perfetto.dev)
    #[arg(long, value_name = "FILE")]
    pub perfetto: Option<PathBuf>,
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// ftrace's trace or trace_pipe, or trace-cmd report
    Ftrace,
    /// perf script
    Perf,
}
