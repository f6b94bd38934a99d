// SPDX-License-Identifier: MIT OR Apache-2.0
//! The file interface of the recovery. Tests implement it with simulated power cuts.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// A file to examine.
pub trait Storage {
    fn bytes(&self) -> io::Result<u64>;
    /// Fills the buffer; less of it at the end of the file.
    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
}

/// A file to complete in place.
pub trait WritableStorage: Storage {
    /// The read-only view. Rust before 1.86 cannot convert between trait objects.
    fn as_storage(&self) -> &dyn Storage;
    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    fn truncate(&mut self, bytes: u64) -> io::Result<()>;
    /// Returns when all writes would survive a power cut.
    fn sync(&mut self) -> io::Result<()>;
}

impl Storage for File {
    fn bytes(&self) -> io::Result<u64> {
        self.metadata().map(|metadata| metadata.len())
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.read_at(&mut buffer[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}

impl WritableStorage for File {
    fn as_storage(&self) -> &dyn Storage {
        self
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn truncate(&mut self, bytes: u64) -> io::Result<()> {
        self.set_len(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}
