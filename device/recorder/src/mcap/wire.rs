// SPDX-License-Identifier: MIT OR Apache-2.0
//! MCAP's encoding of numbers, strings and records: little-endian, with the length before the
//! contents. All of [`crate::mcap`] uses it.
//!
//! [`Put`] writes into a buffer that the layout guarantees to be large enough; otherwise it panics,
//! because that is a bug. [`Get`] reads untrusted bytes, and never panics.

/// The first and last bytes of a file.
pub const MAGIC: [u8; 8] = [0x89, b'M', b'C', b'A', b'P', b'0', b'\r', b'\n'];
/// Opcode and length.
pub const RECORD_HEAD_BYTES: usize = 9;
/// The number of digits of the largest number.
pub const DIGITS_MAX: usize = 20;

/// The opcodes of the specification that are written or read here.
pub mod op {
    pub const HEADER: u8 = 0x01;
    pub const FOOTER: u8 = 0x02;
    pub const SCHEMA: u8 = 0x03;
    pub const CHANNEL: u8 = 0x04;
    pub const MESSAGE: u8 = 0x05;
    pub const CHUNK: u8 = 0x06;
    pub const MESSAGE_INDEX: u8 = 0x07;
    pub const CHUNK_INDEX: u8 = 0x08;
    pub const STATISTICS: u8 = 0x0b;
    pub const METADATA: u8 = 0x0c;
    pub const METADATA_INDEX: u8 = 0x0d;
    pub const SUMMARY_OFFSET: u8 = 0x0e;
    pub const DATA_END: u8 = 0x0f;
}

/// Channel id, sequence, log time, publish time.
pub const MESSAGE_HEAD_BYTES: usize = 2 + 4 + 8 + 8;
/// The head of a chunk without compression: times, size, CRC, empty string, size.
pub const CHUNK_HEAD_BYTES: usize = 8 + 8 + 8 + 4 + 4 + 8;
/// Log time and offset.
pub const MESSAGE_INDEX_ENTRY_BYTES: usize = 8 + 8;
/// Record head, channel id and array length.
pub const MESSAGE_INDEX_HEAD_BYTES: usize = RECORD_HEAD_BYTES + 2 + 4;
/// Summary start, summary offset start, CRC.
pub const FOOTER_BYTES: usize = 8 + 8 + 4;
/// The CRC of the data section.
pub const DATA_END_BYTES: usize = 4;

/// Writes values one after the other into a buffer.
#[derive(Debug)]
pub struct Put<'a> {
    buffer: &'a mut [u8],
    at: usize,
}

impl<'a> Put<'a> {
    /// Starts at the beginning of the buffer.
    pub fn new(buffer: &'a mut [u8]) -> Put<'a> {
        Put { buffer, at: 0 }
    }

    /// The number of bytes written so far.
    pub fn at(&self) -> usize {
        self.at
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.buffer[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    /// Writes zeros up to a position.
    pub fn zeros_to(&mut self, end: usize) {
        self.buffer[self.at..end].fill(0);
        self.at = end;
    }

    pub fn u8(&mut self, value: u8) {
        self.bytes(&[value]);
    }

    pub fn u16(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    pub fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    pub fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    /// Writes a length and the text.
    pub fn string(&mut self, text: &str) {
        self.u32(text.len() as u32);
        self.bytes(text.as_bytes());
    }

    /// Writes a number as text.
    pub fn decimal(&mut self, value: u64) {
        let opened = self.open_u32();
        self.digits(value);
        self.close_u32(opened);
    }

    /// Writes a key and a number as texts.
    pub fn number(&mut self, key: &str, value: u64) {
        self.string(key);
        self.decimal(value);
    }

    /// Writes the digits of a number, without allocation.
    pub fn digits(&mut self, mut value: u64) {
        let mut digits = [0; DIGITS_MAX];
        let mut at = DIGITS_MAX;
        loop {
            at -= 1;
            digits[at] = b'0' + (value % 10) as u8;
            value /= 10;
            if value == 0 {
                break;
            }
        }
        self.bytes(&digits[at..]);
    }

    /// Writes opcode and length of a record; its content follows.
    pub fn record(&mut self, opcode: u8, content_bytes: u64) {
        self.u8(opcode);
        self.u64(content_bytes);
    }

    /// Leaves room for a length that [`Put::close_u32`] fills in.
    pub fn open_u32(&mut self) -> usize {
        self.u32(0);
        self.at
    }

    /// Fills in the number of bytes written since.
    pub fn close_u32(&mut self, opened: usize) {
        let bytes = (self.at - opened) as u32;
        self.buffer[opened - 4..opened].copy_from_slice(&bytes.to_le_bytes());
    }

    /// Leaves room for the length of a record, which [`Put::close_record`] fills in.
    pub fn open_record(&mut self, opcode: u8) -> usize {
        self.record(opcode, 0);
        self.at
    }

    /// Fills in the number of bytes written since.
    pub fn close_record(&mut self, opened: usize) {
        let bytes = (self.at - opened) as u64;
        self.buffer[opened - 8..opened].copy_from_slice(&bytes.to_le_bytes());
    }

    /// The written bytes in a range.
    pub fn written(&self, range: std::ops::Range<usize>) -> &[u8] {
        &self.buffer[range]
    }
}

/// Reads values one after the other; `None` as soon as bytes are missing.
#[derive(Debug, Clone, Copy)]
pub struct Get<'a> {
    bytes: &'a [u8],
}

impl<'a> Get<'a> {
    /// Starts at the first byte.
    pub fn new(bytes: &'a [u8]) -> Get<'a> {
        Get { bytes }
    }

    /// The unread bytes.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    /// The next bytes.
    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    pub fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub fn id(&mut self) -> Option<[u8; 16]> {
        self.array()
    }

    /// Reads a length of four bytes, and that number of bytes.
    pub fn prefixed(&mut self) -> Option<&'a [u8]> {
        let count = self.u32()?;
        self.bytes(usize::try_from(count).ok()?)
    }

    /// Reads a length and a text.
    pub fn string(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.prefixed()?).ok()
    }

    /// Reads a complete record: opcode and content.
    pub fn record(&mut self) -> Option<(u8, &'a [u8])> {
        let mut ahead = *self;
        let opcode = ahead.u8()?;
        let count = usize::try_from(ahead.u64()?).ok()?;
        let content = ahead.bytes(count)?;
        *self = ahead;
        Some((opcode, content))
    }
}
