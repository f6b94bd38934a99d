// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a disk has done so far, as the kernel counts it.
//!
//! Tells whether somebody else used the disk while a command was timed, and how many flushes the
//! kernel sent behind a durable write: that depends on the file system.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

const SECTORS_PER_KIB: u64 = 2;
/// Places in `/sys/block/DISK/stat` (Documentation/block/stat.rst).
const READ_SECTORS: usize = 2;
const WRITTEN_SECTORS: usize = 6;
const DISCARDED_SECTORS: usize = 13;
const FLUSHES: usize = 15;

/// Counts since the disk appeared, or between two readings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    pub read_sectors: u64,
    pub written_sectors: u64,
    pub discarded_sectors: u64,
    pub flushes: u64,
}

impl Traffic {
    fn parse(text: &str) -> Option<Traffic> {
        let numbers: Vec<u64> =
            text.split_whitespace().map_while(|word| word.parse().ok()).collect();
        Some(Traffic {
            read_sectors: *numbers.get(READ_SECTORS)?,
            written_sectors: *numbers.get(WRITTEN_SECTORS)?,
            // Kernels before 4.18 and 5.5 lack them.
            discarded_sectors: numbers.get(DISCARDED_SECTORS).copied().unwrap_or(0),
            flushes: numbers.get(FLUSHES).copied().unwrap_or(0),
        })
    }

    pub fn since(self, before: Traffic) -> Traffic {
        let less = u64::saturating_sub;
        Traffic {
            read_sectors: less(self.read_sectors, before.read_sectors),
            written_sectors: less(self.written_sectors, before.written_sectors),
            discarded_sectors: less(self.discarded_sectors, before.discarded_sectors),
            flushes: less(self.flushes, before.flushes),
        }
    }

    /// Whether this is one read of so much, or one write and the flushes behind it, and nothing else.
    /// Also if nothing was counted: some drivers keep no statistics.
    pub fn is_only(self, kib: u64, writes: bool, flushes_max: u64) -> bool {
        if self == Traffic::default() {
            return true;
        }
        let own = kib * SECTORS_PER_KIB;
        let (read, written) = if writes { (0, own) } else { (own, 0) };
        let same = self.read_sectors == read && self.written_sectors == written;
        same && self.discarded_sectors == 0 && self.flushes <= flushes_max
    }

    pub fn written_kib(self) -> u64 {
        self.written_sectors / SECTORS_PER_KIB
    }
}

/// Reads the counts of one disk.
#[derive(Debug)]
pub struct Meter {
    stat: File,
}

impl Meter {
    /// `disk`: its folder in sysfs.
    pub fn open(disk: &Path) -> std::io::Result<Meter> {
        Ok(Meter { stat: File::open(disk.join("stat"))? })
    }

    /// `None`: the disk is gone, or the kernel writes something else.
    pub fn read(&self) -> Option<Traffic> {
        let mut text = [0; 512];
        let length = self.stat.read_at(&mut text, 0).ok()?;
        Traffic::parse(std::str::from_utf8(&text[..length]).ok()?)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// As 6.12 prints it.
    const STAT: &str = "     120        3     4096       50      200        7     8192      900        0      700      950        5        0      640        4       11        6\n";

    #[test]
    fn counts_are_read_as_the_kernel_prints_them() {
        let found = Traffic::parse(STAT).unwrap();
        let wanted = Traffic {
            read_sectors: 4_096,
            written_sectors: 8_192,
            discarded_sectors: 640,
            flushes: 11,
        };
        assert_eq!(found, wanted);
        assert_eq!(Traffic::parse("no numbers"), None);
    }

    #[test]
    fn a_command_is_alone_if_only_its_own_sectors_moved() {
        let write = Traffic { written_sectors: 8, flushes: 1, ..Traffic::default() };
        assert!(write.is_only(4, true, 1) && !write.is_only(4, true, 0));
        assert!(!write.is_only(8, true, 1) && !write.is_only(4, false, 1));
        let journal = Traffic { written_sectors: 16, ..write };
        assert!(!journal.is_only(4, true, 1), "somebody else wrote 4 KiB");
        assert!(Traffic { read_sectors: 8, ..Traffic::default() }.is_only(4, false, 0));
        assert!(Traffic::default().is_only(4, false, 0));
    }
}
