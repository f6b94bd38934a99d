// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the file system of a recording, for its result. `session` calls it.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{major, minor};
use serde::Serialize;

/// The file system and its mount options, without paths, because results are meant to be shared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Filesystem {
    /// The kind, for example `ext4`.
    pub kind: String,
    /// The mount options, as the kernel prints them.
    pub options: String,
    /// The kernel name of the block device; None if there is none.
    pub device: Option<String>,
}

/// Adds the file to an error.
pub fn named(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// The file system of a directory; None if /proc does not show it.
pub fn filesystem_of(dir: &Path) -> Option<Filesystem> {
    let device = fs::metadata(dir).ok()?.dev();
    let number = format!("{}:{}", major(device), minor(device));
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let by_number = mounts.lines().find_map(|line| described(line, &number));
    let (kind, options) = match by_number {
        Some(found) => found,
        // btrfs gives each subvolume a separate number, which no mount has.
        None => described(mount_of(&mounts, &dir.canonicalize().ok()?)?, "")?,
    };
    let link = fs::read_link(format!("/sys/dev/block/{number}")).ok();
    let name = |link: &std::path::PathBuf| Some(link.file_name()?.to_string_lossy().into_owned());
    Some(Filesystem { kind, options, device: link.as_ref().and_then(name) })
}

/// The mount of a path: the longest mount point, and the last one there.
fn mount_of<'a>(mounts: &'a str, path: &Path) -> Option<&'a str> {
    let point = |line: &str| {
        let point = line.split(' ').nth(4)?.replace("\\040", " ");
        path.starts_with(&point).then_some(point.len())
    };
    mounts
        .lines()
        .filter_map(|line| Some((point(line)?, line)))
        .max_by_key(|(bytes, _)| *bytes)
        .map(|(_, line)| line)
}

/// The kind and options in a line of mountinfo, if it has this device number; without a number, of
/// any.
fn described(line: &str, number: &str) -> Option<(String, String)> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ').skip(2);
    let found = before.next()?;
    if !number.is_empty() && found != number {
        return None;
    }
    let of_mount = before.nth(2)?;
    let mut after = after.split(' ');
    let kind = after.next()?;
    let of_filesystem = after.nth(1)?;
    Some((kind.to_string(), format!("{of_mount};{of_filesystem}")))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn mountinfo_is_understood() {
        let line =
            "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 shared:7 - ext4 /dev/root rw,lazytime";
        let (kind, options) = described(line, "98:0").unwrap();
        assert_eq!((kind.as_str(), options.as_str()), ("ext4", "rw,noatime;rw,lazytime"));
        assert_eq!(described(line, "98:1"), None);
    }

    #[test]
    fn a_mount_is_found_by_its_path_too() {
        let mounts = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n\
            2 1 0:40 /@data /mnt/a rw - btrfs /dev/sdb rw,compress\n\
            3 1 0:41 / /mnt/a\\040b rw - xfs /dev/sdc rw";
        let kind = |path: &str| {
            let line = mount_of(mounts, Path::new(path)).unwrap();
            described(line, "").unwrap().0
        };
        assert_eq!(["/mnt/a/x", "/mnt/a b", "/mnt"].map(kind), ["btrfs", "xfs", "ext4"]);
    }

    #[test]
    fn proc_is_a_file_system() {
        assert_eq!(filesystem_of(Path::new("/proc")).unwrap().kind, "proc");
    }
}
