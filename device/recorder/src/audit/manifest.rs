// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pool.json`: which segments a pool had, and how many messages each held, when a recording began
//! or ended.
//!
//! Only the count of missing messages depends on it. Each start writes it again.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::Not;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::mcap::private::Identity;

const NAME: &str = "pool.json";
/// While it is written.
const UNFINISHED: &str = "pool.json.new";
const SCHEMA: &str = "steadyio.pool/1";

/// A use of a segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ListedLife {
    recording_id: String,
    sequence: u64,
    #[serde(flatten)]
    messages: Listed,
}

/// The messages of a life.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// That it had when it was written.
    pub messages: u64,
    /// Of those, the ones that were missing when it was listed.
    pub missing: u64,
    /// Whether that may be fewer.
    pub at_most: bool,
}

/// Messages that a start has reported as missing, of lives that have no segment any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gone {
    /// Sequences of the first and the last life.
    pub first: u64,
    pub last: u64,
    pub messages: u64,
    /// Whether there may be fewer.
    pub at_most: bool,
}

/// See the module's head.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    schema: String,
    /// Files of the pool.
    pub segments: usize,
    /// Of each.
    pub segment_bytes: u64,
    /// Whether it was written at the end of a recording: what came later is not in it.
    pub ended: bool,
    /// Of the segments, those that could not be read when it was written: it lacks their lives.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unreadable: usize,
    /// Whether a segment may have compressed blocks. Such a segment may hold more messages.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub compressed: bool,
    lives: Vec<ListedLife>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) gone: Vec<Gone>,
    /// Of the other values, as JSON without spaces.
    crc32: u32,
}

impl Manifest {
    pub fn new(
        segments: usize,
        segment_bytes: u64,
        ended: bool,
        lives: impl Iterator<Item = (Identity, Listed)>,
    ) -> Manifest {
        let listed = |(identity, messages): (Identity, Listed)| ListedLife {
            recording_id: hex(&identity.recording_id),
            sequence: identity.sequence,
            messages,
        };
        let lives = lives.map(listed).collect();
        let manifest = Manifest {
            schema: SCHEMA.into(),
            segments,
            segment_bytes,
            ended,
            unreadable: 0,
            compressed: false,
            lives,
            gone: Vec::new(),
            crc32: 0,
        };
        manifest.summed()
    }

    /// Returns it with the number of unreadable segments, and earlier losses.
    pub fn with(self, unreadable: usize, gone: Vec<Gone>) -> Manifest {
        Manifest { unreadable, gone, ..self }.summed()
    }

    pub fn with_compression(self, compressed: bool) -> Manifest {
        Manifest { compressed, ..self }.summed()
    }

    fn summed(mut self) -> Manifest {
        self.crc32 = self.checksum();
        self
    }

    fn checksum(&self) -> u32 {
        let rest = Manifest { crc32: 0, ..self.clone() };
        // Strings and numbers can always be written.
        crc32fast::hash(&serde_json::to_vec(&rest).unwrap_or_default())
    }

    /// The highest sequence that it knows, of lives that are gone, too.
    pub fn last_sequence(&self) -> u64 {
        self.gone.iter().map(|gone| gone.last).fold(self.newest(), u64::max)
    }

    /// Sequence of the newest life.
    pub(super) fn newest(&self) -> u64 {
        self.lives.iter().map(|life| life.sequence).max().unwrap_or(0)
    }

    /// The number of segments that held no message.
    pub(super) fn empty(&self) -> usize {
        self.segments.saturating_sub(self.lives.len() + self.unreadable)
    }

    pub(super) fn messages(&self, identity: &Identity) -> Option<Listed> {
        let is_it = |life: &&ListedLife| {
            life.sequence == identity.sequence && life.recording_id == hex(&identity.recording_id)
        };
        self.lives.iter().find(is_it).map(|life| life.messages)
    }

