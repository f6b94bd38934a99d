// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the layers between a program and its disk's scheduler, and those that bypass it: device
//! mappers, limits, lanes, mount options, and the card's own maintenance. `system` calls it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::power::mmc_debugfs;

/// JESD84-B51: EXT_CSD, BKOPS_EN.
const BKOPS_EN: usize = 163;
const BKOPS_MANUAL: u8 = 1;

/// The layers of a disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layers {
    /// The names of dm-crypt and dm-verity devices on the disk.
    pub crypts: Vec<String>,
    /// The files of cgroup 1 with a line about the disk.
    pub throttles: Vec<(PathBuf, String)>,
    /// The partitions of the disk that are lanes of chario, each with its character device.
    pub lanes: Vec<(String, String)>,
    /// The mount points of file systems on the disk with `discard`, if nothing limits discards.
    pub discards: Vec<PathBuf>,
    /// The mount points of file systems on the disk, or on a mapper above it, that send flushes.
    pub flushers: Vec<PathBuf>,
    /// The latency target of writeback throttling in us; 0: off.
    pub wbt_us: u64,
    /// Whether the card has manual background operations; `None` if unknown.
    pub bkops_manual: Option<bool>,
}

impl Layers {
    /// `numbers`: the device numbers of the disk and its partitions.
    pub fn read(sys: &Path, proc: &Path, disk: &str, numbers: &[u64]) -> Layers {
        let dir = sys.join("block").join(disk);
        let wbt = fs::read_to_string(dir.join("queue/wbt_lat_usec")).unwrap_or_default();
        Layers {
            crypts: crypts(sys, &dir, disk),
            throttles: throttles(sys, numbers),
            lanes: lanes(sys, disk),
            discards: discards(proc, &dir, numbers),
            flushers: flushers(proc, &with_holders(sys, &dir, disk, numbers)),
            wbt_us: wbt.trim().parse().unwrap_or(0),
            bkops_manual: bkops_manual(sys, &dir),
        }
    }
}

/// The device numbers in the kernel's form, major:minor.
pub fn words_of(numbers: &[u64]) -> Vec<String> {
    let word = |n: &u64| format!("{}:{}", rustix::fs::major(*n), rustix::fs::minor(*n));
    numbers.iter().map(word).collect()
}

