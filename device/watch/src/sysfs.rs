// SPDX-License-Identifier: MIT OR Apache-2.0
//! The disks that sysfs shows, and their files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use steadyio_core::knobs::Queue;

/// A device that sysfs does not have.
#[derive(Debug, thiserror::Error)]
#[error(
    "{}: not a block device in {} (give a name such as mmcblk0, or a node such as /dev/mmcblk0)",
    device.display(), folder.display()
)]
pub struct NoDisk {
    device: PathBuf,
    folder: PathBuf,
}

/// A mounted sysfs, or a folder made like it.
#[derive(Debug, Clone)]
pub struct Sysfs {
    root: PathBuf,
}

/// A whole disk, which need not be there at the moment.
#[derive(Debug, Clone)]
pub struct Disk {
    pub name: String,
    dir: PathBuf,
}

impl Sysfs {
    pub fn new(root: &Path) -> Sysfs {
        Sysfs { root: root.into() }
    }

    /// The disk with that name or node; of a partition, the disk that it is part of.
    pub fn find(&self, device: &Path) -> Result<String, NoDisk> {
        // Names such as /dev/disk/by-id/... are links.
        let node = device.canonicalize().unwrap_or_else(|_| device.into());
        let name = node.file_name().map(PathBuf::from).unwrap_or_default();
        self.whole_disk(&name)
            .ok_or_else(|| NoDisk { device: device.into(), folder: self.root.join("block") })
    }

    fn whole_disk(&self, name: &Path) -> Option<String> {
        let as_text = |name: &Path| Some(name.to_str()?.to_string());
        if !name.as_os_str().is_empty() && self.root.join("block").join(name).is_dir() {
            return as_text(name);
        }
        let dir = self.root.join("class/block").join(name).canonicalize().ok()?;
        let disk = dir.join("partition").exists().then(|| dir.parent()?.file_name())?;
        as_text(Path::new(disk?))
    }

    pub fn disk(&self, name: &str) -> Disk {
        Disk { name: name.into(), dir: self.root.join("block").join(name) }
    }

    /// All disks under a scheduler, by name.
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
