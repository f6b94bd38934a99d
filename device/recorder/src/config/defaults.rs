// SPDX-License-Identifier: MIT OR Apache-2.0
//! Defaults of a recorder's configuration.

use std::time::Duration;

use super::{BLOCK_BYTES, ChannelConfig, MIB};
use crate::ring::HEADER_BYTES;

/// How much a power cut may lose, in time.
pub const LOSS_WINDOW: Duration = Duration::from_millis(500);
/// Enough for any flash device to be fast.
pub const UNIT_BYTES: u64 = MIB;
/// Rotation is cheap; this much of the oldest data is overwritten at once.
pub const SEGMENT_BYTES: u64 = 64 * MIB;
/// Number of segments kept.
pub const SEGMENTS: u64 = 8;
/// Time that a ring covers: longer than the stalls of most devices.
const RING_TIME: Duration = Duration::from_secs(1);
/// A declared rate must not lock more than this, unless that would last for a shorter time:
const PACED_RING_BYTES: u64 = 128 * MIB;
/// longer than as many polls as a ring must last for.
const RING_TIME_MIN: Duration = Duration::from_millis(160);
/// Rings of all channels whose records are not paced, together.
const UNPACED_RING_BYTES: u64 = 32 * MIB;
/// A ring has room for so many of the longest records.
const RING_RECORDS_MIN: u64 = 4;

/// Ring for records of up to so many bytes; `unpaced_bytes` if they have no period.
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

/// Gives each channel that has none its ring, all together no more than `room` if they can do
/// with that.
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

/// Ring for a channel that comes later: its share of the others' memory is given away by then.
/// A part of `room` if it can do with that: others may come, too.
pub fn late_ring_bytes(record_bytes_max: u64, period: Option<Duration>, room: u64) -> u64 {
    const LATE_CHANNELS: u64 = 32;
    const SHARE_OF_ROOM: u64 = 8;
    let unpaced_bytes = (UNPACED_RING_BYTES / LATE_CHANNELS).min(room / SHARE_OF_ROOM);
    ring_bytes(record_bytes_max, period, unpaced_bytes)
}

/// One ring for all these channels: a second of records, and what those without a period share.
pub fn shared_ring_bytes(channels: &[ChannelConfig]) -> u64 {
    let paced = paced_bytes(channels.iter());
    let is_unpaced = channels.iter().any(|channel| channel.period.is_none());
    let unpaced = if is_unpaced { UNPACED_RING_BYTES } else { 0 };
    let longest = channels.iter().map(|channel| channel.record_bytes_max).max().unwrap_or(0);
    let least = longest.saturating_add(HEADER_BYTES as u64).saturating_mul(RING_RECORDS_MIN);
    whole_blocks(paced.saturating_add(unpaced).max(least))
}

/// Rings of those with a period.
fn paced_bytes<'a>(channels: impl Iterator<Item = &'a ChannelConfig>) -> u64 {
    let paced = channels.filter_map(|channel| {
        channel.period?;
        Some(ring_bytes(channel.record_bytes_max, channel.period, 0))
    });
    paced.fold(0_u64, u64::saturating_add)
}

/// The most that is no larger.
pub(super) fn whole_blocks_within(bytes: u64) -> u64 {
    bytes / BLOCK_BYTES * BLOCK_BYTES
}

/// The least that is no smaller.
pub(super) fn whole_blocks(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK_BYTES).saturating_mul(BLOCK_BYTES)
}
