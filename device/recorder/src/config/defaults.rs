// SPDX-License-Identifier: MIT OR Apache-2.0
//! The default values of a recorder's configuration, and the default sizes of rings. `steady
//! record` and `capi` use them.

use std::time::Duration;

use super::channel::ChannelConfig;
use super::limits::{BLOCK_BYTES, MIB};
use crate::ring::HEADER_BYTES;

/// The time whose records a power cut may lose.
pub const LOSS_WINDOW: Duration = Duration::from_millis(500);
/// Writes of this size are fast on any flash device.
pub const UNIT_BYTES: u64 = MIB;
/// A rotation is cheap, but overwrites this much of the oldest data.
pub const SEGMENT_BYTES: u64 = 64 * MIB;
/// The number of segments to keep.
pub const SEGMENTS: u64 = 8;
/// The time that a ring covers: longer than the stalls of most devices.
const RING_TIME: Duration = Duration::from_secs(1);
/// A declared rate must not lock more memory than this, unless the ring would then cover less than
/// RING_TIME_MIN.
const PACED_RING_BYTES: u64 = 128 * MIB;
/// The time of the polls that a ring must cover.
const RING_TIME_MIN: Duration = Duration::from_millis(160);
/// The size of all rings of channels without a period.
const UNPACED_RING_BYTES: u64 = 32 * MIB;
/// The number of longest records that fit into a ring.
const RING_RECORDS_MIN: u64 = 4;

/// The ring size for records of at most this length; `unpaced_bytes` if they have no period.
pub fn ring_bytes(record_bytes_max: u64, period: Option<Duration>, unpaced_bytes: u64) -> u64 {
    let slot = record_bytes_max.saturating_add(HEADER_BYTES as u64);
    let bytes = match period.map_or(0, |period| period.as_nanos()) {
        0 => unpaced_bytes,
        ns => {
            let in_time = |time: Duration| {
                let slots = u64::try_from(time.as_nanos().div_ceil(ns)).unwrap_or(u64::MAX);
                slot.saturating_mul(slots)
            };
            in_time(RING_TIME).min(PACED_RING_BYTES.max(in_time(RING_TIME_MIN)))
        }
    };
    whole_blocks(bytes.max(slot.saturating_mul(RING_RECORDS_MIN)))
}

/// Sets the ring size of each channel that has none. The sum is at most `room`, if that suffices.
pub fn fill_rings(channels: &mut [ChannelConfig], room: u64) {
    let unpaced = channels.iter().filter(|channel| channel.period.is_none()).count() as u64;
    let given = channels.iter().map(|channel| channel.ring_bytes).sum();
    let ringless = channels.iter().filter(|channel| channel.ring_bytes == 0);
    let paced = paced_bytes(ringless).saturating_add(given);
    let all = UNPACED_RING_BYTES.min(room.saturating_sub(paced));
    let each = whole_blocks_within(all / unpaced.max(1));
    for channel in channels.iter_mut().filter(|channel| channel.ring_bytes == 0) {
        channel.ring_bytes = ring_bytes(channel.record_bytes_max, channel.period, each);
    }
}

/// The ring size of a channel that is declared later, when the memory for channels without a period
/// is already used. It is only a part of `room` if that suffices, because more channels may follow.
pub fn late_ring_bytes(record_bytes_max: u64, period: Option<Duration>, room: u64) -> u64 {
    const LATE_CHANNELS: u64 = 32;
    const SHARE_OF_ROOM: u64 = 8;
    let unpaced_bytes = (UNPACED_RING_BYTES / LATE_CHANNELS).min(room / SHARE_OF_ROOM);
    ring_bytes(record_bytes_max, period, unpaced_bytes)
}

/// The size of one ring for all these channels: one second of records, plus the memory for channels
/// without a period.
pub fn shared_ring_bytes(channels: &[ChannelConfig]) -> u64 {
    let paced = paced_bytes(channels.iter());
    let is_unpaced = channels.iter().any(|channel| channel.period.is_none());
    let unpaced = if is_unpaced { UNPACED_RING_BYTES } else { 0 };
    let longest = channels.iter().map(|channel| channel.record_bytes_max).max().unwrap_or(0);
    let least = longest.saturating_add(HEADER_BYTES as u64).saturating_mul(RING_RECORDS_MIN);
    whole_blocks(paced.saturating_add(unpaced).max(least))
}

/// The size of the rings of channels with a period.
fn paced_bytes<'a>(channels: impl Iterator<Item = &'a ChannelConfig>) -> u64 {
    let paced = channels.filter_map(|channel| {
        channel.period?;
        Some(ring_bytes(channel.record_bytes_max, channel.period, 0))
    });
    paced.fold(0_u64, u64::saturating_add)
}

/// Rounds down to whole blocks.
pub(super) fn whole_blocks_within(bytes: u64) -> u64 {
    bytes / BLOCK_BYTES * BLOCK_BYTES
}

/// Rounds up to whole blocks.
pub(super) fn whole_blocks(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK_BYTES).saturating_mul(BLOCK_BYTES)
}
