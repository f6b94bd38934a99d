// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files that keep the settings of one disk.
//!
//! Each begins with a line that says whose it is; only such files are found again and removed.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use steadyio_core::knobs::in_setting_order;
use steadyio_core::value::Value;

use super::power;
use super::unit::{GROUP, Start};
use crate::power::PowerState;

const RULES: &str = "etc/udev/rules.d";
const UNITS: &str = "etc/systemd/system";
const BEFORE: &str = "# Before: ";

/// Values by key, as in a workload's variant.
pub type Knobs = BTreeMap<String, Value>;

/// What a rule sets, and on which disk.
pub struct Settings {
    pub knobs: Knobs,
    /// Of the disk, as a udev rule has them.
    pub conditions: String,
    pub power: Vec<PowerState>,
    /// Further lines, of an image.
    pub more_rules: String,
}

/// A service of a task.
pub struct Service {
    pub level: u64,
    /// Of a declared task: how its command begins, and the command.
    pub declares: Option<Command>,
}

pub struct Command {
    pub start: Start,
    pub with: String,
    /// The unit of the disk's node, if udev makes it.
    pub after: Option<String>,
}

/// A file as it is to be.
pub struct Kept {
    pub path: PathBuf,
    pub text: String,
}

pub struct Files {
    root: PathBuf,
    disk: String,
}

/// Each file with its name.
pub fn shown(wanted: &[Kept]) -> String {
    wanted.iter().map(|kept| format!("--- {}\n{}", kept.path.display(), kept.text)).collect()
}

/// Of each service.
pub fn drop_in_name(disk: &str) -> String {
    format!("90-steadyio-{disk}.conf")
}

/// What a service's own file says otherwise.
fn drop_in(service: &Service) -> String {
    let level = service.level;
    let priority = format!("IOSchedulingClass=realtime\nIOSchedulingPriority={level}\n");
    let Some(Command { start, with, after }) = &service.declares else {
        return format!("[Service]\n{priority}");
    };
    let unit = match after {
        Some(device) => format!("[Unit]\nWants={device}\nAfter={device}\n"),
        None => String::new(),
    };
    let group =
        if start.needs_group { format!("SupplementaryGroups={GROUP}\n") } else { String::new() };
    let device = if start.needs_device { "DeviceAllow=/dev/k2 rw\n" } else { "" };
    let (prefix, command) = (&start.prefix, &start.command);
    format!(
        "{unit}[Service]\n{priority}{group}{device}ExecStart=\nExecStart={prefix}{with} {command}\n"
    )
}

impl Files {
    pub fn below(root: &Path, disk: &str) -> Files {
        Files { root: root.into(), disk: disk.into() }
    }

    fn mark(&self) -> String {
        format!("# Written by `steady apply` for {}; --remove removes it.", self.disk)
    }

    fn rule_path(&self) -> PathBuf {
        // Behind the rules of distributions, which set schedulers, too.
        self.root.join(RULES).join(format!("90-steadyio-{}.rules", self.disk))
    }

    /// `before`: what is to be set when this is removed.
    pub fn wanted(
        &self,
        settings: &Settings,
        services: &BTreeMap<String, Service>,
        before: Knobs,
    ) -> Vec<Kept> {
        let needs_group = |service: &Service| {
            service.declares.as_ref().is_some_and(|command| command.start.needs_group)
        };
        let mut rule = self.rule(settings, before);
        if services.values().any(needs_group) {
            rule += &format!("SUBSYSTEM==\"misc\", KERNEL==\"k2\", GROUP=\"{GROUP}\"\n");
        }
        let mut wanted = vec![Kept { path: self.rule_path(), text: rule }];
        for (name, service) in services {
            let folder = self.root.join(UNITS).join(format!("{name}.d"));
            let text = format!("{}\n{}", self.mark(), drop_in(service));
            wanted.push(Kept { path: folder.join(drop_in_name(&self.disk)), text });
        }
        wanted
    }

