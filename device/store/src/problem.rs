// SPDX-License-Identifier: MIT OR Apache-2.0
//! Damage of a store, which `examine` finds and an error lists.

use std::fmt;

use crate::format::superblock::NoSuperblock;

/// Damage, or a state that looks like it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// The superblock is damaged, and the copy was used instead.
    Superblock(NoSuperblock),
    /// The copy is damaged; the superblock itself is good.
    SuperblockCopy(NoSuperblock),
    /// The device cannot read some of the records.
    Unreadable {
        area: usize,
        blocks: u32,
    },
    /// Later changes were durable, but cannot be read in order.
    Hole {
        area: usize,
        block: u32,
    },
    /// The newer area has changes, but its snapshot is incomplete.
    Newer {
        area: usize,
    },
    /// It is unknown which of the two areas is newer.
    SameEpoch,
    NoSnapshot,
    /// An entry that no program writes.
    Extent {
        id: u64,
    },
    Overlap,
    TooMany {
        extents: usize,
    },
    /// No epoch follows, so there can be no other snapshot.
    LastEpoch,
}

impl Problem {
    /// Whether the state that was found is certainly the durable one.
    pub fn allows_reading(&self) -> bool {
        let superblock = matches!(self, Problem::Superblock(_) | Problem::SuperblockCopy(_));
        superblock || *self == Problem::LastEpoch
    }

    /// Whether the store may also be changed. The place of a damaged superblock may have another
    /// use now.
    pub fn allows_changes(&self) -> bool {
        matches!(self, Problem::SuperblockCopy(_))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Superblock(why) => write!(to, "superblock: {why}: its copy is used"),
            Problem::SuperblockCopy(why) => write!(to, "copy of the superblock: {why}"),
            Problem::Unreadable { area, blocks } => {
                write!(to, "area {area}: {blocks} blocks cannot be read")
            }
            Problem::Hole { area, block } => {
                write!(to, "area {area}: block {block} is damaged, and later ones are there")
            }
            Problem::Newer { area } => {
                write!(to, "area {area}: its snapshot is damaged, and it has later changes")
            }
            Problem::SameEpoch => write!(to, "both areas have the same epoch"),
            Problem::NoSnapshot => write!(to, "neither area has a whole snapshot"),
            Problem::Extent { id } => write!(to, "extent {id}: is where none can be"),
            Problem::Overlap => write!(to, "two extents overlap"),
            Problem::TooMany { extents } => write!(to, "{extents} extents are too many"),
            Problem::LastEpoch => write!(to, "the last epoch is in use"),
        }
    }
}
