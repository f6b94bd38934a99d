// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a file although the device cannot read a part of it. The recovery and [`super::reading`]
//! use it.
//!
//! A bad sector is smaller than one read, and the data around it may be the only copy. A read that
//! fails is repeated block by block. Filler bytes, which belong to no recording, replace each block
//! that cannot be read, so the usual checks find it damaged. The result has the number of replaced
//! bytes, so no caller takes them for unused space.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::io;

use rustix::io::Errno;

use super::storage::Storage;

/// The size of a read after a longer one failed: a page of the page cache, and at least the logical
/// block of any device.
const BLOCK_BYTES: u64 = 4096;
/// The limit of unreadable blocks: more than an erase block of any flash device. With more, the
/// whole device fails, and each further attempt would take seconds.
const UNREADABLE_BLOCKS_MAX: usize = 4096;
/// A byte that does not begin a record, and is not a zero as in unused files.
const FILLER: u8 = 0xdb;

/// The part of a file that could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreadable {
    /// The size, in whole blocks of 4096.
    pub bytes: u64,
    /// The offset of the first unreadable block.
    pub first_offset: u64,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unreadable { bytes, first_offset } = self;
        write!(f, "{bytes} bytes cannot be read, the first at byte {first_offset}")
    }
}

/// A file with its unreadable blocks.
pub struct Sectors<'a> {
    storage: &'a dyn Storage,
    unreadable: RefCell<BTreeSet<u64>>,
}

impl<'a> Sectors<'a> {
    /// A file without unreadable blocks so far.
    pub fn new(storage: &'a dyn Storage) -> Sectors<'a> {
        Sectors { storage, unreadable: RefCell::default() }
    }

    /// The part that could not be read so far, if any.
    pub fn unreadable(&self) -> Option<Unreadable> {
        let blocks = self.unreadable.borrow();
        let first_offset = blocks.first()? * BLOCK_BYTES;
        Some(Unreadable { bytes: blocks.len() as u64 * BLOCK_BYTES, first_offset })
    }

    /// The number of bytes from here on, up to `bytes`, before the next unreadable block.
    fn good_bytes(&self, offset: u64, bytes: usize) -> usize {
        let next = self.unreadable.borrow().range(offset / BLOCK_BYTES..).next().copied();
        let good = next.map_or(u64::MAX, |block| (block * BLOCK_BYTES).saturating_sub(offset));
        usize::try_from(good).map_or(bytes, |good| good.min(bytes))
    }

    /// Fills the buffer; less of it at the end of the file or before an unreadable block.
    fn read_good(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        match self.storage.read(offset, buffer) {
            Err(error) if is_unreadable(&error) => self.read_blocks(offset, buffer),
            read => read,
        }
    }

    fn read_blocks(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            let at = offset + filled as u64;
            let wanted = rest_of_block(at).min(buffer.len() - filled);
            match self.storage.read(at, &mut buffer[filled..filled + wanted]) {
                Ok(count) => filled += count,
                Err(error) if is_unreadable(&error) && self.note(at) => break,
                Err(error) => return Err(error),
            }
            if filled as u64 + offset < at + wanted as u64 {
                break;
            }
        }
        Ok(filled)
    }

    /// Adds an unreadable block; false if there are too many.
    fn note(&self, offset: u64) -> bool {
        let mut blocks = self.unreadable.borrow_mut();
        blocks.len() < UNREADABLE_BLOCKS_MAX && blocks.insert(offset / BLOCK_BYTES)
    }

    /// Fills the buffer up to the next block, with as many bytes as the file has.
    fn fill(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.bytes()?.saturating_sub(offset).min(buffer.len() as u64) as usize;
        let count = left.min(rest_of_block(offset));
        buffer[..count].fill(FILLER);
        Ok(count)
    }
}

/// The number of bytes up to the next block.
fn rest_of_block(offset: u64) -> usize {
    (BLOCK_BYTES - offset % BLOCK_BYTES) as usize
}

