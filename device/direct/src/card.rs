// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds a card, its block devices and their users, before the card is taken from the block layer.
//! The kernel unbinds a card whose file systems are mounted without any warning. `taking` uses it.
//!
//! The directories are parameters, so that tests can use synthetic ones.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// A block device of the card that is in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InUse {
    /// The kernel name, for example `mmcblk0p1`.
    pub device: String,
    /// The use, in words: `mounted on /data`.
    pub how: String,
}

/// A card on the bus.
#[derive(Debug, Clone)]
pub struct Card {
    /// The name in `/sys/bus/mmc/devices`, for example `mmc0:0001`.
    pub name: String,
    /// The kernel names of its block devices; partitions follow their disks.
    pub devices: Vec<String>,
    /// The card's driver; None if it has none.
    pub driver: Option<String>,
}

impl Card {
    /// Finds a card by its name, or by the name of one of its block devices.
    pub fn find(sys: &Path, wanted: &str) -> io::Result<Card> {
        let bus = sys.join("bus/mmc/devices");
        let mut seen = Vec::new();
        let entries = match fs::read_dir(&bus) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(no_cards()),
            entries => entries?,
        };
        for entry in entries {
            let card = Card::read(&bus, &entry?.file_name().to_string_lossy())?;
            if card.name == wanted || card.devices.iter().any(|device| device == wanted) {
                return Ok(card);
            }
            seen.push(card.name);
        }
        if seen.is_empty() {
            return Err(no_cards());
        }
        seen.sort();
        Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!("no eMMC or SD card has it; the cards are: {}", seen.join(", ")),
        ))
    }

    fn read(bus: &Path, name: &str) -> io::Result<Card> {
        let dir = fs::canonicalize(bus.join(name))?;
        let mut devices = Vec::new();
        for disk in names(&dir.join("block")) {
            let inside = dir.join("block").join(&disk);
            let is_partition = |part: &String| inside.join(part).join("partition").exists();
            devices.push(disk);
            devices.extend(names(&inside).into_iter().filter(is_partition));
        }
        let driver = fs::read_link(dir.join("driver")).ok();
        let driver = driver.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        Ok(Card { name: name.into(), devices, driver })
    }

    /// All uses of its block devices.
    pub fn in_use(&self, sys: &Path, proc: &Path) -> io::Result<Vec<InUse>> {
        let mounts = fs::read_to_string(proc.join("self/mountinfo"))?;
        let swaps = fs::read_to_string(proc.join("swaps")).unwrap_or_default();
        let mut found = Vec::new();
        for device in &self.devices {
            let mut add = |how| found.push(InUse { device: device.clone(), how });
            let dir = fs::canonicalize(sys.join("class/block").join(device))?;
            let number = fs::read_to_string(dir.join("dev"))?;
            for place in mounted_on(&mounts, number.trim()) {
                add(format!("mounted on {place}"));
            }
            let node = format!("/dev/{device}");
            if swaps.lines().any(|line| line.split_whitespace().next() == Some(&node)) {
                add("swap".into());
            }
            for holder in names(&dir.join("holders")) {
                add(format!("part of {holder}"));
            }
            for loop_device in loops_on(sys, &node) {
                add(format!("below {loop_device}"));
            }
        }
        Ok(found)
    }
}

fn no_cards() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "this system has no eMMC or SD card")
}

/// The loop devices whose file is this device.
fn loops_on(sys: &Path, node: &str) -> Vec<String> {
    let blocks = sys.join("block");
    let is_on = |name: &String| {
        let file = fs::read_to_string(blocks.join(name).join("loop/backing_file"));
        file.is_ok_and(|file| file.trim_end() == node)
    };
    names(&blocks).into_iter().filter(is_on).collect()
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Parses lines of mountinfo: ID PARENT MAJOR:MINOR ROOT PLACE ...
fn mounted_on<'a>(mounts: &'a str, number: &'a str) -> impl Iterator<Item = &'a str> {
    mounts.lines().filter_map(move |line| {
        let mut words = line.split(' ').skip(2);
        (words.next() == Some(number)).then(|| words.nth(1)).flatten()
    })
}

/// The driver's directory in sysfs; an error if the module is not loaded.
pub fn driver_dir(sys: &Path) -> io::Result<PathBuf> {
    let dir = sys.join("bus/mmc/drivers/chario");
    match dir.is_dir() {
        true => Ok(dir),
        false => Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!("{}: the module chario is not loaded (modprobe chario)", dir.display()),
        )),
    }
}

