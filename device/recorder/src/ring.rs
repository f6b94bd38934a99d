// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ring buffer between a channel and the writer thread. It holds records of any length.
//! [`crate::channel`] makes and uses it.
//!
//! It has one producer and one consumer, both wait-free (`rtrb`). A record is a header and its
//! payload; it is transferred as a whole or not at all. The memory is touched and locked when the
//! ring is made.

use std::mem::MaybeUninit;

use rtrb::{Consumer, Producer, RingBuffer};

use steadyio_core::memory::{MemoryError, lock};

/// The size of a record's header in the ring.
pub const HEADER_BYTES: usize = 26;

/// The header of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The record's time on the caller's clock.
    pub log_time_ns: u64,
    /// The time at which it was made, mostly the same.
    pub publish_time_ns: u64,
    /// The number of the record in its channel. Lost records count too, so a gap shows a loss.
    pub sequence: u32,
    /// The length of the payload.
    pub bytes: u32,
    /// The position of its channel among those of this ring.
    pub channel: u16,
}

impl Header {
    fn encode(self) -> [u8; HEADER_BYTES] {
        let mut raw = [0; HEADER_BYTES];
        raw[..8].copy_from_slice(&self.log_time_ns.to_le_bytes());
        raw[8..16].copy_from_slice(&self.publish_time_ns.to_le_bytes());
        raw[16..20].copy_from_slice(&self.sequence.to_le_bytes());
        raw[20..24].copy_from_slice(&self.bytes.to_le_bytes());
        raw[24..].copy_from_slice(&self.channel.to_le_bytes());
        raw
    }

    fn decode(raw: [u8; HEADER_BYTES]) -> Header {
        let [l0, l1, l2, l3, l4, l5, l6, l7, rest @ ..] = raw;
        let [p0, p1, p2, p3, p4, p5, p6, p7, rest @ ..] = rest;
        let [s0, s1, s2, s3, b0, b1, b2, b3, c0, c1] = rest;
        Header {
            log_time_ns: u64::from_le_bytes([l0, l1, l2, l3, l4, l5, l6, l7]),
            publish_time_ns: u64::from_le_bytes([p0, p1, p2, p3, p4, p5, p6, p7]),
            sequence: u32::from_le_bytes([s0, s1, s2, s3]),
            bytes: u32::from_le_bytes([b0, b1, b2, b3]),
            channel: u16::from_le_bytes([c0, c1]),
        }
    }
}

/// The caller's end.
#[derive(Debug)]
pub struct RingWriter {
    producer: Producer<u8>,
    capacity: usize,
}

/// The writer thread's end.
#[derive(Debug)]
pub struct RingReader {
    consumer: Consumer<u8>,
    capacity: usize,
}

/// Makes a ring of `bytes`, including headers.
pub fn ring(bytes: usize, locked: bool) -> Result<(RingWriter, RingReader), MemoryError> {
    let (mut producer, consumer) = RingBuffer::new(bytes);
    if let Ok(mut whole) = producer.write_chunk_uninit(bytes) {
        let (memory, _) = whole.as_mut_slices();
        memory.fill(MaybeUninit::new(0));
        if locked {
            // SAFETY: all of it was written just above.
            lock(unsafe { std::slice::from_raw_parts_mut(memory.as_mut_ptr().cast(), bytes) })?;
        }
    }
    Ok((RingWriter { producer, capacity: bytes }, RingReader { consumer, capacity: bytes }))
}

impl RingWriter {
    /// Copies a record into the ring. Returns false, and changes nothing, if there is no room.
    pub fn push(&mut self, header: Header, payload: &[u8]) -> bool {
        self.push_parts(header, [payload])
    }

    /// Like [`RingWriter::push`], for a payload in parts.
    pub fn push_parts<const N: usize>(&mut self, header: Header, parts: [&[u8]; N]) -> bool {
        let payload_bytes: usize = parts.iter().map(|part| part.len()).sum();
        debug_assert_eq!(header.bytes as usize, payload_bytes);
        let Ok(mut chunk) = self.producer.write_chunk_uninit(HEADER_BYTES + payload_bytes) else {
            return false;
        };
        let (mut first, mut second) = chunk.as_mut_slices();
        put(&header.encode(), &mut first, &mut second);
        parts.iter().for_each(|part| put(part, &mut first, &mut second));
        // SAFETY: header and payload together have the length of the chunk, and all was copied.
        unsafe { chunk.commit_all() };
        true
    }