/// Whether the error concerns a place on the medium, and not a device that is gone.
fn is_unreadable(error: &io::Error) -> bool {
    // The block layer's errors "critical medium" and, with integrity data, "protection".
    let errors = [Errno::IO, Errno::NODATA, Errno::ILSEQ];
    error.raw_os_error().is_some_and(|error| errors.iter().any(|of| of.raw_os_error() == error))
}

impl Storage for Sectors<'_> {
    fn bytes(&self) -> io::Result<u64> {
        self.storage.bytes()
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            let (at, rest) = (offset + filled as u64, &mut buffer[filled..]);
            let good = self.good_bytes(at, rest.len());
            let wanted = if good > 0 { good } else { rest_of_block(at).min(rest.len()) };
            let count = match good {
                0 => self.fill(at, rest)?,
                good => self.read_good(at, &mut rest[..good])?,
            };
            filled += count;
            let met_bad = good > 0 && self.good_bytes(at + count as u64, 1) == 0;
            if count < wanted && !met_bad {
                break;
            }
        }
        Ok(filled)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A file of bytes 1, with these unreadable blocks.
    struct Bad {
        bytes: u64,
        blocks: std::ops::Range<u64>,
        reads: RefCell<usize>,
    }

    impl Storage for Bad {
        fn bytes(&self) -> io::Result<u64> {
            Ok(self.bytes)
        }

        fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
            *self.reads.borrow_mut() += 1;
            let count = self.bytes.saturating_sub(offset).min(buffer.len() as u64);
            let touched = offset / BLOCK_BYTES..(offset + count).div_ceil(BLOCK_BYTES);
            if touched.start < self.blocks.end && self.blocks.start < touched.end {
                return Err(Errno::IO.into());
            }
            buffer[..count as usize].fill(1);
            Ok(count as usize)
        }
    }

    fn bad(bytes: u64, blocks: std::ops::Range<u64>) -> Bad {
        Bad { bytes, blocks, reads: RefCell::default() }
    }

    #[test]
    fn what_lies_around_unreadable_blocks_is_read() {
        let file = bad(100_000, 3..5);
        let sectors = Sectors::new(&file);
        // From any offset, to the end of the file and beyond.
        for offset in [0, 5_000, 12_288, 14_000, 20_480, 99_999, 100_000] {
            let mut buffer = vec![0; 110_000];
            let count = sectors.read(offset, &mut buffer).unwrap();
            assert_eq!(count as u64, 100_000 - offset);
            for (at, &byte) in (offset..).zip(&buffer[..count]) {
                let is_bad = (12_288..20_480).contains(&at);
                assert_eq!(byte, if is_bad { FILLER } else { 1 }, "{at} from {offset}");
            }
        }
        let found = sectors.unreadable().unwrap();
        assert_eq!(found, Unreadable { bytes: 8_192, first_offset: 12_288 });
        assert_eq!(Sectors::new(&bad(100_000, 0..0)).unreadable(), None);
    }

    #[test]
    fn a_block_that_cannot_be_read_is_not_asked_for_again() {
        let file = bad(100_000, 3..4);
        let sectors = Sectors::new(&file);
        let mut buffer = vec![0; 100_000];
        sectors.read(0, &mut buffer).unwrap();
        let reads = *file.reads.borrow();
        sectors.read(0, &mut buffer).unwrap();
        assert_eq!(*file.reads.borrow() - reads, 2);
    }

    #[test]
    fn an_unreadable_end_of_a_file_is_no_longer_than_the_file() {
        let file = bad(100_000, 24..25);
        let sectors = Sectors::new(&file);
        let mut buffer = vec![0; 110_000];
        assert_eq!(sectors.read(90_000, &mut buffer).unwrap(), 10_000);
        assert_eq!(sectors.read(0, &mut buffer).unwrap(), 100_000);
    }

    #[test]
    fn a_device_that_is_gone_is_an_error() {
        let bytes = (UNREADABLE_BLOCKS_MAX as u64 + 10) * BLOCK_BYTES;
        let file = bad(bytes, 0..u64::MAX);
        let error = Sectors::new(&file).read(0, &mut vec![0; bytes as usize]).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::IO.raw_os_error()));
    }
}
