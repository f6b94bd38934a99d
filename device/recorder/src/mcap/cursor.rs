// SPDX-License-Identifier: MIT OR Apache-2.0
//! Goes through a segment block by block while a recorder writes it. A live view reads with it.
//!
//! [`super::reading`] reads an unfinished segment from its start each time. A cursor remembers its
//! place, so it reads each block once. It does not search beyond a damaged block: the follower of a
//! recording goes on with the next segment.

use std::io;

use super::definitions::Definitions;
use super::layout::{ALIGN_BYTES, ANY_BLOCK_BYTES_LIMIT, HEAD_BYTES};
use super::private::{BlockKind, BlockRecord, Life};
use super::reading::block_at;
use super::scan::Records;
use super::sealed::read_exactly;
use super::storage::Storage;
use super::wire::op;

/// What a cursor found at its place.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// No complete block of this life, so far.
    Nothing,
    /// Schemas or channels, which [`Cursor::definitions`] now has.
    Definitions,
    /// A block with messages, as [`block_at`] returns it; empty if it was passed unread.
    Messages(Vec<u8>),
    /// The recorder has ended the segment.
    End,
}

/// A place in a life.
#[derive(Debug)]
pub struct Cursor {
    life: Life,
    definitions: Definitions,
    offset: u64,
}

impl Cursor {
    /// Starts at the first block of a life.
    pub fn new(life: Life) -> Cursor {
        Cursor { life, definitions: Definitions::empty(), offset: HEAD_BYTES as u64 }
    }

    pub fn life(&self) -> &Life {
        &self.life
    }

    /// The place of the next block.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The schemas and channels so far.
    pub fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    /// Takes the next block. Without `reads`, it passes messages and reads the block's start only.
    pub fn step(&mut self, storage: &dyn Storage, reads: bool) -> io::Result<Step> {
        let Some(record) = self.next(storage)? else { return Ok(Step::Nothing) };
        let step = match record.kind {
            BlockKind::End => return Ok(Step::End),
            BlockKind::Data | BlockKind::Repeated if !reads => Step::Messages(Vec::new()),
            BlockKind::Data | BlockKind::Repeated => {
                match block_at(storage, &self.life, self.offset)? {
                    Some(block) => Step::Messages(block),
                    None => return Ok(Step::Nothing),
                }
            }
            BlockKind::Definitions | BlockKind::Added => {
                let block = read_exactly(storage, self.offset, record.block_bytes as usize)?;
                match block.filter(|block| record.fits(block)).and_then(|block| self.added(&block))
                {
                    Some(definitions) => self.definitions = definitions,
                    None => return Ok(Step::Nothing),
                }
                Step::Definitions
            }
        };
        self.offset += u64::from(record.block_bytes);
        Ok(step)
    }

    fn next(&self, storage: &dyn Storage) -> io::Result<Option<BlockRecord>> {
        let start = read_exactly(storage, self.offset, ALIGN_BYTES)?;
        let ours = |record: &BlockRecord| {
            record.identity == self.life.identity
                && record.offset == self.offset
                && record.block_bytes as usize <= ANY_BLOCK_BYTES_LIMIT
        };
        Ok(start.and_then(|start| BlockRecord::get(&start)).filter(ours))
    }

    fn added(&self, block: &[u8]) -> Option<Definitions> {
        let mut definitions = self.definitions.clone();
        let ours = |opcode: &u8| matches!(*opcode, op::SCHEMA | op::CHANNEL);
        for (_, opcode, content) in Records::of(block).filter(|(_, opcode, _)| ours(opcode)) {
            definitions.add_record(opcode, content)?;
        }
        Some(definitions)
    }
}