    /// The number of bytes in use.
    pub fn used(&self) -> usize {
        self.capacity - self.producer.slots()
    }

    /// The size in bytes.
    pub fn capacity(&self) -> usize {
        self.capacity
    }
}

type Memory<'a> = &'a mut [MaybeUninit<u8>];

/// Copies a part behind the others. It may begin in the first slice, and end in the second.
fn put<'a>(part: &[u8], first: &mut Memory<'a>, second: &mut Memory<'a>) {
    let (start, end) = part.split_at(part.len().min(first.len()));
    for (from, to) in [(start, first), (end, second)] {
        let (here, rest) = std::mem::take(to).split_at_mut(from.len());
        copy(from, here);
        *to = rest;
    }
}

fn copy(from: &[u8], to: &mut [MaybeUninit<u8>]) {
    debug_assert_eq!(from.len(), to.len());
    // SAFETY: lengths are equal, the ranges cannot overlap, and u8 needs no dropping.
    unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to.as_mut_ptr().cast(), from.len()) };
}

impl RingReader {
    /// Shows the oldest record to `take`, and removes it if `take` returns true. None if the ring
    /// is empty. The payload comes in two pieces, because it may wrap around the end of the ring.
    pub fn next(&mut self, take: impl FnOnce(Header, [&[u8]; 2]) -> bool) -> Option<bool> {
        let mut raw = [0; HEADER_BYTES];
        {
            let chunk = self.consumer.read_chunk(HEADER_BYTES).ok()?;
            let (first, second) = chunk.as_slices();
            raw[..first.len()].copy_from_slice(first);
            raw[first.len()..].copy_from_slice(second);
        }
        let header = Header::decode(raw);
        let bytes = header.bytes as usize;
        // A record is transferred as a whole.
        let chunk = self.consumer.read_chunk(HEADER_BYTES + bytes).ok()?;
        let (first, second) = chunk.as_slices();
        let taken = match first.get(HEADER_BYTES..) {
            Some(start) => take(header, [start, second]),
            // The header itself wraps.
            None => take(header, [&second[second.len() - bytes..], &[]]),
        };
        if taken {
            chunk.commit_all();
        }
        Some(taken)
    }

    /// The number of bytes in use.
    pub fn used(&self) -> usize {
        self.consumer.slots()
    }

    /// The size in bytes.
    pub fn capacity(&self) -> usize {
        self.capacity
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        // Compares the ring with a queue, for any order of pushes and pops and any wrap.
        #[test]
        fn records_come_out_as_they_went_in(
            steps in prop::collection::vec((0u32..90, any::<bool>(), any::<bool>()), 1..300),
        ) {
            let (mut writer, mut reader) = ring(257, false).unwrap();
            let mut model: VecDeque<(Header, Vec<u8>)> = VecDeque::new();
            let mut used = 0;
            for (sequence, (bytes, push, take)) in steps.into_iter().enumerate() {
                let sequence = u32::try_from(sequence).unwrap();
                if push {
                    let header = Header {
                        log_time_ns: !u64::from(sequence),
                        publish_time_ns: u64::from(sequence) << 40,
                        sequence,
                        bytes,
                        channel: sequence as u16 ^ 0xff00,
                    };
                    let payload: Vec<u8> = (0..bytes).map(|i| (i + sequence) as u8).collect();
                    let fits = used + HEADER_BYTES + payload.len() <= 257;
                    // A payload in parts is the same record.
                    let (a, b) = payload.split_at(payload.len() / 3);
                    let pushed = if sequence % 2 == 0 {
                        writer.push(header, &payload)
                    } else {
                        writer.push_parts(header, [a, b])
                    };
                    prop_assert_eq!(pushed, fits);
                    if fits {
                        used += HEADER_BYTES + payload.len();
                        model.push_back((header, payload));
                    }
                } else {
                    let mut seen = None;
                    let popped = reader.next(|header, payload| {
                        seen = Some((header, payload.concat()));
                        take
                    });
                    prop_assert_eq!(seen.as_ref(), model.front());
                    prop_assert_eq!(popped, seen.is_some().then_some(take));
                    if popped == Some(true) {
                        used -= HEADER_BYTES + model.pop_front().unwrap().1.len();
                    }
                }
                prop_assert_eq!(reader.used(), used);
            }
        }
    }
}
