// SPDX-License-Identifier: MIT OR Apache-2.0
//! Signatures are recognised on devices that the real tools formatted.

#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use steadyio_core::occupied::signature;
use steadyio_testing::skip;

/// Runs a tool on a fresh 16 MiB file; None with the reason printed if there is no such tool.
fn head_after(tool: &str, arguments: &[&str], input: &str) -> Option<Vec<u8>> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("disk");
    File::create(&path).unwrap().set_len(16 << 20).unwrap();
    if !run(tool, arguments, input, &path) {
        skip(&format!("{tool} is missing or failed"));
        return None;
    }
    Some(fs::read(&path).unwrap())
}

fn run(tool: &str, arguments: &[&str], input: &str, path: &Path) -> bool {
    let mut command = Command::new(tool);
    command.args(arguments).arg(path).stdin(Stdio::piped()).stdout(Stdio::null());
    let Ok(mut child) = command.stderr(Stdio::null()).spawn() else { return false };
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait().unwrap().success()
}

#[test]
fn what_common_tools_write_is_recognised() {
    let tools: [(&str, &[&str], &str, &str); 5] = [
        ("mkfs.ext4", &["-q"], "", "an ext2, ext3 or ext4 filesystem"),
        ("mkfs.ext2", &["-q"], "", "an ext2, ext3 or ext4 filesystem"),
        ("mkswap", &[], "", "swap space"),
        ("sfdisk", &["-q"], "label: gpt\n,1M\n", "a GPT partition table"),
        ("sfdisk", &["-q"], "label: dos\n,1M\n", "a boot sector (MBR or FAT)"),
    ];
    for (tool, arguments, input, expected) in tools {
        if let Some(head) = head_after(tool, arguments, input) {
            assert_eq!(signature(&head), Some(expected), "{tool} {arguments:?} {input}");
        }
    }
}

#[test]
fn zeros_and_short_devices_hold_nothing() {
    assert_eq!(signature(&[0; 70_000]), None);
    assert_eq!(signature(&[]), None);
    assert_eq!(signature(&[0; 511]), None);
}
