// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the layers between a program and its disk's scheduler, and those that bypass it: device
//! mappers, limits, lanes, mount options, and the card's own maintenance. `system` calls it.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
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
    pub fn read(sys: &Path, proc: &Path, disk: &str, devices: &Devices) -> Layers {
        let dir = sys.join("block").join(disk);
        let wbt = fs::read_to_string(dir.join("queue/wbt_lat_usec")).unwrap_or_default();
        Layers {
            crypts: crypts(sys, devices),
            throttles: throttles(sys, &devices.numbers),
            lanes: lanes(sys, disk),
            discards: discards(sys, proc, disk, devices),
            flushers: flushers(proc, devices),
            wbt_us: wbt.trim().parse().unwrap_or(0),
            bkops_manual: bkops_manual(sys, &dir),
        }
    }
}

/// A disk, its partitions, and the device mappers and other devices above them.
pub struct Devices {
    /// As in stat(2).
    pub numbers: Vec<u64>,
    /// The kernel's names.
    pub names: Vec<String>,
}

impl Devices {
    /// `numbers`: those of the disk and its partitions.
    pub fn of(sys: &Path, disk: &str, numbers: &[u64]) -> Devices {
        let dir = sys.join("block").join(disk);
        let above = holders(sys, &dir, disk);
        let number = |holder: &String| number_in(&sys.join("block").join(holder));
        let numbers = numbers.iter().copied().chain(above.iter().filter_map(number)).collect();
        let partitions = names_in(&dir).into_iter().filter(|name| name.starts_with(disk));
        let names = partitions.chain([disk.to_string()]).chain(above).collect();
        Devices { numbers, names }
    }

    /// Whether a file system is on them. That of several disks has an anonymous number, as btrfs
    /// always has, and names one of them.
    fn hold(&self, number: &str, source: &Path) -> bool {
        if !number.starts_with("0:") {
            return words_of(&self.numbers).iter().any(|one| one == number);
        }
        let node = fs::canonicalize(source).unwrap_or_else(|_| source.into());
        node.parent().is_some_and(|dir| dir.starts_with("/dev")) && self.has(&node)
    }

    /// Whether a node has the name of one of them.
    pub fn has(&self, node: &Path) -> bool {
        self.names.iter().any(|name| node.file_name().is_some_and(|own| own == name.as_str()))
    }
}

/// The number of a device, from its folder in sysfs.
pub fn number_in(dir: &Path) -> Option<u64> {
    let text = fs::read_to_string(dir.join("dev")).ok()?;
    let (major, minor) = text.trim().split_once(':')?;
    Some(rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?))
}

/// The device numbers in the kernel's form, major:minor.
pub fn words_of(numbers: &[u64]) -> Vec<String> {
    let word = |n: &u64| format!("{}:{}", rustix::fs::major(*n), rustix::fs::minor(*n));
    numbers.iter().map(word).collect()
}

