// SPDX-License-Identifier: MIT OR Apache-2.0
//! A real block device to trace, and I/O to it that does not end in the page cache.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use steadyio_trace::event::Dev;
use steadyio_trace::source::tracefs::{Instance, Tracefs};

/// A loop device of this machine over a file. One test at a time has one, so that each sees its own tracing.
pub struct Disk {
    pub node: String,
    pub dir: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

static ALONE: Mutex<()> = Mutex::new(());

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
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
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
    Some(Disk { node, dir, _alone: alone })
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

/// What the top instance traces, and how.
pub fn settings_of_others() -> Vec<String> {
    let names = ["trace_clock", "set_event", "tracing_on", "buffer_size_kb", "trace_options"];
    let tracefs = Tracefs::find().unwrap();
    names.map(|name| fs::read_to_string(tracefs.root().join(name)).unwrap()).to_vec()
}

/// The names of instances that begin so.
pub fn instances(prefix: &str) -> Vec<String> {
    let tracefs = Tracefs::find().unwrap();
    let names = fs::read_dir(tracefs.root().join("instances"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name.starts_with(prefix)).collect();
    names.sort();
    names
}
