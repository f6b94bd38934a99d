// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the device numbers that the I/O of a device passes: its disk, the disk's partitions, and
//! the devices below. `capture` filters events by them, and the report selects requests by them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::event::{Dev, OpKind};
use crate::io::Request;

const SYSFS: &str = "/sys/dev/block";

/// The numbers of `devices`, of all devices below them, and of the partitions of all these, sorted.
///
/// A bio has the number of its partition, and its request has that of the disk.
pub fn related(devices: &[Dev]) -> io::Result<Vec<Dev>> {
    let mut found = BTreeSet::new();
    for dev in devices {
        let Stack { below, .. } = Stack::of(*dev)?;
        for dev in below.into_iter().chain([*dev]) {
            found.insert(dev);
            for entry in fs::read_dir(folder(dev)?)? {
                let part = entry?.path();
                if part.join("partition").exists() {
                    found.insert(number(&part)?);
                }
            }
        }
    }
    Ok(found.into_iter().collect())
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    pub dev: Dev,
    /// The devices that get its I/O: the disk of a partition, the devices below device mapper and
    /// RAID, and so on.
    pub below: BTreeSet<Dev>,
    pub untold: Untold,
}

/// I/O that passes through a device without an event for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untold {
    /// None: a disk, or device mapper.
    Nothing,
    /// Flushes without data: a partition.
    Flushes,
    /// I/O of the device's own threads: RAID.
    Anything,
}

impl Stack {
    /// A device for which the devices below are unknown.
    pub fn unknown(dev: Dev) -> Stack {
        Stack { dev, below: BTreeSet::new(), untold: Untold::Nothing }
    }

    pub fn of(dev: Dev) -> io::Result<Stack> {
        let (folder, mut below) = (folder(dev)?, BTreeSet::new());
        add_below(&folder, &mut below)?;
        let untold = match () {
            () if folder.join("partition").exists() => Untold::Flushes,
            () if folder.join("dm").exists() => Untold::Nothing,
            () => Untold::Anything,
        };
        Ok(Stack { dev, below, untold })
    }

    /// Whether the request belongs to the device: it passed through it, or, where events do not
    /// show that, it can only have come through it or a device below.
    pub fn has(&self, request: &Request) -> bool {
        if request.dev == self.dev || request.through.contains(&self.dev) {
            return true;
        }
        let is_flush = request.op.kind == OpKind::Flush;
        let untold = self.untold == Untold::Anything || self.untold == Untold::Flushes && is_flush;
        let is_below = |dev: &Dev| self.below.contains(dev);
        untold && is_below(&request.dev) && request.through.iter().all(is_below)
    }
}

/// The folder of a device in sysfs.
fn folder(dev: Dev) -> io::Result<PathBuf> {
    fs::canonicalize(format!("{SYSFS}/{dev}"))
}

/// Adds the devices below the one with this sysfs folder.
fn add_below(folder: &Path, found: &mut BTreeSet<Dev>) -> io::Result<()> {
    let disk = folder.parent().filter(|_| folder.join("partition").exists());
    // The devices below device mapper and RAID; the folder of a disk is empty.
    let slaves = fs::read_dir(folder.join("slaves")).into_iter().flatten();
    let slaves = slaves.map(|entry| fs::canonicalize(entry?.path()));
    for folder in disk.map(|disk| Ok(disk.to_path_buf())).into_iter().chain(slaves) {
        let folder = folder?;
        if found.insert(number(&folder)?) {
            add_below(&folder, found)?;
        }
    }
    Ok(())
}

/// The kernel's present names of its block devices.
pub fn names() -> BTreeMap<Dev, String> {
    let named = |entry: fs::DirEntry| {
        let target = fs::read_link(entry.path()).ok()?;
        let name = target.file_name()?.to_string_lossy().into_owned();
        Some((Dev::parse(entry.file_name().to_str()?)?, name))
    };
    let entries = fs::read_dir(SYSFS).into_iter().flatten().flatten();
    entries.filter_map(named).collect()
}

/// The device number in the file `dev`, such as `8:1`.
fn number(folder: &Path) -> io::Result<Dev> {
    let text = fs::read_to_string(folder.join("dev"))?;
    let number = Dev::parse(text.trim());
    number.ok_or_else(|| io::Error::other(format!("{}: {text:?}", folder.join("dev").display())))
}
