// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tells the files of a recording from others, so that no output replaces one. `steady record` and
//! `steady export` check their outputs with it.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::audit::manifest;
use crate::incident::files::is_incident;
use crate::mcap::names::{is_damaged_segment, is_segment};

fn is_of_pool(name: &OsStr) -> bool {
    is_segment(name) || is_damaged_segment(name) || manifest::is_list(name) || is_incident(name)
}

fn holds_segments(dir: &Path) -> bool {
    let mut names = fs::read_dir(dir).into_iter().flatten().flatten();
    names.any(|entry| is_segment(&entry.file_name()) || is_damaged_segment(&entry.file_name()))
}

/// Whether writing to this path would replace a file of a recording: of any directory with
/// segments, or of `dir`, where some will be.
pub fn replaces_recording(path: &Path, dir: Option<&Path>) -> bool {
    let path = path.canonicalize().unwrap_or_else(|_| path.into());
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder.into(),
        _ => PathBuf::from("."),
    };
    let is_dir = |dir: &Path| {
        let folder = folder.canonicalize().ok();
        folder.is_some() && folder == dir.canonicalize().ok()
    };
    path.file_name().is_some_and(is_of_pool) && (holds_segments(&folder) || dir.is_some_and(is_dir))
}
