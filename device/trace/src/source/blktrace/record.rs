// SPDX-License-Identifier: MIT OR Apache-2.0
//! One record of blktrace, as `struct blk_io_trace` of `linux/blktrace_api.h` defines it.

use crate::event::{Comm, Dev, EventKind, Extent, Op, OpKind};

/// The upper 24 bits of a record's first word.
pub const MAGIC: u32 = 0x6561_7400;
/// The lower 8 bits: the only version that was ever in general use.
pub const VERSION: u32 = 7;
/// Bytes of a record's head.
pub const HEAD_LENGTH: usize = 48;

const CATEGORY_WRITE: u32 = 1 << 17;
const CATEGORY_FLUSH: u32 = 1 << 18;
const CATEGORY_SYNC: u32 = 1 << 19;
const CATEGORY_PASSTHROUGH: u32 = 1 << 25;
const CATEGORY_NOTIFY: u32 = 1 << 26;
const CATEGORY_AHEAD: u32 = 1 << 27;
const CATEGORY_META: u32 = 1 << 28;
const CATEGORY_DISCARD: u32 = 1 << 29;
const CATEGORY_FUA: u32 = 1 << 31;
/// The data begin with 8 bytes that name a control group.
const CGROUP: u32 = 1 << 8;

/// In which order the bytes of a number stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// The lowest first.
    Little,
    /// The highest first.
    Big,
}

impl ByteOrder {
    /// By the first word of a file; or what is wrong with it.
    pub fn of(word: [u8; 4]) -> Result<ByteOrder, String> {
        if u32::from_le_bytes(word) & !0xff == MAGIC {
            return Ok(ByteOrder::Little);
        }
        if u32::from_be_bytes(word) & !0xff == MAGIC {
            return Ok(ByteOrder::Big);
        }
        Err(wrong_magic(u32::from_le_bytes(word)))
    }
}

fn wrong_magic(word: u32) -> String {
    format!("expected a record of blktrace, which begins with {MAGIC:#x}, found {word:#x}")
}

/// The head of a record.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// Counts the events of a device on one CPU.
    pub sequence: u32,
    /// On the monotonic clock, in ns.
    pub time_ns: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    /// Whose context it was.
    pub pid: u32,
    /// The device, in the kernel's encoding.
    pub dev: u32,
    /// The CPU that recorded it.
    pub cpu: u32,
    error: i32,
    /// Bytes of data behind the head.
    pub data_length: usize,
}

/// What a record says.
pub enum Said {
    Event(EventKind),
    /// The name of its thread.
    Name(Comm),
    /// Something of this kind, which is not needed.
    Skipped(&'static [u8]),
}

/// Reads numbers off the front of a head.
struct Numbers<'a> {
    bytes: &'a [u8],
    order: ByteOrder,
}

impl Numbers<'_> {
    fn take(&mut self, length: usize) -> u64 {
        let (number, rest) = self.bytes.split_at(length.min(self.bytes.len()));
        self.bytes = rest;
        let fold = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        match self.order {
            ByteOrder::Little => number.iter().rev().fold(0, fold),
            ByteOrder::Big => number.iter().fold(0, fold),
        }
    }

    fn u32(&mut self) -> u32 {
        self.take(4) as u32
    }
}

impl Head {
    /// From its bytes; or what is wrong with them.
    pub fn read(bytes: &[u8; HEAD_LENGTH], order: ByteOrder) -> Result<Head, String> {
        let mut numbers = Numbers { bytes, order };
        let word = numbers.u32();
        if word & !0xff != MAGIC {
            return Err(wrong_magic(word));
        }
        if word & 0xff != VERSION {
            return Err(format!(
                "version {} of blktrace's format: only {VERSION} is known",
                word & 0xff
            ));
        }
        Ok(Head {
            sequence: numbers.u32(),
            time_ns: numbers.take(8),
            sector: numbers.take(8),
            bytes: numbers.u32(),
            action: numbers.u32(),
            pid: numbers.u32(),
            dev: numbers.u32(),
            cpu: numbers.u32(),
            error: i32::from(numbers.take(2) as u16 as i16),
            data_length: numbers.take(2) as usize,
        })
    }

