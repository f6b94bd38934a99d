// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the users of a device, and its contents. The bench and `store` check these before they
//! overwrite a device.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{major, minor};

use crate::device::Device;

/// The meaning of a store's signature.
pub const STORE: &str = "a store of steadyio";

/// Magic numbers on disk, from the formats' own headers: offset, bytes, meaning.
const SIGNATURES: [(u64, &[u8], &str); 18] = [
    (510, &[0x55, 0xaa], "a boot sector (MBR or FAT)"),
    (512, b"EFI PART", "a GPT partition table"),
    (4_096, b"EFI PART", "a GPT partition table"),
    (0x438, &[0x53, 0xef], "an ext2, ext3 or ext4 filesystem"),
    (0, b"STDYSTOR", STORE),
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
/// The number of bytes that [`signature`] examines: up to the end of the last signature.
pub const HEAD_BYTES: u64 = 0x1_0048;

/// The contents of the device, if recognized.
pub fn held_data(device: &Device) -> io::Result<Option<String>> {
    let partitions = partitions(device);
    if !partitions.is_empty() {
        return Ok(Some(format!("partitions ({})", partitions.join(", "))));
    }
    let mut head = Vec::new();
    File::open(&device.node)?.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(signature(&head).map(str::to_string))
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

/// The kernel names of the device's partitions.
pub fn partitions(device: &Device) -> Vec<String> {
    let Ok(entries) = fs::read_dir(&device.sysfs) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .flatten()
        .filter(|entry| entry.path().join("partition").exists())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// The users of the device or of its partitions, as far as /proc and sysfs show.
pub fn users(device: &Device) -> String {
    let users = known_users(device);
    if users.is_empty() { "opened exclusively by another program".into() } else { users.join(", ") }
}

/// The users as a list: mounts, swap, and devices above it.
pub fn known_users(device: &Device) -> Vec<String> {
    let mut dirs = vec![device.sysfs.clone()];
    dirs.extend(partitions(device).iter().map(|name| device.sysfs.join(name)));
    let mut users: Vec<String> = dirs.iter().flat_map(|dir| users_of(dir)).collect();
    users.dedup();
    users
}

/// The loop devices on the device, its partitions or its whole disk. They do not open it
/// exclusively, so an exclusive open succeeds although they hold a mounted file system.
pub fn loops_on(device: &Device) -> Vec<String> {
    let mut dirs = vec![device.sysfs.clone(), device.queue.with_file_name("")];
    dirs.extend(partitions(device).iter().map(|name| device.sysfs.join(name)));
    let number = |dir: &PathBuf| fs::read_to_string(dir.join("dev")).ok();
    let numbers: Vec<String> = dirs.iter().filter_map(number).collect();
    let is_on = |dir: &PathBuf| {
        let file = fs::read_to_string(dir.join("loop/backing_file")).unwrap_or_default();
        let Ok(meta) = fs::metadata(file.trim_end_matches('\n')) else { return false };
        let number = format!("{}:{}\n", major(meta.rdev()), minor(meta.rdev()));
        meta.file_type().is_block_device() && numbers.contains(&number)
    };
    let blocks = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let found = blocks.map(|entry| entry.path()).filter(is_on);
    found.filter_map(|dir| Some(dir.file_name()?.to_string_lossy().into_owned())).collect()
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
