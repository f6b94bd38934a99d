// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tells the running udev and systemd that their files have changed.

use std::path::Path;
use std::process::Command;

use steadyio_core::diagnostic;

/// udev looks for changed rules by itself, but only every 3 s.
pub fn reload_rules() {
    tell("/run/udev/control", &["udevadm", "control", "--reload"], "a disk appears");
}

/// A rule can name the group of `/dev/k2`, which is there already.
pub fn apply_rules_of_k2() {
    let trigger =
        ["udevadm", "trigger", "--settle", "--subsystem-match=misc", "--sysname-match=k2"];
    tell("/run/udev/control", &trigger, "the services start again");
}

/// systemd restarts a service by the files that it last read, until it reloads them.
pub fn reload_services() {
    tell("/run/systemd/system", &["systemctl", "daemon-reload"], "the services start again");
}

fn tell(exists_if_running: &str, command: &[&str], before: &str) {
    if !Path::new(exists_if_running).exists() {
        return;
    }
    let done = Command::new(command[0]).args(&command[1..]).status();
    if !done.is_ok_and(|status| status.success()) {
        diagnostic!("steady: {} failed: call it before {before}", command.join(" "));
    }
}
