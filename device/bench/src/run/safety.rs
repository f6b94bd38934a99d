// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a device may be written to.
//!
//! Two checks, in this order. Is it in use? An exclusive open fails for anything mounted, swapped
//! to or stacked upon, and keeps others out while it is held; no option overrides this. Does it
//! hold data? Partitions and known signatures show it; the user can consent to their loss by name.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use steadyio_core::device::Device;

/// Why a device is not written to.
#[derive(Debug, thiserror::Error)]
pub enum SafetyError {
    /// Mounted, swap, member of something, or held open exclusively.
    #[error(
        "{device} is in use ({by}), and the workload writes to it; unmount or release it first"
    )]
    InUse {
        /// Kernel name.
        device: String,
        /// Who uses it.
        by: String,
    },
    /// Holds data that the workload would overwrite.
    #[error(
        "{device} holds {what}: the workload would destroy it; to allow this, add \
         --destroy-data {device}"
    )]
    HoldsData {
        /// Kernel name.
        device: String,
        what: String,
    },
    /// Formatting needs consent even if nothing is known to be lost.
    #[error(
        "the workload makes a file system on {0} for each point, which destroys what it holds: to \
         allow this, add --destroy-data {0}"
    )]
    Formats(String),
    /// The consent names another device.
    #[error("--destroy-data {given}: must be the device's kernel name, {device}")]
    WrongName {
        given: String,
        /// Kernel name.
        device: String,
    },
    /// The device is write-protected.
    #[error("{0} is read-only, but the workload writes to it")]
    ReadOnly(String),
    /// The device cannot be examined.
    #[error("{device} cannot be examined")]
    Examine {
        /// Kernel name.
        device: String,
        source: io::Error,
    },
}

/// Keeps mounts and other exclusive users away as long as it lives.
#[derive(Debug)]
pub struct Claim(#[allow(dead_code, reason = "held for its lock")] OwnedFd);

/// Magic numbers on disk: offset, bytes, what they mean. From the formats' own headers.
const SIGNATURES: [(u64, &[u8], &str); 17] = [
    (510, &[0x55, 0xaa], "a boot sector (MBR or FAT)"),
    (512, b"EFI PART", "a GPT partition table"),
    (4_096, b"EFI PART", "a GPT partition table"),
    (0x438, &[0x53, 0xef], "an ext2, ext3 or ext4 filesystem"),
    (0, b"XFSB", "an XFS filesystem"),
    (0x1_0040, b"_BHRfS_M", "a btrfs filesystem"),
    (1_024, &[0x10, 0x20, 0xf5, 0xf2], "an f2fs filesystem"),
    (1_024, &[0xe2, 0xe1, 0xf5, 0xe0], "an erofs filesystem"),
    (0, b"hsqs", "a squashfs filesystem"),
    (3, b"NTFS    ", "an NTFS filesystem"),
    (3, b"EXFAT   ", "an exFAT filesystem"),
    (4_086, b"SWAPSPACE2", "swap space"),
    (0, b"LUKS\xba\xbe", "a LUKS container"),
    (512, b"LABELONE", "an LVM physical volume"),
    (0, &[0xfc, 0x4e, 0x2b, 0xa9], "a software RAID member"),
    (4_096, &[0xfc, 0x4e, 0x2b, 0xa9], "a software RAID member"),
    (4_096, &[0xc6, 0x85, 0x73, 0xf6], "a bcache device"),
];
/// End of the last signature.
const HEAD_BYTES: u64 = 0x1_0048;

/// As [`allow_writes`], for a workload that makes a file system. The claim is released again: mkfs
/// and the mount open the device exclusively themselves.
pub fn allow_formatting(device: &Device, destroy: Option<&str>) -> Result<(), SafetyError> {
    if destroy.is_none() {
        return Err(SafetyError::Formats(device.name.clone()));
    }
    allow_writes(device, destroy).map(drop)
}

/// Makes both checks; the claim must be held while writing.
pub fn allow_writes(device: &Device, destroy: Option<&str>) -> Result<Claim, SafetyError> {
    let name = device.name.clone();
    if destroy.is_some_and(|given| given != name) {
        let given = destroy.unwrap_or_default().to_string();
        return Err(SafetyError::WrongName { given, device: name });
    }
    if fs::read_to_string(device.sysfs.join("ro")).is_ok_and(|text| text.trim() == "1") {
        return Err(SafetyError::ReadOnly(name));
    }
    let flags = OFlags::RDWR | OFlags::EXCL | OFlags::CLOEXEC;
    let claim = match rustix::fs::open(&device.node, flags, Mode::empty()) {
        Ok(claim) => claim,
        Err(rustix::io::Errno::BUSY) => {
            return Err(SafetyError::InUse { device: name, by: users(device) });
        }
        Err(error) => return Err(SafetyError::Examine { device: name, source: error.into() }),
    };
    if destroy.is_none() {
        if let Some(what) = held_data(device)? {
            return Err(SafetyError::HoldsData { device: name, what });
        }
    }
    Ok(Claim(claim))
}

/// What the device holds, if that can be told.
fn held_data(device: &Device) -> Result<Option<String>, SafetyError> {
    let partitions = partitions(device);
    if !partitions.is_empty() {
        return Ok(Some(format!("partitions ({})", partitions.join(", "))));
    }
    let examine = |source| SafetyError::Examine { device: device.name.clone(), source };
    let mut file = File::open(&device.node).map_err(examine)?;
    let head = read_head(&mut file, HEAD_BYTES).map_err(examine)?;
    Ok(signature(&head).map(str::to_string))
}

fn read_head(file: &mut File, length: u64) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(length).read_to_end(&mut head)?;
    Ok(head)
}

/// The first known signature in the head of a device.
pub fn signature(head: &[u8]) -> Option<&'static str> {
    let found = |&(offset, magic, _): &(u64, &[u8], &str)| {
        usize::try_from(offset).is_ok_and(|at| head.get(at..).is_some_and(|r| r.starts_with(magic)))
    };
    // A boot sector is the least specific: GPT and FAT have one, too.
    let mut known = SIGNATURES.iter().skip(1).chain(SIGNATURES.first());
    known.find(|entry| found(entry)).map(|&(_, _, meaning)| meaning)
}

fn partitions(device: &Device) -> Vec<String> {
    let Ok(entries) = fs::read_dir(&device.sysfs) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .flatten()
        .filter(|entry| entry.path().join("partition").exists())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Who uses the device or a partition of it, as far as /proc and sysfs show.
fn users(device: &Device) -> String {
    let mut dirs = vec![device.sysfs.clone()];
    dirs.extend(partitions(device).iter().map(|name| device.sysfs.join(name)));
    let mut users: Vec<String> = dirs.iter().flat_map(|dir| users_of(dir)).collect();
    users.dedup();
    if users.is_empty() { "opened exclusively by another program".into() } else { users.join(", ") }
}

fn users_of(sysfs: &Path) -> Vec<String> {
    let mut users = Vec::new();
    let number = fs::read_to_string(sysfs.join("dev")).unwrap_or_default();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    for line in mounts.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        if fields.get(2) == Some(&number.trim()) {
            users.push(format!("mounted on {}", fields.get(4).unwrap_or(&"?")));
        }
    }
    for holder in fs::read_dir(sysfs.join("holders")).into_iter().flatten().flatten() {
        users.push(format!("part of {}", holder.file_name().to_string_lossy()));
    }
    let name = sysfs.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
    if swaps.lines().any(|line| line.split_whitespace().next() == Some(&format!("/dev/{name}"))) {
        users.push("swap".into());
    }
    users
}
