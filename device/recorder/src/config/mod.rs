// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration of a recorder. It is checked before anything is created.
//!
//! This file has the configuration and its check. [`channel`] has the channels, [`defaults`] the
//! default values, `retention` the number of segments, and `memory` the limit of locked memory.
//! `pool`, `steady record` and `capi` use it.

pub mod channel;
pub mod defaults;
mod memory;
mod retention;

use std::collections::HashSet;
use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;

pub use channel::{ChannelConfig, LATCHED_KEY, Schema, is_latched, record_bytes_max};
pub(crate) use channel::{LateLimits, Schemas, check_latched};

use crate::mcap::compression::Compression;
use crate::mcap::definitions::{DefinitionError, Definitions, Mark};
use crate::mcap::layout::{Layout, LayoutConfig, LayoutError, PAYLOAD_BYTES_LIMIT};
use crate::mcap::private::PROFILE_BYTES_MAX;
use crate::sizing::buffers_bytes;
use channel::check_ring;
use retention::Segments;

/// The alignment of all writes: the block size of ext4 and of flash translation layers.
pub const BLOCK_BYTES: u64 = 4096;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const UNIT_BYTES: (u64, u64) = (8 * KIB, 16 * MIB);
const SEGMENT_BYTES: (u64, u64) = (256 * KIB, 64 * GIB);
/// The allowed numbers of segments.
pub const SEGMENTS: (u64, u64) = (2, 10_000);
const RING_BYTES: (u64, u64) = (4 * KIB, 4 * GIB);
const RECORD_BYTES_MAX: u64 = PAYLOAD_BYTES_LIMIT as u64;
/// The limit of a recording.
pub const CHANNELS_MAX: u64 = 10_000;
const TOPIC_BYTES_MAX: u64 = 256;
/// Definitions are in memory twice.
const LATE_DEFINITION_BYTES_MAX: u64 = 8 * MIB;
const LOSS_WINDOW_MS: (u64, u64) = (2, 3_600_000);
/// A segment with room for fewer units of data would be mostly index and padding.
const UNITS_PER_SEGMENT_MIN: u64 = 4;
/// Latched messages may take this fraction of each segment.
const LATCHED_SHARE: u64 = 4;
/// The number of polls per loss window.
const POLLS_PER_WINDOW: u32 = 8;
/// The limits of the poll interval. Longer intervals would need very large rings.
const POLL: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(20));
/// The number of polls that a ring must cover. With fewer, one late poll would lose records.
const POLLS_PER_RING_MIN: u32 = 4;
/// Half of a ring must have room for any record, because a thread that waits for room waits until
/// half is free.
const RING_RECORDS_MIN: u64 = 2;

/// Converts a length. A length beyond the address space makes the mapping fail with an error.
pub(crate) fn bytes_in_memory(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// The amount to keep. It is converted into a number of segments before anything is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retention {
    /// This number of segments.
    Segments(u64),
    /// The number of segments that fit into this number of bytes.
    Bytes(u64),
    /// The number of segments that leaves this number of bytes free. Existing segments stay, and at
    /// least two are kept.
    MinFreeBytes(u64),
    /// Enough segments for this time at the declared rates. All channels need a period.
    Time(Duration),
}

/// The behaviour when all segments are full.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// The oldest segment is overwritten.
    #[default]
    Recycle,
    /// Recording ends. Later records are lost and counted.
    Stop,
}

/// The behaviour after a failed write or sync.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// The recorder retries, and continues when the device works again.
    #[default]
    Wait,
    /// Recording ends. Durable records are kept.
    Exit,
}

/// The I/O priority of the writer thread, as in ionice(1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoPriority {
    /// 1 real-time, 2 best effort, 3 idle.
    pub class: u8,
    /// 0 (first) to 7.
    pub level: u8,
}

/// The interface for the writer thread's I/O.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// io_uring if the kernel has and allows it, else pwrite.
    #[default]
    Best,
    /// io_uring, or an error.
    IoUring,
    /// pwrite() and fdatasync().
    Pwrite,
}

/// A memory that holds records until an incident asks for them. Nothing else is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RamConfig {
    /// Its size, with the headers of records.
    pub bytes: u64,
    /// The usual time before an incident. A record that was dropped earlier is no loss.
    pub before: Duration,
    /// The time after an incident that belongs to it.
    pub after: Duration,
    /// The number of incidents at which further ones are rejected; None: until the pool is full.
    pub incidents_max: Option<u64>,
}

/// The settings of the writer thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriterConfig {
    /// The interface for its I/O.
    pub engine: EngineChoice,
    /// Run with SCHED_FIFO at this priority.
    pub fifo_priority: Option<u8>,
    /// Run on this CPU only.
    pub cpu: Option<usize>,
    /// Use this I/O priority.
    pub io_priority: Option<IoPriority>,
    /// Hold records in memory until an incident asks for them.
    pub ram: Option<RamConfig>,
    /// Compress blocks that then need fewer bytes. The callers of append do not wait for it.
    pub compression: Option<Compression>,
}