/// The `/dev/chardiskN` of a card; None if the driver does not have it.
pub fn node_of(sys: &Path, card: &str) -> Option<PathBuf> {
    let all = names(&sys.join("class/chardisk"));
    let is_of = |name: &&String| {
        fs::canonicalize(sys.join("class/chardisk").join(name).join("device"))
            .is_ok_and(|dir| dir.file_name().is_some_and(|last| last == card))
    };
    all.iter().find(is_of).map(|name| Path::new("/dev").join(name))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn put(root: &Path, path: &str, text: &str) {
        let file = root.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    /// A card with a disk, two partitions and a boot area.
    fn tree(dir: &Path) -> (PathBuf, PathBuf) {
        let (sys, proc) = (dir.join("sys"), dir.join("proc"));
        let card = "devices/mmc_host/mmc0/mmc0:0001";
        for (name, number) in [
            ("mmcblk0", "179:0"),
            ("mmcblk0/mmcblk0p1", "179:1"),
            ("mmcblk0/mmcblk0p2", "179:2"),
            ("mmcblk0boot0", "179:8"),
        ] {
            let path = format!("{card}/block/{name}");
            put(&sys, &format!("{path}/dev"), &format!("{number}\n"));
            if name.contains('/') {
                put(&sys, &format!("{path}/partition"), "1\n");
            }
            fs::create_dir_all(sys.join(&path).join("holders")).unwrap();
            fs::create_dir_all(sys.join("class/block")).unwrap();
            let last = name.rsplit('/').next().unwrap();
            symlink(sys.join(&path), sys.join("class/block").join(last)).unwrap();
        }
        fs::create_dir_all(sys.join("bus/mmc/devices")).unwrap();
        fs::create_dir_all(sys.join("bus/mmc/drivers/mmcblk")).unwrap();
        symlink(sys.join(card), sys.join("bus/mmc/devices/mmc0:0001")).unwrap();
        symlink(sys.join("bus/mmc/drivers/mmcblk"), sys.join(card).join("driver")).unwrap();
        put(&proc, "self/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n");
        put(&proc, "swaps", "Filename Type\n");
        (sys, proc)
    }

    #[test]
    fn a_card_is_found_by_its_name_and_by_each_of_its_devices() {
        let dir = tempfile::tempdir().unwrap();
        let (sys, proc) = tree(dir.path());
        for wanted in ["mmc0:0001", "mmcblk0", "mmcblk0p2", "mmcblk0boot0"] {
            let card = Card::find(&sys, wanted).unwrap();
            assert_eq!((card.name.as_str(), card.driver.as_deref()), ("mmc0:0001", Some("mmcblk")));
            assert_eq!(card.devices, ["mmcblk0", "mmcblk0p1", "mmcblk0p2", "mmcblk0boot0"]);
            assert_eq!(card.in_use(&sys, &proc).unwrap(), []);
        }
        let error = Card::find(&sys, "sda").unwrap_err().to_string();
        assert!(error.ends_with("the cards are: mmc0:0001"), "{error}");
    }

    #[test]
    fn mounts_swap_and_holders_of_every_device_are_told() {
        let dir = tempfile::tempdir().unwrap();
        let (sys, proc) = tree(dir.path());
        put(
            &proc,
            "self/mountinfo",
            "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
             23 22 179:1 / /data rw,relatime - ext4 /dev/mmcblk0p1 rw\n\
             24 22 179:1 /sub /srv rw - ext4 /dev/mmcblk0p1 rw\n\
             25 22 179:10 / /other rw - ext4 /dev/mmcblk1 rw\n",
        );
        put(&proc, "swaps", "Filename Type\n/dev/mmcblk0p2 partition 8 0 -2\n");
        fs::create_dir(sys.join("class/block/mmcblk0/holders/dm-0")).unwrap();
        put(&sys, "block/loop0/loop/backing_file", "/dev/mmcblk0p2\n");
        put(&sys, "block/loop1/loop/backing_file", "/srv/image\n");
        let found = Card::find(&sys, "mmcblk0").unwrap().in_use(&sys, &proc).unwrap();
        let found: Vec<_> = found.iter().map(|one| format!("{} {}", one.device, one.how)).collect();
        let wanted = [
            "mmcblk0 part of dm-0",
            "mmcblk0p1 mounted on /data",
            "mmcblk0p1 mounted on /srv",
            "mmcblk0p2 swap",
            "mmcblk0p2 below loop0",
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn a_system_without_cards_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let sys = dir.path();
        for _ in 0..2 {
            let error = Card::find(sys, "mmcblk0").unwrap_err().to_string();
            assert_eq!(error, "this system has no eMMC or SD card");
            fs::create_dir_all(sys.join("bus/mmc/devices")).unwrap();
        }
    }

    #[test]
    fn without_the_module_there_is_nothing_to_bind_to() {
        let dir = tempfile::tempdir().unwrap();
        let (sys, _) = tree(dir.path());
        assert!(driver_dir(&sys).unwrap_err().to_string().contains("modprobe chario"));
        assert_eq!(node_of(&sys, "mmc0:0001"), None);
    }
}
