// SPDX-License-Identifier: MIT OR Apache-2.0
//! The file system of a recording, for its result.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{major, minor};
use serde::Serialize;

/// File system and mount options. Without paths, because results are meant to be shared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Filesystem {
    /// `ext4`, for example.
    pub kind: String,
    /// Mount options, as the kernel shows them.
    pub options: String,
    /// Kernel name of the block device; None if there is none.
    pub device: Option<String>,
}

/// An error, with its file.
pub fn named(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// The file system of a directory; None if /proc does not tell.
pub fn filesystem_of(dir: &Path) -> Option<Filesystem> {
    let device = fs::metadata(dir).ok()?.dev();
    let number = format!("{}:{}", major(device), minor(device));
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let (kind, options) = mounts.lines().find_map(|line| described(line, &number))?;
    let link = fs::read_link(format!("/sys/dev/block/{number}")).ok();
    let name = |link: &std::path::PathBuf| Some(link.file_name()?.to_string_lossy().into_owned());
    Some(Filesystem { kind, options, device: link.as_ref().and_then(name) })
}

/// Kind and options in a line of mountinfo, if it is of this device.
fn described(line: &str, number: &str) -> Option<(String, String)> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ').skip(2);
    if before.next()? != number {
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
    fn proc_is_a_file_system() {
        assert_eq!(filesystem_of(Path::new("/proc")).unwrap().kind, "proc");
    }
}
