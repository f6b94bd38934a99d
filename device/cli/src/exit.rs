// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exit statuses, and what `--help` says of them; the reference pages say the same.

use std::process::ExitCode;

/// Of `steady` itself: what 3 means differs, and `with` passes on its program's status.
pub const HELP: &str = "Exit statuses differ between commands: `steady COMMAND --help` ends with \
what they mean.";

pub const BENCH_HELP: &str = "Exit status: 0 done; 1 failed; 2 the command line or the workload \
is wrong; 3 done, but I/Os failed or optional knobs were not set (see the record); \
130 interrupted. Knobs are restored in every case.";

pub const TUNE_HELP: &str = "Exit status: 0 done; 1 failed; 2 the command line or the workload is \
wrong, or there is no k2: nothing was touched; 3 done, but no candidate keeps the limit, there were \
too few samples for the quantile, or I/Os failed (see the report); 130 interrupted. Knobs are \
restored in every case but that of a pick that is to be applied.";

pub const RECORD_HELP: &str = "Exit status: 0 done, nothing lost; 1 failed; 2 the command line is \
wrong; 3 done, but not every record is durable, or a producer was rejected (see the result); 4 all \
segments were full (--stop-when-full); 5 the device failed, and what is durable is kept; 130 \
interrupted before --total or --duration, or before anything was recorded. Without those, Ctrl-C is \
how a recording ends. The records received are made durable if the device works; settings are \
restored in every case.";

pub const MANUAL_HELP: &str = "Exit status: 0 done; 1 failed; 2 the command line is wrong.";

/// How a subcommand ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Complete.
    Done = 0,
    /// No result; of `doctor`, findings.
    Failed = 1,
    /// Wrong command line or workload; nothing was touched.
    Usage = 2,
    /// A result, with failed I/Os or unmet requirements.
    Flawed = 3,
    /// A recording ended because its segments are full.
    Full = 4,
    /// A recording ended because the device failed.
    DeviceFailed = 5,
    /// Ended by a signal; no result.
    Interrupted = 130,
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> ExitCode {
        ExitCode::from(status as u8)
    }
}

/// An error with the status it leads to.
#[derive(Debug)]
pub struct Failure {
    pub status: Status,
    pub source: anyhow::Error,
}

impl Failure {
    /// For `map_err`.
    pub fn with<E: Into<anyhow::Error>>(status: Status) -> impl FnOnce(E) -> Failure {
        move |source| Failure { status, source: source.into() }
    }
}
