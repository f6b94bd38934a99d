// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a segment of which other files have copies, with the blocks that only these have. The
//! survey and `merge` call it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use steadyio_recorder::mcap::account::Gaps;
use steadyio_recorder::mcap::index::BlockSpan;
use steadyio_recorder::mcap::layout::ALIGN_BYTES;
use steadyio_recorder::mcap::names::{is_unused, named};
use steadyio_recorder::mcap::private::Life;
use steadyio_recorder::mcap::reading::{Found, Readable, read};
use steadyio_recorder::mcap::recover::RecoverError;

/// Opens a segment under its present name. A recorder renames a segment a moment after its first
/// record.
pub(crate) fn open(path: &Path) -> io::Result<(File, PathBuf)> {
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let other = named(path, is_unused(path));
            Ok((File::open(&other)?, other))
        }
        opened => Ok((opened?, path.into())),
    }
}

/// Opens a segment again; None if it has begun another life.
pub(crate) fn open_again(
    path: &Path,
    life: &Life,
    copies: &[PathBuf],
) -> Result<Option<(File, Box<Readable>)>, RecoverError> {
    let file = match open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?.0,
    };
    Ok(match read_with(&file, copies)? {
        Found::Messages(found) if found.life.identity == life.identity => Some((file, found)),
        _ => None,
    })
}

/// Reads a segment. A summary lists all blocks, so only a segment without one lacks some.
fn read_with(file: &File, copies: &[PathBuf]) -> Result<Found, RecoverError> {
    let mut found = read(file)?;
    if let Found::Messages(found) = &mut found {
        if found.evidence.counted.is_none() {
            copies.iter().for_each(|path| add_blocks(found, path));
        }
    }
    Ok(found)
}

fn add_blocks(found: &mut Readable, path: &Path) {
    let copy = File::open(path).ok().and_then(|file| read(&file).ok());
    let Some(Found::Messages(copy)) = copy else { return };
    if copy.life.identity != found.life.identity {
        return;
    }
    for span in copy.blocks {
        let at = found.blocks.partition_point(|known| known.offset < span.offset);
        let (before, after) = found.blocks.split_at(at);
        let ends_before =
            |one: &BlockSpan, other: &BlockSpan| one.offset + one.bytes <= other.offset;
        let is_free = before.last().is_none_or(|before| ends_before(before, &span))
            && after.first().is_none_or(|after| ends_before(&span, after));
        if !is_free {
            continue;
        }
        if !before.is_empty() && !after.is_empty() {
            found.gaps = without(found.gaps, &span);
        }
        let messages = if span.repeats { 0 } else { span.messages };
        found.evidence = found.evidence.with_more(messages);
        let (start_ns, end_ns) = found.times_ns;
        found.times_ns = (start_ns.min(span.start_ns), end_ns.max(span.end_ns));
        found.blocks.insert(at, span);
    }
}

/// The gaps after a block was found in one.
fn without(gaps: Gaps, span: &BlockSpan) -> Gaps {
    Gaps {
        blocks: gaps.blocks.saturating_sub(1),
        bytes: gaps.bytes.saturating_sub(span.bytes.next_multiple_of(ALIGN_BYTES as u64)),
        durable_blocks: gaps.durable_blocks.saturating_sub(1),
    }
}
