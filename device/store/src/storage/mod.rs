// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a store lies on: something that is read and written at any aligned place, and flushed.

mod aliases;
mod chardisk;
pub mod file;

use std::io;

/// Alignment of offsets, lengths and memory addresses of all reads and writes, and size of the
/// blocks of the format.
pub const BLOCK_BYTES: u64 = 4_096;

/// What a storage has and can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub size_bytes: u64,
    /// Smallest unit of access; divides [`BLOCK_BYTES`].
    pub block_bytes: u64,
    /// Longest command that the device gets in one piece, a multiple of [`BLOCK_BYTES`].
    pub command_bytes: u64,
    /// The device's preferred multiple for placing data; 0 if it does not tell.
    pub erase_bytes: u64,
}

/// How many commands a storage was given. A read or write of `n` bytes is `n / command_bytes`,
/// rounded up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Commands {
    pub reads: u64,
    pub writes: u64,
    pub flushes: u64,
}

impl Commands {
    /// Those that came after `earlier`.
    pub fn since(self, earlier: Commands) -> Commands {
        Commands {
            reads: self.reads - earlier.reads,
            writes: self.writes - earlier.writes,
            flushes: self.flushes - earlier.flushes,
        }
    }
}

/// A device, or a file in its place. Offsets, lengths and addresses are multiples of
/// [`BLOCK_BYTES`].
pub trait Storage {
    /// Fills the buffer from this offset on.
    fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    /// Writes all bytes. They survive a power cut when a later flush has returned; until then any
    /// part of them may, in any order with other writes.
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Makes durable what was written before.
    fn flush(&mut self) -> io::Result<()>;
    fn limits(&self) -> Limits;
    /// Since it was opened.
    fn commands(&self) -> Commands;
}
