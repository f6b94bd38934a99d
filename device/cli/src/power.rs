// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the power states that the kernel enters while a disk is idle. The next request waits until
//! the disk is awake.
//!
//! `steady doctor` reports them, and `steady apply` turns them off. docs/reference/steady-doctor.md
//! has the sources.

use std::fs;
use std::path::{Path, PathBuf};

/// include/linux/mmc/host.h: suspend the card when idle.
const MMC_CAP_AGGRESSIVE_PM: u32 = 1 << 7;
/// The attributes of a card and of an NVMe controller that differ between devices of the same
/// model.
const UNIQUE: [&str; 2] = ["cid", "serial"];
/// No source states the time limit of waking an mmc card. This is the time limit for its driver to
/// initialize one.
const MMC_RESUME_US: u64 = 1_000_000;

/// An enabled power state, and the attribute that disables it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PowerState {
    /// The finding of `steady doctor`.
    pub id: &'static str,
    pub text: String,
    /// The longest wait of a request; `None` if no source states it.
    pub wait_us: Option<u64>,
    /// For a udev rule: the device's bus or class, its name there, its unique attribute, and the
    /// attribute to set.
    pub subsystem: String,
    pub device: String,
    pub unique: Option<(&'static str, String)>,
    pub attribute: &'static str,
    /// The attribute as a file in sysfs.
    pub file: PathBuf,
    pub before: String,
    pub off: &'static str,
}

impl PowerState {
    pub fn fix(&self) -> String {
        format!("echo {} > {}", self.off, self.file.display())
    }
}

/// All enabled power states of a disk below `sys`.
pub fn power_states(sys: &Path, disk: &str) -> Vec<PowerState> {
    let Ok(dir) = fs::canonicalize(sys.join("block").join(disk)) else { return Vec::new() };
    let ufs = [hibern8(&dir, disk), clock_gating(&dir, disk)];
    nvme(&dir, disk)
        .into_iter()
        .chain(ufs.into_iter().flatten())
        .chain(mmc(sys, &dir, disk))
        .collect()
}

fn read(file: &Path) -> Option<String> {
    fs::read_to_string(file).ok().map(|text| text.trim().to_string())
}

/// The nearest device above the disk with this attribute.
fn above(dir: &Path, attribute: &str) -> Option<PathBuf> {
    dir.ancestors().skip(1).find(|above| above.join(attribute).is_file()).map(PathBuf::from)
}

struct Found {
    id: &'static str,
    text: String,
    wait_us: Option<u64>,
    off: &'static str,
}

fn state(device: &Path, attribute: &'static str, before: String, found: Found) -> PowerState {
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let subsystem = fs::canonicalize(device.join("subsystem")).ok();
    let Found { id, text, wait_us, off } = found;
    let value = |name: &'static str| read(&device.join(name)).map(|value| (name, value));
    PowerState {
        id,
        text,
        wait_us,
        subsystem: subsystem.as_deref().and_then(name).unwrap_or_default(),
        device: name(device).unwrap_or_default(),
        unique: UNIQUE.into_iter().find_map(value),
        attribute,
        file: device.join(attribute),
        before,
        off,
    }
}

/// Autonomous transitions: drivers/nvme/host/core.c, `nvme_configure_apst()`.
const APST: &str = "power/pm_qos_latency_tolerance_us";

/// The controller is above the disk. With several paths, links to all controllers are next to it.
fn nvme(dir: &Path, disk: &str) -> Vec<PowerState> {
    if !disk.starts_with("nvme") {
        return Vec::new();
    }
    let entries = dir.parent().map(fs::read_dir).into_iter().flatten().flatten().flatten();
    let controllers = entries.filter_map(|entry| fs::canonicalize(entry.path()).ok());
    let mut controllers: Vec<PathBuf> =
        controllers.filter(|device| device.join(APST).is_file()).collect();
    controllers.sort();
    let devices = above(dir, APST).map_or(controllers, |device| vec![device]);
    devices.iter().filter_map(|device| apst(device, disk)).collect()
}