pub fn names_in(dir: &Path) -> Vec<String> {
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

/// The disks below a device mapper or another device that is made of disks. Of a disk: none.
pub fn disks_below(sys: &Path, device: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut above = vec![device.to_string()];
    while let Some(name) = above.pop() {
        for part in names_in(&sys.join("block").join(&name).join("slaves")) {
            let Ok(dir) = fs::canonicalize(sys.join("class/block").join(&part)) else { continue };
            let is_partition = dir.join("partition").exists();
            let disk = dir.parent().filter(|_| is_partition).unwrap_or(&dir);
            let disk = disk.file_name().unwrap_or_default().to_string_lossy().into_owned();
            match names_in(&sys.join("block").join(&disk).join("slaves")).is_empty() {
                true => found.push(disk),
                false => above.push(disk),
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

/// The dm-crypt and dm-verity devices. cryptsetup begins their `dm/uuid` with `CRYPT-`.
fn crypts(sys: &Path, devices: &Devices) -> Vec<String> {
    let is_crypt = |name: &&String| {
        let uuid = sys.join("block").join(name).join("dm/uuid");
        fs::read_to_string(uuid).is_ok_and(|uuid| uuid.starts_with("CRYPT-"))
    };
    devices.names.iter().filter(is_crypt).cloned().collect()
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

/// A mounted file system of these devices (proc_pid_mountinfo(5)).
struct Mount {
    /// The device, as major:minor.
    number: String,
    place: PathBuf,
    kind: String,
    options: Vec<String>,
}

/// The number is the third field, the mount point the fifth; type, source and options of the file
/// system follow a dash.
fn mounts(proc: &Path, devices: &Devices) -> Vec<Mount> {
    let text = fs::read_to_string(proc.join("self/mountinfo")).unwrap_or_default();
    let mount = |line: &str| {
        let (own, of_filesystem) = line.split_once(" - ")?;
        let fields: Vec<&str> = own.split(' ').collect();
        let [kind, source, options] = of_filesystem.split(' ').collect::<Vec<_>>()[..] else {
            return None;
        };
        let number = fields.get(2)?.to_string();
        devices.hold(&number, &unescaped(source)).then_some(())?;
        let options = options.split(',').map(String::from).collect();
        Some(Mount { number, place: unescaped(fields.get(4)?), kind: kind.into(), options })
    };
    text.lines().filter_map(mount).collect()
}

/// A path in a file of /proc, which has spaces and other separators as three octal digits.
pub fn unescaped(text: &str) -> PathBuf {
    let mut parts = text.split('\\');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let byte = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.extend(byte.or(Some(b'\\')));
        bytes.extend(&part.as_bytes()[if byte.is_some() { 3 } else { 0 }..]);
    }
    OsString::from_vec(bytes).into()
}

impl Mount {
    fn has_any(&self, words: &[&str]) -> bool {
        self.options.iter().any(|option| words.contains(&option.as_str()))
    }
}

/// The mount points with `discard`. f2fs has the option unless it is turned off. A limit below the
/// device's own was set on purpose, and dm-crypt usually takes no discards.
pub fn discards(sys: &Path, proc: &Path, disk: &str, devices: &Devices) -> Vec<PathBuf> {
    let limit = |device: &Path, name: &str| {
        let text = fs::read_to_string(device.join("queue").join(name)).ok()?;
        text.trim().parse::<u64>().ok()
    };
    let dir = sys.join("block").join(disk);
    let most = limit(&dir, "discard_max_bytes");
    if most == Some(0) || most < limit(&dir, "discard_max_hw_bytes") {
        return Vec::new();
    }
    let takes_some = |mount: &Mount| {
        let device = sys.join("dev/block").join(&mount.number);
        limit(&device, "discard_max_bytes") != Some(0)
    };
    let found = mounts(proc, devices).into_iter().filter(takes_some);
    let sending = found.filter(|mount| mount.has_any(&["discard", "discard=async"]));
    sending.map(|mount| mount.place).collect()
}

/// The mount points of ext4 that is written, without lazytime.
pub fn without_lazytime(proc: &Path, devices: &Devices) -> Vec<PathBuf> {
    let found = mounts(proc, devices).into_iter().filter(|mount| mount.kind == "ext4");
    let eager = found.filter(|mount| !mount.has_any(&["lazytime", "ro"]));
    eager.map(|mount| mount.place).collect()
}

/// The mount points that send flushes: every writable file system, unless an option disables
/// flushes.
fn flushers(proc: &Path, devices: &Devices) -> Vec<PathBuf> {
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
        Layers::read(&sys, &proc, "mmcblk0", &Devices::of(&sys, "mmcblk0", &numbers))
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
    fn a_mapper_is_on_the_disks_below() {
        let dir = tempfile::tempdir().unwrap();
        let sys = dir.path();
        put(sys, "block/mmcblk0/mmcblk0p2/partition", "2\n");
        for slave in ["block/dm-1/slaves/dm-0", "block/dm-0/slaves/mmcblk0p2"] {
            put(sys, &format!("{slave}/x"), "");
        }
        put(sys, "block/dm-1/slaves/sda/x", "");
        put(sys, "block/sda/size", "8\n");
        fs::create_dir_all(sys.join("class/block")).unwrap();
        for (name, to) in [("mmcblk0p2", "mmcblk0/mmcblk0p2"), ("dm-0", "dm-0"), ("sda", "sda")] {
            symlink(sys.join("block").join(to), sys.join("class/block").join(name)).unwrap();
        }
        assert_eq!(disks_below(sys, "dm-1"), ["mmcblk0", "sda"]);
        assert_eq!(disks_below(sys, "sda"), [""; 0]);
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
    fn discards_are_found_through_a_mapper_that_takes_them_and_on_btrfs() {
        let found = layers(&[
            (&format!("{DISK}/mmcblk0p2/holders/dm-0/x"), ""),
            (&format!("{DISK}/mmcblk0p2/holders/dm-1/x"), ""),
            (&format!("{DISK}/mmcblk0p3/partition"), "3\n"),
            ("sys/block/dm-0/dev", "253:0\n"),
            ("sys/block/dm-1/dev", "253:1\n"),
            ("sys/dev/block/253:1/queue/discard_max_bytes", "0\n"),
            (
                "proc/self/mountinfo",
                &[
                    "31 1 253:0 / /lvm rw - ext4 /dev/mapper/lvm rw,discard",
                    "32 1 253:1 / /crypt rw - ext4 /dev/mapper/crypt rw,discard",
                    "33 1 0:45 / /btrfs rw - btrfs /dev/mmcblk0p3 rw,discard=async",
                    "34 1 0:46 / /other rw - btrfs /dev/mmcblk9p3 rw,discard=async",
                    "35 1 0:47 / /mmcblk0p3 rw - tmpfs mmcblk0p3 rw,discard",
                ]
                .join("\n"),
            ),
        ]);
        assert_eq!(found.discards, [PathBuf::from("/lvm"), PathBuf::from("/btrfs")]);
    }

    #[test]
    fn paths_of_proc_have_octal_digits_for_separators() {
        for (text, path) in [
            ("/plain", "/plain"),
            ("/a\\040b\\134", "/a b\\"),
            ("/a\\x", "/a\\x"),
            ("\\04", "\\04"),
        ] {
            assert_eq!(unescaped(text), PathBuf::from(path));
        }
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
