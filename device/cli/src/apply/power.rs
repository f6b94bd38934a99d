// SPDX-License-Identifier: MIT OR Apache-2.0
//! Power states of the disk, off: now, in a rule, and as before.

use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};

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

/// Lines of the rule's file.
pub fn rules(states: &[PowerState]) -> String {
    let rule = |state: &PowerState| {
        let PowerState { subsystem, device, attribute, off, .. } = state;
        format!(
            "ACTION==\"add|change\", SUBSYSTEM==\"{subsystem}\", KERNEL==\"{device}\", \
             ATTR{{{attribute}}}=\"{off}\"\n"
        )
    };
    states.iter().map(rule).collect()
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
        turn_on(&states);
        assert_eq!(fs::read_to_string(file.path()).unwrap(), "100000");
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
