// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ext4 recording paper's ways to record, for comparison with the pool. `steady-recipe` runs
//! them.
//!
//! The caller calls write() into the page cache, and a second thread writes the pages back. Each
//! choice of the paper is a field here. Its names are W (write: append or preallocated), S (sync:
//! fdatasync, "all", or sync_file_range, "data") and F (flusher on or off).

use std::str::FromStr;

/// The allocation of blocks for the caller's write().
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocks {
    /// The paper's W_APPEND: the file grows with each write().
    Append,
    /// The paper's W_PRE: fallocate() of the whole file, size included, before the first write().
    Preallocated,
}

/// The second thread's method of write-back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sync {
    /// The paper's S_ALL: fdatasync(), which may commit the journal.
    Fdatasync,
    /// The paper's S_DATA: sync_file_range(), which writes pages and nothing else.
    SyncFileRange,
}

/// The concurrent load on the file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Background {
    None,
    /// The paper's BG_TRUNC: files of earlier recordings are truncated step by step.
    Truncate,
    /// The paper's BG_ALL: files are truncated, and the next one is preallocated.
    All,
}

/// One of the paper's methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallerWrites {
    /// W in the paper's names.
    pub blocks: Blocks,
    /// S in the paper's names.
    pub sync: Sync,
    /// F in the paper's names: whether the flusher keeps the machine's settings.
    pub flusher: bool,
    /// BG in the paper's names.
    pub background: Background,
}

/// A named way to record. [`RECIPES`] lists all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recipe {
    /// The name on the command line.
    pub name: &'static str,
    /// The column in the paper's Table 1.
    pub paper_column: &'static str,
    pub writes: CallerWrites,
}

const fn of_paper(
    name: &'static str,
    paper_column: &'static str,
    (blocks, sync, flusher): (Blocks, Sync, bool),
    background: Background,
) -> Recipe {
    Recipe { name, paper_column, writes: CallerWrites { blocks, sync, flusher, background } }
}

const NONE: (Blocks, Sync, bool) = (Blocks::Append, Sync::Fdatasync, true);
const ALL: (Blocks, Sync, bool) = (Blocks::Preallocated, Sync::SyncFileRange, false);
const APPEND_DATA: (Blocks, Sync, bool) = (Blocks::Append, Sync::SyncFileRange, false);
const APPEND_ALL: (Blocks, Sync, bool) = (Blocks::Append, Sync::Fdatasync, false);
const PRE_ALL: (Blocks, Sync, bool) = (Blocks::Preallocated, Sync::Fdatasync, false);
const PRE_DATA_ON: (Blocks, Sync, bool) = (Blocks::Preallocated, Sync::SyncFileRange, true);

/// The paper's recipes in the order of its Table 1. A name without `flusher` or `noflusher` is one
/// of the paper's two methods: NONE (with the flusher) or ALL (without).
pub const RECIPES: [Recipe; 12] = [
    of_paper("append-fdatasync", "NONE", NONE, Background::None),
    of_paper("prealloc-syncrange", "ALL", ALL, Background::None),
    of_paper("prealloc-syncrange-BGtrunc", "ALL-BG_TRUNC", ALL, Background::Truncate),
    of_paper("prealloc-syncrange-BGall", "ALL-BG_ALL", ALL, Background::All),
    of_paper("append-syncrange-noflusher", "W_APPEND-S_DATA-F_OFF", APPEND_DATA, Background::None),
    of_paper("append-fdatasync-noflusher", "W_APPEND-S_ALL-F_OFF", APPEND_ALL, Background::None),
    of_paper("prealloc-fdatasync-noflusher", "W_PRE-S_ALL-F_OFF", PRE_ALL, Background::None),
    of_paper(
        "prealloc-fdatasync-noflusher-BGtrunc",
        "W_PRE-S_ALL-F_OFF-BG_TRUNC",
        PRE_ALL,
        Background::Truncate,
    ),
    of_paper(
        "prealloc-fdatasync-noflusher-BGall",
        "W_PRE-S_ALL-F_OFF-BG_ALL",
        PRE_ALL,
        Background::All,
    ),
    of_paper("prealloc-syncrange-flusher", "W_PRE-S_DATA-F_ON", PRE_DATA_ON, Background::None),
    of_paper(
        "prealloc-syncrange-flusher-BGtrunc",
        "W_PRE-S_DATA-F_ON-BG_TRUNC",
        PRE_DATA_ON,
        Background::Truncate,
    ),
    of_paper(
        "prealloc-syncrange-flusher-BGall",
        "W_PRE-S_DATA-F_ON-BG_ALL",
        PRE_DATA_ON,
        Background::All,
    ),
];

/// There is no such recipe.
#[derive(Debug, thiserror::Error)]
#[error("no recipe {0:?}; must be one of {names}", names = names())]
pub struct UnknownRecipe(String);

fn names() -> String {
    RECIPES.map(|recipe| recipe.name).join(", ")
}

impl FromStr for Recipe {
    type Err = UnknownRecipe;

    fn from_str(text: &str) -> Result<Recipe, UnknownRecipe> {
        let found = RECIPES.iter().find(|recipe| recipe.name == text);
        found.copied().ok_or_else(|| UnknownRecipe(text.to_string()))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_recipe() {
        for recipe in RECIPES {
            assert_eq!(recipe.name.parse::<Recipe>().unwrap(), recipe);
            assert_eq!(RECIPES.iter().filter(|other| other.writes == recipe.writes).count(), 1);
        }
        let said = "pool".parse::<Recipe>().unwrap_err().to_string();
        assert!(said.contains("append-fdatasync"), "{said}");
    }
}
