// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the device that a user names, with the same rule for all commands, options and libraries.
//!
//! A word without a slash is a name of the kernel (`mmcblk0`, `mmcblk0p2`, `chardisk0`, `ng0n1`),
//! or the name of a link to a device in `/dev`. Anything with a slash is a path: a node, or a link
//! to one (`/dev/disk/by-id/...`). Where a disk is needed, a partition stands for its disk, which
//! [`Found::disk_note`] reports.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The mount point of sysfs.
pub const SYSFS: &str = "/sys";
/// The classes of the character devices that programs read and write like disks.
const CHARACTER_CLASSES: [&str; 2] = ["class/chardisk", "class/nvme-generic"];
/// The number of disks that a message lists; more would hide the message.
const LISTED_MAX: usize = 12;

/// A device that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The node cannot be examined.
    #[error("{}", node.display())]
    Node { node: PathBuf, source: io::Error },
    /// The argument is neither a node nor a name of the kernel.
    #[error("{}: no such block device (No such file or directory); {known}", given.display())]
    Missing {
        given: PathBuf,
        /// A list of the disks.
        known: String,
    },
    /// A device and a file have this name.
    #[error("{word}: names a device and a file here; write {} or ./{word}", node.display())]
    Ambiguous { word: String, node: PathBuf },
    /// The argument is a file, a character device or the like.
    #[error(
        "{}: is {kind}, not a block device; to measure a file's storage, name the block device \
         below it, or put a loop device on the file (losetup)", node.display()
    )]
    NotBlock {
        node: PathBuf,
        /// The kind of file.
        kind: &'static str,
    },
    /// sysfs is missing or incomplete.
    #[error("{} cannot be read (is sysfs mounted on /sys?)", path.display())]
    Sysfs {
        /// File or directory.
        path: PathBuf,
        source: io::Error,
    },
}

/// A block device in sysfs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The kernel name, for example `mmcblk0p2`.
    pub name: String,
    /// The kernel name of the whole disk.
    pub disk: String,
    /// The device's directory in sysfs.
    pub dir: PathBuf,
}

impl Found {
    fn at(dir: PathBuf) -> Option<Found> {
        let name = last_name(&dir)?;
        let disk =
            if dir.join("partition").exists() { last_name(dir.parent()?)? } else { name.clone() };
        Some(Found { name, disk, dir })
    }

    /// For a command that needs a disk: a note that a partition was given.
    pub fn disk_note(&self) -> Option<String> {
        disk_note(&self.name, &self.disk)
    }
}

/// A note that the disk is used, if `name` is a partition of it.
pub fn disk_note(name: &str, disk: &str) -> Option<String> {
    (name != disk).then(|| format!("{name} is a partition; this concerns its whole disk, {disk}"))
}

/// Finds a block device in the sysfs that is mounted on `sys`, or in a directory like it. The node
/// need not exist.
///
/// # Errors
/// [`DeviceError::Missing`] if there is no such device, [`DeviceError::NotBlock`] for anything else
/// that exists, [`DeviceError::Node`] if a path cannot be examined.
pub fn find(sys: &Path, given: &Path) -> Result<Found, DeviceError> {
    let missing = || missing(sys, given);
    if let Some(word) = word(given) {
        if let Some(found) = by_name(sys, word) {
            return Ok(found);
        }
        let link = Path::new("/dev").join(word);
        return match fs::metadata(&link) {
            Ok(meta) if meta.file_type().is_block_device() => find(sys, &link),
            _ => Err(missing()),
        };
    }
    let kind = match fs::metadata(given) {
        Ok(meta) if meta.file_type().is_block_device() => {
            // A copy of sysfs may lack the numbers.
            let has_numbers = sys.join("dev/block").is_dir();
            let by_name = || (!has_numbers).then(|| by_last_name(sys, given)).flatten();
            return by_number(sys, meta.rdev()).or_else(by_name).ok_or_else(missing);
        }
        Ok(meta) => meta.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // Without devtmpfs, sysfs has devices whose nodes are missing.
            let is_node = given.parent() == Some(Path::new("/dev"));
            return is_node.then(|| by_last_name(sys, given)).flatten().ok_or_else(missing);
        }
        Err(source) => return Err(DeviceError::Node { node: given.into(), source }),
    };
    let is_shown = kind.is_dir() && is_below(given, sys);
    let found = is_shown.then(|| by_last_name(sys, given)).flatten();
    found.ok_or_else(|| DeviceError::NotBlock { node: given.into(), kind: kind_of(kind) })
}

