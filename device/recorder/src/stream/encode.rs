// SPDX-License-Identifier: MIT OR Apache-2.0
//! Encodes frames, for producers in Rust. A stream is [`HEAD`], topic frames, one begin frame, and
//! records; further topic frames may occur among the records. Tests use it, too.

use super::frames::{
    MAGIC, METADATA_HEAD_BYTES, PUBLISHED_HEAD_BYTES, RECORD_HEAD_BYTES, TOPIC_HEAD_BYTES,
    TYPE_BEGIN, TYPE_METADATA, TYPE_PUBLISHED, TYPE_RECORD, TYPE_TOPIC, Topic, VERSION,
};

/// The beginning of every stream.
pub const HEAD: [u8; 8] = {
    let [a, b, c, d, e, f, g] = MAGIC;
    [a, b, c, d, e, f, g, VERSION]
};

/// A string was too long for its frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} bytes are too many for a string of a topic frame or for a frame")]
pub struct TooLong(usize);

fn frame(kind: u8, bytes: usize) -> Result<Vec<u8>, TooLong> {
    let mut frame = Vec::with_capacity(4 + bytes);
    frame.extend(u32::try_from(bytes).map_err(|_| TooLong(bytes))?.to_le_bytes());
    frame.push(kind);
    Ok(frame)
}

/// Declares a topic under an identifier of this stream, after its metadata.
pub fn topic_frame(id: u16, topic: &Topic) -> Result<Vec<u8>, TooLong> {
    let mut frames = Vec::new();
    for (key, value) in &topic.metadata {
        frames.extend(metadata_frame(id, key, value)?);
    }
    frames.extend(only_topic_frame(id, topic)?);
    Ok(frames)
}

fn metadata_frame(id: u16, key: &str, value: &str) -> Result<Vec<u8>, TooLong> {
    let mut frame = frame(TYPE_METADATA, METADATA_HEAD_BYTES + key.len() + value.len())?;
    frame.extend(id.to_le_bytes());
    for text in [key, value] {
        frame.extend(u16::try_from(text.len()).map_err(|_| TooLong(text.len()))?.to_le_bytes());
        frame.extend(text.as_bytes());
    }
    Ok(frame)
}

fn only_topic_frame(id: u16, topic: &Topic) -> Result<Vec<u8>, TooLong> {
    let strings =
        [&topic.topic, &topic.message_encoding, &topic.schema_name, &topic.schema_encoding];
    let bytes = strings.iter().map(|text| text.len()).sum::<usize>() + topic.schema_data.len();
    let mut frame = frame(TYPE_TOPIC, TOPIC_HEAD_BYTES + bytes)?;
    frame.extend(id.to_le_bytes());
    frame.extend(topic.record_bytes_max.to_le_bytes());
    frame.extend(topic.period_ns.to_le_bytes());
    for text in strings {
        frame.extend(u16::try_from(text.len()).map_err(|_| TooLong(text.len()))?.to_le_bytes());
        frame.extend(text.as_bytes());
    }
    frame.extend(&topic.schema_data);
    Ok(frame)
}

/// Ends the declarations for which recording waits.
pub fn begin_frame() -> Vec<u8> {
    vec![1, 0, 0, 0, TYPE_BEGIN]
}

/// A record of a declared topic.
pub fn record_frame(id: u16, log_time_ns: u64, payload: &[u8]) -> Result<Vec<u8>, TooLong> {
    let mut frame = frame(TYPE_RECORD, RECORD_HEAD_BYTES + payload.len())?;
    frame.extend(id.to_le_bytes());
    frame.extend(log_time_ns.to_le_bytes());
    frame.extend(payload);
    Ok(frame)
}

/// Like [`record_frame`], with a separate publish time.
pub fn published_frame(
    id: u16,
    log_time_ns: u64,
    publish_time_ns: u64,
    payload: &[u8],
) -> Result<Vec<u8>, TooLong> {
    let mut frame = frame(TYPE_PUBLISHED, PUBLISHED_HEAD_BYTES + payload.len())?;
    frame.extend(id.to_le_bytes());
    frame.extend(log_time_ns.to_le_bytes());
    frame.extend(publish_time_ns.to_le_bytes());
    frame.extend(payload);
    Ok(frame)
}
