// SPDX-License-Identifier: MIT OR Apache-2.0
//! Encodes and decodes the bytes of a store, as docs/spec/store-1.md specifies them, without I/O.
//! [`crate::examine`] and [`crate::store`] use it.

pub mod geometry;
pub mod records;
pub mod superblock;

/// The version of the format, which is not that of the program.
pub const VERSION: u32 = 1;

/// Distinguishes blocks of this store from those of an earlier store on the device.
pub type StoreId = [u8; 16];

/// The size of a block.
pub const BLOCK: usize = crate::storage::BLOCK_BYTES as usize;

/// The offset of the checksum in either kind of block: after magic and one more word.
const CRC_AT: usize = 12;

/// The CRC-32 of a block, with zero in place of its own field.
fn checksum(block: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&block[..CRC_AT]);
    crc.update(&[0; 4]);
    crc.update(&block[CRC_AT + 4..]);
    crc.finalize()
}

fn seal(block: &mut [u8]) {
    let crc = checksum(block);
    put(block, CRC_AT, &crc.to_le_bytes());
}

fn is_sealed(block: &[u8]) -> bool {
    u32_at(block, CRC_AT) == checksum(block)
}

fn put(block: &mut [u8], at: usize, bytes: &[u8]) {
    block[at..at + bytes.len()].copy_from_slice(bytes);
}

fn array_at<const N: usize>(block: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&block[at..at + N]);
    bytes
}

fn u32_at(block: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(block, at))
}

fn u64_at(block: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(block, at))
}
