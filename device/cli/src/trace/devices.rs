// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the devices that `--device` names, and their names. `steady trace` calls it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use steadyio_core::device_name::{SYSFS, find as find_device, path_of};
use steadyio_trace::event::Dev;
use steadyio_trace::io::Trace;
use steadyio_trace::source::capture::devices::Stack;

/// Finds a device. `text` is MAJOR:MINOR, a node, a mount point or anything in a file system, or a
/// kernel name.
pub fn find(text: &str) -> anyhow::Result<Stack> {
    let dev = match Dev::parse(text) {
        Some(dev) => dev,
        None => of_path(text).with_context(|| format!("--device {text}"))?,
    };
    Stack::of(dev).with_context(|| format!("--device {text}"))
}

/// Parses `MAJOR:MINOR` only, for a trace of another machine.
pub fn find_number(text: &str) -> anyhow::Result<Stack> {
    let dev = Dev::parse(text).ok_or_else(|| {
        anyhow!(
            "--device {text}: files have no device names, so it must be MAJOR:MINOR, such as 179:0"
        )
    })?;
    Ok(Stack::unknown(dev))
}

/// Finds a device by the names or numbers of a kept trace.
pub fn find_named(text: &str, names: &BTreeMap<Dev, String>) -> anyhow::Result<Stack> {
    // A link has a meaning on this machine only.
    let found = find_device(Path::new(SYSFS), Path::new(text)).map(|found| found.name);
    let name = found.unwrap_or_else(|_| text.trim_start_matches("/dev/").into());
    let named = names.iter().find(|(_, known)| **known == name).map(|(dev, _)| *dev);
    let dev = named
        .or_else(|| Dev::parse(text))
        .ok_or_else(|| anyhow!("--device {text}: the traced machine has no device of that name"))?;
    Ok(Stack::unknown(dev))
}

/// A hint, if the trace has requests, but none of this device.
pub fn others(of: &Stack, trace: &Trace, names: &BTreeMap<Dev, String>) -> Option<String> {
    if trace.requests.is_empty() || trace.requests.iter().any(|request| of.has(request)) {
        return None;
    }
    let devs: BTreeSet<Dev> = trace.requests.iter().map(|request| request.dev).collect();
    let name = |dev: &Dev| names.get(dev).cloned().unwrap_or_else(|| dev.to_string());
    let list = devs.iter().map(name).collect::<Vec<_>>().join(", ");
    Some(format!("the trace has no request known to be of this device, only of {list}"))
}

fn of_path(text: &str) -> anyhow::Result<Dev> {
    let path = path_of(Path::new(text))?;
    let meta = match fs::metadata(&path) {
        // Adds the list of devices.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            find_device(Path::new(SYSFS), Path::new(text))?;
            bail!("{}: {error}", path.display());
        }
        found => found.with_context(|| path.display().to_string())?,
    };
    let (number, what) = if meta.file_type().is_block_device() {
        (meta.rdev(), "is not a block device that the kernel has")
    } else {
        (meta.dev(), "is in a file system without a block device of its own; name the device")
    };
    let dev = Dev { major: rustix::fs::major(number), minor: rustix::fs::minor(number) };
    if !place(dev).exists() {
        bail!("{} {what} ({dev})", path.display());
    }
    Ok(dev)
}

fn place(dev: Dev) -> PathBuf {
    Path::new(SYSFS).join("dev/block").join(dev.to_string())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_names_a_device_of_a_kept_trace() {
        let entries = fs::read_dir("/sys/block").into_iter().flatten().flatten();
        let mut names = entries.map(|entry| entry.file_name().into_string().unwrap());
        let Some(name) = names.find(|name| Path::new("/dev").join(name).exists()) else { return };
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("by-id");
        symlink(Path::new("/dev").join(&name), &link).unwrap();
        let dev = Dev { major: 300, minor: 7 };
        let names = BTreeMap::from([(dev, name.clone()), (Dev { major: 1, minor: 1 }, "x".into())]);
        for text in [name.as_str(), &format!("/dev/{name}"), link.to_str().unwrap(), "300:7"] {
            assert_eq!(find_named(text, &names).unwrap().dev, dev, "{text}");
        }
        assert_eq!(find_named("x", &names).unwrap().dev.major, 1);
    }

    #[test]
    fn a_name_a_node_and_a_number_are_the_same_device() {
        let entries = fs::read_dir("/sys/block").into_iter().flatten().flatten();
        for name in entries.map(|entry| entry.file_name().into_string().unwrap()) {
            let number = fs::read_to_string(format!("/sys/block/{name}/dev")).unwrap();
            let by_number = find(number.trim()).unwrap();
            let node = format!("/dev/{name}");
            if Path::new(&node).exists() {
                assert_eq!(find(&name).unwrap(), by_number);
                assert_eq!(find(&node).unwrap(), by_number);
            }
        }
    }
}
