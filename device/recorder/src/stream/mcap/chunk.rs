// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decompresses and checks the records of a chunk. It trusts no length. [`super`] calls it.

use std::io::{self, Read};

use super::Problem;
use crate::mcap::wire::Get;

/// The limit of chunks, compressed or not, because they are held in memory.
pub(super) const CHUNK_BYTES_MAX: u64 = 256 << 20;
/// The memory that a hostile size may reserve before any data has come.
const RESERVED_BYTES_MAX: u64 = 4 << 20;

/// The records in the content of a chunk record.
pub(super) fn records(content: &[u8]) -> Result<Vec<u8>, Problem> {
    let mut get = Get::new(content);
    let field = || Problem::Field { field: "a chunk" };
    let _times_ns = (get.u64().ok_or_else(field)?, get.u64().ok_or_else(field)?);
    let (length, crc) = (get.u64().ok_or_else(field)?, get.u32().ok_or_else(field)?);
    let compression = get.prefixed().ok_or_else(field)?;
    let compressed_bytes = get.u64().and_then(|bytes| usize::try_from(bytes).ok());
    let compressed = get.bytes(compressed_bytes.ok_or_else(field)?).ok_or_else(field)?;
    if length > CHUNK_BYTES_MAX {
        let (frame, min, max) = ("uncompressed chunk", 0, CHUNK_BYTES_MAX);
        return Err(Problem::Length { frame, length, min, max });
    }
    let records = match compression {
        b"" => read(compressed, length),
        b"zstd" => zstd::Decoder::new(compressed).and_then(|decoder| read(decoder, length)),
        b"lz4" => lz4::Decoder::new(compressed).and_then(|decoder| read(decoder, length)),
        other => {
            let name = String::from_utf8_lossy(&other[..other.len().min(32)]).into_owned();
            return Err(Problem::Compression(name));
        }
    };
    let records = records.map_err(|error| Problem::Decompression(error.to_string()))?;
    if records.len() as u64 != length {
        return Err(Problem::ChunkSize { said: length });
    }
    if crc != 0 && crc != crc32fast::hash(&records) {
        return Err(Problem::Crc { of: "a chunk" });
    }
    Ok(records)
}

/// Reads at most one byte more than expected.
fn read(from: impl Read, length: u64) -> io::Result<Vec<u8>> {
    let mut records = Vec::with_capacity(length.min(RESERVED_BYTES_MAX) as usize);
    from.take(length + 1).read_to_end(&mut records)?;
    Ok(records)
}
