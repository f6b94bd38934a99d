// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes the ring size and the loss window that suffice on a device whose worst stall is known,
//! and the number of segments that retain a period. `steady record` and the configuration call it.
//!
//! While the device stalls, the writer thread is stuck and the ring keeps new records. Earlier
//! records become durable only afterwards. `docs/reference/steady-record.md` has the formulas, with
//! an example that the tests below follow.

use std::time::Duration;

use super::config::defaults;
use super::config::limits::{BLOCK_BYTES, SEGMENTS, poll_of};
use super::config::values::RecorderConfig;
use super::mcap::layout::{
    ALIGN_BYTES, BLOCK_FRAMING_BYTES, HEAD_BYTES, Layout, NEARLY_FULL, block_bytes,
    block_overhead_bytes, chunk_index_bytes, message_bytes,
};
use super::mcap::wire::MESSAGE_INDEX_HEAD_BYTES;
use super::ring::HEADER_BYTES;

/// The factor for stalls in service, which may be longer than the worst one measured.
pub const MARGIN: u32 = 2;

/// Sizes that suffice for a stall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizing {
    /// The stall that they cover: the known one times [`MARGIN`].
    pub stall: Duration,
    /// The interval between polls of the rings.
    pub poll: Duration,
    /// The highest number of records between two polls.
    pub ring_records: u64,
    /// The ring size for these records, in whole blocks.
    pub ring_bytes: u64,
    /// The shortest loss window that can be kept, in whole milliseconds.
    pub loss_window: Duration,
}

/// The sizes for records of up to `record_bytes_max`, one per period, and this worst stall.
pub fn sizing(record_bytes_max: u64, period: Duration, worst_stall: Duration) -> Sizing {
    let stall = worst_stall * MARGIN;
    let loss_window = loss_window(stall);
    // With the default window, the writer polls less often.
    let poll = poll_of(loss_window.max(defaults::LOSS_WINDOW));
    let gap_ns = (poll + stall).as_nanos();
    // One more, because the first may arrive just after a poll.
    let records = gap_ns.div_ceil(period.as_nanos().max(1)) + 1;
    let ring_records = u64::try_from(records).unwrap_or(u64::MAX);
    let slot = record_bytes_max.saturating_add(HEADER_BYTES as u64);
    let blocks = ring_records.saturating_mul(slot).div_ceil(BLOCK_BYTES);
    let ring_bytes = blocks.saturating_mul(BLOCK_BYTES);
    Sizing { stall, poll, ring_records, ring_bytes, loss_window }
}

/// The shortest loss window. Half of it may pass before a record is submitted. The other half is
/// for a poll that just missed the record, and for the device. The poll interval depends on the
/// window, so the window is raised until it suffices. Each step adds at most a quarter of the
/// previous one.
fn loss_window(stall: Duration) -> Duration {
    let mut window_ms: u64 = 2;
    loop {
        let window = Duration::from_millis(window_ms);
        let needed = 2 * (poll_of(window) + stall);
        if needed <= window {
            return window;
        }
        let needed_ms = needed.as_nanos().div_ceil(1_000_000);
        window_ms = u64::try_from(needed_ms).unwrap_or(u64::MAX);
    }
}

/// The shortest time between polls at low rates.
const LOOK_MIN: Duration = Duration::from_millis(1);

/// The needs of a recording at the declared rates, per second, at most.
#[derive(Debug, Clone, Copy)]
struct Rates {
    /// The bytes of the segment, including framing, padding and chunk indexes.
    bytes: f64,
    /// The bytes of chunk indexes alone.
    index_bytes: f64,
}

