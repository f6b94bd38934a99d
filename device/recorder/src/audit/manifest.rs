// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pool.json`: which segments a pool had, and how many messages each held, when a recording began
//! or ended.
//!
//! Only the count of missing messages depends on it. Each start writes it again.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::Not;
use std::path::Path;

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
    let text = fs::read(dir.join(NAME)).ok()?;
    let manifest: Manifest = serde_json::from_slice(&text).ok()?;
    (manifest.schema == SCHEMA && manifest.crc32 == manifest.checksum()).then_some(manifest)
}

/// Replaces the one in this directory; the new one is durable then.
pub fn write(dir: &Path, manifest: &Manifest) -> io::Result<()> {
    let unfinished = dir.join(UNFINISHED);
    let mut file = File::create(&unfinished)?;
    let mut text = serde_json::to_vec_pretty(manifest).map_err(io::Error::from)?;
    text.push(b'\n');
    let written = file.write_all(&text).and_then(|()| file.sync_all());
    written.and_then(|()| fs::rename(&unfinished, dir.join(NAME))).inspect_err(|_| {
        let _ = fs::remove_file(&unfinished);
    })?;
    File::open(dir)?.sync_all()
}