/// The path to open for a user's argument, which may also name a file. A word that names no device
/// is returned as it is.
///
/// # Errors
/// [`DeviceError::Ambiguous`] if the word is both a device and a file of the working directory.
pub fn path_of(given: &Path) -> Result<PathBuf, DeviceError> {
    let Some(word) = word(given) else { return Ok(given.into()) };
    let node = Path::new("/dev").join(word.replace('!', "/"));
    let has = |class: &&str| Path::new(SYSFS).join(class).join(word).exists();
    let is_character = CHARACTER_CLASSES.iter().any(has);
    let is_node = || fs::metadata(&node).is_ok_and(|meta| meta.file_type().is_block_device());
    if !is_character && !is_node() && by_name(Path::new(SYSFS), word).is_none() {
        return Ok(given.into());
    }
    if given.is_file() {
        return Err(DeviceError::Ambiguous { word: word.into(), node });
    }
    Ok(node)
}

/// The error for a device that does not exist.
pub(crate) fn missing(sys: &Path, given: &Path) -> DeviceError {
    DeviceError::Missing { given: given.into(), known: known(sys) }
}

/// The kind of a file that is not a block device, in words.
pub(crate) fn kind_of(kind: fs::FileType) -> &'static str {
    if kind.is_dir() {
        "a directory"
    } else if kind.is_char_device() {
        "a character device"
    } else if kind.is_file() {
        "a regular file"
    } else {
        "something else"
    }
}

/// A name without a slash; dots are paths.
fn word(given: &Path) -> Option<&str> {
    given.to_str().filter(|text| !text.contains('/'))
}

fn by_name(sys: &Path, name: &str) -> Option<Found> {
    if matches!(name, "" | "." | "..") {
        return None;
    }
    let dirs = [sys.join("class/block"), sys.join("block")].map(|dir| dir.join(name));
    dirs.iter()
        .filter_map(|dir| dir.canonicalize().ok())
        .find(|dir| dir.is_dir())
        .and_then(Found::at)
}

fn by_number(sys: &Path, number: u64) -> Option<Found> {
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    Found::at(sys.join(format!("dev/block/{major}:{minor}")).canonicalize().ok()?)
}

/// Finds a device by the name of the node at the end of all links.
fn by_last_name(sys: &Path, given: &Path) -> Option<Found> {
    let node = given.canonicalize().unwrap_or_else(|_| given.into());
    by_name(sys, &last_name(&node)?)
}

fn last_name(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_str()?.to_string())
}

fn is_below(path: &Path, root: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    real(path).zip(real(root)).is_some_and(|(path, root)| path.starts_with(root))
}