fn rates(config: &RecorderConfig) -> Rates {
    let (mut records, mut content_bytes, mut longest) = (0.0, 0.0, 0);
    for channel in &config.channels {
        let bytes = message_bytes(channel.record_bytes_max as usize);
        let per_s = channel.period.map_or(0.0, |period| 1.0 / period.as_secs_f64());
        records += per_s;
        content_bytes += per_s * bytes as f64;
        longest = longest.max(bytes);
    }
    // A block ends when the next record does not fit, so two successive blocks hold more than one
    // full block.
    let room = (config.unit_bytes as usize)
        .saturating_sub(block_overhead_bytes(config.channels.len())) as f64;
    let filled = (room - longest as f64).max(room / 2.0);
    // A block also ends when its oldest record, which came after the previous poll, has waited long
    // enough.
    let waited = config.flush_after().saturating_sub(config.poll()).max(LOOK_MIN);
    let blocks = records.min(content_bytes / filled + 1.0 / waited.as_secs_f64());
    let channels_in_blocks = records.min(blocks * config.channels.len() as f64);
    let one_more = chunk_index_bytes(1) - chunk_index_bytes(0);
    let index_bytes = blocks * chunk_index_bytes(0) as f64 + channels_in_blocks * one_more as f64;
    let framing = BLOCK_FRAMING_BYTES + ALIGN_BYTES;
    let bytes = content_bytes
        + blocks * framing as f64
        + channels_in_blocks * MESSAGE_INDEX_HEAD_BYTES as f64
        + index_bytes;
    Rates { bytes, index_bytes }
}

/// The number of buffers for blocks: one is filled while others are written.
pub const BUFFERS_MAX: usize = 4;
/// From this size on, two buffers suffice: each is many writes of the device.
const LARGE_BYTES: usize = 16 << 20;

/// The number of buffers for blocks of this size.
pub fn buffers(block_bytes: usize) -> usize {
    if block_bytes > LARGE_BYTES { 2 } else { BUFFERS_MAX }
}

/// The size of all these buffers.
pub fn buffers_bytes(block_bytes: usize) -> u64 {
    (buffers(block_bytes) as u64).saturating_mul(block_bytes as u64)
}

