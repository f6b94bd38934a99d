// SPDX-License-Identifier: MIT OR Apache-2.0
//! The limits of a configuration's values, and the error that names one outside of them. The other
//! modules of `config` use them.

use std::fmt::Display;
use std::time::Duration;

use crate::mcap::layout::PAYLOAD_BYTES_LIMIT;

/// The alignment of all writes: the block size of ext4 and of flash translation layers.
pub const BLOCK_BYTES: u64 = 4096;
pub(super) const KIB: u64 = 1 << 10;
pub(super) const MIB: u64 = 1 << 20;
pub(super) const GIB: u64 = 1 << 30;
pub(super) const UNIT_BYTES: (u64, u64) = (8 * KIB, 16 * MIB);
pub(super) const SEGMENT_BYTES: (u64, u64) = (256 * KIB, 64 * GIB);
/// The allowed numbers of segments.
pub const SEGMENTS: (u64, u64) = (2, 10_000);
pub(super) const RING_BYTES: (u64, u64) = (4 * KIB, 4 * GIB);
pub(super) const RECORD_BYTES_MAX: u64 = PAYLOAD_BYTES_LIMIT as u64;
/// The limit of a recording.
pub const CHANNELS_MAX: u64 = 10_000;
pub(super) const TOPIC_BYTES_MAX: u64 = 256;
/// Definitions are in memory twice.
pub(super) const LATE_DEFINITION_BYTES_MAX: u64 = 8 * MIB;
pub(super) const LOSS_WINDOW_MS: (u64, u64) = (2, 3_600_000);
/// A segment with room for fewer units of data would be mostly index and padding.
pub(super) const UNITS_PER_SEGMENT_MIN: u64 = 4;
/// Latched messages may take this fraction of each segment.
pub(super) const LATCHED_SHARE: u64 = 4;
/// The number of polls per loss window.
const POLLS_PER_WINDOW: u32 = 8;
/// The limits of the poll interval. Longer intervals would need very large rings.
const POLL: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(20));
/// The number of polls that a ring must cover. With fewer, one late poll would lose records.
pub(super) const POLLS_PER_RING_MIN: u32 = 4;
/// Half of a ring must have room for any record, because a thread that waits for room waits until
/// half is free.
pub(super) const RING_RECORDS_MIN: u64 = 2;

/// Converts a length. A length beyond the address space makes the mapping fail with an error.
pub(crate) fn bytes_in_memory(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// A value is not allowed. Nothing was created.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key} = {value}: {reason}")]
pub struct ConfigError {
    /// The name of the field, with its channel.
    pub key: String,
    pub value: String,
    /// The allowed values, and how to fix the error.
    pub reason: String,
}

pub(crate) fn wrong(key: impl Display, value: impl Display, reason: impl Display) -> ConfigError {
    ConfigError { key: key.to_string(), value: value.to_string(), reason: reason.to_string() }
}

pub(super) fn within(key: &str, value: u64, (min, max): (u64, u64)) -> Result<(), ConfigError> {
    if (min..=max).contains(&value) {
        Ok(())
    } else {
        Err(wrong(key, value, format!("must be {min} to {max}")))
    }
}

pub(super) fn whole_blocks(key: &str, value: u64) -> Result<(), ConfigError> {
    if value % BLOCK_BYTES == 0 {
        Ok(())
    } else {
        Err(wrong(key, value, format!("must be a multiple of {BLOCK_BYTES}")))
    }
}

/// Whether this is a valid size of a segment.
pub(crate) fn is_segment_size(bytes: u64) -> bool {
    (SEGMENT_BYTES.0..=SEGMENT_BYTES.1).contains(&bytes) && bytes % BLOCK_BYTES == 0
}

/// The interval between the writer thread's polls that a loss window needs.
pub fn poll_of(loss_window: Duration) -> Duration {
    (loss_window / POLLS_PER_WINDOW).clamp(POLL.0, POLL.1)
}
