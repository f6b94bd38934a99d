// SPDX-License-Identifier: MIT OR Apache-2.0
//! The errors of a bench.

use std::io;

use steadyio_core::declared::DeclareError;
use steadyio_core::knob_guard::GuardError;
use steadyio_core::knobs::KnobError;

use crate::fio::process::FioError;
use crate::run::chardisk::ChardiskError;
use crate::run::prepared::PrepareError;
use crate::run::safety::SafetyError;
use crate::spec::workload::SpecError;
use crate::transfer::LoadError;

/// The reason why a bench ended without a record.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The workload or the selection is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// Writing to the device is not allowed.
    #[error(transparent)]
    Safety(#[from] SafetyError),
    /// A knob was rejected.
    #[error("variant {variant}: {error}")]
    Knob {
        /// The variant with the knob.
        variant: String,
        /// The knob, its value and the reason.
        error: KnobError,
    },
    /// Knobs could not be saved or restored.
    #[error(transparent)]
    Guard(#[from] GuardError),
    /// The file system failed, or a program that runs during the jobs.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    #[error(transparent)]
    Fio(#[from] FioError),
    /// The threads of a workload with a `[host]` or with arrivals failed.
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("variant {variant}: declare_block_us: {error}")]
    Declare {
        /// The variant.
        variant: String,
        error: DeclareError,
    },
    /// The priority of the kernel's workers could not be raised.
    #[error("variant {variant}: kworkers_fifo (needs root, or CAP_SYS_NICE)")]
    Kworkers {
        /// The variant.
        variant: String,
        source: io::Error,
    },
    /// A card could not be used as a character device.
    #[error("variant {variant}: {error}")]
    Chardisk {
        /// The variant.
        variant: String,
        error: ChardiskError,
    },
    #[error(transparent)]
    Lacking(#[from] Lacking),
    /// A point ended early.
    #[error("variant {variant}, job {job}: {reason}")]
    Point {
        /// The variant of the point.
        variant: String,
        /// fio's name of the job.
        job: String,
        reason: String,
    },
    #[error("{what}")]
    Io {
        /// The file, or the failed action.
        what: String,
        source: io::Error,
    },
}

impl BenchError {
    /// Whether a signal ended the run.
    pub fn interrupted(&self) -> bool {
        matches!(
            self,
            BenchError::Fio(FioError::Interrupted) | BenchError::Load(LoadError::Interrupted)
        )
    }
}

/// A right or a program that the workload lacks.
#[derive(Debug, thiserror::Error)]
pub enum Lacking {
    #[error("job {job}: {what} (needs root, or CAP_SYS_NICE)")]
    Priority { job: String, what: String, source: io::Error },
    #[error("a file system must be mounted, which needs root, or CAP_SYS_ADMIN")]
    Mount,
    #[error("{0}: not in PATH: install it")]
    Program(String),
}
