// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the disks in sysfs, and reads their files. The other modules read through it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use steadyio_core::device::DeviceError;
use steadyio_core::device_name::{self, Found};
use steadyio_core::knobs::Queue;

/// A mounted sysfs, or a folder with the same structure.
#[derive(Debug, Clone)]
pub struct Sysfs {
    root: PathBuf,
}

/// A whole disk, which may be absent at the moment.
#[derive(Debug, Clone)]
pub struct Disk {
    pub name: String,
    dir: PathBuf,
}

impl Sysfs {
    pub fn new(root: &Path) -> Sysfs {
        Sysfs { root: root.into() }
    }

    /// Finds the device with that name or node, see [`device_name`].
    pub fn find(&self, device: &Path) -> Result<Found, DeviceError> {
        device_name::find(&self.root, device)
    }

    pub fn disk(&self, name: &str) -> Disk {
        Disk { name: name.into(), dir: self.root.join("block").join(name) }
    }

    /// All disks with a scheduler, by name.
    pub fn disks_under(&self, scheduler: &str) -> Vec<String> {
        let entries = fs::read_dir(self.root.join("block")).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let is_under = |name: &String| self.disk(name).scheduler().is_ok_and(|is| is == scheduler);
        let mut names: Vec<String> = names.filter(is_under).collect();
        names.sort();
        names
    }
}

impl Disk {
    pub fn is_there(&self) -> bool {
        self.dir.is_dir()
    }

    pub fn scheduler(&self) -> io::Result<String> {
        Queue::new(&self.dir.join("queue"), &self.name).read("scheduler")
    }

    /// A file below the disk's folder.
    pub fn read(&self, file: &str) -> io::Result<String> {
        fs::read_to_string(self.dir.join(file))
    }
}