    pub(super) fn lives(&self) -> impl Iterator<Item = (Identity, Listed)> + '_ {
        self.lives.iter().filter_map(|life| {
            let recording_id = unhex(&life.recording_id)?;
            Some((Identity { recording_id, sequence: life.sequence }, life.messages))
        })
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

fn hex(id: &[u8; 16]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<[u8; 16]> {
    u128::from_str_radix(text, 16).ok().map(u128::to_be_bytes)
}

/// Whether this is its name, also while it is written.
pub fn is_list(name: &OsStr) -> bool {
    name == NAME || name == UNFINISHED
}

/// The one in this directory; none if it is damaged, or of another version.
pub fn read(dir: &Path) -> Option<Manifest> {
    parse(&fs::read(dir.join(NAME)).ok()?)
}

fn parse(text: &[u8]) -> Option<Manifest> {
    let manifest: Manifest = serde_json::from_slice(text).ok()?;
    (manifest.schema == SCHEMA && manifest.crc32 == manifest.checksum()).then_some(manifest)
}

/// The path of the one in this directory if it is damaged, or of another version.
pub fn damaged(dir: &Path) -> Option<PathBuf> {
    let path = dir.join(NAME);
    let text = fs::read(&path).ok()?;
    parse(&text).is_none().then_some(path)
}

/// What that means.
pub const DAMAGED: &str =
    "is damaged, or of another version: not all messages that are missing can be counted";

/// Replaces the one in this directory; the new one is durable then. On a full disk it is written
/// over the old one. If that fails, too, none is left: an old one would hide what goes missing.
pub fn write(dir: &Path, manifest: &Manifest) -> io::Result<()> {
    let mut text = serde_json::to_vec_pretty(manifest).map_err(io::Error::from)?;
    text.push(b'\n');
    replace(dir, &text).or_else(|error| {
        overwrite(dir, &text).map_err(|_| {
            let _ = fs::remove_file(dir.join(NAME));
            error
        })
    })
}

fn replace(dir: &Path, text: &[u8]) -> io::Result<()> {
    let unfinished = dir.join(UNFINISHED);
    let mut file = File::create(&unfinished)?;
    let written = file.write_all(text).and_then(|()| file.sync_all());
    written.and_then(|()| fs::rename(&unfinished, dir.join(NAME))).inspect_err(|_| {
        let _ = fs::remove_file(&unfinished);
    })?;
    File::open(dir)?.sync_all()
}

/// Writes into the space that the old one has.
fn overwrite(dir: &Path, text: &[u8]) -> io::Result<()> {
    let file = File::options().write(true).open(dir.join(NAME))?;
    if text.len() as u64 > file.metadata()?.blocks() * 512 {
        return Err(io::ErrorKind::StorageFull.into());
    }
    file.write_all_at(text, 0)?;
    file.set_len(text.len() as u64)?;
    file.sync_all()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_cannot_be_replaced_is_overwritten_or_removed() {
        let dir = tempfile::tempdir().unwrap();
        let list = |lives: u64, ended| {
            let life = |sequence| (Identity { recording_id: [7; 16], sequence }, Listed::default());
            Manifest::new(3, 4_096, ended, (0..lives).map(life))
        };
        write(dir.path(), &list(3, true)).unwrap();
        // As on a full disk, no new file can be made.
        fs::create_dir(dir.path().join(UNFINISHED)).unwrap();
        write(dir.path(), &list(2, false)).unwrap();
        assert_eq!(read(dir.path()), Some(list(2, false)));
        write(dir.path(), &list(500, false)).unwrap_err();
        assert!(!dir.path().join(NAME).exists());
    }

    #[test]
    fn a_damaged_list_is_told_from_none() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(damaged(dir.path()), None);
        write(dir.path(), &Manifest::new(3, 4_096, true, [].into_iter())).unwrap();
        assert_eq!(damaged(dir.path()), None);
        let path = dir.path().join(NAME);
        let text = fs::read_to_string(&path).unwrap().replace("4096", "4097");
        fs::write(&path, text).unwrap();
        assert_eq!((read(dir.path()), damaged(dir.path())), (None, Some(path)));
    }
}
