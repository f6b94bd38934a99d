// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits NVMe commands to a part of a namespace: `DEVICE@pN` is a partition, and
//! `DEVICE@START+LENGTH[ro]` a range of bytes. Offsets count from its start. `disk`, `nvme` and the
//! store use it.
//!
//! The drive knows no partitions, so this checks each call. An open partition cannot be deleted or
//! moved, but resized and made read-only, so both are asked of the kernel for each call.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, SeekFrom, fadvise, seek};
use steadyio_core::device::Device;
use steadyio_core::device_name;
use steadyio_core::quantity::size;

/// `linux/fs.h`
const BLKROGET: libc::c_ulong = 0x125E;
const SECTOR_BYTES: u64 = 512;

/// The part of a namespace that a user names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Whole,
    /// The partition of this number.
    Partition(u32),
    Range {
        start: u64,
        bytes: u64,
        read_only: bool,
    },
}

/// A part that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RegionError {
    #[error(
        "{given}: what follows @ must be a partition, such as p2, or START+LENGTH in bytes or with K, \
         M, G, T, such as 1M+64M or 0+1Mro"
    )]
    Form { given: String },
    #[error("{name}: has no block device {device}")]
    NoBlockDevice { name: String, device: String },
    #[error("{name}: must be whole blocks of {block_bytes} bytes")]
    Unaligned { name: String, block_bytes: u64 },
    #[error("{name}: the namespace has only {bytes} bytes")]
    BeyondEnd { name: String, bytes: u64 },
    #[error("{}: {source}", node.display())]
    Open { node: PathBuf, source: io::Error },
}

/// Separates the path of a device from the part after its `@`. Any other path is whole.
pub fn split(given: &Path) -> Result<(PathBuf, Part), RegionError> {
    let whole = (given.to_path_buf(), Part::Whole);
    let Some((path, part)) = given.to_str().and_then(|text| text.rsplit_once('@')) else {
        return Ok(whole);
    };
    let node = device_name::path_of(Path::new(path)).unwrap_or_else(|_| path.into());
    let kind = fs::metadata(node).map(|meta| meta.file_type());
    let is_device = kind.is_ok_and(|kind| kind.is_char_device() || kind.is_block_device());
    if !is_device || given.exists() {
        return Ok(whole);
    }
    match parse(part) {
        Some(part) => Ok((path.into(), part)),
        None => Err(RegionError::Form { given: given.display().to_string() }),
    }
}

fn parse(text: &str) -> Option<Part> {
    if let Some(number) = text.strip_prefix('p') {
        return number.parse().ok().filter(|number| *number > 0).map(Part::Partition);
    }
    let (range, read_only) = match text.strip_suffix("ro") {
        Some(range) => (range, true),
        None => (text, false),
    };
    let (start, bytes) = range.split_once('+')?;
    let (start, bytes) = (size(start).ok()?, size(bytes).ok()?);
    (bytes > 0 && start.checked_add(bytes).is_some()).then_some(Part::Range {
        start,
        bytes,
        read_only,
    })
}

/// The accessible part of a namespace.
#[derive(Debug)]
pub struct Region {
    name: String,
    start: u64,
    end: End,
    read_only: bool,
    writes: bool,
    /// The block device of the region or of its namespace.
    device: Option<Device>,
    /// It is held open.
    block: Option<File>,
}

#[derive(Debug, Clone, Copy)]
enum End {
    /// The region has this many bytes.
    Bytes(u64),
    /// It has as many as its block device.
    OfBlockDevice,
}