    /// Attributes are set in the order in which they stand.
    fn rule(&self, settings: &Settings, before: Knobs) -> String {
        let Settings { knobs, conditions, power, more_rules } = settings;
        let earlier = self.before();
        // Applied again: what was before stays so.
        let before = if earlier.is_empty() { before } else { earlier };
        let words: Vec<String> =
            before.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let before =
            if words.is_empty() { String::new() } else { format!("{BEFORE}{}\n", words.join(" ")) };
        let kept = power::kept_lines(&self.rule_text());
        let power_before = if kept.is_empty() { power::before_lines(power) } else { kept };
        let matches = format!(
            "ACTION==\"add|change\", SUBSYSTEM==\"block\", ENV{{DEVTYPE}}==\"disk\", {conditions}"
        );
        let sets: String = in_setting_order(knobs)
            .into_iter()
            .map(|(_, attribute, value)| format!(", \\\n  ATTR{{queue/{attribute}}}=\"{value}\""))
            .collect();
        let rules = power::rules(power);
        format!("{}\n{before}{power_before}{matches}{sets}\n{rules}{more_rules}", self.mark())
    }

    /// As it is now; empty if there is none.
    pub fn rule_text(&self) -> String {
        fs::read_to_string(self.rule_path()).unwrap_or_default()
    }

    /// What the rule says was before.
    pub fn before(&self) -> Knobs {
        let text = self.rule_text();
        let line = text.lines().find_map(|line| line.strip_prefix(BEFORE)).unwrap_or_default();
        let pairs = line.split(' ').filter_map(|word| word.split_once('='));
        pairs.map(|(key, value)| (key.to_string(), Value::from_text(value))).collect()
    }

    /// The files that were written for this disk.
    pub fn kept(&self) -> anyhow::Result<Vec<PathBuf>> {
        let mut candidates = vec![self.rule_path()];
        let units = self.root.join(UNITS);
        match fs::read_dir(&units) {
            Ok(entries) => {
                let name = drop_in_name(&self.disk);
                candidates.extend(entries.flatten().map(|entry| entry.path().join(&name)));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| units.display().to_string()),
        }
        let mark = self.mark();
        let is_ours = |path: &PathBuf| {
            fs::read_to_string(path).is_ok_and(|text| text.lines().next() == Some(mark.as_str()))
        };
        let mut kept: Vec<PathBuf> = candidates.into_iter().filter(is_ours).collect();
        kept.sort();
        Ok(kept)
    }
}

/// All or none: what cannot be written takes the others away again. A file that somebody else wrote
/// is not replaced.
pub fn write(wanted: &[Kept]) -> anyhow::Result<()> {
    for kept in wanted {
        let mark = kept.text.lines().next();
        if fs::read_to_string(&kept.path).is_ok_and(|text| text.lines().next() != mark) {
            bail!(
                "{} exists, and was not written by steady apply: remove it first",
                kept.path.display()
            );
        }
    }
    let mut undo: Vec<(&Path, Option<String>)> = Vec::new();
    for kept in wanted {
        let before = fs::read_to_string(&kept.path).ok();
        if let Err(error) = replace(&kept.path, &kept.text) {
            for (path, text) in undo {
                let _ = text.map_or_else(|| fs::remove_file(path), |text| replace(path, &text));
            }
            return Err(error).with_context(|| kept.path.display().to_string());
        }
        undo.push((&kept.path, before));
    }
    Ok(())
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::Builder::new().permissions(mode()).tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

fn mode() -> fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o644)
}

/// Whether a file is for systemd, not for udev.
pub fn is_drop_in(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "conf")
}

/// Takes empty folders of drop-ins along.
pub fn remove(kept: &[PathBuf]) -> anyhow::Result<()> {
    for path in kept {
        fs::remove_file(path).with_context(|| path.display().to_string())?;
        if let Some(folder) = path.parent().filter(|_| is_drop_in(path)) {
            let _ = fs::remove_dir(folder);
        }
    }
    Ok(())
}