/// The limits for channels that are declared while recording. They reserve memory, and space in
/// each segment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LateRoom {
    /// The number of channels.
    pub channels: u64,
    /// The size of all their topics and schemas.
    pub definition_bytes: u64,
}

/// The configuration of a recorder, with one pool of segments in one directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecorderConfig {
    /// The directory of the segments. It should contain nothing else.
    pub dir: PathBuf,
    /// MCAP's profile, which says how to interpret channels and schemas, for example `ros2`.
    pub profile: String,
    /// The channels at the start.
    pub channels: Vec<ChannelConfig>,
    /// The room for channels that are declared later.
    pub late: LateRoom,
    /// The time whose records a power cut may lose.
    pub loss_window: Duration,
    /// The largest write; ideally a multiple of the device's erase block. A longer record is one
    /// write.
    pub unit_bytes: u64,
    /// The longest record that a channel may have, at most 64 MiB. Memory for four such records
    /// (two above 16 MiB) is locked. 0: the longest that fits into a unit.
    pub longest_record_bytes: u64,
    /// The size of one ring for all channels, to which one thread then appends. None: each channel
    /// has its own ring.
    pub shared_ring_bytes: Option<u64>,
    /// The size of a segment.
    pub segment_bytes: u64,
    /// The amount to keep.
    pub retention: Retention,
    /// The behaviour when all segments are full.
    pub when_full: WhenFull,
    /// Whether damaged segments are overwritten instead of renamed.
    pub discard_damaged: bool,
    /// The behaviour after a failed write or sync.
    pub on_failure: OnFailure,
    /// The settings of the writer thread.
    pub writer: WriterConfig,
    /// Whether to lock rings and blocks into memory. Without it, append can cause a page fault.
    pub lock_memory: bool,
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

fn within(key: &str, value: u64, (min, max): (u64, u64)) -> Result<(), ConfigError> {
    if (min..=max).contains(&value) {
        Ok(())
    } else {
        Err(wrong(key, value, format!("must be {min} to {max}")))
    }
}