/// The names of the disks that have a size.
fn known(sys: &Path) -> String {
    let block = sys.join("block");
    let holds = |name: &String| {
        fs::read_to_string(block.join(name).join("size")).is_ok_and(|size| size.trim() != "0")
    };
    let entries = fs::read_dir(&block).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(holds).collect();
    names.sort();
    let more = if names.len() > LISTED_MAX { ", ..." } else { "" };
    names.truncate(LISTED_MAX);
    match names.len() {
        0 => format!("{} shows none", block.display()),
        _ => format!("there are: {}{more}", names.join(", ")),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::symlink;

    use proptest::prelude::*;

    use super::*;

    /// A sysfs with disks, each with its number of partitions; the first disks have no partition.
    fn sysfs(disks: &[(String, u32)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let class = root.path().join("class/block");
        fs::create_dir_all(&class).unwrap();
        fs::create_dir_all(root.path().join("block")).unwrap();
        for (disk, partitions) in disks {
            let dir = root.path().join("devices").join(disk);
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join("size"), "8\n").unwrap();
            symlink(&dir, class.join(disk)).unwrap();
            symlink(&dir, root.path().join("block").join(disk)).unwrap();
            for number in 1..=*partitions {
                let name = format!("{disk}p{number}");
                fs::create_dir_all(dir.join(&name)).unwrap();
                fs::write(dir.join(&name).join("partition"), "1\n").unwrap();
                symlink(dir.join(&name), class.join(&name)).unwrap();
            }
        }
        root
    }

    fn forms(sys: &Path, name: &str) -> Vec<PathBuf> {
        let link = sys.join(format!("by-id-{name}"));
        symlink(sys.join("class/block").join(name), &link).unwrap();
        let path = sys.join("class/block").join(name);
        vec![name.into(), Path::new("/dev").join(name), path, link]
    }

    proptest! {
        #[test]
        fn every_form_of_a_name_is_the_same_device(
            counts in prop::collection::vec(0u32..4, 1..5),
        ) {
            // Numbers that no machine has, so that the real /dev has no such names.
            let name = |(number, _): (usize, &u32)| format!("mmcblk{}", number + 70);
            let disks: Vec<(String, u32)> =
                counts.iter().enumerate().map(|pair| (name(pair), *pair.1)).collect();
            let root = sysfs(&disks);
            let sys = root.path();
            for (disk, partitions) in &disks {
                let parts = (1..=*partitions).map(|number| format!("{disk}p{number}"));
                for name in parts.chain([disk.clone()]) {
                    for form in forms(sys, &name) {
                        let found = find(sys, &form).unwrap();
                        prop_assert_eq!((&found.name, &found.disk), (&name, disk), "{:?}", form);
                        prop_assert_eq!(found.disk_note().is_some(), name != *disk);
                    }
                }
            }
        }

        #[test]
        fn no_text_panics_and_none_leaves_sysfs(text in ".{0,40}") {
            let root = sysfs(&[("mmcblk70".into(), 1)]);
            if let Ok(found) = find(root.path(), Path::new(&text)) {
                prop_assert!(found.dir.starts_with(root.path().canonicalize().unwrap()));
            }
        }
    }

    #[test]
    fn what_is_missing_is_answered_with_what_there_is() {
        let root = sysfs(&[("mmcblk71".into(), 1), ("mmcblk70".into(), 0)]);
        for given in ["mmcblk79", "/dev/mmcblk79", "/dev/disk/by-id/mmc-none", "", "..", "none/x"] {
            let error = find(root.path(), Path::new(given)).unwrap_err().to_string();
            let says =
                "no such block device (No such file or directory); there are: mmcblk70, mmcblk71";
            assert_eq!(error, format!("{given}: {says}"));
        }
        let empty = tempfile::tempdir().unwrap();
        let error = find(empty.path(), Path::new("mmcblk70")).unwrap_err().to_string();
        assert!(error.ends_with("block shows none"), "{error}");
    }

    #[test]
    fn what_is_no_block_device_is_named() {
        let root = sysfs(&[]);
        for (given, kind) in [
            ("/dev/null", "a character device"),
            ("/etc/passwd", "a regular file"),
            ("/", "a directory"),
            ("/etc", "a directory"),
        ] {
            let error = find(root.path(), Path::new(given)).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("{given}: is {kind}, not a block device")),
                "{error}"
            );
        }
    }

    #[test]
    fn a_word_that_names_no_device_is_a_path() {
        for given in ["store.bin", "./sda", "/tmp/none", "null", ""] {
            assert_eq!(path_of(Path::new(given)).unwrap(), Path::new(given));
        }
    }

    #[test]
    fn a_name_of_the_kernel_is_a_node() {
        let Some(name) = fs::read_dir("/sys/block").ok().and_then(|mut dir| dir.next()) else {
            return;
        };
        let name = name.unwrap().file_name().into_string().unwrap();
        let node = Path::new("/dev").join(name.replace('!', "/"));
        assert_eq!(path_of(Path::new(&name)).unwrap(), node);
    }
}