impl Region {
    /// Opens a part of a namespace. Its name, block device and size are those of the whole.
    pub fn open(
        (namespace, part): (&str, Part),
        block: Option<Device>,
        (bytes, block_bytes): (u64, u64),
        writes: bool,
    ) -> Result<Region, RegionError> {
        let (name, mut device) = (named(namespace, part), block);
        let (mut start, mut end, mut read_only) = (0, End::Bytes(bytes), false);
        match part {
            Part::Whole => {}
            Part::Partition(number) => {
                let found = partition(&name, device.as_ref(), number)?;
                (device, end) = (Some(found), End::OfBlockDevice);
            }
            Part::Range { start: from, bytes: length, read_only: is_ro } => {
                if from % block_bytes != 0 || length % block_bytes != 0 {
                    return Err(RegionError::Unaligned { name, block_bytes });
                }
                if from + length > bytes {
                    return Err(RegionError::BeyondEnd { name, bytes });
                }
                (start, end, read_only) = (from, End::Bytes(length), is_ro);
            }
        }
        let opened = device.as_ref().map(opened).transpose();
        // Who may use the namespace may perhaps not open its block device.
        let block = if part == Part::Whole { opened.ok().flatten() } else { opened? };
        if let (Part::Partition(_), Some(device)) = (part, &device) {
            start = start_of(device)?;
        }
        let region = Region { name, start, end, read_only, writes, device, block };
        region.synchronize()?;
        Ok(region)
    }

    /// The name, as in `ng0n1@p2`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The block device of the region, or of its namespace. Who writes must hold it exclusively.
    pub fn device(&self) -> Option<&Device> {
        self.device.as_ref()
    }