/// The number of segments that keep a period, and the bytes per second. All channels must have a
/// period.
pub fn segments_for(time: Duration, config: &RecorderConfig, layout: &Layout) -> (u64, f64) {
    let rates = rates(config);
    let longest = config.channels.iter().map(|channel| channel.record_bytes_max).max();
    // The rest of a segment is empty if the next block does not fit.
    let unused = HEAD_BYTES
        + layout.definitions_bytes()
        + block_bytes(longest.unwrap_or(0) as usize, config.channels.len())
        + BLOCK_BYTES as usize;
    let room = layout.data_end(0).saturating_sub(unused as u64).max(1) as f64;
    let lasts_s = (room / rates.bytes).min(layout.config().index_bytes as f64 / rates.index_bytes);
    // The one in use, and the oldest, which is given up when the one in use is nearly full.
    let nearly = (config.segment_bytes / NEARLY_FULL + config.unit_bytes) as f64 / room;
    let segments = time.as_secs_f64() / lasts_s + 1.0 + nearly.min(1.0);
    ((segments.ceil() as u64).max(SEGMENTS.0), rates.bytes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::config::{ChannelConfig, Retention};
    use crate::mcap::account::ChannelLedger;
    use crate::mcap::encoder::{Encoder, Full, Message};
    use crate::mcap::private::Identity;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_example_of_the_reference_page() {
        // 16 KiB every 5 ms; a worst stall of 200 ms counts as 400 ms.
        let sizing = sizing(16_384, 5 * MS, 200 * MS);
        assert_eq!(sizing.stall, 400 * MS);
        // 20 ms + 400 ms = 84 periods, and one more.
        assert_eq!((sizing.poll, sizing.ring_records), (20 * MS, 85));
        // 85 x 16410 = 1394850 bytes, in 341 blocks.
        assert_eq!(sizing.ring_bytes, 341 * 4_096);
        // 2 x (20 ms + 400 ms)
        assert_eq!(sizing.loss_window, 840 * MS);
    }

    #[test]
    fn a_device_that_never_stalls_needs_time_for_the_polls_only() {
        let sizing = sizing(84, 10 * MS, Duration::ZERO);
        // The poll interval is 1 ms at least: 2 x (1 ms + 0).
        assert_eq!(sizing.loss_window, 2 * MS);
        // 20 ms are two periods, and one more: 3 x 110 bytes.
        assert_eq!((sizing.ring_records, sizing.ring_bytes), (3, 4_096));
    }

    #[test]
    fn a_short_window_makes_the_writer_look_more_often() {
        // The poll interval is an eighth of the window: 8/8 = 3/8 for the stall + 1/8 for it + 1/2.
        let sizing = sizing(84, 10 * MS, 15 * MS);
        assert_eq!(sizing.loss_window, 80 * MS);
        assert_eq!(poll_of(sizing.loss_window), 10 * MS);
    }

    #[test]
    fn the_window_is_the_shortest_that_holds() {
        for stall_ms in 0..700 {
            let stall = stall_ms * MS;
            let holds = |window: Duration| 2 * (poll_of(window) + stall) <= window;
            let window = loss_window(stall);
            assert!(holds(window) && (window <= 2 * MS || !holds(window - MS)), "{stall_ms}");
        }
    }

    /// The time for which a segment lasts if a block ends whenever its oldest record is half a
    /// window old.
    fn simulated_s(config: &RecorderConfig) -> f64 {
        let definitions = config.definitions().unwrap();
        let layout = config.layout(&definitions).unwrap();
        let mut buffer = vec![0; layout.buffer_bytes()];
        let ledger = vec![ChannelLedger::default(); layout.channels()];
        let mut encoder = Encoder::new(layout, definitions);
        let identity = Identity { recording_id: [1; 16], sequence: 1 };
        encoder.begin(identity, 0);
        let _ = encoder.definitions(&mut buffer, &ledger);
        let payload = vec![0; config.channels[0].record_bytes_max as usize];
        let period_ns = config.channels[0].period.unwrap().as_nanos() as u64;
        let mut oldest_ns = 0;
        for number in 0.. {
            let log_time_ns = number * period_ns;
            if u128::from(log_time_ns - oldest_ns) >= config.flush_after().as_nanos() {
                let _ = encoder.flush(&mut buffer, &ledger);
            }
            let message = |channel| Message {
                channel,
                sequence: 0,
                log_time_ns,
                publish_time_ns: 0,
                payload: [&payload, &[]],
            };
            for channel in 0..config.channels.len() as u16 {
                let mut pushed = encoder.push(&mut buffer, &message(channel));
                if pushed == Err(Full::Block) {
                    let _ = encoder.flush(&mut buffer, &ledger);
                    pushed = encoder.push(&mut buffer, &message(channel));
                }
                if pushed == Err(Full::Segment) {
                    return log_time_ns as f64 / 1e9;
                }
                if encoder.pending() == 1 {
                    oldest_ns = log_time_ns;
                }
            }
        }
        0.0
    }

    #[test]
    fn the_segments_for_a_time_keep_it_and_not_much_more() {
        // Slow topics, whose blocks are mostly padding; fast ones; long records; many channels.
        let cases = [(1, 100, 100), (1, 100, 1), (5, 16_384, 1), (100, 400_000, 1), (20, 64, 50)];
        for (period_ms, bytes, channels) in cases {
            let channel = |at: u32| ChannelConfig {
                period: Some(period_ms * if channels == 100 { 1_000 } else { 1 } * MS),
                ring_bytes: 1 << 20,
                ..ChannelConfig::new(&at.to_string(), bytes)
            };
            let config = RecorderConfig {
                unit_bytes: 1 << 20,
                segment_bytes: 16 << 20,
                retention: Retention::Segments(2),
                lock_memory: false,
                ..RecorderConfig::new("/tmp".into(), (0..channels).map(channel).collect())
            };
            let definitions = config.definitions().unwrap();
            let layout = config.layout(&definitions).unwrap();
            let lasts_s = simulated_s(&config);
            let time = Duration::from_secs_f64(10.0 * lasts_s);
            let (segments, _) = segments_for(time, &config, &layout);
            // Ten, the one in use, a part of the oldest, and the segments that the estimate adds
            // for safety.
            assert!((12..=15).contains(&segments), "{period_ms} {bytes} {channels}: {segments}");
        }
    }
}
