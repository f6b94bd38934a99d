// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the wear of a flash device. `watch` calls it.
//!
//! An eMMC reports it in sysfs. An NVMe drive reports it in its SMART log, which needs a command to
//! the device. Therefore a separate thread asks rarely, and a device that hangs does not stop the
//! watch.

mod smart;

use std::collections::BTreeMap;
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::sysfs::{Disk, Sysfs};

const EVERY: Duration = Duration::from_secs(300);

/// The device's own estimates; None: it reports none.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Wear {
    /// The used part of the flash's life; above 1: beyond the life that the manufacturer
    /// guarantees.
    pub used_ratio: Option<f64>,
    /// The state of the spare blocks that replace worn ones.
    pub reserve: Option<Reserve>,
    /// The remaining part of the spare blocks, for NVMe.
    pub spare_ratio: Option<f64>,
    pub media_errors: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reserve {
    Normal,
    /// An eMMC has used 80 %. An NVMe drive has fewer left than it needs.
    Warning,
    Urgent,
}

/// The reason why the wear is unknown.
pub type Unread = String;

/// Reads the wear of a disk; None if its kind does not report it.
pub fn read(disk: &Disk, dev: &Path) -> Option<Result<Wear, Unread>> {
    if disk.name.starts_with("nvme") {
        return Some(smart::read(&dev.join(&disk.name)));
    }
    let life_time = disk.read("device/life_time").ok()?;
    let reserve = disk.read("device/pre_eol_info").unwrap_or_default();
    Some(Ok(emmc(&life_time, &reserve)))
}

/// Parses an eMMC's registers. Both are hexadecimal; 0 means undefined (JESD84-B51, EXT_CSD 267 to
/// 269).
fn emmc(life_time: &str, pre_eol_info: &str) -> Wear {
    let hexadecimal =
        |word: &str| u8::from_str_radix(word.trim().trim_start_matches("0x"), 16).ok();
    // Two kinds of memory, in tenths of their life; the more worn one counts.
    let tenths = life_time.split_whitespace().filter_map(hexadecimal).max();
    let reserve = match hexadecimal(pre_eol_info) {
        Some(1) => Some(Reserve::Normal),
        Some(2) => Some(Reserve::Warning),
        Some(3) => Some(Reserve::Urgent),
        _ => None,
    };
    let used_ratio = tenths.filter(|tenths| *tenths > 0).map(|tenths| f64::from(tenths) / 10.0);
    Wear { used_ratio, reserve, ..Wear::default() }
}

type Found = BTreeMap<String, Result<Wear, Unread>>;

/// The wear of all watched disks, read now and then.
#[derive(Debug)]
pub struct Wears {
    sysfs: Sysfs,
    found: Found,
    asking: Option<JoinHandle<Found>>,
    asked: Option<(Instant, Vec<String>)>,
}

impl Wears {
    pub fn new(sysfs: Sysfs) -> Wears {
        Wears { sysfs, found: Found::new(), asking: None, asked: None }
    }

    /// The known wear. It is read again after some time, or if the disks have changed.
    pub fn look(&mut self, disks: &[String]) -> &Found {
        if let Some(done) = self.asking.take_if(|thread| thread.is_finished()) {
            self.found = done.join().unwrap_or_default();
        }
        let is_due = self
            .asked
            .as_ref()
            .is_none_or(|(when, asked)| when.elapsed() >= EVERY || asked != disks);
        if is_due && self.asking.is_none() {
            self.asked = Some((Instant::now(), disks.into()));
            let disks: Vec<Disk> = disks.iter().map(|name| self.sysfs.disk(name)).collect();
            self.asking = Some(thread::spawn(move || ask(&disks)));
        }
        &self.found
    }
}

fn ask(disks: &[Disk]) -> Found {
    let wear = |disk: &Disk| Some((disk.name.clone(), read(disk, Path::new("/dev"))?));
    disks.iter().filter_map(wear).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_worn_memory_of_an_emmc_counts() {
        let wear = emmc("0x02 0x09\n", "0x02\n");
        assert_eq!((wear.used_ratio, wear.reserve), (Some(0.9), Some(Reserve::Warning)));
    }

    #[test]
    fn an_emmc_may_tell_nothing() {
        assert_eq!(emmc("0x00 0x00", "0x00"), Wear::default());
    }

    #[test]
    fn an_emmc_beyond_its_life_is_above_one() {
        assert_eq!(emmc("0x0b 0x01", "0x03").used_ratio, Some(1.1));
    }
}
