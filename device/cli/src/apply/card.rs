// SPDX-License-Identifier: MIT OR Apache-2.0
//! Is the disk the one of the profile, and how does a udev rule tell it from others?

use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};
use steadyio_bound::device::{Device as Times, Probed};
use steadyio_core::identity::{Identity, Unique};

/// Refuses the profile of another disk. One that does not say which disk it is of, and a spec of the
/// lab, fit all.
pub fn check(times: &Times, disk: &str, found: &Identity, same_model: bool) -> anyhow::Result<()> {
    let probed = times.probed();
    if probed.size_bytes == 0 {
        return Ok(());
    }
    let Probed { model, size_bytes, serial_sha256, .. } = probed;
    ensure!(
        (model, size_bytes) == (&found.model, found.size_bytes),
        "the profile is of {model}, {size_bytes} bytes, and {disk} is {}, {} bytes: must be the same \
         (probe {disk}: steady probe /dev/{disk})",
        found.model,
        found.size_bytes
    );
    let is_same = match (serial_sha256, found.serial_sha256()) {
        (Some(profile), Some(disk)) => profile == disk,
        _ => true,
    };
    if !is_same && !same_model {
        bail!(
            "the profile is of another {model} than {disk}: the serial numbers differ (probe {disk}, or \
             take it for this one with --same-model)"
        );
    }
    Ok(())
}

/// What the kernel, or the host controller, does not take.
pub fn check_limits(times: &Times, wanted_kb: Option<u64>, queue: &Path) -> anyhow::Result<()> {
    let read = |name: &str| std::fs::read_to_string(queue.join(name)).ok()?.trim().parse().ok();
    let Some(most_kb): Option<u64> = read("max_hw_sectors_kb") else { return Ok(()) };
    if let Some(kb) = wanted_kb {
        ensure!(
            kb <= most_kb,
            "max_sectors_kb = {kb}: must be at most {most_kb}, the disk's max_hw_sectors_kb"
        );
    }
    if let Some(kb) = times.probed().max_sectors_kb {
        ensure!(
            kb <= most_kb,
            "limits.max_sectors_kb = {kb} of the profile: must be at most {most_kb}, the disk's \
             max_hw_sectors_kb (it was measured with another host controller: probe again)"
        );
    }
    Ok(())
}

/// The conditions of a rule. `found`: the disk of the running system; None: an image is built, whose
/// disk is known by its name and the profile's model.
pub fn conditions(times: &Times, disk: &str, found: Option<&Identity>) -> String {
    let unique = found.and_then(|found| found.unique.as_ref());
    if let Some(unique) = unique {
        return numbered(disk, unique);
    }
    let model = times.probed().model;
    if found.is_some() || model.is_empty() {
        return format!("KERNEL==\"{disk}\"");
    }
    let attribute = if disk.starts_with("mmcblk") { "name" } else { "model" };
    format!("KERNEL==\"{disk}\", ATTRS{{{attribute}}}==\"{}\"", pattern(model))
}

/// The condition for a disk with a number, whatever its name is.
fn numbered(disk: &str, unique: &Unique) -> String {
    let (kernel, value) = (names_like(disk), pattern(&unique.value));
    format!("KERNEL==\"{kernel}\", ATTRS{{{}}}==\"{value}\"", unique.attribute)
}

fn is_numbered(rule: &str) -> bool {
    ["cid", "serial", "wwid"].iter().any(|name| rule.contains(&format!("ATTRS{{{name}}}==")))
}

/// Whether a rule is for another disk than these conditions: the names of two cards may have been
/// swapped at a boot.
pub fn is_of_another(rule: &str, conditions: &str) -> bool {
    is_numbered(rule) && is_numbered(conditions) && !rule.contains(conditions)
}

/// The disk of a rule, which had the name `disk`. `block`: the folder of all disks. `None`:
/// it is not there.
pub fn disk_of(rule: &str, block: &Path, disk: &str) -> Option<String> {
    let is_it = |name: &String| {
        let unique = Identity::read(&block.join(name)).unique;
        unique.is_some_and(|unique| rule.contains(&numbered(name, &unique)))
    };
    let is_whole = |name: &String| match name.strip_prefix("mmcblk") {
        Some(number) => number.bytes().all(|byte| byte.is_ascii_digit()),
        None => true,
    };
    let all = std::fs::read_dir(block).into_iter().flatten().flatten();
    let all = all.filter_map(|entry| entry.file_name().into_string().ok()).filter(is_whole);
    let found = [disk.to_string()].into_iter().chain(all);
    match is_numbered(rule) {
        true => found.into_iter().find(is_it),
        false => Some(disk.into()).filter(|name: &String| block.join(name).exists()),
    }
}

/// A node of the disk that is the same after a reboot, from udev: its name has the disk's number.
/// `None`: udev made none.
pub fn stable_node(by_id: &Path, disk: &Path) -> Option<PathBuf> {
    const KINDS: [&str; 7] = ["mmc-", "nvme-", "ata-", "scsi-", "usb-", "virtio-", "wwn-"];
    let node = std::fs::canonicalize(disk).ok()?;
    let entries = std::fs::read_dir(by_id).ok()?.flatten().map(|entry| entry.path());
    let kind = |path: &PathBuf| {
        let name = path.file_name()?.to_str()?;
        KINDS.iter().position(|kind| name.starts_with(kind))
    };
    let is_of_disk = |path: &PathBuf| std::fs::canonicalize(path).is_ok_and(|to| to == node);
    let found = entries.filter(is_of_disk).filter_map(|path| Some((kind(&path)?, path)));
    found.min().map(|(_, path)| path)
}

