// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the contents of a recording with the official MCAP reader.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

use mcap::{Message, MessageStream, Summary};

/// The files of a recording, by name.
pub fn segments(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).expect("the directory of a recording");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a segment").path()).collect();
    let is_segment = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("segment-"))
    };
    paths.retain(is_segment);
    paths.sort();
    paths
}

/// All messages of the finished segments. The other segments have none.
pub fn messages(dir: &Path) -> Vec<Message<'static>> {
    let mut messages = Vec::new();
    for path in segments(dir) {
        let bytes = fs::read(path).expect("a segment");
        if Summary::read(&bytes).ok().flatten().is_some() {
            messages.extend(MessageStream::new(&bytes).expect("an MCAP file").map(|message| {
                let message = message.expect("a message");
                Message { data: Cow::Owned(message.data.into_owned()), ..message }
            }));
        }
    }
    messages
}
