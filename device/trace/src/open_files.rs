// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files that processes had open, as several looks at `/proc` showed them. `source::capture`
//! looks, and `follow` finds the file of each call.

use serde::{Deserialize, Serialize};

/// A file that a process had open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct File {
    pub path: String,
    /// The device number of its file system, as `MAJOR:MINOR`.
    pub device: String,
    pub inode: u64,
}

/// Looks, in the order of their time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenFiles {
    /// When each look began and ended, in ns on the trace clock.
    pub looks: Vec<(u64, u64)>,
    /// The files, in the order of their first look.
    pub files: Vec<Seen>,
}

/// What a descriptor named in one look, or in several looks in a row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    pub process: u32,
    pub fd: i32,
    /// The first and the last of these looks, counted from 0.
    pub looks: (usize, usize),
    #[serde(flatten)]
    pub file: File,
}

impl OpenFiles {
    /// Without the looks that began before `since_ns`.
    pub fn since(mut self, since_ns: u64) -> OpenFiles {
        let gone = self.looks.partition_point(|(from_ns, _)| *from_ns < since_ns);
        self.looks.drain(..gone);
        self.files.retain(|seen| seen.looks.1 >= gone);
        for Seen { looks: (first, last), .. } in &mut self.files {
            (*first, *last) = (first.saturating_sub(gone), *last - gone);
        }
        self
    }
}
