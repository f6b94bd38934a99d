// SPDX-License-Identifier: MIT OR Apache-2.0
//! The errors of a store.

use std::io;

use steadyio_core::memory::MemoryError;

use crate::format::VERSION;
use crate::format::geometry::GeometryError;
use crate::format::records::ENTRIES_MAX;
use crate::format::superblock::NoSuperblock;
use crate::places::Free;
use crate::problem::Problem;
use crate::storage::BLOCK_BYTES;

/// One variant for each rule.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no store.
    #[error("holds no store: steady store create makes one")]
    NoStore,
    /// The store has another version of the format.
    #[error(
        "holds a store of format {found}, and this program knows format {VERSION}: use the program \
         that made it, or copy its contents with that"
    )]
    Version { found: u32 },
    /// Both superblocks are damaged.
    #[error(
        "superblock: {first}; at the end of the device: {copy} (steady store repair searches the \
         device for the copy)"
    )]
    Superblocks { first: NoSuperblock, copy: NoSuperblock },
    /// There are records, but no superblock. On a device of another size the copy is not at the
    /// end.
    #[error(
        "holds records of a store, but no superblock at its start or end (steady store repair \
         searches the device for the copy)"
    )]
    OnlyRecords,
    /// The whole device has no copy of a superblock.
    #[error("holds no superblock of a store, nor a copy of one whose records are whole")]
    NoCopy,
    /// The device has copies of several stores. It is unknown which one is valid.
    #[error(
        "holds copies of superblocks of {} stores, at {}: which one counts is unknown",
        .0.len(), .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    )]
    SeveralCopies(Vec<u64>),
    /// A part of the store is missing.
    #[error(
        "the store has {store_bytes} bytes, but only {size_bytes} are there: an incomplete \
         copy, or another partition table"
    )]
    Truncated { store_bytes: u64, size_bytes: u64 },
    /// Damage that no power cut leaves.
    #[error(
        "the store is damaged: {}: run steady store check to list the readable contents",
        .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    )]
    Damaged(Vec<Problem>),
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    #[error("no extent {0}")]
    Missing(u64),
    #[error("extent {0} already exists (delete it first)")]
    Exists(u64),
    #[error("an extent of 0 bytes: must be at least 1")]
    Empty,
    #[error("the store has its maximum of {0} extents (delete one, or make a larger store)")]
    TooMany(u32),
    /// There is no room. Nothing was changed.
    #[error(
        "no room for {needed_bytes} bytes in one piece: {} are free, the largest piece has {} \
         (delete extents, or create those that change often with two places)",
        free.total_bytes, free.largest_bytes
    )]
    Full { needed_bytes: u64, free: Free },
    #[error("extent {id}: {bytes} bytes are too many: it was made for {extent_bytes}")]
    TooLong { id: u64, bytes: u64, extent_bytes: u64 },
    #[error("extent {id}: a buffer of {buffer_bytes} bytes is too small: {needed_bytes} are read")]
    Buffer { id: u64, buffer_bytes: u64, needed_bytes: u64 },
    #[error("{what} = {value}: must be a multiple of {BLOCK_BYTES}")]
    Alignment { what: &'static str, value: u64 },
    #[error("{} changes wait for a flush, the maximum (flush first)", ENTRIES_MAX)]
    TooManyStaged,
    /// Stored contents changed.
    #[error("extent {id}: contents are damaged: checksum is {found:08x}, not {stored:08x}")]
    Contents { id: u64, stored: u32, found: u32 },
    #[error("{what}")]
    Io { what: String, source: io::Error },
    #[error(transparent)]
    Memory(#[from] MemoryError),
    #[error("the store was opened read-only")]
    ReadOnly,
    /// The device has the state before or after the failed change.
    #[error("an earlier write or flush of the records failed: open the store again")]
    Failed,
    /// Another program changed the store by a path that no lock covers. The staged changes are
    /// lost.
    #[error(
        "another program changed the store meanwhile, by another path: nothing was changed (use one \
         path for a store)"
    )]
    Moved,
    /// The same happened at the same moment, so one of the two changes is lost.
    #[error(
        "another program changed the store at the same moment, by another path: run steady store \
         check to see its contents (use one path for a store)"
    )]
    Raced,
    #[error("interrupted")]
    Interrupted,
}

/// Makes an error, for `map_err`.
pub(crate) fn io_error(what: &str) -> impl FnOnce(io::Error) -> StoreError {
    let what = what.to_string();
    move |source| StoreError::Io { what, source }
}
