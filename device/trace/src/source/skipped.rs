// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a source read and had no use for, so that nothing is dropped in silence.

use std::collections::{BTreeMap, HashMap};

/// How many of each kind of event were skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    counts: HashMap<Vec<u8>, u64>,
    other_kinds: u64,
}

impl Skipped {
    /// So many kinds are told apart; a damaged file could have any number.
    pub const KINDS_MAX: usize = 1000;

    /// One more of this kind.
    pub fn note(&mut self, kind: &[u8]) {
        self.note_many(kind, 1);
    }

    /// All that another source has skipped.
    pub fn add(&mut self, other: &Skipped) {
        other.counts.iter().for_each(|(kind, count)| self.note_many(kind, *count));
        self.other_kinds += other.other_kinds;
    }

    fn note_many(&mut self, kind: &[u8], more: u64) {
        if let Some(count) = self.counts.get_mut(kind) {
            *count += more;
        } else if self.counts.len() < Skipped::KINDS_MAX {
            self.counts.insert(kind.to_vec(), more);
        } else {
            self.other_kinds += more;
        }
    }

    /// How many of each kind, as the source names it, in the order of the names. Behind
    /// [`Skipped::KINDS_MAX`] kinds, all others are counted together as `(other kinds)`.
    pub fn by_kind(&self) -> BTreeMap<String, u64> {
        let named =
            self.counts.iter().map(|(kind, count)| (kind.escape_ascii().to_string(), *count));
        let others = (self.other_kinds > 0).then(|| ("(other kinds)".to_owned(), self.other_kinds));
        named.chain(others).collect()
    }

    /// How many in all.
    pub fn count(&self) -> u64 {
        self.counts.values().sum::<u64>() + self.other_kinds
    }
}