    /// Whether `sequence` counts: it does not in notes.
    pub fn has_sequence(&self) -> bool {
        self.action & CATEGORY_NOTIFY == 0
    }

    /// What it says, with the `data` behind it; or what is wrong.
    pub fn said(&self, data: &[u8]) -> Result<Said, String> {
        let data = match self.action & CGROUP {
            0 => data,
            _ => data.get(8..).ok_or("no control group behind the record")?,
        };
        let action = self.action & 0xff;
        if !self.has_sequence() {
            return match action {
                0 => Ok(Said::Name(Comm::new(data))),
                1 => Ok(Said::Skipped(b"timestamp")),
                2 => Ok(Said::Skipped(b"message")),
                _ => Err(format!("unknown note {action}")),
            };
        }
        let extent = self.extent()?;
        Ok(Said::Event(match action {
            1 => EventKind::BioQueue(extent),
            2 => EventKind::BackMerge(extent),
            3 => EventKind::FrontMerge(extent),
            4 => EventKind::GetRequest(extent),
            5 => return Ok(Said::Skipped(b"sleep for a request")),
            6 => EventKind::Requeue(extent),
            7 => EventKind::Issue(extent),
            8 => EventKind::Complete { extent, error: self.error },
            9 => EventKind::Plug,
            10 | 11 => EventKind::Unplug,
            12 => EventKind::Insert(extent),
            13 => {
                let bio = Extent { sectors: 0, ..extent };
                EventKind::BioSplit { bio, new_sector: big_endian(data, 0, 8)? }
            }
            14 => return Ok(Said::Skipped(b"bounce")),
            15 => remap(extent, data)?,
            16 => return Ok(Said::Skipped(b"abort")),
            17 => return Ok(Said::Skipped(b"driver data")),
            _ => return Err(format!("unknown action {action}")),
        }))
    }

    fn extent(&self) -> Result<Extent, String> {
        let dev = Dev::from_kernel(self.dev);
        let op = self.op();
        // A passthrough command has neither sector nor sectors.
        if self.action & CATEGORY_PASSTHROUGH != 0 {
            return Ok(Extent { dev, sector: 0, sectors: 0, op, priority: None });
        }
        if self.bytes % 512 != 0 {
            return Err(format!("{} bytes: expected a multiple of 512", self.bytes));
        }
        Ok(Extent { dev, sector: self.sector, sectors: self.bytes / 512, op, priority: None })
    }

    /// All but discards and flushes is read or write here: the record does not tell more.
    fn op(&self) -> Op {
        let has = |category| self.action & category != 0;
        let is_flush = has(CATEGORY_FLUSH) && !has(CATEGORY_WRITE) && self.bytes == 0;
        let kind = if has(CATEGORY_PASSTHROUGH) {
            OpKind::Other
        } else if has(CATEGORY_DISCARD) {
            OpKind::Discard
        } else if has(CATEGORY_WRITE) {
            OpKind::Write
        } else if is_flush {
            OpKind::Flush
        } else if self.bytes > 0 {
            OpKind::Read
        } else {
            OpKind::Other
        };
        Op {
            kind,
            preflush: has(CATEGORY_FLUSH),
            fua: has(CATEGORY_FUA),
            sync: has(CATEGORY_SYNC),
            meta: has(CATEGORY_META),
            ahead: has(CATEGORY_AHEAD),
        }
    }
}

/// From and to which device, and from which sector, in network byte order.
fn remap(extent: Extent, data: &[u8]) -> Result<EventKind, String> {
    let from_dev = Dev::from_kernel(big_endian(data, 0, 4)? as u32);
    let to_dev = Dev::from_kernel(big_endian(data, 4, 4)? as u32);
    let from_sector = big_endian(data, 8, 8)?;
    Ok(EventKind::BioRemap { to: Extent { dev: to_dev, ..extent }, from: (from_dev, from_sector) })
}

fn big_endian(data: &[u8], start: usize, length: usize) -> Result<u64, String> {
    let number = data.get(start..start + length);
    let number = number.ok_or_else(|| format!("{} bytes of data: expected more", data.len()))?;
    Ok(number.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}
