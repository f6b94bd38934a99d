// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file in memory whose power goes off after a number of bytes were written. Of what no sync has
//! covered, any sectors may be lost.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::ops::Range;

use steadyio_recorder::mcap::recover::{Examined, RecoverError, examine};
use steadyio_recorder::mcap::storage::{Storage, WritableStorage};

/// A device writes each of them as a whole.
pub const SECTOR_BYTES: usize = 512;

pub struct Disk {
    pub image: Vec<u8>,
    /// Bytes that are still written; changes of the length count as one.
    pub power: usize,
    pub writes: Vec<(u64, usize)>,
    /// The contents before each write since the last sync.
    pub unsynced: Vec<(usize, Vec<u8>)>,
    /// What cannot be read.
    pub unreadable: Range<u64>,
}

impl Disk {
    pub fn new(image: Vec<u8>) -> Disk {
        let (writes, unsynced) = (Vec::new(), Vec::new());
        Disk { image, power: usize::MAX, writes, unsynced, unreadable: 0..0 }
    }
}

impl Storage for Disk {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.image.len() as u64)
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let start = usize::try_from(offset).map_or(self.image.len(), |at| at.min(self.image.len()));
        let count = buffer.len().min(self.image.len() - start);
        if offset < self.unreadable.end && self.unreadable.start < offset + count as u64 {
            return Err(rustix::io::Errno::IO.into());
        }
        buffer[..count].copy_from_slice(&self.image[start..start + count]);
        Ok(count)
    }
}

impl WritableStorage for Disk {
    fn as_storage(&self) -> &dyn Storage {
        self
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let count = bytes.len().min(self.power);
        let end = offset as usize + count;
        self.image.resize(self.image.len().max(end), 0);
        let place = &mut self.image[offset as usize..end];
        self.unsynced.push((offset as usize, place.to_vec()));
        place.copy_from_slice(&bytes[..count]);
        self.power -= count;
        self.writes.push((offset, count));
        if count < bytes.len() { Err(io::Error::other("power cut")) } else { Ok(()) }
    }

    fn truncate(&mut self, bytes: u64) -> io::Result<()> {
        if self.power == 0 {
            return Err(io::Error::other("power cut"));
        }
        self.power -= 1;
        self.image.resize(bytes as usize, 0);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.unsynced.clear();
        Ok(())
    }
}

/// What of a write a power cut leaves: each sector is as before or new, as the seed decides.
pub fn tear(image: &mut [u8], offset: usize, before: &[u8], seed: u64) {
    for (number, before) in before.chunks(SECTOR_BYTES).enumerate() {
        let mut hasher = DefaultHasher::new();
        (seed, offset, number).hash(&mut hasher);
        let at = offset + number * SECTOR_BYTES;
        if hasher.finish() % 2 == 0 && at + before.len() <= image.len() {
            image[at..at + before.len()].copy_from_slice(before);
        }
    }
}

/// A device that cannot read this.
pub fn unreadable(image: Vec<u8>, unreadable: Range<u64>) -> Disk {
    Disk { unreadable, ..Disk::new(image) }
}

/// As `steady recover` does it. Returns the recovered file, and its contents.
pub fn recover(image: Vec<u8>) -> Result<(Vec<u8>, Examined), RecoverError> {
    let mut disk = Disk::new(image);
    examine(&disk, false)?.complete(&mut disk)?;
    let found = examine(&disk, true)?;
    Ok((disk.image, found))
}

/// The same with a power cut after so many bytes; `None` if it was done before.
pub fn recover_and_cut(image: Vec<u8>, power: usize) -> Option<Vec<u8>> {
    cut_disk(image, power).map(|disk| disk.image)
}

/// The same, and what no sync has covered is torn.
pub fn recover_and_tear(image: Vec<u8>, power: usize, seed: u64) -> Option<Vec<u8>> {
    let Disk { mut image, unsynced, .. } = cut_disk(image, power)?;
    unsynced.iter().rev().for_each(|(at, before)| tear(&mut image, *at, before, seed));
    Some(image)
}

fn cut_disk(image: Vec<u8>, power: usize) -> Option<Disk> {
    let mut disk = Disk { power, ..Disk::new(image) };
    let cut = examine(&disk, false).unwrap().complete(&mut disk).is_err();
    cut.then_some(disk)
}