fn whole_blocks(key: &str, value: u64) -> Result<(), ConfigError> {
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

impl RecorderConfig {
    /// The interval between the writer thread's polls of the rings.
    pub fn poll(&self) -> Duration {
        poll_of(self.loss_window)
    }

    /// The limits for channels that are declared later.
    pub(crate) fn late_limits(&self) -> LateLimits {
        LateLimits {
            longest: record_bytes_max(self.unit_bytes, self.longest_record_bytes),
            poll: self.poll(),
            shared_ring_bytes: self.shared_ring_bytes,
            latched_bytes_max: self.segment_bytes / LATCHED_SHARE,
        }
    }

    /// The sum of the latched channels' longest records.
    pub(crate) fn latched_bytes(&self) -> u64 {
        self.channels.iter().map(ChannelConfig::latched_bytes).sum()
    }

    /// The age at which a record is submitted to the device at the latest. The device has the rest
    /// of the loss window.
    pub fn flush_after(&self) -> Duration {
        self.loss_window / 2
    }

    /// Checks the whole configuration without creating anything, and returns the number of
    /// segments. It reads the free space of the file system if retention depends on it. It also
    /// tests whether the memory may be locked, so call it before any is.
    pub fn check(&self) -> Result<u64, ConfigError> {
        let segments = self.checked_segments()?;
        within("number of channels", self.channels.len() as u64, (1, CHANNELS_MAX))?;
        self.check_channels()?;
        self.check_ram()?;
        let layout = self.checked_layout()?;
        self.check_memory(buffers_bytes(layout.block_buffer_bytes()))?;
        match segments {
            Segments::Known(segments) => Ok(segments),
            Segments::For(time) => self.segments_for(time, &layout),
        }
    }

    /// Checks everything except the channels; None if the number of segments depends on these.
    pub fn check_pool(&self) -> Result<Option<u64>, ConfigError> {
        let block_bytes = self.unit_bytes.max(self.longest_record_bytes);
        self.check_memory(buffers_bytes(bytes_in_memory(block_bytes)))?;
        Ok(match self.checked_segments()? {
            Segments::Known(segments) => Some(segments),
            Segments::For(_) => None,
        })
    }

    fn checked_segments(&self) -> Result<Segments, ConfigError> {
        within("unit_bytes", self.unit_bytes, UNIT_BYTES)?;
        whole_blocks("unit_bytes", self.unit_bytes)?;
        within("segment_bytes", self.segment_bytes, SEGMENT_BYTES)?;
        whole_blocks("segment_bytes", self.segment_bytes)?;
        if self.segment_bytes < UNITS_PER_SEGMENT_MIN * self.unit_bytes {
            let reason = format!("must be at least {UNITS_PER_SEGMENT_MIN} times unit_bytes");
            return Err(wrong("segment_bytes", self.segment_bytes, reason));
        }
        let window_ms = u64::try_from(self.loss_window.as_millis()).unwrap_or(u64::MAX);
        within("loss_window (ms)", window_ms, LOSS_WINDOW_MS)?;
        within(
            "late.definition_bytes",
            self.late.definition_bytes,
            (0, LATE_DEFINITION_BYTES_MAX),
        )?;
        within("longest_record_bytes", self.longest_record_bytes, (0, RECORD_BYTES_MAX))?;
        within("length of profile", self.profile.len() as u64, (0, PROFILE_BYTES_MAX as u64))?;
        self.writer.check()?;
        self.retained_segments()
    }

    fn check_channels(&self) -> Result<(), ConfigError> {
        let longest = record_bytes_max(self.unit_bytes, self.longest_record_bytes);
        let own_rings = self.shared_ring_bytes.is_none().then_some(self.poll());
        let mut topics = HashSet::new();
        for channel in &self.channels {
            channel.check(longest, own_rings)?;
            if !topics.insert(&channel.topic) {
                return Err(wrong("topic", &channel.topic, "two channels have this topic"));
            }
        }
        let latched = self.channels.iter().rev().find(|channel| channel.latched_bytes() > 0);
        let topic = latched.map_or("", |channel| &channel.topic);
        check_latched(topic, self.latched_bytes(), self.segment_bytes / LATCHED_SHARE)?;
        if let Some(bytes) = self.shared_ring_bytes {
            check_ring("all channels: ring_bytes", bytes, self.shared_ring_min(), self.poll())?;
        }
        Ok(())
    }

    /// Checks that a segment has room for everything besides the records.
    fn checked_layout(&self) -> Result<Layout, ConfigError> {
        let definitions = self.definitions().map_err(|error| {
            wrong("channels", self.channels.len(), format!("cannot be defined: {error}"))
        })?;
        self.largest_layout(&definitions).map_err(|error| match error {
            LayoutError::Size { key, value, min, max } => {
                wrong(key, value, format!("must be {min} to {max}, for these channels and records"))
            }
            error => wrong("segment_bytes", self.segment_bytes, error),
        })
    }

    /// The schemas and channels that each segment contains; each schema once.
    pub fn definitions(&self) -> Result<Definitions, DefinitionError> {
        let mut schemas = Schemas::default();
        let mut channels = Vec::with_capacity(self.channels.len());
        let mut specs = Vec::new();
        for channel in &self.channels {
            let (schema, new) = schemas.number_of(channel.schema.as_ref());
            specs.extend(new);
            channels.push(channel.spec(schema));
        }
        Ok(Definitions::new(&specs, &channels)?.with_profile(&self.profile))
    }

    /// The sizes of a segment's parts.
    pub fn layout(&self, definitions: &Definitions) -> Result<Layout, LayoutError> {
        Layout::new(self.sizes(), definitions)
    }

    /// The sizes with all channels that may be declared later.
    pub fn largest_layout(&self, definitions: &Definitions) -> Result<Layout, LayoutError> {
        let all = definitions.mark();
        let channels = all.channels + bytes_in_memory(self.late.channels);
        let bytes = all.bytes() + bytes_in_memory(self.late.definition_bytes);
        Layout::checked(self.sizes(), Mark::of(channels, bytes))
    }

    /// The size of the longest record of any channel.
    fn longest_record(&self) -> u64 {
        let longest = self.channels.iter().map(|channel| channel.record_bytes_max).max();
        match self.late.channels {
            0 => longest.unwrap_or(0),
            _ => record_bytes_max(self.unit_bytes, self.longest_record_bytes),
        }
    }

    fn sizes(&self) -> LayoutConfig {
        let sizes = LayoutConfig::recycled(
            self.segment_bytes,
            bytes_in_memory(self.unit_bytes),
            bytes_in_memory(self.longest_record()),
            self.channels.len() + bytes_in_memory(self.late.channels),
        );
        if self.writer.compression.is_some() { sizes.compressed() } else { sizes }
    }
}

impl WriterConfig {
    fn check(&self) -> Result<(), ConfigError> {
        if let Some(priority) = self.fifo_priority {
            within("writer.fifo_priority", priority.into(), (1, 99))?;
        }
        if let Some(io) = self.io_priority {
            within("writer.io_priority.class", io.class.into(), (1, 3))?;
            within("writer.io_priority.level", io.level.into(), (0, 7))?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
