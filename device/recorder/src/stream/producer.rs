// SPDX-License-Identifier: MIT OR Apache-2.0
//! One stream of bytes: a pipe, or a connection.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;

use super::framing::{Framing, Place, StreamError, StreamItem};

/// Bytes read at once.
const READ_BYTES: usize = 256 << 10;

/// Bytes that were read and not used yet.
#[derive(Debug, Default)]
struct Buffer {
    bytes: Vec<u8>,
    used: Range<usize>,
}

impl Buffer {
    fn data(&self) -> &[u8] {
        &self.bytes[self.used.clone()]
    }

    /// Reads once; 0 at the end of the stream. Grows until the longest frame fits, then never.
    fn fill(&mut self, from: &mut impl Read) -> io::Result<usize> {
        self.bytes.copy_within(self.used.clone(), 0);
        self.used = 0..self.used.len();
        if self.bytes.len() < self.used.end + READ_BYTES {
            self.bytes.resize(self.used.end + READ_BYTES, 0);
        }
        let read = from.read(&mut self.bytes[self.used.end..])?;
        self.used.end += read;
        Ok(read)
    }
}

/// A record in the buffer of its producer.
#[derive(Debug, Clone)]
pub struct BufferedRecord {
    /// Position of its channel in the recording.
    pub channel: usize,
    /// Log time and publish time; None: now.
    pub times_ns: Option<(u64, u64)>,
    payload: Range<usize>,
    place: Place,
}

/// What a producer has next.
#[derive(Debug)]
pub enum Next {
    /// A record. It stays in the buffer until the next call.
    Record(BufferedRecord),
    /// The topics of its beginning are declared.
    Begin,
    /// One more is, under this identifier.
    Topic(u16),
    /// Nothing until more is read.
    NeedsMore,
    /// The end of the stream.
    Ended,
}

/// One stream of bytes.
#[derive(Debug)]
pub struct Producer {
    /// For messages.
    pub name: String,
    /// Where its bytes come from.
    pub file: File,
    /// How to understand them.
    pub framing: Framing,
    /// Its identifiers in rising order, and where their channels are in the recording.
    pub channels: Vec<(u16, usize)>,
    /// Whether its begin frame was read,
    pub declared: bool,
    /// and its records may be read: their channels are known.
    pub begun: bool,
    buffer: Buffer,
    ended: bool,
    /// Of the record that was found last.
    used_bytes: usize,
}

impl Producer {
    /// A stream that was just opened.
    pub fn new(name: String, file: File, framing: Framing) -> Producer {
        let lines = matches!(framing, Framing::Lines(_));
        Producer {
            name,
            file,
            framing,
            channels: if lines { vec![(0, 0)] } else { Vec::new() },
            declared: lines,
            begun: lines,
            buffer: Buffer::default(),
            ended: false,
            used_bytes: 0,
        }
    }

    /// Reads once; to be called when there is data.
    pub fn read(&mut self) -> io::Result<()> {
        self.release();
        match self.buffer.fill(&mut self.file) {
            Ok(0) => self.ended = true,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // The bytes sent before the connection broke are a whole frame or not; see `look`.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => self.ended = true,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn release(&mut self) {
        self.buffer.used.start += std::mem::take(&mut self.used_bytes);
    }

    /// Its identifier means this channel from now on.
    pub fn bind(&mut self, id: u16, channel: usize) {
        let place = self.channels.partition_point(|(known, _)| *known < id);
        self.channels.insert(place, (id, channel));
    }

    /// Decodes the next frame of the bytes that were read.
    pub fn look(&mut self) -> Result<Next, StreamError> {
        loop {
            self.release();
            let Some(step) = self.framing.next(self.buffer.data(), self.ended)? else {
                return Ok(if self.ended { Next::Ended } else { Next::NeedsMore });
            };
            self.used_bytes = step.bytes;
            match step.what {
                StreamItem::Other => {}
                StreamItem::Begin => return Ok(Next::Begin),
                StreamItem::Topic(id) => return Ok(Next::Topic(id)),
                StreamItem::Record { id, times_ns, payload, place } => {
                    // Declared, or the framing had refused it; and bound, since it has begun.
                    let at = self.channels.binary_search_by_key(&id, |(known, _)| *known);
                    let Some(&(_, channel)) = at.ok().and_then(|at| self.channels.get(at)) else {
                        continue;
                    };
                    let found = BufferedRecord { channel, times_ns, payload, place };
                    return Ok(Next::Record(found));
                }
            }
        }
    }

    /// The bytes of the record that was found last.
    pub fn payload(&self, found: &BufferedRecord) -> &[u8] {
        match (found.place, &self.framing) {
            (Place::Framing, Framing::Mcap(mcap)) => mcap.payload(&found.payload),
            _ => &self.buffer.data()[found.payload.clone()],
        }
    }
}
