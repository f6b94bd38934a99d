// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the users of loop devices that lie on a device or file. They neither open it exclusively
//! nor lock it. `file` calls it.

use std::fs::{self, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use steadyio_core::device::Device;
use steadyio_core::occupied::{known_users, loops_on};

use super::aliases::DEPTH_MAX;

/// Mounts and other users of the loop devices on it, and of those on these.
pub(super) fn users_above(path: &Path, metadata: &Metadata) -> Vec<String> {
    above(path, metadata, DEPTH_MAX)
}

fn above(path: &Path, metadata: &Metadata, depth: usize) -> Vec<String> {
    let on = if metadata.file_type().is_block_device() {
        Device::open(path).map(|device| loops_on(&device)).unwrap_or_default()
    } else {
        loops_on_file(metadata)
    };
    let mut users = Vec::new();
    for name in on {
        let node = Path::new("/dev").join(&name);
        let Ok(device) = Device::open(&node) else { continue };
        users.extend(known_users(&device).into_iter().map(|user| format!("{name}, {user}")));
        if let (Ok(found), 1..) = (fs::metadata(&node), depth) {
            users.extend(above(&node, &found, depth - 1));
        }
    }
    users
}

fn loops_on_file(file: &Metadata) -> Vec<String> {
    let blocks = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let is_on = |entry: &fs::DirEntry| {
        let backing = fs::read_to_string(entry.path().join("loop/backing_file")).ok()?;
        let found = fs::metadata(backing.trim_end_matches('\n')).ok()?;
        ((found.dev(), found.ino()) == (file.dev(), file.ino())).then_some(())
    };
    let found = blocks.filter(|entry| is_on(entry).is_some());
    found.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
