// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which device numbers the I/O of a device passes: its disk, all partitions of that, and what lies below.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::event::{Dev, OpKind};
use crate::io::Request;

const SYSFS: &str = "/sys/dev/block";

/// The numbers of `devices`, of all that they lie on, and of the partitions of those, in order.
///
/// A bio carries the number of the partition that it came to, its request that of the disk.
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
    /// The devices that it passes its I/O to: a partition's disk, those below device mapper and
    /// RAID, and so on.
    pub below: BTreeSet<Dev>,
    pub untold: Untold,
}

/// I/O that comes through a device without an event for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untold {
    /// Nothing: a disk, or device mapper.
    Nothing,
    /// Flushes without data: a partition.
    Flushes,
    /// I/O of its own threads: RAID.
    Anything,
}

impl Stack {
    /// A device of which it is not known what it lies on.
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

    /// Whether the request is the device's: it came through it, or can only have come through it or what it
    /// lies on, where events do not tell.
    pub fn has(&self, request: &Request) -> bool {
        if request.dev == self.dev || request.through.contains(&self.dev) {
            return true;
        }
        let untold = match self.untold {
            Untold::Nothing => false,
            Untold::Flushes => request.op.kind == OpKind::Flush,
            Untold::Anything => true,
        };
        let is_below = |dev: &Dev| self.below.contains(dev);
        untold && is_below(&request.dev) && request.through.iter().all(is_below)
    }
}

/// Of a device, in sysfs.
fn folder(dev: Dev) -> io::Result<PathBuf> {
    fs::canonicalize(format!("{SYSFS}/{dev}"))
}

/// Adds what the device with this folder in sysfs lies on.
fn add_below(folder: &Path, found: &mut BTreeSet<Dev>) -> io::Result<()> {
    let mut below = Vec::new();
    if folder.join("partition").exists() {
        below.extend(folder.parent().map(Path::to_path_buf));
    }
    // What device mapper and RAID lie on; disks that have none have an empty folder.
    for entry in fs::read_dir(folder.join("slaves")).into_iter().flatten() {
        below.push(fs::canonicalize(entry?.path())?);
    }
    for folder in below {
        if found.insert(number(&folder)?) {
            add_below(&folder, found)?;
        }
    }
    Ok(())
}

/// What the kernel calls its block devices now.
pub fn names() -> BTreeMap<Dev, String> {
    let named = |entry: fs::DirEntry| {
        let target = fs::read_link(entry.path()).ok()?;
        let name = target.file_name()?.to_string_lossy().into_owned();
        Some((Dev::parse(entry.file_name().to_str()?)?, name))
    };
    let entries = fs::read_dir(SYSFS).into_iter().flatten().flatten();
    entries.filter_map(named).collect()
}

/// From the file `dev`, such as `8:1`.
fn number(folder: &Path) -> io::Result<Dev> {
    let text = fs::read_to_string(folder.join("dev"))?;
    let number = Dev::parse(text.trim());
    number.ok_or_else(|| io::Error::other(format!("{}: {text:?}", folder.join("dev").display())))
}