fn apst(device: &Path, disk: &str) -> Option<PowerState> {
    let before = read(&device.join(APST)).filter(|text| text != "0")?;
    let wait_us = before.parse().ok();
    let wait = wait_us.map_or("any time".into(), |us: u64| format!("up to {us} us"));
    let text = format!(
        "{disk} may enter power states by itself when it is idle, first after 100 ms: the next request \
         then waits {wait} until it is awake"
    );
    Some(state(device, APST, before, Found { id: "nvme-apst", text, wait_us, off: "0" }))
}

/// drivers/ufs/core/ufs-sysfs.c.
fn hibern8(dir: &Path, disk: &str) -> Option<PowerState> {
    const ATTRIBUTE: &str = "auto_hibern8";
    let device = above(dir, ATTRIBUTE)?;
    let before = read(&device.join(ATTRIBUTE)).filter(|text| text != "0")?;
    let text = format!(
        "the UFS link of {disk} hibernates after {before} us without a request: the next one waits \
         until it is awake, and a failed exit is a reset of seconds"
    );
    Some(state(
        &device,
        ATTRIBUTE,
        before,
        Found { id: "ufs-hibern8", text, wait_us: None, off: "0" },
    ))
}

fn clock_gating(dir: &Path, disk: &str) -> Option<PowerState> {
    const ATTRIBUTE: &str = "clkgate_enable";
    let device = above(dir, ATTRIBUTE)?;
    let before = read(&device.join(ATTRIBUTE)).filter(|text| text != "0")?;
    let text = format!(
        "the clocks of the UFS host of {disk} stop when it is idle: the next request waits until they \
         run and the link is awake"
    );
    let found = Found { id: "ufs-clock-gating", text, wait_us: None, off: "0" };
    Some(state(&device, ATTRIBUTE, before, found))
}

/// Only hosts with the capability suspend a card; `power/control` is `auto` for all hosts.
fn mmc(sys: &Path, dir: &Path, disk: &str) -> Option<PowerState> {
    const ATTRIBUTE: &str = "power/control";
    let card = fs::canonicalize(dir.join("device")).ok().filter(|_| disk.starts_with("mmcblk"))?;
    let before = read(&card.join(ATTRIBUTE)).filter(|text| text == "auto")?;
    let caps = read(&mmc_debugfs(sys, &card)?.join("caps"))?;
    let caps = u32::from_str_radix(caps.trim_start_matches("0x"), 16).ok()?;
    if caps & MMC_CAP_AGGRESSIVE_PM == 0 {
        return None;
    }
    let delay = read(&card.join("power/autosuspend_delay_ms")).unwrap_or_else(|| "3000".into());
    let text = format!(
        "{disk} is suspended after {delay} ms without a request: the next one waits until the card is \
         initialised again"
    );
    let wait_us = Some(MMC_RESUME_US);
    Some(state(&card, ATTRIBUTE, before, Found { id: "mmc-autosuspend", text, wait_us, off: "on" }))
}

