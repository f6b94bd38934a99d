// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a probe may write to: a block device that nobody uses and that holds nothing, or a file of
//! its own.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail, ensure};
use steadyio_bench::run::safety::{Claim, SafetyError, allow_writes};
use steadyio_core::device::Device;
use steadyio_core::device_name::path_of;
use steadyio_core::diagnostic;
use steadyio_core::interrupt::Interrupt;
use steadyio_core::memory::AlignedBuffer;
use steadyio_probe::place::ProbeError;

use super::blank::check_size;

const FILE_BYTES: u64 = 256 << 20;
const PART_BYTES: u64 = 1 << 20;

/// Ready to be written to. A file is removed when this is dropped.
pub enum WriteTarget {
    Region { device: Device, _claim: Claim },
    OwnFile { path: PathBuf },
}

impl WriteTarget {
    /// `probed` is the device whose times are measured: writes must reach the same. `blank`: all of
    /// it is filled.
    pub fn open(
        path: &Path,
        probed: &Device,
        blank: bool,
        stop: &Interrupt,
    ) -> anyhow::Result<WriteTarget> {
        let path = &*path_of(path)?;
        let name = path.display();
        match fs::metadata(path) {
            Ok(found) if found.file_type().is_block_device() => {
                let target = region(path, probed)?;
                if blank {
                    check_size(path, target.size_bytes())?;
                }
                Ok(target)
            }
            _ if blank => bail!("--write {name}: must be a partition or disk with --blank"),
            Ok(_) => bail!("{name} exists: --write makes a new file, or names a block device"),
            Err(error) if error.kind() == io::ErrorKind::NotFound => own_file(path, probed, stop),
            Err(error) => Err(error).with_context(|| name.to_string()),
        }
    }

    pub fn path(&self) -> &Path {
        match self {
            WriteTarget::Region { device, .. } => &device.node,
            WriteTarget::OwnFile { path } => path,
        }
    }

    pub fn size_bytes(&self) -> u64 {
        match self {
            WriteTarget::Region { device, .. } => device.size_bytes,
            WriteTarget::OwnFile { .. } => FILE_BYTES,
        }
    }

    pub fn is_device(&self) -> bool {
        matches!(self, WriteTarget::Region { .. })
    }
}

impl Drop for WriteTarget {
    fn drop(&mut self) {
        if let WriteTarget::OwnFile { path } = self {
            let _ = fs::remove_file(path);
        }
    }
}

fn region(path: &Path, probed: &Device) -> anyhow::Result<WriteTarget> {
    let device = Device::open(path)?;
    ensure!(
        device.disk == probed.disk,
        "{}: is on {}, not on {}, the disk to probe",
        path.display(),
        device.disk,
        probed.disk
    );
    let name = path.display();
    let claim = allow_writes(&device, None).map_err(|error| match error {
        SafetyError::InUse { by, .. } => anyhow!("--write {name}: is in use ({by})"),
        SafetyError::HoldsData { what, .. } => anyhow!(
            "--write {name}: holds {what}, which the probe would destroy; wipe it first (wipefs \
             --all {name}), or name a file on it"
        ),
        SafetyError::ReadOnly(_) => anyhow!("--write {name}: is read-only"),
        other => other.into(),
    })?;
    Ok(WriteTarget::Region { device, _claim: claim })
}

fn own_file(path: &Path, probed: &Device, stop: &Interrupt) -> anyhow::Result<WriteTarget> {
    let name = || path.display().to_string();
    let file = File::create_new(path).with_context(name)?;
    let target = WriteTarget::OwnFile { path: path.to_path_buf() };
    let number = file.metadata().with_context(name)?.dev();
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let disk = disk_of(major, minor);
    ensure!(
        disk.as_deref() == Some(probed.disk.as_str()),
        "{}: its file system is on {}, not on {}, the disk to probe",
        path.display(),
        disk.unwrap_or_else(|| format!("{major}:{minor}")),
        probed.disk
    );
    // Not at once: an open that is refused for O_DIRECT has made the file.
    let direct = OpenOptions::new().write(true).custom_flags(libc::O_DIRECT).open(path);
    diagnostic!("steady: making {}, {} MiB", path.display(), FILE_BYTES >> 20);
    fill(&direct.with_context(name)?, stop).with_context(name)?;
    Ok(target)
}

/// Kernel name of the disk with this device number.
fn disk_of(major: u32, minor: u32) -> Option<String> {
    let sysfs = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()?;
    let is_partition = sysfs.join("partition").exists();
    let disk = if is_partition { sysfs.parent()? } else { &sysfs };
    Some(disk.file_name()?.to_string_lossy().into_owned())
}

/// Allocates the whole file, so that no write of the probe has to allocate blocks.
fn fill(file: &File, stop: &Interrupt) -> anyhow::Result<()> {
    let buffer = AlignedBuffer::new(PART_BYTES as usize, false)?;
    for offset in (0..FILE_BYTES).step_by(PART_BYTES as usize) {
        if stop.requested() {
            return Err(ProbeError::Interrupted.into());
        }
        file.write_all_at(&buffer, offset)?;
    }
    Ok(file.sync_all()?)
}
