// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the blocks of a life from a file, in order, and skips damaged ones.
//!
//! [`super::recover`] and [`super::reading`] call it; [`super::scan`] decodes the blocks.

use std::io;

use super::definitions::Definitions;
use super::layout::{ALIGN_BYTES, ANY_BLOCK_BYTES_LIMIT, HEAD_BYTES, LENGTH_AT_END_BYTES};
use super::private::{BlockKind, BlockRecord, Life};
use super::scan::{Scanned, Scanner, Stop};
use super::sealed::read_exactly;
use super::storage::Storage;
use super::wire::Get;

/// The size of a read when searching for blocks.
const SEARCH_BYTES: u64 = 1 << 20;

/// The complete copy of the definitions at the end of a file, from any life.
pub(super) fn definitions_copy(storage: &dyn Storage) -> io::Result<Option<Vec<u8>>> {
    let file_bytes = storage.bytes()?;
    let Some(length_at) = file_bytes.checked_sub(LENGTH_AT_END_BYTES as u64) else {
        return Ok(None);
    };
    let Some(length) = read_exactly(storage, length_at, LENGTH_AT_END_BYTES)? else {
        return Ok(None);
    };
    let bytes = Get::new(&length).u64().filter(|bytes| *bytes <= ANY_BLOCK_BYTES_LIMIT as u64);
    let Some((bytes, offset)) =
        bytes.and_then(|bytes| Some((bytes, file_bytes.checked_sub(bytes)?)))
    else {
        return Ok(None);
    };
    let block = read_exactly(storage, offset, bytes as usize)?;
    Ok(block.filter(|block| {
        let record = BlockRecord::get(block);
        record.is_some_and(|record| record.offset == offset && record.fits(block))
    }))
}

/// Reads the blocks from the first to the last, across gaps. If the definitions block is missing,
/// it uses these definitions or the copy at the end of the file.
pub(super) fn scan(
    storage: &dyn Storage,
    life: Life,
    definitions: Option<&Definitions>,
) -> io::Result<(Stop, Option<Scanned>)> {
    let mut scanner = Scanner::new(life);
    let stop = loop {
        let Err(stop) = take_block(storage, &mut scanner)? else { continue };
        if stop == Stop::End {
            break stop;
        }
        if !scanner.is_defined() {
            let found = match definitions {
                Some(definitions) => scanner.define(definitions.clone()),
                None => definitions_copy(storage)?.is_some_and(|copy| scanner.accept_copy(&copy)),
            };
            if found { continue } else { break stop }
        }
        // The block may be one that had added definitions.
        if let Some(definitions) = definitions {
            scanner.grow(definitions);
        }
        if !find_block(storage, &mut scanner)? {
            break stop;
        }
    };
    Ok((stop, scanner.finish()))
}

/// Reads the next block, at its expected place.
fn take_block(storage: &dyn Storage, scanner: &mut Scanner) -> io::Result<Result<(), Stop>> {
    let offset = scanner.offset();
    let mut start = [0; ALIGN_BYTES];
    let count = storage.read(offset, &mut start)?;
    let bytes = match scanner.block_bytes(offset, &start[..count]) {
        Ok(bytes) => bytes,
        Err(stop) => return Ok(Err(stop)),
    };
    let mut block = vec![0; bytes];
    let count = storage.read(offset, &mut block)?;
    Ok(scanner.accept(offset, &block[..count]))
}

/// Searches for the next valid block after a damaged one; false if there is none.
fn find_block(storage: &dyn Storage, scanner: &mut Scanner) -> io::Result<bool> {
    let mut from = scanner.offset() + ALIGN_BYTES as u64;
    let candidate = |scanner: &Scanner, from| {
        search(storage, from, |offset, start| scanner.block_bytes(offset, start).ok())
    };
    while let Some((offset, bytes)) = candidate(scanner, from)? {
        let block = read_exactly(storage, offset, bytes)?;
        if block.is_some_and(|block| scanner.accept(offset, &block).is_ok()) {
            return Ok(true);
        }
        from = offset + ALIGN_BYTES as u64;
    }
    Ok(false)
}

/// Whether the file has any complete block of a life, in any order.
pub(super) fn has_block(storage: &dyn Storage, life: &Life) -> io::Result<bool> {
    let of_this_life = |offset, start: &[u8]| {
        let record = BlockRecord::get(start)?;
        let data = record.identity == life.identity && record.kind != BlockKind::Definitions;
        let sensible = record.block_bytes as usize <= ANY_BLOCK_BYTES_LIMIT;
        (data && sensible && record.offset == offset).then_some(record)
    };
    let mut from = HEAD_BYTES as u64;
    while let Some((offset, record)) = search(storage, from, of_this_life)? {
        let block = read_exactly(storage, offset, record.block_bytes as usize)?;
        if block.is_some_and(|block| record.fits(&block)) {
            return Ok(true);
        }
        from = offset + ALIGN_BYTES as u64;
    }
    Ok(false)
}

/// Whether a block of any life is in its place.
pub(super) fn holds_our_blocks(storage: &dyn Storage) -> io::Result<bool> {
    let ours =
        |offset, start: &[u8]| BlockRecord::get(start).filter(|block| block.offset == offset);
    search(storage, HEAD_BYTES as u64, ours).map(|found| found.is_some())
}

/// The first place from this one on whose first bytes look like a block.
fn search<T>(
    storage: &dyn Storage,
    from: u64,
    sense: impl Fn(u64, &[u8]) -> Option<T>,
) -> io::Result<Option<(u64, T)>> {
    let end = storage.bytes()?;
    let mut window = Vec::new();
    let mut at = from;
    while at < end {
        window.resize((end - at).min(SEARCH_BYTES) as usize, 0);
        let count = storage.read(at, &mut window)?;
        for start in (0..count).step_by(ALIGN_BYTES) {
            let offset = at + start as u64;
            if let Some(found) = sense(offset, &window[start..count.min(start + ALIGN_BYTES)]) {
                return Ok(Some((offset, found)));
            }
        }
        at += SEARCH_BYTES;
    }
    Ok(None)
}