/// The host's folder in debugfs: a card is `mmc0:0001`.
pub fn mmc_debugfs(sys: &Path, card: &Path) -> Option<PathBuf> {
    let name = card.file_name()?.to_str()?;
    let (host, _) = name.split_once(':')?;
    Some(sys.join("kernel/debug").join(host))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    pub fn put(root: &Path, path: &str, text: &str) {
        let file = root.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    /// The power states of a disk in sysfs at `path`, whose controller has these attributes.
    fn states(disk: &str, path: &str, files: &[(&str, &str)]) -> Vec<PowerState> {
        let dir = tempfile::tempdir().unwrap();
        let sys = dir.path();
        for (file, text) in files {
            put(sys, file, text);
        }
        fs::create_dir_all(sys.join(path).join("queue")).unwrap();
        fs::create_dir_all(sys.join("block")).unwrap();
        symlink(sys.join(path), sys.join("block").join(disk)).unwrap();
        if let Some((card, _)) = path.split_once("/block/").filter(|_| disk.starts_with("mmc")) {
            symlink(sys.join(card), sys.join(path).join("device")).unwrap();
        }
        power_states(sys, disk)
    }

    #[test]
    fn a_drive_that_sleeps_by_itself_is_found_until_its_tolerance_is_0() {
        let path = "devices/pci/nvme/nvme0/nvme0n1";
        let file = "devices/pci/nvme/nvme0/power/pm_qos_latency_tolerance_us";
        let found = states("nvme0n1", path, &[(file, "100000\n")]);
        assert_eq!((found[0].id, found[0].wait_us), ("nvme-apst", Some(100_000)));
        assert!(found[0].fix().ends_with("nvme0/power/pm_qos_latency_tolerance_us"), "{found:?}");
        assert_eq!((found[0].device.as_str(), &found[0].unique), ("nvme0", &None));
        let serial = "devices/pci/nvme/nvme0/serial";
        let found = states("nvme0n1", path, &[(file, "100000\n"), (serial, "S5\n")]);
        assert_eq!(found[0].unique, Some(("serial", "S5".into())));
        assert_eq!(states("nvme0n1", path, &[(file, "any\n")])[0].wait_us, None);
        assert_eq!(states("nvme0n1", path, &[(file, "0\n")]), []);
    }

    #[test]
    fn a_drive_with_paths_sleeps_as_its_controllers_do() {
        let dir = tempfile::tempdir().unwrap();
        let sys = dir.path();
        put(sys, "devices/pci/nvme/nvme0/power/pm_qos_latency_tolerance_us", "100000\n");
        let subsystem = sys.join("devices/virtual/nvme-subsystem/nvme-subsys0");
        fs::create_dir_all(subsystem.join("nvme0n1")).unwrap();
        fs::create_dir_all(sys.join("block")).unwrap();
        symlink(sys.join("devices/pci/nvme/nvme0"), subsystem.join("nvme0")).unwrap();
        symlink(subsystem.join("nvme0n1"), sys.join("block/nvme0n1")).unwrap();
        let found = power_states(sys, "nvme0n1");
        assert_eq!((found.len(), found[0].device.as_str()), (1, "nvme0"));
    }

    #[test]
    fn a_ufs_host_whose_link_or_clocks_rest_is_found() {
        let path = "devices/platform/1d84000.ufshc/host0/target0:0:0/0:0:0:0/block/sda";
        let host = "devices/platform/1d84000.ufshc";
        let [link, clocks] =
            ["auto_hibern8", "clkgate_enable"].map(|name| format!("{host}/{name}"));
        let found = states("sda", path, &[(&link, "150000\n"), (&clocks, "1\n")]);
        let ids: Vec<&str> = found.iter().map(|state| state.id).collect();
        assert_eq!(ids, ["ufs-hibern8", "ufs-clock-gating"]);
        assert_eq!(states("sda", path, &[(&link, "0\n"), (&clocks, "0\n")]), []);
    }

    #[test]
    fn a_card_is_suspended_only_by_a_host_that_can() {
        let path = "devices/platform/mmc_host/mmc0/mmc0:0001/block/mmcblk0";
        let control = "devices/platform/mmc_host/mmc0/mmc0:0001/power/control";
        let caps = "kernel/debug/mmc0/caps";
        let found = states("mmcblk0", path, &[(control, "auto\n"), (caps, "0x40000087\n")]);
        assert_eq!((found[0].id, found[0].off), ("mmc-autosuspend", "on"));
        assert_eq!(states("mmcblk0", path, &[(control, "auto\n"), (caps, "0x40000007\n")]), []);
        assert_eq!(states("mmcblk0", path, &[(control, "on\n"), (caps, "0x40000087\n")]), []);
        assert_eq!(states("mmcblk0", path, &[(control, "auto\n")]), []);
    }
}