fn names_in(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// The holders of the disk, of its partitions, and of these holders.
fn holders(sys: &Path, dir: &Path, disk: &str) -> Vec<String> {
    let mut found = Vec::new();
    let partitions = names_in(dir).into_iter().filter(|name| name.starts_with(disk));
    let mut below: Vec<PathBuf> = partitions.map(|name| dir.join(name)).collect();
    below.push(dir.to_path_buf());
    while let Some(device) = below.pop() {
        for holder in names_in(&device.join("holders")) {
            // Device stacks have no loops.
            below.push(sys.join("block").join(&holder));
            found.push(holder);
        }
    }
    found.sort();
    found.dedup();
    found
}

/// The dm-crypt and dm-verity devices. cryptsetup begins their `dm/uuid` with `CRYPT-`.
fn crypts(sys: &Path, dir: &Path, disk: &str) -> Vec<String> {
    let is_crypt = |holder: &String| {
        let uuid = sys.join("block").join(holder).join("dm/uuid");
        fs::read_to_string(uuid).is_ok_and(|uuid| uuid.starts_with("CRYPT-"))
    };
    holders(sys, dir, disk).into_iter().filter(is_crypt).collect()
}

/// The numbers of the disk, its partitions and its holders, as the kernel writes them.
fn with_holders(sys: &Path, dir: &Path, disk: &str, numbers: &[u64]) -> Vec<String> {
    let number = |holder: String| {
        let text = fs::read_to_string(sys.join("block").join(holder).join("dev")).ok()?;
        Some(text.trim().to_string())
    };
    let above = holders(sys, dir, disk).into_iter().filter_map(number);
    words_of(numbers).into_iter().chain(above).collect()
}

fn throttles(sys: &Path, numbers: &[u64]) -> Vec<(PathBuf, String)> {
    const FILES: [&str; 4] = [
        "blkio.throttle.read_bps_device",
        "blkio.throttle.read_iops_device",
        "blkio.throttle.write_bps_device",
        "blkio.throttle.write_iops_device",
    ];
    let devices = words_of(numbers);
    let mut found = Vec::new();
    let mut groups = vec![sys.join("fs/cgroup/blkio")];
    while let Some(group) = groups.pop() {
        for file in FILES.map(|name| group.join(name)) {
            let text = fs::read_to_string(&file).unwrap_or_default();
            let is_of_disk = |line: &&str| {
                line.split_once(' ').is_some_and(|(device, _)| devices.iter().any(|d| d == device))
            };
            found.extend(text.lines().filter(is_of_disk).map(|line| (file.clone(), line.into())));
        }
        let entries = fs::read_dir(&group).into_iter().flatten().flatten();
        let is_dir = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
        groups.extend(entries.filter(is_dir).map(|entry| entry.path()));
    }
    found.sort();
    found
}

fn lanes(sys: &Path, disk: &str) -> Vec<(String, String)> {
    let class = sys.join("class/chardisk");
    let lane = |name: String| {
        let partition = fs::read_to_string(class.join(&name).join("partition")).ok()?;
        let partition = partition.trim();
        let rest = partition.strip_prefix(disk)?;
        let is_of_disk = rest.strip_prefix('p')?.bytes().all(|byte| byte.is_ascii_digit());
        is_of_disk.then(|| (partition.to_string(), name))
    };
    names_in(&class).into_iter().filter_map(lane).collect()
}

/// A mounted file system of these devices (proc_pid_mountinfo(5)): its mount point and options.
struct Mount {
    place: PathBuf,
    options: Vec<String>,
}

fn mounts(proc: &Path, devices: &[String]) -> Vec<Mount> {
    let text = fs::read_to_string(proc.join("self/mountinfo")).unwrap_or_default();
    let mount = |line: &str| {
        let (own, of_filesystem) = line.split_once(" - ")?;
        let fields: Vec<&str> = own.split(' ').collect();
        let options = of_filesystem.split(' ').nth(2)?;
        devices.iter().any(|device| Some(&device.as_str()) == fields.get(2)).then_some(())?;
        let options = options.split(',').map(String::from).collect();
        Some(Mount { place: fields.get(4)?.into(), options })
    };
    text.lines().filter_map(mount).collect()
}

impl Mount {
    fn has_any(&self, words: &[&str]) -> bool {
        self.options.iter().any(|option| words.contains(&option.as_str()))
    }
}

/// The mount points with `discard`. f2fs has the option unless it is turned off. A limit below the
/// device's own was set on purpose.
pub fn discards(proc: &Path, disk: &Path, numbers: &[u64]) -> Vec<PathBuf> {
    let limit = |name: &str| {
        let text = fs::read_to_string(disk.join("queue").join(name)).ok()?;
        text.trim().parse::<u64>().ok()
    };
    let most = limit("discard_max_bytes");
    if most == Some(0) || most < limit("discard_max_hw_bytes") {
        return Vec::new();
    }
    let found = mounts(proc, &words_of(numbers)).into_iter();
    let sending = found.filter(|mount| mount.has_any(&["discard", "discard=async"]));
    sending.map(|mount| mount.place).collect()
}

/// The mount points that send flushes: every writable file system, unless an option disables
/// flushes.
fn flushers(proc: &Path, devices: &[String]) -> Vec<PathBuf> {
    let quiet = ["ro", "nobarrier", "barrier=0", "fsync_mode=nobarrier"];
    let found = mounts(proc, devices).into_iter();
    found.filter(|mount| !mount.has_any(&quiet)).map(|mount| mount.place).collect()
}

/// Whether the card has manual background operations. debugfs shows the register in hexadecimal
/// digits, to root only.
fn bkops_manual(sys: &Path, dir: &Path) -> Option<bool> {
    let card = fs::canonicalize(dir.join("device")).ok()?;
    let file = mmc_debugfs(sys, &card)?.join(card.file_name()?).join("ext_csd");
    let text = fs::read_to_string(file).ok()?;
    let digits = text.get(2 * BKOPS_EN..2 * BKOPS_EN + 2)?;
    Some(u8::from_str_radix(digits, 16).ok()? & BKOPS_MANUAL != 0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::power::tests::put;

    fn layers(files: &[(&str, &str)]) -> Layers {
        let dir = tempfile::tempdir().unwrap();
        let (sys, proc) = (dir.path().join("sys"), dir.path().join("proc"));
        for (file, text) in files {
            put(dir.path(), file, text);
        }
        let card = sys.join("devices/mmc0:0001");
        fs::create_dir_all(card.join("block/mmcblk0/queue")).unwrap();
        fs::create_dir_all(sys.join("block")).unwrap();
        symlink(card.join("block/mmcblk0"), sys.join("block/mmcblk0")).unwrap();
        symlink(&card, card.join("block/mmcblk0/device")).unwrap();
        let numbers = [0, 1].map(|minor| rustix::fs::makedev(179, minor));
        Layers::read(&sys, &proc, "mmcblk0", &numbers)
    }

    const DISK: &str = "sys/devices/mmc0:0001/block/mmcblk0";

    #[test]
    fn a_plain_disk_has_no_layers() {
        assert_eq!(layers(&[]), Layers::default());
    }

    #[test]
    fn crypts_are_found_through_other_mappers() {
        let found = layers(&[
            (&format!("{DISK}/mmcblk0p2/holders/dm-0/x"), ""),
            ("sys/block/dm-0/dm/uuid", "LVM-abc\n"),
            ("sys/block/dm-0/holders/dm-1/x", ""),
            ("sys/block/dm-1/dm/uuid", "CRYPT-LUKS2-abc\n"),
            (&format!("{DISK}/mmcblk0p3/holders/dm-2/x"), ""),
            ("sys/block/dm-2/dm/uuid", "CRYPT-VERITY-abc\n"),
        ]);
        assert_eq!(found.crypts, ["dm-1", "dm-2"]);
    }

    #[test]
    fn flushes_come_from_file_systems_that_can_be_written() {
        let found = layers(&[
            (&format!("{DISK}/mmcblk0p2/holders/dm-0/x"), ""),
            ("sys/block/dm-0/dev", "253:0\n"),
            (
                "proc/self/mountinfo",
                &[
                    "31 1 179:1 / /data rw - ext4 /dev/mmcblk0p1 rw,lazytime",
                    "32 1 179:1 / /quiet rw - ext4 /dev/mmcblk0p1 rw,nobarrier",
                    "33 1 179:1 / /image rw - squashfs /dev/mmcblk0p1 ro",
                    "34 1 253:0 / /crypt rw - ext4 /dev/dm-0 rw",
                    "35 1 8:1 / /other rw - ext4 /dev/sda1 rw",
                ]
                .join("\n"),
            ),
        ]);
        assert_eq!(found.flushers, [PathBuf::from("/data"), PathBuf::from("/crypt")]);
    }

    #[test]
    fn discards_that_are_limited_are_none() {
        let with = |most: &str| {
            let mounted = "31 1 179:1 / /data rw - ext4 /dev/mmcblk0p1 ro,discard\n";
            layers(&[
                ("proc/self/mountinfo", mounted),
                (&format!("{DISK}/queue/discard_max_bytes"), most),
                (&format!("{DISK}/queue/discard_max_hw_bytes"), "4194304\n"),
            ])
            .discards
            .len()
        };
        assert_eq!([with("4194304\n"), with("1048576\n"), with("0\n")], [1, 0, 0]);
    }

    #[test]
    fn limits_of_cgroup_1_and_the_target_of_writeback_are_read() {
        let file = "sys/fs/cgroup/blkio/a/blkio.throttle.write_bps_device";
        let found = layers(&[
            (file, "179:0 1048576\n8:0 5\n"),
            (&format!("{DISK}/queue/wbt_lat_usec"), "75000\n"),
        ]);
        assert_eq!(found.throttles.len(), 1);
        assert_eq!(found.throttles[0].1, "179:0 1048576");
        assert_eq!(found.wbt_us, 75_000);
    }

    #[test]
    fn lanes_and_discards_are_found_by_the_disk() {
        let found = layers(&[
            ("sys/class/chardisk/chardisk0/partition", "mmcblk0p2\n"),
            ("sys/class/chardisk/chardisk1/partition", "mmcblk01p2\n"),
            ("sys/class/chardisk/chardisk2/partition", "\n"),
            (
                "proc/self/mountinfo",
                "31 1 179:1 / /data rw - ext4 /dev/mmcblk0p1 rw,discard\n\
                 32 1 179:1 / /more rw - ext4 /dev/mmcblk0p1 rw,nodiscard\n\
                 33 1 8:1 / /other rw - ext4 /dev/sda1 rw,discard\n",
            ),
        ]);
        assert_eq!(found.lanes, [("mmcblk0p2".to_string(), "chardisk0".to_string())]);
        assert_eq!(found.discards, [PathBuf::from("/data")]);
    }

    #[test]
    fn manual_background_operations_are_bit_0_of_byte_163() {
        let ext_csd = |byte: &str| {
            let text = format!("{}{byte}{}\n", "00".repeat(163), "00".repeat(348));
            layers(&[("sys/kernel/debug/mmc0/mmc0:0001/ext_csd", &text)]).bkops_manual
        };
        assert_eq!([ext_csd("01"), ext_csd("02")], [Some(true), Some(false)]);
    }
}
