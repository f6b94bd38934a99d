// SPDX-License-Identifier: MIT OR Apache-2.0
//! The storage of a store: a trait for a device or file that is read and written at aligned places,
//! and flushed. `Store` is generic over it; tests implement it with simulated power cuts.

mod access;
mod aliases;
pub mod file;
mod loops;

use std::io;

/// The alignment of offsets, lengths and memory addresses of all reads and writes, and the size of
/// the format's blocks.
pub const BLOCK_BYTES: u64 = 4_096;

/// The limits of a storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub size_bytes: u64,
    /// The smallest unit of access; it divides [`BLOCK_BYTES`].
    pub block_bytes: u64,
    /// The longest command that the device gets in one piece, a multiple of [`BLOCK_BYTES`].
    pub command_bytes: u64,
    /// The device's preferred multiple for placing data; 0 if it has none.
    pub erase_bytes: u64,
}

/// The number of commands that a storage was given. A read or write of `n` bytes is `n /
/// command_bytes`, rounded up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Commands {
    pub reads: u64,
    pub writes: u64,
    pub flushes: u64,
}

impl Commands {
    /// The commands since `earlier`.
    pub fn since(self, earlier: Commands) -> Commands {
        Commands {
            reads: self.reads - earlier.reads,
            writes: self.writes - earlier.writes,
            flushes: self.flushes - earlier.flushes,
        }
    }
}

/// A device, or a file instead. Offsets, lengths and addresses are multiples of [`BLOCK_BYTES`].
pub trait Storage {
    /// Fills the buffer from this offset.
    fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    /// Writes all bytes. They survive a power cut when a later flush has returned. Before that any
    /// part of them may, in any order with other writes.
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Makes all earlier writes durable.
    fn flush(&mut self) -> io::Result<()>;
    fn limits(&self) -> Limits;
    /// The commands since it was opened.
    fn commands(&self) -> Commands;
}
