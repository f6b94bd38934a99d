// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads and writes a device or a file on it, past the page cache, and times each.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::Instant;

use steadyio_core::memory::{AlignedBuffer, MemoryError};
use steadyio_core::random::draw;

/// Why a probe ended early.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    #[error("{0}")]
    Io(String, #[source] io::Error),
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// Smaller than what is measured on it.
    #[error("{path} has {bytes} bytes: must have at least {least}")]
    TooSmall { path: String, bytes: u64, least: u64 },
    #[error(
        "{disturbed} of {all} commands met other I/O on the disk (stop what uses it; if a file \
         system adds writes to each of ours, as btrfs does, name a partition with --write)"
    )]
    Busy { disturbed: u64, all: u64 },
    /// Ctrl-C or another signal.
    #[error("interrupted")]
    Interrupted,
}

/// What happens to data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Read,
    Write,
    /// With O_DSYNC.
    DurableWrite,
}

/// Takes writes, and says how long they took.
pub trait Writes {
    fn size_bytes(&self) -> u64;

    /// Writes `kib` at `offset`; the time in ns.
    fn timed(&mut self, offset: u64, kib: u64) -> Result<u64, ProbeError>;

    /// Makes durable what was written; the time in ns.
    fn timed_flush(&mut self) -> Result<u64, ProbeError>;
}

/// Takes data and gives them back; a counterfeit card does not.
pub trait Keeps {
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), ProbeError>;

    fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<(), ProbeError>;

    fn flush(&mut self) -> Result<(), ProbeError>;
}

/// A device or file, open.
#[derive(Debug)]
pub struct Place {
    file: File,
    path: String,
    pub size_bytes: u64,
    way: Way,
    buffer: AlignedBuffer,
}

/// The largest I/O of a probe.
pub const KIB_MAX: u64 = 512;
const SEED: u64 = 1;

impl Place {
    /// Refuses what is smaller than 64 of the largest I/Os.
    pub fn open(path: &Path, size_bytes: u64, way: Way) -> Result<Place, ProbeError> {
        let named = path.display().to_string();
        let least = 64 * (KIB_MAX << 10);
        if size_bytes < least {
            return Err(ProbeError::TooSmall { path: named, bytes: size_bytes, least });
        }
        let flags = match way {
            Way::DurableWrite => libc::O_DIRECT | libc::O_DSYNC,
            Way::Read | Way::Write => libc::O_DIRECT,
        };
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .write(way != Way::Read)
            .custom_flags(flags)
            .open(path)
            .map_err(|error| ProbeError::Io(named.clone(), error))?;
        let mut buffer = AlignedBuffer::new((KIB_MAX << 10) as usize, false)?;
        for (index, bytes) in buffer.chunks_exact_mut(8).enumerate() {
            bytes.copy_from_slice(&draw(SEED, index as u64).to_le_bytes());
        }
        Ok(Place { file, path: named, size_bytes, way, buffer })
    }

    /// Moves `kib` at `offset`; the time in ns.
    pub fn timed(&mut self, offset: u64, kib: u64) -> Result<u64, ProbeError> {
        let memory = &mut self.buffer[..(kib << 10) as usize];
        let begun = Instant::now();
        let moved = match self.way {
            Way::Read => self.file.read_exact_at(memory, offset),
            Way::Write | Way::DurableWrite => self.file.write_all_at(memory, offset),
        };
        let took = begun.elapsed();
        let what = || format!("{} at {offset}, {kib} KiB", self.path);
        moved.map_err(|error| ProbeError::Io(what(), says_gone(error)))?;
        Ok(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX))
    }

    fn failed(&self, offset: u64, error: io::Error) -> ProbeError {
        ProbeError::Io(format!("{} at {offset}", self.path), says_gone(error))
    }

    pub fn way(&self) -> Way {
        self.way
    }

    pub fn writes(&self) -> bool {
        self.way != Way::Read
    }

    pub fn file(&self) -> &File {
        &self.file
    }
}

impl Writes for Place {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn timed(&mut self, offset: u64, kib: u64) -> Result<u64, ProbeError> {
        Place::timed(self, offset, kib)
    }

    fn timed_flush(&mut self) -> Result<u64, ProbeError> {
        let begun = Instant::now();
        let flushed = self.file.sync_data();
        let took = begun.elapsed();
        flushed.map_err(|error| ProbeError::Io(self.path.clone(), error))?;
        Ok(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Keeps for Place {
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), ProbeError> {
        self.file.write_all_at(data, offset).map_err(|error| self.failed(offset, error))
    }

    fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<(), ProbeError> {
        self.file.read_exact_at(data, offset).map_err(|error| self.failed(offset, error))
    }

    fn flush(&mut self) -> Result<(), ProbeError> {
        self.timed_flush().map(drop)
    }
}

/// A disk that has gone has no more bytes.
fn says_gone(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::WriteZero => {
            io::Error::other("it ends before that; has the device gone away?")
        }
        _ => error,
    }
}
