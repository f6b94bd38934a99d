// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration of a recorder, and the sizes that follow from it. `config` checks it.

use std::path::PathBuf;
use std::time::Duration;

use super::channel::{ChannelConfig, LateLimits, Schemas, record_bytes_max};
use super::defaults;
use super::limits::{
    LATCHED_SHARE, LATE_DEFINITION_BYTES_MAX, RECORD_BYTES_MAX, bytes_in_memory, poll_of,
};
use crate::mcap::compression::Compression;
use crate::mcap::definitions::{DefinitionError, Definitions, Mark};
use crate::mcap::layout::{Layout, LayoutConfig, LayoutError};

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

impl RecorderConfig {
    /// The default values, for these channels.
    pub fn new(dir: PathBuf, channels: Vec<ChannelConfig>) -> RecorderConfig {
        RecorderConfig {
            dir,
            profile: String::new(),
            channels,
            late: LateRoom::default(),
            loss_window: defaults::LOSS_WINDOW,
            unit_bytes: defaults::UNIT_BYTES,
            longest_record_bytes: 0,
            shared_ring_bytes: None,
            segment_bytes: defaults::SEGMENT_BYTES,
            retention: Retention::Segments(defaults::SEGMENTS),
            when_full: WhenFull::Recycle,
            discard_damaged: false,
            on_failure: OnFailure::Wait,
            writer: WriterConfig::default(),
            lock_memory: true,
        }
    }

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
        let channels = all.channels.saturating_add(bytes_in_memory(self.late.channels));
        // As in `sizes`, the check rejects more later.
        let late_bytes = self.late.definition_bytes.min(LATE_DEFINITION_BYTES_MAX);
        let bytes = all.bytes() + bytes_in_memory(late_bytes);
        Layout::checked(self.sizes(), Mark::of(channels, bytes))
    }

    /// The size of the longest record of any channel.
    pub(super) fn longest_record(&self) -> u64 {
        let longest = self.channels.iter().map(|channel| channel.record_bytes_max).max();
        match self.late.channels {
            0 => longest.unwrap_or(0),
            _ => record_bytes_max(self.unit_bytes, self.longest_record_bytes),
        }
    }

    fn sizes(&self) -> LayoutConfig {
        // The check rejects longer ones, after this has been asked for the ring's size.
        let longest = self.longest_record().min(RECORD_BYTES_MAX);
        let sizes = LayoutConfig::recycled(
            self.segment_bytes,
            bytes_in_memory(self.unit_bytes),
            bytes_in_memory(longest),
            self.channels.len() + bytes_in_memory(self.late.channels),
        );
        if self.writer.compression.is_some() { sizes.compressed() } else { sizes }
    }
}
