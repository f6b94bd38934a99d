// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file in memory whose power goes off after a number of bytes were written.

use std::io;
use std::ops::Range;

use steadyio_recorder::mcap::recover::{Examined, RecoverError, examine};
use steadyio_recorder::mcap::storage::{Storage, WritableStorage};

pub struct Disk {
    pub image: Vec<u8>,
    /// Bytes that are still written; changes of the length count as one.
    pub power: usize,
    pub writes: Vec<(u64, usize)>,
    /// What cannot be read.
    pub unreadable: Range<u64>,
}

impl Disk {
    pub fn new(image: Vec<u8>) -> Disk {
        Disk { image, power: usize::MAX, writes: Vec::new(), unreadable: 0..0 }
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
        self.image[offset as usize..end].copy_from_slice(&bytes[..count]);
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
        Ok(())
    }
}

/// A device that cannot read this.
pub fn unreadable(image: Vec<u8>, unreadable: Range<u64>) -> Disk {
    Disk { unreadable, ..Disk::new(image) }
}

/// As `steady recover` does it; the file as it is then, and what was found.
pub fn recover(image: Vec<u8>) -> Result<(Vec<u8>, Examined), RecoverError> {
    let mut disk = Disk::new(image);
    examine(&disk, false)?.complete(&mut disk)?;
    let found = examine(&disk, true)?;
    Ok((disk.image, found))
}

/// The same with a power cut after so many bytes; `None` if it was done before.
pub fn recover_and_cut(image: Vec<u8>, power: usize) -> Option<Vec<u8>> {
    let mut disk = Disk { power, ..Disk::new(image) };
    let cut = examine(&disk, false).unwrap().complete(&mut disk).is_err();
    cut.then_some(disk.image)
}
