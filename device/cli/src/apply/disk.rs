// SPDX-License-Identifier: MIT OR Apache-2.0
//! The disk of `--disk`: one of this system, or of the system that an image is for.

use std::path::Path;
use std::str::FromStr;

use steadyio_core::device::DeviceError;
use steadyio_core::device_name::{SYSFS, find};

/// A whole disk, which need not be there.
#[derive(Debug, Clone)]
pub struct Disk {
    /// Kernel name, for example `mmcblk0`.
    pub name: String,
    /// Says that a partition was given.
    pub note: Option<String>,
}

impl FromStr for Disk {
    type Err = String;

    fn from_str(text: &str) -> Result<Disk, String> {
        match find(Path::new(SYSFS), Path::new(text)) {
            Ok(found) => Ok(Disk { note: found.disk_note(), name: found.disk }),
            Err(DeviceError::Missing { .. }) => match absent(text) {
                Some(name) => Ok(Disk { name: name.into(), note: None }),
                None => Err("must be a disk's name, such as mmcblk0, or its node".into()),
            },
            Err(error) => Err(format!("{:#}", anyhow::Error::from(error))),
        }
    }
}

/// The name of a disk that another system has, or that is not plugged in.
fn absent(text: &str) -> Option<&str> {
    let name = text.strip_prefix("/dev/").unwrap_or(text);
    let is_fit = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    (!name.is_empty() && name.chars().all(is_fit)).then_some(name)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_is_not_there_is_known_by_its_name_only() {
        for text in ["mmcblk79", "/dev/mmcblk79"] {
            assert_eq!(text.parse::<Disk>().unwrap().name, "mmcblk79", "{text}");
        }
        for text in ["", "/dev/disk/by-id/mmc-none", "mmcblk79/queue", "a b", ".."] {
            let error = text.parse::<Disk>().unwrap_err();
            assert!(error.starts_with("must be a disk's name"), "{text}: {error}");
        }
        let error = "/dev/null".parse::<Disk>().unwrap_err();
        assert!(error.contains("a character device"), "{error}");
        let error = "/etc/passwd/x".parse::<Disk>().unwrap_err();
        assert!(error.contains("Not a directory"), "{error}");
    }
}
