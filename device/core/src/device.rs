// SPDX-License-Identifier: MIT OR Apache-2.0
//! The block device under test, as sysfs describes it. Most commands with a DEVICE argument use it.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::device_name::{self, Found, SYSFS, kind_of};

pub use crate::device_name::DeviceError;

/// A block device and its directories in sysfs.
#[derive(Debug, Clone)]
pub struct Device {
    /// The node: the given path, or for a name, its node in /dev.
    pub node: PathBuf,
    /// The kernel name, for example `mmcblk0p1`.
    pub name: String,
    /// The kernel name of the whole disk; equal to `name` unless this is a partition.
    pub disk: String,
    /// The directory of the device.
    pub sysfs: PathBuf,
    /// The directory with the knobs; a partition has those of its disk.
    pub queue: PathBuf,
    pub size_bytes: u64,
}

/// The device in a record. It has no serial number, because records are meant to be shared.
#[derive(Debug, Clone, Serialize)]
pub struct DeviceInfo {
    /// The kernel name.
    pub name: String,
    /// The kernel name of the whole disk.
    pub disk: String,
    /// The model, if the driver has one.
    pub model: Option<String>,
    pub size_bytes: u64,
    /// The smallest unit of access in bytes.
    pub logical_block_bytes: Option<u64>,
    /// The smallest unit that the device writes without reading first, in bytes.
    pub physical_block_bytes: Option<u64>,
    /// The largest request of the hardware in KiB.
    pub max_hw_sectors_kb: Option<u64>,
    /// `write back` or `write through`.
    pub write_cache: Option<String>,
}

/// A hint for a device that may not be opened; empty for other errors.
pub fn access_hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            " (needs root, or a group that may open it, such as disk)"
        }
        _ => "",
    }
}

fn read_trimmed(path: &Path) -> io::Result<String> {
    fs::read_to_string(path).map(|text| text.trim().to_string())
}

impl Device {
    /// Looks a device up in sysfs by its kernel name or node, see [`device_name`].
    pub fn open(given: &Path) -> Result<Device, DeviceError> {
        let node = device_name::path_of(given)?;
        let meta = fs::metadata(&node).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => device_name::missing(Path::new(SYSFS), given),
            _ => DeviceError::Node { node: node.clone(), source },
        })?;
        if !meta.file_type().is_block_device() {
            return Err(DeviceError::NotBlock { node, kind: kind_of(meta.file_type()) });
        }
        let Found { name, disk, dir: sysfs } = device_name::find(Path::new(SYSFS), &node)?;
        let disk_dir = if name == disk { Some(&*sysfs) } else { sysfs.parent() };
        let queue = disk_dir.unwrap_or(&sysfs).join("queue");
        let size_path = sysfs.join("size");
        let sysfs_error = |source| DeviceError::Sysfs { path: size_path.clone(), source };
        // sysfs counts in 512-byte sectors for any block size.
        let sectors: u64 = read_trimmed(&size_path)
            .and_then(|text| text.parse().map_err(io::Error::other))
            .map_err(sysfs_error)?;
        Ok(Device { node, name, disk, queue, sysfs, size_bytes: sectors * 512 })
    }

    /// Whether a user's `given` names this device.
    pub fn is_named(&self, given: &str) -> bool {
        let same = |found: Found| found.name == self.name;
        device_name::find(Path::new(SYSFS), Path::new(given)).is_ok_and(same)
    }

    /// For a command that needs a disk: a note that a partition was given.
    pub fn disk_note(&self) -> Option<String> {
        device_name::disk_note(&self.name, &self.disk)
    }

    /// The number of the whole disk, as in `/sys/block/DISK/dev`: `179:0`.
    pub fn number(&self) -> Result<String, DeviceError> {
        let path = self.queue.with_file_name("dev");
        read_trimmed(&path).map_err(|source| DeviceError::Sysfs { path, source })
    }

    /// Whether this is a partition of a disk.
    pub fn is_partition(&self) -> bool {
        self.name != self.disk
    }

    /// Whether the device is read-only.
    pub fn is_read_only(&self) -> bool {
        read_trimmed(&self.sysfs.join("ro")).is_ok_and(|text| text == "1")
    }

    fn queue_number(&self, attribute: &str) -> Option<u64> {
        read_trimmed(&self.queue.join(attribute)).ok()?.parse().ok()
    }

    /// The smallest unit of access in bytes.
    pub fn logical_block_bytes(&self) -> u64 {
        self.queue_number("logical_block_size").unwrap_or(512)
    }

    /// The longest request that the driver gets in one piece, in bytes, even if no two pages of the
    /// memory are adjacent. At most 1 MiB, the longest piece that direct I/O makes of such memory.
    pub fn request_bytes_max(&self) -> u64 {
        let sectors = self.queue_number("max_sectors_kb").unwrap_or(128) << 10;
        let segments = self.queue_number("max_segments").unwrap_or(128) << 12;
        sectors.min(segments).min(1 << 20)
    }

    /// The device's preferred multiple for placing data; 0 if it has none.
    pub fn erase_bytes(&self) -> u64 {
        // MMC only, because the meaning of the discard granularity differs between drivers.
        let path = self.queue.with_file_name("device").join("preferred_erase_size");
        read_trimmed(&path).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// The description for the record.
    pub fn info(&self) -> DeviceInfo {
        let device = self.queue.with_file_name("device");
        // SCSI and NVMe call it model, MMC calls it name.
        let model = ["model", "name"].iter().find_map(|key| read_trimmed(&device.join(key)).ok());
        DeviceInfo {
            name: self.name.clone(),
            disk: self.disk.clone(),
            model: model.filter(|model| !model.is_empty()),
            size_bytes: self.size_bytes,
            logical_block_bytes: self.queue_number("logical_block_size"),
            physical_block_bytes: self.queue_number("physical_block_size"),
            max_hw_sectors_kb: self.queue_number("max_hw_sectors_kb"),
            write_cache: read_trimmed(&self.queue.join("write_cache")).ok(),
        }
    }
}
