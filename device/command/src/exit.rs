// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exit statuses, and their description in `--help`; the reference pages have the same. All
//! commands return them.

use std::process::ExitCode;

use steadyio_core::diagnostic;

/// The description for `steady` itself. The meaning of 3 differs, and `with` returns its program's
/// status.
pub const HELP: &str = "Exit statuses differ between commands; `steady COMMAND --help` lists them. \
They say what was changed even if standard output is full; standard error then has the result. \
`steady examples` lists example workloads, tasks and device profiles.";

pub const BENCH_HELP: &str = "Exit status: 0 success; 1 failure; 2 usage error or invalid \
workload; 3 finished, but I/Os failed or optional knobs were not set (see the record); 130 \
interrupted. Knobs are always restored.";

pub const TUNE_HELP: &str = "Exit status: 0 success; 1 failure; 2 usage error, invalid workload or \
no k2; 3 finished, but nothing keeps the limit, samples are too few for the quantile, or I/Os failed \
(see the report); 130 interrupted. Status 2 means that nothing was changed. Knobs are always \
restored, except that --apply sets the pick.";

pub const RECORD_HELP: &str = "Exit status: 0 success, nothing lost; 1 failure; 2 usage error; 3 \
finished, but records are not durable, durable ones are missing, or a producer was rejected; 4 all segments \
are full (--stop-when-full); 5 device failure; 130 interrupted. After status 5, durable records \
are kept. Status 130 means interrupted before the end of --total or --duration, or before anything \
was recorded. Without --total and --duration, Ctrl-C ends a recording normally. Received records \
are made durable if the device works. Settings are always restored.";

pub const MANUAL_HELP: &str = "Exit status: 0 success; 1 failure; 2 usage error.";

/// The end of a subcommand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The command is complete.
    Done = 0,
    /// There is no result; for `doctor`, there are findings.
    Failed = 1,
    /// The command line or the workload is wrong. Nothing was changed.
    Usage = 2,
    /// There is a result, with failed I/Os or unmet requirements.
    Flawed = 3,
    /// A recording ended because its segments are full.
    Full = 4,
    /// A recording ended because the device failed.
    DeviceFailed = 5,
    /// A signal ended the command; there is no result.
    Interrupted = 130,
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> ExitCode {
        ExitCode::from(status as u8)
    }
}

/// An error with its exit status.
#[derive(Debug)]
pub struct Failure {
    pub status: Status,
    pub source: anyhow::Error,
}

impl Failure {
    /// Makes a failure, for `map_err`.
    pub fn with<E: Into<anyhow::Error>>(status: Status) -> impl FnOnce(E) -> Failure {
        move |source| Failure { status, source: source.into() }
    }

    /// Prints the failure, and returns its status.
    pub fn report(&self) -> ExitCode {
        diagnostic!("steady: {:#}", self.source);
        self.status.into()
    }
}
