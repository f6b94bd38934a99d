// SPDX-License-Identifier: MIT OR Apache-2.0
//! The items of a stream, and its errors. All framings return them.

use std::ops::Range;

/// The first item of the data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub bytes: usize,
    /// The meaning of these bytes.
    pub what: StreamItem,
}

/// An item of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamItem {
    /// An item without a record: head of the stream, a declaration, the rest of a line that was too
    /// long.
    Other,
    /// The declarations at the beginning are complete.
    Begin,
    /// One more topic is declared.
    Topic(u16),
    Record {
        /// The identifier declared in the stream; 0 for lines.
        id: u16,
        /// Log time and publish time; None means the time of arrival.
        times_ns: Option<(u64, u64)>,
        /// The range of the payload.
        payload: Range<usize>,
        /// The bytes to which the range refers.
        place: Place,
    },
}

/// The bytes that contain the payload of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The data passed to [`super::framing::Framing::next`].
    Input,
    /// Bytes that the framing has decompressed.
    Framing,
}

/// A stream that cannot be decoded further.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("byte {offset}: {problem}")]
pub struct StreamError {
    /// The offset of the wrong item in the stream.
    pub offset: u64,
    /// The error.
    pub problem: Problem,
}

/// The shortest period. A shorter one is a mistake, and must not decide how much memory is locked.
pub(super) const PERIOD_NS_MIN: u64 = 1_000;
/// The highest rate. No device for this recorder is faster.
pub(super) const RATE_BYTES_S_MAX: u64 = 1 << 30;

/// An error in a stream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("not a stream of frames: begins with {found:02x?}, must begin with {wanted:02x?}")]
    Magic { found: [u8; 7], wanted: [u8; 7] },
    #[error("version {0} of the framing; this program knows version 1")]
    Version(u8),
    #[error(
        "frame type {0}: must be 1 (topic), 2 (begin), 3 (record), 4 (record with its publish time) \
         or 5 (metadata)"
    )]
    Type(u8),
    #[error("a {frame} frame of {length} bytes: must be {min} to {max}")]
    Length { frame: &'static str, length: u64, min: u64, max: u64 },
    #[error("{field} of a frame is longer than the frame")]
    Field { field: &'static str },
    #[error("{field} of a frame is not UTF-8")]
    Utf8 { field: &'static str },
    #[error(
        "topic {topic:?} declares {bytes} bytes every {period_ns} ns: a period must be at least \
         {PERIOD_NS_MIN} ns, and {RATE_BYTES_S_MAX} bytes per second at most may come"
    )]
    Rate { topic: String, bytes: u32, period_ns: u64 },
    #[error("a schema has a name; without one its encoding and data must be empty")]
    Schema,
    #[error("metadata {key:?} of topic {id}: must come once, and before its topic frame")]
    Metadata { id: u16, key: String },
    #[error("the stream declares topics of more than {0} bytes")]
    TooMuch(u64),
    #[error("topic {0} is declared twice")]
    Twice(u16),
    #[error("a second begin frame")]
    BeginTwice,
    #[error("a record before the begin frame")]
    BeforeBegin,
    #[error("topic {0} has a record or metadata, but was not declared")]
    NoTopic(u16),
    #[error("the stream ends within a frame, after {have} of its bytes")]
    Truncated { have: u64 },
    #[error("topic {topic:?} has records of up to {bytes} bytes; this recording takes {max}")]
    TooLong { topic: String, bytes: u64, max: u64 },
    #[error("topic {topic:?} cannot be added to the recording: {why}")]
    Refused { topic: String, why: String },
    #[error("not an MCAP stream: {found:02x?} where its magic bytes must be")]
    McapMagic { found: [u8; 8] },
    #[error("an MCAP record with the opcode {0:#04x} must not be here")]
    Opcode(u8),
    #[error("a chunk is compressed with {0:?}: must be \"lz4\", \"zstd\" or \"\"")]
    Compression(String),
    #[error("a chunk cannot be decompressed: {0}")]
    Decompression(String),
    #[error("a chunk does not have the {said} bytes that it says")]
    ChunkSize { said: u64 },
    #[error("the checksum of {of} is wrong")]
    Crc { of: &'static str },
    #[error("schema {0} is defined twice, and differs")]
    SchemaTwice(u16),
    #[error("topic {topic:?} has the schema {schema}, which is not defined")]
    NoSchema { topic: String, schema: u16 },
    #[error(
        "topic {0:?} comes twice, with another schema, encoding or metadata: a recording has one \
         channel per topic"
    )]
    Differs(String),
    #[error("the stream has more than {0} topics")]
    TooManyTopics(u64),
    #[error("the stream ends without its footer: its writer was stopped")]
    NoFooter,
    #[error("topic {topic:?}: another {field} than an earlier producer declared")]
    Other { topic: String, field: &'static str },
}
