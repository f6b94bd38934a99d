// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command of a systemd service, so that a drop-in can run it under `steady with`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{anyhow, ensure};

/// Where systemd looks for units, the first first (systemd.unit(5)).
const FOLDERS: [&str; 5] = [
    "etc/systemd/system",
    "run/systemd/system",
    "usr/local/lib/systemd/system",
    "usr/lib/systemd/system",
    "lib/systemd/system",
];
/// May open `/dev/k2`, by the rule of `files.rs`.
pub const GROUP: &str = "steadyio";
/// Prefixes of a command (systemd.service(5)). `@` is not one of them: it changes the meaning of words.
const PREFIXES: [char; 4] = ['-', ':', '+', '!'];

/// How a service starts: its `ExecStart=` in two parts, what stands before the command, and the command.
pub struct Start {
    pub prefix: String,
    pub command: String,
    /// It runs as a user who is in no group that may open `/dev/k2`.
    pub needs_group: bool,
    /// Its devices are limited, so that it needs a line for `/dev/k2`.
    pub needs_device: bool,
}

pub fn exec_start(root: &Path, service: &str, own: &str) -> anyhow::Result<Start> {
    let path = find(root, service)
        .ok_or_else(|| anyhow!("{service}: no such unit below {}", root.display()))?;
    let mut unit = Unit::default();
    unit.read(&fs::read_to_string(&path)?);
    for path in drop_ins(root, service, own) {
        unit.read(&fs::read_to_string(&path)?);
    }
    let user = match unit.dynamic_user {
        true => "DynamicUser=yes".to_string(),
        false => format!("User={}", unit.user),
    };
    let needs_group = unit.dynamic_user || !["", "root", "0"].contains(&unit.user.as_str());
    ensure!(
        !needs_group || has_group(root),
        "{service}: {user} needs the group {GROUP} to open /dev/k2 (groupadd --system {GROUP})"
    );
    ensure!(
        !unit.private_devices,
        "{service}: PrivateDevices=yes hides /dev/k2: set it to no to declare its task"
    );
    let [command] = &unit.commands[..] else {
        let count = unit.commands.len();
        return Err(anyhow!("{service}: has {count} ExecStart=, must be one to declare its task"));
    };
    let command_at = command.find(|c| !PREFIXES.contains(&c)).unwrap_or(command.len());
    let (before, command) = command.split_at(command_at);
    ensure!(!command.starts_with('@'), "{service}: ExecStart={command}: @ is not supported");
    let (prefix, command) = (before.into(), command.into());
    Ok(Start { prefix, command, needs_group, needs_device: unit.device_policy })
}

/// A word of a command line, as systemd reads it (systemd.service(5), "Command lines").
pub fn word(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._:@+=,-".contains(c);
    if text.chars().all(is_plain) { escaped } else { format!("\"{escaped}\"") }
}

/// systemd's name of a node's unit (systemd-escape(1), `--path`): a service after it starts when udev
/// has made the node.
pub fn of_node(node: &Path) -> String {
    let path = node.to_string_lossy();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b":_.".contains(&byte);
    let escaped: String = path
        .trim_matches('/')
        .bytes()
        .map(|byte| match byte {
            b'/' => "-".into(),
            _ if is_plain(byte) => char::from(byte).to_string(),
            _ => format!("\\x{byte:02x}"),
        })
        .collect();
    format!("{escaped}.device")
}

fn has_group(root: &Path) -> bool {
    let groups = fs::read_to_string(root.join("etc/group")).unwrap_or_default();
    groups.lines().any(|line| line.split_once(':').is_some_and(|(name, _)| name == GROUP))
}

/// A unit's file; that of `name@instance` is `name@`.
fn names(service: &str) -> Vec<String> {
    let template = service.split_once('@').map(|(name, _)| format!("{name}@.service"));
    [service.to_string()].into_iter().chain(template).collect()
}

