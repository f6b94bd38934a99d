// SPDX-License-Identifier: MIT OR Apache-2.0
//! The file system of a point: makes and mounts it, writes the jobs' files, and unmounts it.
//! `prepared` calls it.
//!
//! Each point has a new one. Otherwise the leftovers of earlier points (fragments, a half-full
//! journal, groups already trimmed) would decide its latencies. Making one destroys the device's
//! data, so callers ask [`crate::run::safety`] first.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::fs::Advice;
use rustix::mount::{UnmountFlags, unmount};
use steadyio_core::device::Device;
use steadyio_core::diagnostic;

use crate::fio::job::file_path;
use crate::spec::expand::VariantFilesystem;
use crate::spec::workload::{Filesystem, FilesystemKind, Job};

/// The size of the pieces in which files are written.
const PIECE_BYTES: usize = 1 << 20;
/// The number of attempts to unmount, for a killed program to close its files.
const UNMOUNT_TRIES: u32 = 100;
const UNMOUNT_AGAIN: Duration = Duration::from_millis(50);

/// A file system could not be made, mounted or filled.
#[derive(Debug, thiserror::Error)]
pub enum FilesystemError {
    /// A program failed.
    #[error("{command}: {said}")]
    Program { command: String, said: String },
    /// The directory or file failed.
    #[error("{}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// A mounted file system; dropping it unmounts it.
#[derive(Debug)]
pub struct Mounted {
    /// The mount point.
    pub path: PathBuf,
    unmounted: bool,
    _dir: tempfile::TempDir,
}

impl Mounted {
    /// Makes a file system on the device and mounts it; the variant's options come last.
    pub fn new(
        device: &Device,
        filesystem: &Filesystem,
        variant: &VariantFilesystem,
    ) -> Result<Mounted, FilesystemError> {
        let io_error = |path: &Path| {
            let path = path.to_path_buf();
            move |source| FilesystemError::Io { path, source }
        };
        let dir = tempfile::Builder::new().prefix("steady-mount-").tempdir();
        let dir = dir.map_err(io_error(&std::env::temp_dir()))?;
        let path = fs::canonicalize(dir.path()).map_err(io_error(dir.path()))?;
        run(&mut mkfs(device, filesystem, &variant.mkfs))?;
        let mut mount = Command::new("mount");
        mount.args(["-t", kind_name(filesystem.kind)]);
        let all = [filesystem.mount.as_str(), variant.mount.as_str()];
        let all: Vec<&str> = all.into_iter().filter(|options| !options.is_empty()).collect();
        if !all.is_empty() {
            mount.args(["-o", &all.join(",")]);
        }
        run(mount.arg(&device.node).arg(&path))?;
        Ok(Mounted { path, unmounted: false, _dir: dir })
    }

    /// Writes the files of the jobs that do not extend their own, syncs them, and drops them from
    /// the page cache.
    pub fn lay_out(&self, jobs: &[Job]) -> Result<(), FilesystemError> {
        for job in jobs {
            let Some(file) = job.file.as_ref().filter(|file| !file.grow) else { continue };
            let path = file_path(&self.path, job);
            write_zeroes(&path, file.mib).map_err(|source| FilesystemError::Io { path, source })?;
        }
        Ok(())
    }

    /// Unmounts, and returns errors. Dropping this only prints them.
    pub fn unmount(mut self) -> Result<(), FilesystemError> {
        self.unmount_once()
    }

    fn unmount_once(&mut self) -> Result<(), FilesystemError> {
        self.unmounted = true;
        let mut tries = 1;
        loop {
            match unmount(&self.path, UnmountFlags::empty()) {
                Ok(()) => return Ok(()),
                Err(rustix::io::Errno::BUSY) if tries < UNMOUNT_TRIES => tries += 1,
                Err(error) => {
                    let path = self.path.clone();
                    return Err(FilesystemError::Io { path, source: error.into() });
                }
            }
            thread::sleep(UNMOUNT_AGAIN);
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.unmounted {
            return;
        }
        if let Err(error) = self.unmount_once() {
            diagnostic!("steady: not unmounted: {error}");
        }
    }
}

fn kind_name(kind: FilesystemKind) -> &'static str {
    match kind {
        FilesystemKind::Ext4 => "ext4",
        FilesystemKind::F2fs => "f2fs",
    }
}

fn mkfs(device: &Device, filesystem: &Filesystem, more: &[String]) -> Command {
    let (program, force, size) = match filesystem.kind {
        FilesystemKind::Ext4 => ("mkfs.ext4", "-F", format!("{}m", filesystem.mib)),
        // In sectors of 512 bytes.
        FilesystemKind::F2fs => ("mkfs.f2fs", "-f", (filesystem.mib << 11).to_string()),
    };
    let mut command = Command::new(program);
    command.args(["-q", force]).args(&filesystem.mkfs).args(more).arg(&device.node).arg(size);
    command
}

fn run(command: &mut Command) -> Result<(), FilesystemError> {
    let text = format!("{command:?}").replace('"', "");
    let said = match command.output() {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => {
            let all = [output.stdout, output.stderr].concat();
            format!("{}: {}", output.status, String::from_utf8_lossy(&all).trim())
        }
        Err(error) => error.to_string(),
    };
    Err(FilesystemError::Program { command: text, said })
}

fn write_zeroes(path: &Path, mib: u64) -> io::Result<()> {
    let piece = vec![0; PIECE_BYTES];
    let mut file: File = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
    for _ in 0..mib {
        file.write_all(&piece)?;
    }
    file.sync_all()?;
    rustix::fs::fadvise(&file, 0, None, Advice::DontNeed)?;
    Ok(())
}
