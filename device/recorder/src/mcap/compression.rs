// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compresses and decompresses the records of chunks. The encoder compresses whole blocks, in the
//! writer's thread. [`super::scan`] and `stream::mcap` decompress, and trust no length.

use std::fmt;
use std::io::{self, Cursor, Read, Write};

use lz4::liblz4::BlockChecksum;
use lz4::{BlockSize, ContentChecksum, EncoderBuilder};

/// The memory that a hostile size may reserve before any data has come.
const RESERVED_BYTES_MAX: u64 = 4 << 20;
/// The fastest of zstd's usual levels: the writer's thread must keep up with the device.
const ZSTD_LEVEL: i32 = 1;
/// The longest name of a compression.
pub(super) const NAME_BYTES_MAX: usize = 4;

/// A compression of MCAP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    Lz4,
    Zstd,
}

impl Compression {
    /// The name in chunks.
    pub const fn name(self) -> &'static str {
        match self {
            Compression::Lz4 => "lz4",
            Compression::Zstd => "zstd",
        }
    }

    /// The compression of a chunk; None if its name is empty or unknown.
    pub(crate) fn named(name: &[u8]) -> Option<Compression> {
        [Compression::Lz4, Compression::Zstd].into_iter().find(|one| one.name().as_bytes() == name)
    }

    /// Decompresses records that should have this length. If they are longer, the result is one
    /// byte too long.
    pub(crate) fn decompress(self, compressed: &[u8], length: u64) -> io::Result<Vec<u8>> {
        match self {
            Compression::Lz4 => read(lz4::Decoder::new(compressed)?, length),
            Compression::Zstd => read(zstd::Decoder::new(compressed)?, length),
        }
    }
}

fn read(from: impl Read, length: u64) -> io::Result<Vec<u8>> {
    let mut records = Vec::with_capacity(length.min(RESERVED_BYTES_MAX) as usize);
    from.take(length + 1).read_to_end(&mut records)?;
    Ok(records)
}

enum Method {
    Lz4,
    Zstd(zstd::bulk::Compressor<'static>),
}

/// Compresses one chunk after the other.
pub(super) struct Compressor {
    method: Method,
    output: Vec<u8>,
}

impl Compressor {
    /// Allocates the memory for chunks of up to this size.
    pub(super) fn new(compression: Compression, bytes_max: usize) -> io::Result<Compressor> {
        let method = match compression {
            Compression::Lz4 => Method::Lz4,
            Compression::Zstd => Method::Zstd(zstd::bulk::Compressor::new(ZSTD_LEVEL)?),
        };
        Ok(Compressor { method, output: vec![0; bytes_max] })
    }

    /// The name in chunks.
    pub(super) fn name(&self) -> &'static str {
        match self.method {
            Method::Lz4 => Compression::Lz4.name(),
            Method::Zstd(_) => Compression::Zstd.name(),
        }
    }

    /// The compressed records; None if they do not fit into this number of bytes.
    pub(super) fn compress(&mut self, records: &[u8], bytes_max: usize) -> Option<&[u8]> {
        let bytes_max = bytes_max.min(self.output.len());
        if bytes_max == 0 {
            return None;
        }
        let output = &mut self.output[..bytes_max];
        let bytes = match &mut self.method {
            Method::Lz4 => compress_lz4(records, output),
            Method::Zstd(compressor) => compressor.compress_to_buffer(records, output),
        };
        // The only error is a full output.
        bytes.ok().map(|bytes| &self.output[..bytes])
    }
}

/// Compresses without lz4's checksums, because the chunk and the block have theirs.
fn compress_lz4(records: &[u8], output: &mut [u8]) -> io::Result<usize> {
    let mut encoder = EncoderBuilder::new()
        .block_size(BlockSize::Max256KB)
        .block_checksum(BlockChecksum::NoBlockChecksum)
        .checksum(ContentChecksum::NoChecksum)
        .build(Cursor::new(output))?;
    encoder.write_all(records)?;
    let (output, ended) = encoder.finish();
    ended.map(|()| output.position() as usize)
}

impl fmt::Debug for Compressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compressor").field("name", &self.name()).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compressed_is_decompressed_unless_it_needs_too_much() {
        let records: Vec<u8> = (0..300_000_u32).flat_map(|at| (at / 50).to_le_bytes()).collect();
        let length = records.len() as u64;
        for compression in [Compression::Lz4, Compression::Zstd] {
            let mut compressor = Compressor::new(compression, records.len()).unwrap();
            let found = compressor.compress(&records, usize::MAX).unwrap().to_vec();
            assert!(found.len() < records.len() / 4, "{compression:?} {}", found.len());
            // A full output must not break the next chunk.
            assert_eq!(compressor.compress(&records, found.len() / 2), None);
            assert_eq!(compressor.compress(&records, 0), None);
            let again = compressor.compress(&records, usize::MAX).unwrap();
            assert_eq!(compression.decompress(again, length).unwrap(), records);
            // A wrong length allocates no more than one byte beyond it.
            assert_eq!(compression.decompress(&found, 9).unwrap().len(), 10);
            assert_eq!(Compression::named(compression.name().as_bytes()), Some(compression));
            assert!(compression.name().len() <= NAME_BYTES_MAX);
        }
        assert_eq!(Compression::named(b""), None);
    }
}
