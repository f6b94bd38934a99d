// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which device numbers the I/O of a device passes: its disk, all partitions of that, and what lies below.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use crate::trace::event::Dev;

/// The numbers of `devices` and of all that they lie on, in order.
///
/// A bio carries the number of the partition that it came to, its request that of the disk.
pub fn related(devices: &[Dev]) -> io::Result<Vec<Dev>> {
    let mut found = BTreeSet::new();
    for dev in devices {
        add(&fs::canonicalize(format!("/sys/dev/block/{dev}"))?, &mut found)?;
    }
    Ok(found.into_iter().collect())
}

/// Adds the disk of the device whose folder in sysfs this is.
fn add(folder: &Path, found: &mut BTreeSet<Dev>) -> io::Result<()> {
    let is_partition = folder.join("partition").exists();
    let disk = if is_partition { folder.parent().unwrap_or(folder) } else { folder };
    if !found.insert(number(disk)?) {
        return Ok(());
    }
    for entry in fs::read_dir(disk)? {
        let part = entry?.path();
        if part.join("partition").exists() {
            found.insert(number(&part)?);
        }
    }
    // What device mapper and RAID lie on; disks that have none have an empty folder.
    if let Ok(below) = fs::read_dir(disk.join("slaves")) {
        for entry in below {
            add(&fs::canonicalize(entry?.path())?, found)?;
        }
    }
    Ok(())
}

/// What the kernel calls its block devices now.
pub fn names() -> BTreeMap<Dev, String> {
    let named = |entry: fs::DirEntry| {
        let target = fs::read_link(entry.path()).ok()?;
        let name = target.file_name()?.to_string_lossy().into_owned();
        Some((parse(entry.file_name().to_str()?)?, name))
    };
    let entries = fs::read_dir("/sys/dev/block").into_iter().flatten();
    entries.filter_map(|entry| named(entry.ok()?)).collect()
}

/// From `MAJOR:MINOR`.
pub fn parse(text: &str) -> Option<Dev> {
    let (major, minor) = text.split_once(':')?;
    Some(Dev { major: major.parse().ok()?, minor: minor.parse().ok()? })
}

/// From the file `dev`, such as `8:1`.
fn number(folder: &Path) -> io::Result<Dev> {
    let text = fs::read_to_string(folder.join("dev"))?;
    let number = parse(text.trim());
    number.ok_or_else(|| io::Error::other(format!("{}: {text:?}", folder.join("dev").display())))
}
