// SPDX-License-Identifier: MIT OR Apache-2.0
//! A real block device to trace, and I/O to it that does not end in the page cache.

use std::fs::{self, File};
use std::ops::Deref;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::sync::{Mutex, MutexGuard, PoisonError};

use steadyio_testing::{LoopDisk, is_root, skip};
use steadyio_trace::event::Dev;
use steadyio_trace::source::tracefs::{Instance, Tracefs};

/// A loop device of this machine over a file. One test at a time has one, so that each sees its own tracing.
pub struct Disk {
    disk: LoopDisk,
    _alone: MutexGuard<'static, ()>,
}

static ALONE: Mutex<()> = Mutex::new(());

/// A disk, or None with the reason told if this machine cannot have one, or cannot be traced.
pub fn traceable_disk() -> Option<Disk> {
    if !is_root("tracing") {
        return None;
    }
    if let Err(error) = Tracefs::find() {
        skip(&error.to_string());
        return None;
    }
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    Some(Disk { disk: LoopDisk::new(16, &[])?, _alone: alone })
}

impl Deref for Disk {
    type Target = LoopDisk;

    fn deref(&self) -> &LoopDisk {
        &self.disk
    }
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

/// A new instance that traces nothing yet and prints text.
///
/// It inherits the top instance's options, which blktrace may have set to binary records.
pub fn instance() -> Instance {
    let instance = Instance::create(Tracefs::find().unwrap()).unwrap();
    for option in ["nobin", "context-info"] {
        instance.write("trace_options", option).unwrap();
    }
    instance
}

/// Whether it is so in one of some tries: another run of the tests, or a user, may change the same meanwhile, but not
/// each time.
pub fn unless_disturbed(mut is_so: impl FnMut() -> bool) -> bool {
    (0..5).any(|_| is_so())
}

/// What the top instance traces, and how.
pub fn settings_of_others() -> Vec<String> {
    let names = ["trace_clock", "set_event", "tracing_on", "buffer_size_kb", "trace_options"];
    let tracefs = Tracefs::find().unwrap();
    names.map(|name| fs::read_to_string(tracefs.root.join(name)).unwrap()).to_vec()
}

/// The names of instances that begin so.
pub fn instances(prefix: &str) -> Vec<String> {
    let tracefs = Tracefs::find().unwrap();
    let names = fs::read_dir(tracefs.root.join("instances"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name.starts_with(prefix)).collect();
    names.sort();
    names
}
