// SPDX-License-Identifier: MIT OR Apache-2.0
//! A loop device for one test.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::skips::{is_root, skip};

/// A loop device over a file in a separate directory. Dropping it removes both.
pub struct LoopDisk {
    /// `/dev/loopN`, used by this test only.
    pub node: String,
    /// The file with its blocks.
    pub backing: PathBuf,
    /// A directory for other files of the test.
    pub dir: tempfile::TempDir,
}

impl LoopDisk {
    /// Makes a loop device, with further options of losetup. None, and the test is skipped, if this
    /// machine cannot have one.
    pub fn new(mib: u64, options: &[&str]) -> Option<LoopDisk> {
        if !is_root("a loop device") {
            return None;
        }
        let dir = tempfile::tempdir().expect("temporary directory");
        let backing = dir.path().join("disk");
        File::create(&backing).and_then(|file| file.set_len(mib << 20)).expect("backing file");
        let mut losetup = Command::new("losetup");
        match losetup.args(["--find", "--show"]).args(options).arg(&backing).output() {
            Ok(output) if output.status.success() => {
                let node = String::from_utf8_lossy(&output.stdout).trim().to_string();
                wait_for_udev();
                Some(LoopDisk { node, backing, dir })
            }
            other => {
                skip(&format!("no loop device {options:?}: {other:?}"));
                None
            }
        }
    }

    /// The name in /sys/block.
    pub fn name(&self) -> &str {
        self.node.trim_start_matches("/dev/")
    }
}

/// Waits for udev, which reads each new device, and keeps it open meanwhile.
fn wait_for_udev() {
    if Path::new("/run/udev/control").exists() {
        let _ = Command::new("udevadm").args(["settle", "--timeout=60"]).status();
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.node]).status();
    }
}