/// Disks of the same driver: the number of one may differ after a reboot. Boot partitions of a card
/// are disks, too, and have its attributes.
fn names_like(disk: &str) -> String {
    let digits = "[0-9]|{}[0-9][0-9]";
    if disk.starts_with("mmcblk") {
        return format!("mmcblk{}", digits.replace("{}", "mmcblk"));
    }
    if disk.starts_with("nvme") {
        return "nvme[0-9]*n[0-9]*".into();
    }
    if disk.starts_with("sd") { "sd*".into() } else { disk.into() }
}

/// A pattern that the value matches: quotes, and characters of patterns, are any character.
pub fn pattern(value: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " ._:+/-".contains(c);
    value.chars().map(|c| if is_plain(c) { c } else { '?' }).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Of a card of 61035 MiB whose register is `abc`.
    fn profile() -> Times {
        let text = include_str!("../../../probe/tests/profile.toml");
        Times::parse(text).unwrap()
    }

    fn card(model: &str, cid: &str) -> Identity {
        Identity {
            model: model.into(),
            size_bytes: 63_999_836_160,
            unique: Some(Unique { attribute: "cid", value: cid.into() }),
        }
    }

    #[test]
    fn a_profile_is_of_one_card() {
        let error = |card: &Identity, same_model| {
            check(&profile(), "mmcblk0", card, same_model).unwrap_err().to_string()
        };
        check(&profile(), "mmcblk0", &card("NCEMAD", "abc"), false).unwrap();
        let other = error(&card("NCEMAD", "abd"), false);
        assert!(
            other.contains("another NCEMAD than mmcblk0: the serial numbers differ"),
            "{other}"
        );
        check(&profile(), "mmcblk0", &card("NCEMAD", "abd"), true).unwrap();
        let model = error(&card("OTHER", "abc"), true);
        assert!(model.contains("mmcblk0 is OTHER, 63999836160 bytes: must be the same"), "{model}");
        let size = error(&Identity { size_bytes: 1, ..card("NCEMAD", "abc") }, true);
        assert!(size.contains("is NCEMAD, 1 bytes"), "{size}");
    }

    #[test]
    fn a_rule_matches_the_card_and_not_its_number() {
        let found = conditions(&profile(), "mmcblk0", Some(&card("NCEMAD", "ab\"*")));
        let wanted = "KERNEL==\"mmcblk[0-9]|mmcblk[0-9][0-9]\", ATTRS{cid}==\"ab??\"";
        assert_eq!(found, wanted);
        let unnumbered = Identity { unique: None, ..card("NCEMAD", "") };
        assert_eq!(conditions(&profile(), "vda", Some(&unnumbered)), "KERNEL==\"vda\"");
        let image = conditions(&profile(), "mmcblk0", None);
        assert_eq!(image, "KERNEL==\"mmcblk0\", ATTRS{name}==\"NCEMAD\"");
    }

    #[test]
    fn a_rule_is_of_the_card_with_its_number_whatever_its_name() {
        let block = tempfile::tempdir().unwrap();
        for (name, cid) in [("mmcblk0", "b"), ("mmcblk1boot0", "a"), ("mmcblk1", "a")] {
            let device = block.path().join(name).join("device");
            std::fs::create_dir_all(&device).unwrap();
            std::fs::write(device.join("cid"), cid).unwrap();
        }
        let of = |cid: &str| conditions(&profile(), "mmcblk0", Some(&card("NCEMAD", cid)));
        let now = |rule: &str| disk_of(rule, block.path(), "mmcblk0");
        assert_eq!([now(&of("a")), now(&of("b"))].map(Option::unwrap), ["mmcblk1", "mmcblk0"]);
        assert_eq!(now(&of("c")), None);
        assert_eq!(now("KERNEL==\"mmcblk0\"").as_deref(), Some("mmcblk0"));
        assert!(is_of_another(&of("a"), &of("b")) && !is_of_another(&of("a"), &of("a")));
        let image = conditions(&profile(), "mmcblk0", None);
        assert!(!is_of_another(&image, &of("a")), "an image's rule is of the model");
    }

    #[test]
    fn a_disk_has_a_node_with_its_number() {
        let dir = tempfile::tempdir().unwrap();
        let (disk, by_id) = (dir.path().join("mmcblk0"), dir.path().join("by-id"));
        std::fs::write(&disk, "").unwrap();
        assert_eq!(stable_node(&by_id, &disk), None);
        std::fs::create_dir(&by_id).unwrap();
        std::fs::write(dir.path().join("mmcblk1"), "").unwrap();
        for (name, to) in [
            ("lvm-pv", "mmcblk0"),
            ("mmc-A_0x1", "mmcblk1"),
            ("wwn-1", "mmcblk0"),
            ("mmc-A_0x2", "mmcblk0"),
        ] {
            std::os::unix::fs::symlink(dir.path().join(to), by_id.join(name)).unwrap();
        }
        assert_eq!(stable_node(&by_id, &disk), Some(by_id.join("mmc-A_0x2")));
    }

    #[test]
    fn limits_are_those_of_the_disk() {
        let queue = tempfile::tempdir().unwrap();
        check_limits(&profile(), Some(4_096), queue.path()).unwrap();
        std::fs::write(queue.path().join("max_hw_sectors_kb"), "256\n").unwrap();
        let error = check_limits(&profile(), Some(512), queue.path()).unwrap_err().to_string();
        assert!(error.starts_with("max_sectors_kb = 512: must be at most 256"), "{error}");
        let error = check_limits(&profile(), None, queue.path()).unwrap_err().to_string();
        assert!(error.contains("limits.max_sectors_kb = 512 of the profile"), "{error}");
    }
}
