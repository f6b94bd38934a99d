// SPDX-License-Identifier: MIT OR Apache-2.0
//! Identifies a card by its model, size and serial number, so that measurements of one card are not
//! used for another. The command and `device/probe` use it.
//!
//! Profiles are shared, so they contain a hash of the number. The hash distinguishes cards, but it
//! does not keep a serial number of 32 bits secret.

use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};

/// The attributes below `/sys/block/DISK` that are unique to a device, and the names by which a
/// udev rule matches them (`ATTRS{}`). The register of an eMMC or SD card has its manufacturer,
/// model, number and date.
const UNIQUE: [(&str, &str); 5] = [
    ("device/cid", "cid"),
    ("device/serial", "serial"),
    ("serial", "serial"),
    ("device/wwid", "wwid"),
    ("wwid", "wwid"),
];

/// The identity of a whole disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    pub model: String,
    pub size_bytes: u64,
    pub unique: Option<Unique>,
}

/// An attribute that no other device of the model shares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unique {
    /// The name in a udev rule.
    pub attribute: &'static str,
    pub value: String,
}

impl Identity {
    /// Reads the identity; `disk` is the folder in sysfs.
    pub fn read(disk: &Path) -> Identity {
        let read = |file: &str| {
            let text = fs::read_to_string(disk.join(file)).ok()?;
            Some(text.trim().to_string()).filter(|text| !text.is_empty())
        };
        let unique = |(file, attribute): (&str, &'static str)| {
            read(file).map(|value| Unique { attribute, value })
        };
        Identity {
            // SCSI and NVMe call it model, MMC calls it name.
            model: read("device/model").or_else(|| read("device/name")).unwrap_or_default(),
            size_bytes: read("size").and_then(|text| text.parse().ok()).unwrap_or(0_u64) * 512,
            unique: UNIQUE.into_iter().find_map(unique),
        }
    }

    /// The hash in hexadecimal digits; `None` if the device has no number.
    pub fn serial_sha256(&self) -> Option<String> {
        let digest = Sha256::digest(self.unique.as_ref()?.value.as_bytes());
        Some(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn disk(files: &[(&str, &str)]) -> Identity {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("device")).unwrap();
        for (file, text) in files {
            fs::write(dir.path().join(file), text).unwrap();
        }
        Identity::read(dir.path())
    }

    #[test]
    fn a_card_is_known_by_its_register_and_a_drive_by_its_serial_number() {
        let card = disk(&[
            ("device/name", "NCEMAD\n"),
            ("device/serial", "0x01020304\n"),
            ("device/cid", "880103\n"),
            ("size", "2048\n"),
        ]);
        assert_eq!((card.model.as_str(), card.size_bytes), ("NCEMAD", 1 << 20));
        let unique = |attribute, value: &str| Some(Unique { attribute, value: value.into() });
        assert_eq!(card.unique, unique("cid", "880103"));
        let drive = disk(&[("device/model", "SSD 970   \n"), ("device/serial", "S4EV  \n")]);
        assert_eq!((drive.model.as_str(), drive.unique), ("SSD 970", unique("serial", "S4EV")));
    }

    #[test]
    fn the_hash_is_sha_256_of_the_number() {
        let disk = disk(&[("device/serial", "abc\n")]);
        let published = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(disk.serial_sha256().as_deref(), Some(published));
        assert_eq!(Identity::default().serial_sha256(), None);
    }
}
