// SPDX-License-Identifier: MIT OR Apache-2.0
//! The destination of data that `steady store get` and `steady direct read` copy.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use anyhow::{anyhow, ensure};

use crate::record_file::is_same_file;

/// Standard output without a buffer, whose last bytes nobody would see fail.
pub fn standard_output() -> anyhow::Result<File> {
    let file = io::stdout().as_fd().try_clone_to_owned();
    file.map(File::from).map_err(|error| anyhow!("standard output: {error}"))
}

/// Whether the file is standard output under another name, such as /dev/stdout.
pub fn is_standard_output(file: &Path) -> bool {
    let number = |found: fs::Metadata| (found.dev(), found.ino());
    let own = standard_output().ok().and_then(|out| out.metadata().ok()).map(number);
    own.is_some() && own == fs::metadata(file).ok().map(number)
}

/// Rejects the device that is read, and any other block device: those are not overwritten without
/// consent.
pub fn check_output(file: &Path, device: &Path) -> anyhow::Result<()> {
    let is_block = fs::metadata(file).is_ok_and(|found| found.file_type().is_block_device());
    ensure!(!is_block, "{}: is a block device (steady direct write copies to one)", file.display());
    ensure!(!is_same_file(file, device), "{}: is the device or file that is read", file.display());
    Ok(())
}
