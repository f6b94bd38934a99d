// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which devices are meant, and what they are called.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use steadyio::trace::event::Dev;
use steadyio::trace::source::capture::devices::related;

const SYSFS: &str = "/sys/dev/block";

/// The devices on which I/O of `text` shows: itself, the disk that it is a partition of, and what it is made
/// of. `text` is MAJOR:MINOR, a node, a mount point or anything in a file system, or a kernel name.
pub fn find(text: &str) -> anyhow::Result<BTreeSet<Dev>> {
    let dev = match number(text) {
        Some(dev) => dev,
        None => of_path(text).with_context(|| format!("--device {text}"))?,
    };
    let related = related(&[dev]).with_context(|| format!("--device {text}"))?;
    Ok(related.into_iter().collect())
}

/// What is named as `MAJOR:MINOR`, on any machine.
pub fn find_number(text: &str) -> anyhow::Result<BTreeSet<Dev>> {
    let dev = number(text).ok_or_else(|| {
        anyhow!(
            "--device {text}: a file does not tell names, so it must be MAJOR:MINOR, such as 179:0"
        )
    })?;
    Ok(BTreeSet::from([dev]))
}

/// What the kernel calls its block devices now.
pub fn names() -> BTreeMap<Dev, String> {
    let Ok(entries) = fs::read_dir(SYSFS) else { return BTreeMap::new() };
    let named = |entry: fs::DirEntry| {
        let target = fs::read_link(entry.path()).ok()?;
        let name = target.file_name()?.to_string_lossy().into_owned();
        Some((number(entry.file_name().to_str()?)?, name))
    };
    entries.filter_map(|entry| named(entry.ok()?)).collect()
}

fn number(text: &str) -> Option<Dev> {
    let (major, minor) = text.split_once(':')?;
    Some(Dev { major: major.parse().ok()?, minor: minor.parse().ok()? })
}

fn of_path(text: &str) -> anyhow::Result<Dev> {
    let path = match text.contains('/') {
        true => PathBuf::from(text),
        false => Path::new("/dev").join(text),
    };
    let meta = fs::metadata(&path).with_context(|| path.display().to_string())?;
    let (number, what) = match meta.file_type().is_block_device() {
        true => (meta.rdev(), "is not a block device that the kernel has"),
        false => {
            (meta.dev(), "is in a file system without a block device of its own; name the device")
        }
    };
    let dev = Dev { major: rustix::fs::major(number), minor: rustix::fs::minor(number) };
    if !place(dev).exists() {
        bail!("{} {what} ({dev})", path.display());
    }
    Ok(dev)
}

fn place(dev: Dev) -> PathBuf {
    Path::new(SYSFS).join(dev.to_string())
}
