// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prepares a group of points on a file system: the file system, the jobs' files, and the programs
//! that run during the jobs. `run` calls it.

use steadyio_core::device::Device;

use crate::run::beside::{self, Beside, BesideError};
use crate::run::filesystem::{FilesystemError, Mounted};
use crate::spec::expand::{PlannedPoint, VariantFilesystem};
use crate::spec::workload::Filesystem;

/// The preparation, or a prepared part, failed.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    #[error(transparent)]
    Filesystem(#[from] FilesystemError),
    /// A program that runs during the jobs failed.
    #[error(transparent)]
    Beside(#[from] BesideError),
}

/// A point's file system, and the programs that use it during the jobs. Fields are dropped in this
/// order: the programs end first.
#[derive(Debug)]
pub struct Prepared {
    beside: Beside,
    pub mounted: Mounted,
}

impl Prepared {
    /// Makes the file system, writes the jobs' files and starts the programs.
    pub fn new(
        device: &Device,
        filesystem: &Filesystem,
        variant: &VariantFilesystem,
        points: &[PlannedPoint],
    ) -> Result<Prepared, PrepareError> {
        let mounted = Mounted::new(device, filesystem, variant)?;
        if !variant.prepare.is_empty() {
            beside::run_once(&variant.prepare, &mounted.path, device)?;
        }
        let mut programs = Beside::default();
        for point in points {
            mounted.lay_out(&point.jobs)?;
            for command in &point.commands {
                programs.start(command, &mounted.path, device)?;
            }
        }
        Ok(Prepared { beside: programs, mounted })
    }

    /// Ends the programs and unmounts.
    pub fn finish(self) -> Result<(), PrepareError> {
        self.beside.finish()?;
        Ok(self.mounted.unmount()?)
    }
}