    /// The present length.
    pub fn bytes(&self) -> io::Result<u64> {
        match (self.end, &self.block) {
            (End::OfBlockDevice, Some(file)) => Ok(seek(file, SeekFrom::End(0))?),
            (End::Bytes(bytes), _) => Ok(bytes),
            (End::OfBlockDevice, None) => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Checks a call against the region as it is now, and returns its offset in the namespace.
    pub fn place(&self, writes: bool, offset: u64, bytes: u64) -> io::Result<u64> {
        let size = self.bytes()?;
        if offset.checked_add(bytes).is_none_or(|end| end > size) {
            let name = &self.name;
            let text = format!(
                "offset {offset}, {bytes} bytes: outside the region {name}, which has {size} bytes"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        if writes && self.is_read_only()? {
            let text = format!("{} is read-only", self.name);
            return Err(io::Error::new(io::ErrorKind::ReadOnlyFilesystem, text));
        }
        Ok(self.start + offset)
    }

    /// Whether a write is rejected now.
    pub fn is_read_only(&self) -> io::Result<bool> {
        let Some(file) = &self.block else { return Ok(self.read_only) };
        let mut read_only: libc::c_int = 0;
        // SAFETY: the kernel writes an int.
        match unsafe { libc::ioctl(file.as_raw_fd(), BLKROGET as _, &raw mut read_only) } {
            0 => Ok(self.read_only || read_only != 0),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Drops the block device's cached pages, which writes by NVMe commands do not change.
    pub fn forget_cached(&self) {
        if let (true, Some(file)) = (self.writes, &self.block) {
            // Only other readers of the block device would notice a failure.
            let _ = fadvise(file, 0, None, Advice::DontNeed);
        }
    }

    /// Writes the dirty pages of the block device, which would replace later writes of this
    /// program, and be missing in its reads.
    fn synchronize(&self) -> Result<(), RegionError> {
        if let (Some(device), Some(file)) = (&self.device, &self.block) {
            let node = device.node.clone();
            file.sync_data().map_err(|source| RegionError::Open { node, source })?;
            self.forget_cached();
        }
        Ok(())
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        self.forget_cached();
    }
}

fn named(namespace: &str, part: Part) -> String {
    match part {
        Part::Whole => namespace.into(),
        Part::Partition(number) => format!("{namespace}@p{number}"),
        Part::Range { start, bytes, read_only } => {
            format!("{namespace}@{start}+{bytes}{}", if read_only { "ro" } else { "" })
        }
    }
}

fn partition(name: &str, disk: Option<&Device>, number: u32) -> Result<Device, RegionError> {
    let missing = |device| RegionError::NoBlockDevice { name: name.into(), device };
    let Some(disk) = disk else { return Err(missing("of its namespace".into())) };
    let node = format!("/dev/{}p{number}", disk.name);
    let found = Device::open(Path::new(&node));
    found.ok().filter(|device| device.disk == disk.name).ok_or_else(|| missing(node))
}

fn opened(device: &Device) -> Result<File, RegionError> {
    let failed = |source| RegionError::Open { node: device.node.clone(), source };
    File::open(&device.node).map_err(failed)
}

fn start_of(device: &Device) -> Result<u64, RegionError> {
    let path = device.sysfs.join("start");
    let failed = |source| RegionError::Open { node: path.clone(), source };
    let sectors = fs::read_to_string(&path).map_err(failed)?;
    let sectors: u64 = sectors.trim().parse().map_err(|error| failed(io::Error::other(error)))?;
    Ok(sectors * SECTOR_BYTES)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn range(start: u64, bytes: u64, read_only: bool) -> Part {
        Part::Range { start, bytes, read_only }
    }

    fn region(part: Part) -> Result<Region, RegionError> {
        Region::open(("ng0n1", part), None, (1 << 20, 4096), true)
    }

    #[test]
    fn what_follows_the_at_sign_is_a_partition_or_a_range() {
        for (text, expected) in [
            ("p12", Part::Partition(12)),
            ("4096+8192", range(4096, 8192, false)),
            ("1M+1Gro", range(1 << 20, 1 << 30, true)),
            ("0+2T", range(0, 2 << 40, false)),
        ] {
            let (path, part) = split(Path::new(&format!("/dev/null@{text}"))).unwrap();
            assert_eq!((path.as_path(), part), (Path::new("/dev/null"), expected));
        }
        for text in
            ["", "p", "p0", "p-1", "1M", "1M+", "+1M", "0+0", "1X+1M", "-1+1", "1+16777216T"]
        {
            let given = format!("/dev/null@{text}");
            let error = split(Path::new(&given)).unwrap_err().to_string();
            assert!(error.contains(&given) && error.contains("p2"), "{error}");
        }
    }

    #[test]
    fn only_a_device_has_parts() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), "").unwrap();
        for name in ["file@p1", "missing@p1", "file"] {
            let path = dir.path().join(name);
            assert_eq!(split(&path).unwrap(), (path, Part::Whole));
        }
    }

    #[test]
    fn a_call_is_within_the_region_or_fails_with_its_place() {
        let region = region(range(8192, 65536, false)).unwrap();
        assert_eq!(region.place(true, 0, 65536).unwrap(), 8192);
        assert_eq!(region.place(false, 61440, 4096).unwrap(), 69632);
        for (offset, bytes) in [(65536, 512), (0, 66048), (u64::MAX - 511, 512), (61440, 8192)] {
            let error = region.place(false, offset, bytes).unwrap_err().to_string();
            let expected = format!(
                "offset {offset}, {bytes} bytes: outside the region ng0n1@8192+65536, which has 65536 \
                 bytes"
            );
            assert_eq!(error, expected);
        }
    }

    #[test]
    fn a_read_only_region_rejects_writes_only() {
        let region = region(range(0, 8192, true)).unwrap();
        assert_eq!(region.place(false, 4096, 4096).unwrap(), 4096);
        let error = region.place(true, 0, 4096).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ReadOnlyFilesystem);
        assert_eq!(error.to_string(), "ng0n1@0+8192ro is read-only");
    }

    #[test]
    fn a_region_has_whole_blocks_of_its_namespace() {
        let error = |part| region(part).unwrap_err().to_string();
        assert!(error(range(512, 4096, false)).ends_with("whole blocks of 4096 bytes"));
        assert!(error(range(4096, 1 << 20, false)).ends_with("has only 1048576 bytes"));
        assert!(error(Part::Partition(1)).contains("no block device"));
    }
}