fn find(root: &Path, service: &str) -> Option<PathBuf> {
    for folder in FOLDERS {
        for name in names(service) {
            let path = root.join(folder).join(name);
            if path.is_file() {
                return Some(path);
            }
        }
    }
    None
}

/// In systemd's order: by name, and of one name the first folder's. Without our own.
fn drop_ins(root: &Path, service: &str, own: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for name in names(service) {
        for folder in FOLDERS {
            let Ok(entries) = fs::read_dir(root.join(folder).join(format!("{name}.d"))) else {
                continue;
            };
            for path in entries.flatten().map(|entry| entry.path()) {
                let is_known = found.iter().any(|known| known.file_name() == path.file_name());
                let is_own = path.file_name().is_some_and(|name| name == own);
                if !is_known && !is_own && path.extension().is_some_and(|end| end == "conf") {
                    found.push(path);
                }
            }
        }
    }
    found.sort_by(|one, other| one.file_name().cmp(&other.file_name()));
    found
}

#[derive(Default)]
struct Unit {
    commands: Vec<String>,
    user: String,
    dynamic_user: bool,
    private_devices: bool,
    /// Only some devices can be opened.
    device_policy: bool,
}

impl Unit {
    /// An empty value forgets those before.
    fn read(&mut self, text: &str) {
        let mut section = String::new();
        let is_yes = |value: &str| ["1", "yes", "y", "true", "t", "on"].contains(&value);
        for line in lines(text) {
            if line.starts_with('[') {
                section = line;
                continue;
            }
            let Some((key, value)) = line.split_once('=') else { continue };
            match (section.as_str(), key.trim_end(), value.trim()) {
                ("[Service]", "ExecStart", "") => self.commands.clear(),
                ("[Service]", "ExecStart", command) => self.commands.push(command.into()),
                ("[Service]", "User", user) => self.user = user.into(),
                ("[Service]", "DynamicUser", value) => self.dynamic_user = is_yes(value),
                ("[Service]", "PrivateDevices", value) => self.private_devices = is_yes(value),
                ("[Service]", "DevicePolicy", value) => {
                    self.device_policy = ["strict", "closed"].contains(&value);
                }
                ("[Service]", "DeviceAllow", value) => self.device_policy |= !value.is_empty(),
                _ => {}
            }
        }
    }
}

/// The lines of a unit, without comments. A backslash at its end joins a line with the next one that
/// is no comment.
fn lines(text: &str) -> Vec<String> {
    let (mut found, mut joined) = (Vec::new(), String::new());
    for line in text.lines().map(str::trim_start) {
        if line.starts_with(['#', ';']) {
            continue;
        }
        let backslashes = line.chars().rev().take_while(|c| *c == '\\').count();
        if backslashes % 2 == 1 {
            joined += &format!("{} ", &line[..line.len() - 1]);
        } else {
            found.push((std::mem::take(&mut joined) + line).trim_end().to_string());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_no_part_of_a_command() {
        let mut unit = Unit::default();
        unit.read(
            "[Service]\n# ExecStart=/old \\\nExecStart=/usr/bin/arm \\\n  # --slow\n ; more\n  --fast\n",
        );
        assert_eq!(unit.commands, ["/usr/bin/arm  --fast"]);
    }

    #[test]
    fn words_are_quoted_as_systemd_reads_them() {
        for (text, quoted) in [
            ("/usr/bin/steady", "/usr/bin/steady"),
            ("/opt/my tools/steady", "\"/opt/my tools/steady\""),
            ("/dev/disk/by-id/usb-A\\x20B%1", "\"/dev/disk/by-id/usb-A\\\\x20B%%1\""),
        ] {
            assert_eq!(word(text), quoted);
        }
    }

    #[test]
    fn a_node_has_the_unit_that_systemd_escape_says() {
        let node = Path::new("/dev/disk/by-id/mmc-SD 64_0x1");
        assert_eq!(of_node(node), "dev-disk-by\\x2did-mmc\\x2dSD\\x2064_0x1.device");
    }
}
