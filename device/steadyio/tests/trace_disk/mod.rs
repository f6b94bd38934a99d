// SPDX-License-Identifier: MIT OR Apache-2.0
//! A real block device to trace, and I/O to it that does not end in the page cache.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::process::Command;

use steadyio::trace::event::Dev;
use steadyio::trace::source::tracefs::{Instance, Tracefs};

/// A loop device of this machine over a file.
pub struct Disk {
    pub node: String,
    pub dir: tempfile::TempDir,
}

/// A disk, or None with the reason printed if this machine cannot have one, or cannot be traced.
pub fn traceable_disk() -> Option<Disk> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: loop devices and tracing need root");
        return None;
    }
    if let Err(error) = Tracefs::find() {
        eprintln!("skipped: {error}");
        return None;
    }
    let dir = tempfile::tempdir().unwrap();
    let backing = dir.path().join("disk");
    File::create(&backing).unwrap().set_len(16 << 20).unwrap();
    let losetup =
        Command::new("losetup").args(["--find", "--show"]).arg(&backing).output().unwrap();
    if !losetup.status.success() {
        eprintln!("skipped: no loop device: {}", String::from_utf8_lossy(&losetup.stderr));
        return None;
    }
    let node = String::from_utf8_lossy(&losetup.stdout).trim().to_string();
    Some(Disk { node, dir })
}

impl Disk {
    pub fn dev(&self) -> Dev {
        let number = fs::metadata(&self.node).unwrap().rdev();
        Dev { major: rustix::fs::major(number), minor: rustix::fs::minor(number) }
    }

    /// Past the page cache.
    pub fn open_direct(&self) -> File {
        let direct = i32::try_from(rustix::fs::OFlags::DIRECT.bits()).unwrap();
        File::options().read(true).write(true).custom_flags(direct).open(&self.node).unwrap()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.node]).status();
    }
}

/// 4 KiB that direct I/O accepts.
#[repr(align(4096))]
pub struct Block(pub [u8; 4096]);

pub fn read_block(file: &File, number: u64) {
    let mut block = Block([0; 4096]);
    file.read_exact_at(&mut block.0, number * 4096).unwrap();
}

pub fn write_block(file: &File, number: u64) {
    file.write_all_at(&Block([7; 4096]).0, number * 4096).unwrap();
}

/// An instance of our own that traces nothing yet.
pub fn instance() -> Instance {
    Instance::create(Tracefs::find().unwrap(), &mut |note| eprintln!("{note}")).unwrap()
}

/// All tracing files outside our instances that tell what is traced, with their content.
pub fn top_instance(root: &Path) -> Vec<(String, String)> {
    let names = [
        "trace_clock",
        "set_event",
        "tracing_on",
        "buffer_size_kb",
        "current_tracer",
        "trace_options",
    ];
    names
        .iter()
        .map(|name| (name.to_string(), fs::read_to_string(root.join(name)).unwrap()))
        .collect()
}
