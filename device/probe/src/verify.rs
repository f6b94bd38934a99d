// SPDX-License-Identifier: MIT OR Apache-2.0
//! Does a card keep the data that it takes?
//!
//! A counterfeit card has less flash than it reports. Data beyond that replaces earlier data or is
//! lost, and no command fails. This fills a region with a pattern, and reads it back. The pattern
//! differs from block to block and from run to run: neither another block nor the data of an earlier
//! run is taken for right.

use serde::{Deserialize, Serialize};
use steadyio_core::interrupt::Interrupt;
use steadyio_core::memory::AlignedBuffer;
use steadyio_core::random::draw;

use crate::place::{KIB_MAX, Keeps, ProbeError};

/// Compared at a time.
pub const BLOCK_BYTES: u64 = 4_096;
const BLOCK_KIB: u64 = BLOCK_BYTES >> 10;
const WORD_BYTES: usize = 8;
const WORDS: u64 = BLOCK_BYTES / WORD_BYTES as u64;
/// Of one command.
const PART_BYTES: u64 = KIB_MAX << 10;

/// The contents of all blocks in one run.
#[derive(Debug, Clone, Copy)]
pub struct Pattern {
    seed: u64,
}

impl Pattern {
    pub fn new(seed: u64) -> Pattern {
        Pattern { seed }
    }

    /// The first word names the block, so that a block in the wrong place says where it belongs.
    fn word(self, block: u64, index: u64) -> u64 {
        match index {
            0 => block ^ draw(self.seed, 0),
            _ => draw(self.seed, block.wrapping_mul(WORDS).wrapping_add(index)),
        }
    }

    fn fill(self, block: u64, data: &mut [u8]) {
        for (index, word) in data.chunks_exact_mut(WORD_BYTES).enumerate() {
            word.copy_from_slice(&self.word(block, index as u64).to_le_bytes());
        }
    }

    fn is(self, block: u64, data: &[u8]) -> bool {
        let mut words = data.chunks_exact(WORD_BYTES).enumerate();
        words.all(|(index, word)| word == self.word(block, index as u64).to_le_bytes())
    }

    /// The block of this run that has these contents.
    fn block_of(self, data: &[u8]) -> Option<u64> {
        let first = data.first_chunk::<WORD_BYTES>()?;
        let block = u64::from_le_bytes(*first) ^ draw(self.seed, 0);
        self.is(block, data).then_some(block)
    }
}

/// What a region had kept of the pattern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verified {
    pub written_kib: u64,
    /// Each block that the card really has holds one that is right: this is its true capacity.
    pub right_kib: u64,
    /// Where the first wrong block is,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrong_at_kib: Option<u64>,
    /// and where its contents had been written; `None`: nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub belongs_at_kib: Option<u64>,
}

impl Verified {
    pub fn lost_data(&self) -> bool {
        self.right_kib < self.written_kib
    }

    fn add(&mut self, block: u64, data: &[u8], pattern: Pattern) {
        self.written_kib += BLOCK_KIB;
        if pattern.is(block, data) {
            self.right_kib += BLOCK_KIB;
        } else if self.wrong_at_kib.is_none() {
            self.wrong_at_kib = Some(block * BLOCK_KIB);
            let belongs = pattern.block_of(data);
            self.belongs_at_kib = belongs.map(|block| block.saturating_mul(BLOCK_KIB));
        }
    }
}

/// Fills the first `bytes`, a multiple of a block, and makes them durable. `tick` gets the bytes so
/// far.
pub fn fill(
    keeps: &mut impl Keeps,
    bytes: u64,
    pattern: Pattern,
    stop: &Interrupt,
    tick: &mut dyn FnMut(u64),
) -> Result<(), ProbeError> {
    in_parts(bytes, stop, tick, |offset, part| {
        for (block, data) in blocks(offset, part) {
            pattern.fill(block, data);
        }
        keeps.write(offset, part)
    })?;
    keeps.flush()
}

/// Reads back what [`fill`] wrote.
pub fn read_back(
    keeps: &mut impl Keeps,
    bytes: u64,
    pattern: Pattern,
    stop: &Interrupt,
    tick: &mut dyn FnMut(u64),
) -> Result<Verified, ProbeError> {
    let mut found =
        Verified { written_kib: 0, right_kib: 0, wrong_at_kib: None, belongs_at_kib: None };
    in_parts(bytes, stop, tick, |offset, part| {
        keeps.read(offset, part)?;
        for (block, data) in blocks(offset, part) {
            found.add(block, data, pattern);
        }
        Ok(())
    })?;
    Ok(found)
}

/// The blocks in a part, with their numbers.
fn blocks(offset: u64, part: &mut [u8]) -> impl Iterator<Item = (u64, &mut [u8])> {
    (offset / BLOCK_BYTES..).zip(part.chunks_exact_mut(BLOCK_BYTES as usize))
}

fn in_parts(
    bytes: u64,
    stop: &Interrupt,
    tick: &mut dyn FnMut(u64),
    mut each: impl FnMut(u64, &mut [u8]) -> Result<(), ProbeError>,
) -> Result<(), ProbeError> {
    let mut buffer = AlignedBuffer::new(PART_BYTES as usize, false)?;
    let mut offset = 0;
    while offset < bytes {
        if stop.requested() {
            return Err(ProbeError::Interrupted);
        }
        let length = PART_BYTES.min(bytes - offset);
        each(offset, &mut buffer[..length as usize])?;
        offset += length;
        tick(offset);
    }
    Ok(())
}
