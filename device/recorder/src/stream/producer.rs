// SPDX-License-Identifier: MIT OR Apache-2.0
//! One stream of bytes, from a pipe or a connection. [`super::input`] reads all of them.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;

use super::framing::{Framing, Place, StreamError, StreamItem};

/// The size of a read.
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

    /// Reads once; 0 at the end of the stream. The buffer grows until the longest frame fits.
    fn fill(&mut self, from: &mut impl Read) -> io::Result<usize> {
        if self.used.start > 0 {
            self.bytes.copy_within(self.used.clone(), 0);
            self.used = 0..self.used.len();
        }
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
    /// The position of its channel in the recording.
    pub channel: usize,
    /// Log time and publish time; None means the present.
    pub times_ns: Option<(u64, u64)>,
    payload: Range<usize>,
    place: Place,
}

/// The next item of a producer.
#[derive(Debug)]
pub enum Next {
    /// A record. It stays in the buffer until the next call.
    Record(BufferedRecord),
    /// The declarations at the beginning are complete.
    Begin,
    /// One more topic is declared, with this identifier.
    Topic(u16),
    /// More bytes are needed.
    NeedsMore,
    /// The end of the stream.
    Ended,
}

/// One stream of bytes.
#[derive(Debug)]
pub struct Producer {
    /// The name for messages.
    pub name: String,
    /// The file to read.
    pub file: File,
    /// The framing of its bytes.
    pub framing: Framing,
    /// Its identifiers in rising order, with the positions of their channels in the recording.
    pub channels: Vec<(u16, usize)>,
    /// Whether its begin frame was read.
    pub declared: bool,
    /// Whether its records may be read, because their channels are known.
    pub begun: bool,
    /// The number of its topics when none was accepted.
    pub passed_topics: usize,
    buffer: Buffer,
    ended: bool,
    /// The length of the last record.
    used_bytes: usize,
}

impl Producer {
    /// Makes a producer of a stream that was just opened.
    pub fn new(name: String, file: File, framing: Framing) -> Producer {
        let lines = matches!(framing, Framing::Lines(_));
        Producer {
            name,
            file,
            framing,
            channels: if lines { vec![(0, 0)] } else { Vec::new() },
            declared: lines,
            begun: lines,
            passed_topics: 0,
            buffer: Buffer::default(),
            ended: false,
            used_bytes: 0,
        }
    }

    /// Reads once. Call it when there is data.
    pub fn read(&mut self) -> io::Result<()> {
        self.release();
        match self.buffer.fill(&mut self.file) {
            Ok(0) => self.ended = true,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // The bytes before the connection broke are a complete frame or not; see `look`.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => self.ended = true,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn release(&mut self) {
        self.buffer.used.start += std::mem::take(&mut self.used_bytes);
    }

    /// Assigns a channel to an identifier.
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
                    // The identifier is declared, or the framing had rejected it; and assigned,
                    // since the producer has begun.
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

    /// The bytes of the last record.
    pub fn payload(&self, found: &BufferedRecord) -> &[u8] {
        match (found.place, &self.framing) {
            (Place::Framing, Framing::Mcap(mcap)) => mcap.payload(&found.payload),
            _ => &self.buffer.data()[found.payload.clone()],
        }
    }
}
