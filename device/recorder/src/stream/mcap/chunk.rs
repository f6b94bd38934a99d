// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decompresses and checks the records of a chunk. It trusts no length. [`super`] calls it.

use crate::mcap::compression::Compression;
use crate::mcap::wire::Get;
use crate::stream::item::Problem;

/// The limit of chunks, compressed or not, because they are held in memory.
pub(super) const CHUNK_BYTES_MAX: u64 = 256 << 20;

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
    let records = match Compression::named(compression) {
        Some(method) => method.decompress(compressed, length),
        None if compression.is_empty() => Ok(compressed.to_vec()),
        None => {
            let name = &compression[..compression.len().min(32)];
            return Err(Problem::Compression(String::from_utf8_lossy(name).into_owned()));
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
