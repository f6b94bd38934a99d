// SPDX-License-Identifier: MIT OR Apache-2.0
//! Power states of the disk, off: now, in a rule, and as before.

use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};

use super::card::pattern;
use crate::power::PowerState;

/// In a rule's file, the value of each attribute before.
const BEFORE: &str = "# Before in sysfs: ";
const SYSFS: &str = "/sys/";

/// Turns all off; if one cannot be, those before it are turned on again.
pub fn turn_off(states: &[PowerState]) -> anyhow::Result<()> {
    for (number, state) in states.iter().enumerate() {
        if let Err(error) = fs::write(&state.file, state.off) {
            turn_on(&states[..number]);
            let text = format!("{} = {}", state.file.display(), state.off);
            return Err(error).with_context(|| text);
        }
    }
    Ok(())
}

/// As they were when they were found.
pub fn turn_on(states: &[PowerState]) {
    for state in states {
        let _ = fs::write(&state.file, &state.before);
    }
}

/// Lines of the rule's file. A device with a number is known by it, as its name may be another's after
/// a reboot.
pub fn rules(states: &[PowerState]) -> String {
    let rule = |state: &PowerState| {
        let PowerState { subsystem, device, unique, attribute, off, .. } = state;
        let condition = match unique {
            Some((name, value)) => format!("ATTR{{{name}}}==\"{}\"", pattern(value)),
            None => format!("KERNEL==\"{device}\""),
        };
        line(subsystem, &condition, attribute, off)
    };
    states.iter().map(rule).collect()
}

/// For an image, whose disk is known by its name and the profile's model: what is off already is set
/// again, which does nothing.
pub fn rules_of_image(disk: &str, model: &str) -> String {
    if model.is_empty() {
        return String::new();
    }
    let model = pattern(model);
    if disk.starts_with("mmcblk") {
        return line("mmc", &format!("ATTR{{name}}==\"{model}\""), "power/control", "on");
    }
    if disk.starts_with("nvme") {
        let condition = format!("ATTR{{model}}==\"{model}*\"");
        return line("nvme", &condition, "power/pm_qos_latency_tolerance_us", "0");
    }
    String::new()
}

fn line(subsystem: &str, condition: &str, attribute: &str, value: &str) -> String {
    format!(
        "ACTION==\"add|change\", SUBSYSTEM==\"{subsystem}\", {condition}, \
         ATTR{{{attribute}}}=\"{value}\"\n"
    )
}

pub fn before_lines(states: &[PowerState]) -> String {
    let line = |state: &PowerState| format!("{BEFORE}{}={}\n", state.file.display(), state.before);
    states.iter().map(line).collect()
}

/// Of a file that was written before: kept when it is written again.
pub fn kept_lines(text: &str) -> String {
    let lines = text.lines().filter(|line| line.starts_with(BEFORE));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Sets what the lines of a rule's file say.
pub fn restore(text: &str) -> anyhow::Result<()> {
    let pairs = text.lines().filter_map(|line| line.strip_prefix(BEFORE)?.rsplit_once('='));
    for (file, value) in pairs {
        ensure!(file.starts_with(SYSFS) && !file.contains(".."), "{file}: is not in {SYSFS}");
        // A device that has gone has no state.
        if Path::new(file).exists() {
            fs::write(file, value).with_context(|| format!("{file} = {value}"))?;
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn state(file: &Path) -> PowerState {
        PowerState {
            id: "nvme-apst",
            text: String::new(),
            wait_us: None,
            subsystem: "nvme".into(),
            device: "nvme0".into(),
            unique: None,
            attribute: "power/pm_qos_latency_tolerance_us",
            file: file.into(),
            before: "100000".into(),
            off: "0",
        }
    }

    #[test]
    fn a_state_is_turned_off_and_its_rule_says_so() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let states = [state(file.path())];
        turn_off(&states).unwrap();
        assert_eq!(fs::read_to_string(file.path()).unwrap(), "0");
        let rule = "ACTION==\"add|change\", SUBSYSTEM==\"nvme\", KERNEL==\"nvme0\", \
                    ATTR{power/pm_qos_latency_tolerance_us}=\"0\"\n";
        assert_eq!(rules(&states), rule);
        let numbered =
            [PowerState { unique: Some(("serial", "S\"5".into())), ..state(file.path()) }];
        assert!(rules(&numbered).contains("ATTR{serial}==\"S?5\", ATTR{power"), "{numbered:?}");
        assert!(!rules(&numbered).contains("KERNEL"), "{numbered:?}");
        turn_on(&states);
        assert_eq!(fs::read_to_string(file.path()).unwrap(), "100000");
    }

    #[test]
    fn an_image_has_rules_for_the_model_of_the_profile() {
        let card = "ACTION==\"add|change\", SUBSYSTEM==\"mmc\", ATTR{name}==\"NCEMAD\", \
                    ATTR{power/control}=\"on\"\n";
        assert_eq!(rules_of_image("mmcblk0", "NCEMAD"), card);
        assert!(rules_of_image("nvme0n1", "SSD 1").contains("ATTR{model}==\"SSD 1*\""));
        assert_eq!(rules_of_image("mmcblk0", ""), "");
        assert_eq!(rules_of_image("sda", "disk"), "");
    }

    #[test]
    fn what_cannot_be_turned_off_leaves_all_on() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let states = [state(file.path()), state(Path::new("/proc/none"))];
        assert!(turn_off(&states).is_err());
        assert_eq!(fs::read_to_string(file.path()).unwrap(), "100000");
    }

    #[test]
    fn only_sysfs_is_restored() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = before_lines(&[state(file.path())]);
        assert_eq!(kept_lines(&format!("# x\n{text}y\n")), text);
        assert!(restore(&text).unwrap_err().to_string().contains("is not in /sys/"));
        restore("# Before in sysfs: /sys/none=1\n").unwrap();
    }
}
