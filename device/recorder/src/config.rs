// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration of a recorder, checked before anything is created.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::mcap::definitions::{ChannelSpec, DefinitionError, Definitions, Mark, SchemaSpec};
use super::mcap::layout::{
    Layout, LayoutConfig, LayoutError, PAYLOAD_BYTES_LIMIT, single_overhead_bytes,
};
use super::mcap::names::is_segment;
use super::mcap::private::PROFILE_BYTES_MAX;
use super::ring::HEADER_BYTES;
use super::sizing::{buffers_bytes, segments_for};
use steadyio_core::memory::{lockable_bytes, locked_bytes, may_lock};

/// Alignment of all writes: the block size of ext4 and of flash translation.
pub const BLOCK_BYTES: u64 = 4096;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const UNIT_BYTES: (u64, u64) = (8 * KIB, 16 * MIB);
const SEGMENT_BYTES: (u64, u64) = (256 * KIB, 64 * GIB);
/// How many are kept.
pub const SEGMENTS: (u64, u64) = (2, 10_000);
const RING_BYTES: (u64, u64) = (4 * KIB, 4 * GIB);
const RECORD_BYTES_MAX: u64 = PAYLOAD_BYTES_LIMIT as u64;
/// Of a recording.
pub const CHANNELS_MAX: u64 = 10_000;
const TOPIC_BYTES_MAX: u64 = 256;
/// Twice in memory.
const LATE_DEFINITION_BYTES_MAX: u64 = 8 * MIB;
const LOSS_WINDOW_MS: (u64, u64) = (2, 3_600_000);
/// A segment with less room for data than this many units would be mostly index and padding.
const UNITS_PER_SEGMENT_MIN: u64 = 4;
/// The writer thread polls this often per loss window,
const POLLS_PER_WINDOW: u32 = 8;
/// but within these limits: rarer polls would need huge rings.
const POLL: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(20));
/// A ring must last for this many polls, or a single late one would lose records.
const POLLS_PER_RING_MIN: u32 = 4;
/// And half of it has room for any record: who waits for room waits for that.
const RING_RECORDS_MIN: u64 = 2;

/// Defaults.
pub mod defaults {
    use std::time::Duration;

    use super::{BLOCK_BYTES, ChannelConfig, HEADER_BYTES, MIB};

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
                let slots = u64::try_from(RING_TIME.as_nanos().div_ceil(ns)).unwrap_or(u64::MAX);
                slot.saturating_mul(slots)
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
}

/// Mapping a length beyond the address space fails with an error.
pub(crate) fn bytes_in_memory(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// How the bytes of a channel are to be understood, as MCAP has it; names may be empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Schema {
    /// Name of the type.
    pub name: String,
    /// Language of the definition, `jsonschema` or `protobuf` for example.
    pub encoding: String,
    pub data: Vec<u8>,
}

/// The schemas of a recording so far, each once.
#[derive(Debug, Default)]
pub(crate) struct Schemas(HashMap<Schema, usize>);

impl Schemas {
    /// The position of a schema, and its definition if it is a new one.
    pub(crate) fn number_of(
        &mut self,
        schema: Option<&Schema>,
    ) -> (Option<usize>, Option<SchemaSpec>) {
        let Some(schema) = schema else { return (None, None) };
        if let Some(known) = self.0.get(schema) {
            return (Some(*known), None);
        }
        let number = self.0.len();
        self.0.insert(schema.clone(), number);
        let Schema { name, encoding, data } = schema.clone();
        (Some(number), Some(SchemaSpec { name, encoding, data }))
    }

    /// It was not defined after all.
    pub(crate) fn forget(&mut self, schema: &Schema) {
        self.0.remove(schema);
    }
}

/// One stream of records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelConfig {
    /// Name of the channel in the recording.
    pub topic: String,
    /// Encoding of the records, `json`, `cdr` or nothing.
    pub message_encoding: String,
    /// Schema of the records, if known.
    pub schema: Option<Schema>,
    /// Free keys and values, each key once.
    pub metadata: Vec<(String, String)>,
    pub record_bytes_max: u64,
    /// Time between records; None if irregular.
    pub period: Option<Duration>,
    /// Memory between caller and writer thread; of no meaning if the channels share a ring.
    pub ring_bytes: u64,
}

/// How much is kept. Each becomes a number of segments before anything is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retention {
    /// This many segments.
    Segments(u64),
    /// As many segments as fit into this many bytes.
    Bytes(u64),
    /// As many segments as leave this many bytes of the file system free; but those that are there
    /// stay, and so do two.
    MinFreeBytes(u64),
    /// Enough segments for this long, at the declared rates, if all channels have a period.
    Time(Duration),
}

/// What happens when all segments are full.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// The oldest segment is overwritten.
    #[default]
    Recycle,
    /// Recording ends; later records are lost, and counted.
    Stop,
}

/// What happens when a write or sync fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// It is tried again, and recording goes on when the device does.
    #[default]
    Wait,
    /// Recording ends, and keeps what is durable.
    Exit,
}

/// I/O priority of the writer thread, as in ionice(1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoPriority {
    /// 1 real-time, 2 best effort, 3 idle.
    pub class: u8,
    /// 0 (first) to 7.
    pub level: u8,
}

/// How the writer thread submits I/O.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// io_uring if the kernel has it and allows it, else pwrite.
    #[default]
    Best,
    /// io_uring, or an error.
    IoUring,
    /// pwrite() and fdatasync().
    Pwrite,
}

/// How the writer thread runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriterConfig {
    /// How it submits I/O.
    pub engine: EngineChoice,
    /// SCHED_FIFO at this priority.
    pub fifo_priority: Option<u8>,
    /// On this CPU only.
    pub cpu: Option<usize>,
    /// With this I/O priority.
    pub io_priority: Option<IoPriority>,
}

/// Room for channels that are declared while recording: memory, and space in each segment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LateRoom {
    /// How many.
    pub channels: u64,
    /// Of their topics and schemas, all together.
    pub definition_bytes: u64,
}

/// A recorder: one pool of segments in one directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecorderConfig {
    /// Where the segments are; nothing else should be there.
    pub dir: PathBuf,
    /// What MCAP calls so: how channels and schemas are to be understood, `ros2` for example.
    pub profile: String,
    /// What is recorded.
    pub channels: Vec<ChannelConfig>,
    /// For what is declared later.
    pub late: LateRoom,
    /// How much a power cut may lose, in time.
    pub loss_window: Duration,
    /// Largest write; ideally a multiple of the device's erase block. A longer record is one write.
    pub unit_bytes: u64,
    /// Longest record that a channel may have, 64 MiB at most: memory for four (above 16 MiB, two)
    /// is locked. 0: what a unit has room for.
    pub longest_record_bytes: u64,
    /// One ring for all channels, which one thread then appends to; None: each has its own.
    pub shared_ring_bytes: Option<u64>,
    /// Size of a segment.
    pub segment_bytes: u64,
    /// How much is kept.
    pub retention: Retention,
    /// What happens when all segments are full.
    pub when_full: WhenFull,
    /// Damaged segments are overwritten instead of renamed.
    pub discard_damaged: bool,
    /// What happens when a write or sync fails.
    pub on_failure: OnFailure,
    /// How the writer thread runs.
    pub writer: WriterConfig,
    /// Lock rings and blocks into memory. Without it, append can meet a page fault.
    pub lock_memory: bool,
}

/// A value that is not allowed; nothing was created.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key} = {value}: {reason}")]
pub struct ConfigError {
    /// Name of the field, with its channel.
    pub key: String,
    pub value: String,
    /// What is allowed, and what to do.
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

impl ChannelConfig {
    fn check(&self, longest: u64, poll: Option<Duration>) -> Result<(), ConfigError> {
        let key = |field: &str| format!("channel {:?}: {field}", self.topic);
        within(&key("length of its topic"), self.topic.len() as u64, (1, TOPIC_BYTES_MAX))?;
        within(&key("record_bytes_max"), self.record_bytes_max, (1, RECORD_BYTES_MAX))?;
        if self.record_bytes_max > longest {
            let reason = format!("must be at most {longest}; raise longest_record_bytes");
            return Err(wrong(key("record_bytes_max"), self.record_bytes_max, reason));
        }
        if self.period.is_some_and(|period| period.is_zero()) {
            return Err(wrong(
                key("period"),
                "0",
                "must be longer than 0; omit it if there is none",
            ));
        }
        poll.map_or(Ok(()), |poll| {
            let need = self.comes_in_polls(poll).max(RING_RECORDS_MIN * self.slot_bytes());
            check_ring(&key("ring_bytes"), self.ring_bytes, need, poll)
        })
    }

    /// As it goes into the segments.
    pub(crate) fn spec(&self, schema: Option<usize>) -> ChannelSpec {
        ChannelSpec {
            topic: self.topic.clone(),
            message_encoding: self.message_encoding.clone(),
            schema,
            metadata: self.metadata.clone(),
        }
    }

    /// Of a channel that is declared while the recorder runs. `ring_bytes` is that of the ring that
    /// all share.
    pub(crate) fn check_late(&self, limits: &LateLimits) -> Result<(), ConfigError> {
        let own = limits.shared_ring_bytes.is_none().then_some(limits.poll);
        self.check(limits.longest, own)?;
        limits.shared_ring_bytes.map_or(Ok(()), |bytes| {
            let need = RING_RECORDS_MIN * self.slot_bytes();
            check_ring("all channels: ring_bytes", bytes, need, limits.poll)
        })
    }

    /// A record in a ring.
    fn slot_bytes(&self) -> u64 {
        self.record_bytes_max + HEADER_BYTES as u64
    }

    /// What comes in as many polls as a ring must last for.
    fn comes_in_polls(&self, poll: Duration) -> u64 {
        let polls = u128::from(POLLS_PER_RING_MIN) * poll.as_nanos();
        let records = self.period.map_or(0, |period| polls.div_ceil(period.as_nanos()));
        self.slot_bytes().saturating_mul(u64::try_from(records).unwrap_or(u64::MAX))
    }
}

/// What the configuration allows channels that come later.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LateLimits {
    longest: u64,
    poll: Duration,
    pub(crate) shared_ring_bytes: Option<u64>,
}

/// Whether a segment can have so many bytes.
pub(crate) fn is_segment_size(bytes: u64) -> bool {
    (SEGMENT_BYTES.0..=SEGMENT_BYTES.1).contains(&bytes) && bytes % BLOCK_BYTES == 0
}

fn check_ring(key: &str, bytes: u64, need: u64, poll: Duration) -> Result<(), ConfigError> {
    within(key, bytes, RING_BYTES)?;
    if bytes >= need {
        return Ok(());
    }
    let reason = format!(
        "must be at least {need}: the writer thread polls every {poll:?}, and the ring must last \
         for {POLLS_PER_RING_MIN} polls"
    );
    Err(wrong(key, bytes, reason))
}

/// The longest record that a channel may have, beside however many others.
pub fn record_bytes_max(unit_bytes: u64, longest_record_bytes: u64) -> u64 {
    let fits = unit_bytes.saturating_sub(single_overhead_bytes(usize::MAX) as u64);
    fits.max(longest_record_bytes)
}

/// How often the writer thread polls the rings, to keep a loss window.
pub fn poll_of(loss_window: Duration) -> Duration {
    (loss_window / POLLS_PER_WINDOW).clamp(POLL.0, POLL.1)
}

impl RecorderConfig {
    /// How often the writer thread polls the rings.
    pub fn poll(&self) -> Duration {
        poll_of(self.loss_window)
    }

    /// Of channels that are declared later.
    pub(crate) fn late_limits(&self) -> LateLimits {
        LateLimits {
            longest: record_bytes_max(self.unit_bytes, self.longest_record_bytes),
            poll: self.poll(),
            shared_ring_bytes: self.shared_ring_bytes,
        }
    }

    /// A record is submitted to the device at this age at the latest; the rest of the loss window
    /// is for the device.
    pub fn flush_after(&self) -> Duration {
        self.loss_window / 2
    }

    /// Checks everything that can be known without creating anything, and returns the number of
    /// segments. Reads the free space of the file system if retention depends on it, and tries
    /// whether as much memory may be locked: to be called before any is.
    pub fn check(&self) -> Result<u64, ConfigError> {
        let segments = self.checked_segments()?;
        within("number of channels", self.channels.len() as u64, (1, CHANNELS_MAX))?;
        self.check_channels()?;
        let layout = self.checked_layout()?;
        self.check_memory(buffers_bytes(layout.block_buffer_bytes()))?;
        match segments {
            Segments::Known(segments) => Ok(segments),
            Segments::For(time) => self.segments_for(time, &layout),
        }
    }

    /// The same without the channels; None if they decide how many segments there are.
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
        let segments = match self.retention {
            Retention::Time(time) => return Ok(Segments::For(time)),
            Retention::Segments(segments) => segments,
            Retention::Bytes(bytes) => bytes / self.segment_bytes,
            Retention::MinFreeBytes(keep) => {
                let space = Space::of(&self.dir)?;
                let wanted = space.usable_bytes().saturating_sub(keep) / self.segment_bytes;
                // Existing recordings are kept even if others have taken the space.
                wanted.max(space.segments)
            }
        };
        within("number of segments", segments, SEGMENTS)?;
        Ok(Segments::Known(segments))
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
        if let Some(bytes) = self.shared_ring_bytes {
            check_ring("all channels: ring_bytes", bytes, self.shared_ring_min(), self.poll())?;
        }
        Ok(())
    }

    /// The smallest ring that all channels can share.
    fn shared_ring_min(&self) -> u64 {
        let comes = self.channels.iter().map(|channel| channel.comes_in_polls(self.poll()));
        let slot = self.channels.iter().map(ChannelConfig::slot_bytes).max().unwrap_or(0);
        comes.fold(0, u64::saturating_add).max(RING_RECORDS_MIN * slot)
    }

    /// A ring of `wanted` bytes that all channels share, or what may be locked if that is less and
    /// suffices.
    pub fn fitting_ring_bytes(&self, wanted: u64) -> u64 {
        let fits = wanted.min(defaults::whole_blocks_within(self.room_for_rings()));
        fits.max(defaults::whole_blocks(self.shared_ring_min()))
    }

    /// Whether so much for blocks may be locked, and the rings.
    fn check_memory(&self, blocks_bytes: u64) -> Result<(), ConfigError> {
        let rings = self.channels.len().max(1) as u64;
        // Each may touch a page more than it fills.
        let needed = blocks_bytes.saturating_add(self.rings_bytes() + rings * BLOCK_BYTES);
        if !self.lock_memory || may_lock(needed) {
            return Ok(());
        }
        let reason = format!(
            "only {} may be locked: raise the limit ('ulimit -l {}' as root, or LimitMEMLOCK= in a \
             systemd unit), choose a smaller ring, unit or longest record, or do without locked \
             memory and accept page faults",
            self.lockable_bytes(),
            needed.saturating_add(locked_bytes()).div_ceil(KIB)
        );
        Err(wrong("memory to lock", needed, reason))
    }

    /// How much more may be locked; u64::MAX without a limit.
    pub fn lockable_bytes(&self) -> u64 {
        self.lock_memory.then(lockable_bytes).flatten().unwrap_or(u64::MAX)
    }

    /// What may be locked for rings. Of what remains beside the blocks, channels that come later
    /// get half, if each is to have a ring of its own.
    pub fn room_for_rings(&self) -> u64 {
        let lockable = self.lockable_bytes();
        let layout = self.definitions().ok().and_then(|known| self.largest_layout(&known).ok());
        let unit_bytes = bytes_in_memory(self.unit_bytes);
        let block_bytes = layout.map_or(unit_bytes, |layout| layout.block_buffer_bytes());
        let pages = self.channels.len().max(1) as u64 * BLOCK_BYTES;
        let all = lockable.saturating_sub(buffers_bytes(block_bytes).saturating_add(pages));
        let late = self.shared_ring_bytes.is_none() && self.late.channels > 0;
        if late { all / 2 } else { all }
    }

    /// Whether all that a segment needs beside the records fits.
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

    /// Schemas and channels as they go into each segment; each schema once.
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

    /// Sizes of what is in a segment.
    pub fn layout(&self, definitions: &Definitions) -> Result<Layout, LayoutError> {
        Layout::new(self.sizes(), definitions)
    }

    /// The same with all channels that may come later.
    pub fn largest_layout(&self, definitions: &Definitions) -> Result<Layout, LayoutError> {
        let all = definitions.mark();
        let channels = all.channels + bytes_in_memory(self.late.channels);
        let bytes = all.bytes() + bytes_in_memory(self.late.definition_bytes);
        Layout::checked(self.sizes(), Mark::of(channels, bytes))
    }

    fn sizes(&self) -> LayoutConfig {
        let longest = self.channels.iter().map(|channel| channel.record_bytes_max).max();
        let longest = match self.late.channels {
            0 => longest.unwrap_or(0),
            _ => record_bytes_max(self.unit_bytes, self.longest_record_bytes),
        };
        LayoutConfig::recycled(
            self.segment_bytes,
            bytes_in_memory(self.unit_bytes),
            bytes_in_memory(longest),
            self.channels.len() + bytes_in_memory(self.late.channels),
        )
    }

    /// Memory between callers and writer thread, all together.
    pub fn rings_bytes(&self) -> u64 {
        let own = self.channels.iter().map(|channel| channel.ring_bytes).sum();
        self.shared_ring_bytes.unwrap_or(own)
    }

    /// Refuses a time that the segments that fit would not keep.
    fn segments_for(&self, time: Duration, layout: &Layout) -> Result<u64, ConfigError> {
        let refuse = |reason: String| wrong("retention (time)", format!("{time:?}"), reason);
        if self.channels.iter().any(|channel| channel.period.is_none()) {
            return Err(refuse("every channel needs a period".into()));
        }
        if self.late.channels > 0 {
            return Err(refuse("no room may be left for channels that come later".into()));
        }
        let (segments, bytes_per_s) = segments_for(time, self, layout);
        let needed = segments.saturating_mul(self.segment_bytes);
        let says = |limit: String| {
            refuse(format!(
                "takes {bytes_per_s:.0} bytes per second with framing, padding and index, so \
                 {segments} segments, {needed} bytes; {limit}"
            ))
        };
        if segments > SEGMENTS.1 {
            return Err(says(format!("there can be {} segments: make them larger", SEGMENTS.1)));
        }
        let free = Space::of(&self.dir)?.usable_bytes();
        if needed > free { Err(says(format!("only {free} are free"))) } else { Ok(segments) }
    }

    /// A note if incidents keep segments: fewer are left to record in.
    pub fn cost_of_kept(&self, kept: u64, segments: u64) -> Option<String> {
        if kept == 0 {
            return None;
        }
        let left = segments.saturating_sub(kept);
        let note = format!("incidents keep {kept} of {segments} segments; {left} are recorded in");
        let Retention::Time(time) = self.retention else { return Some(note) };
        let Some(kept_time) = self.time_in(left) else { return Some(note) };
        Some(format!("{note}, which hold {:.0} s of {time:?}", kept_time.as_secs_f64()))
    }

    /// The time that so many segments keep, in whole seconds; None if nobody knows.
    fn time_in(&self, segments: u64) -> Option<Duration> {
        let definitions = self.definitions().ok()?;
        let layout = self.largest_layout(&definitions).ok()?;
        if self.channels.is_empty() || self.channels.iter().any(|one| one.period.is_none()) {
            return None;
        }
        let Retention::Time(asked) = self.retention else { return None };
        let keeps = |s: u64| segments_for(Duration::from_secs(s), self, &layout).0 <= segments;
        let (mut yes, mut no) = (0, asked.as_secs() + 1);
        while no - yes > 1 {
            let middle = yes.midpoint(no);
            if keeps(middle) { yes = middle } else { no = middle }
        }
        Some(Duration::from_secs(yes))
    }

    /// A note if less than the configured space stays free, as others have taken it.
    pub fn shortage(&self, segments: u64) -> Option<String> {
        let Retention::MinFreeBytes(keep) = self.retention else { return None };
        let left = Space::of(&self.dir).ok()?.usable_bytes();
        let left = left.saturating_sub(segments.saturating_mul(self.segment_bytes));
        (left < keep).then(|| {
            format!(
                "{}: {left} bytes stay free, less than the {keep} asked for: others have taken \
                 space, so recording continues in the {segments} existing segments",
                self.dir.display()
            )
        })
    }
}

/// How many segments a retention takes.
enum Segments {
    Known(u64),
    /// As many as the channels fill in this time.
    For(Duration),
}

/// The file system of a directory, or of its nearest existing parent.
struct Space {
    free_bytes: u64,
    /// Of the directory.
    segments: u64,
    /// What they occupy.
    held_bytes: u64,
}

impl Space {
    fn of(dir: &Path) -> Result<Space, ConfigError> {
        let there = dir.ancestors().find(|above| above.exists()).unwrap_or(Path::new("."));
        let stat = rustix::fs::statvfs(there)
            .map_err(|error| wrong("dir", dir.display(), format!("no file system: {error}")))?;
        let names = std::fs::read_dir(dir).into_iter().flatten().flatten();
        let segments = names.filter(|entry| is_segment(&entry.file_name()));
        let lengths: Vec<u64> =
            segments.flat_map(|entry| entry.metadata()).map(|m| m.len()).collect();
        Ok(Space {
            free_bytes: stat.f_bavail * stat.f_frsize,
            segments: lengths.len() as u64,
            held_bytes: lengths.iter().sum(),
        })
    }

    /// Existing segments count as free: they are overwritten.
    fn usable_bytes(&self) -> u64 {
        self.free_bytes + self.held_bytes
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
mod tests {
    use super::*;

    fn good() -> RecorderConfig {
        RecorderConfig {
            dir: "/tmp".into(),
            profile: String::new(),
            channels: vec![ChannelConfig {
                topic: "a".into(),
                message_encoding: String::new(),
                schema: None,
                metadata: Vec::new(),
                record_bytes_max: 16 * KIB,
                period: Some(Duration::from_millis(5)),
                ring_bytes: MIB,
            }],
            loss_window: Duration::from_millis(500),
            unit_bytes: 512 * KIB,
            late: LateRoom::default(),
            longest_record_bytes: 0,
            shared_ring_bytes: None,
            segment_bytes: 16 * MIB,
            retention: Retention::Segments(4),
            when_full: WhenFull::Recycle,
            discard_damaged: false,
            on_failure: OnFailure::Wait,
            writer: WriterConfig::default(),
            lock_memory: false,
        }
    }

    #[test]
    fn retention_becomes_a_number_of_segments() {
        let with = |retention| RecorderConfig { retention, ..good() };
        assert_eq!(good().check().unwrap(), 4);
        assert_eq!(with(Retention::Bytes(100 * MIB)).check().unwrap(), 6);
        // 3.3 MB/s with framing and padding for a minute: 12.3 segments, the one in use, and the
        // oldest, which is given up when that is nearly full.
        assert_eq!(with(Retention::Time(Duration::from_secs(60))).check().unwrap(), 14);
        // What incidents keep of these is not there for a recording.
        let time = with(Retention::Time(Duration::from_secs(60)));
        let cost = time.cost_of_kept(7, 14).unwrap();
        let says = "incidents keep 7 of 14 segments; 7 are recorded in, which hold 2";
        assert!(cost.starts_with(says) && cost.ends_with(" s of 60s"), "{cost}");
        assert_eq!(time.cost_of_kept(0, 14), None);
        let error = with(Retention::MinFreeBytes(u64::MAX)).check().unwrap_err();
        assert_eq!(error.to_string(), "number of segments = 0: must be 2 to 10000");
    }

    #[test]
    fn channels_without_a_ring_share_what_may_be_locked() {
        let channel =
            |period| ChannelConfig { period, ring_bytes: 0, ..good().channels[0].clone() };
        let mut channels = vec![channel(Some(Duration::from_millis(100))), channel(None)];
        channels.push(channel(None));
        channels.push(ChannelConfig { ring_bytes: MIB, ..channel(None) });
        let rings = |room| {
            let mut channels = channels.clone();
            defaults::fill_rings(&mut channels, room);
            channels.iter().map(|channel| channel.ring_bytes / KIB).collect::<Vec<_>>()
        };
        assert_eq!(rings(u64::MAX), [164, 10_920, 10_920, 1_024]);
        assert_eq!(rings(4 * MIB), [164, 968, 968, 1_024]);
        // No less than they need.
        assert_eq!(rings(0), [164, 68, 68, 1_024]);
        let late = |room| defaults::late_ring_bytes(16 * KIB, None, room) / KIB;
        assert_eq!([u64::MAX, 4 * MIB, 0].map(late), [1_024, 512, 68]);
    }

    #[test]
    fn a_wrong_value_is_named_with_what_is_allowed() {
        type Break = fn(&mut RecorderConfig);
        let cases: [(Break, &str); 9] = [
            (|c| c.unit_bytes = 9_000, "unit_bytes = 9000: must be a multiple of 4096"),
            (|c| c.segment_bytes = MIB, "segment_bytes = 1048576: must be at least 4 times"),
            (|c| c.loss_window = Duration::ZERO, "loss_window (ms) = 0: must be 2 to"),
            (|c| c.channels.clear(), "number of channels = 0: must be 1 to 10000"),
            (|c| c.channels.push(c.channels[0].clone()), "topic = a: two channels"),
            (
                |c| c.channels[0].ring_bytes = 64 * KIB,
                "ring_bytes = 65536: must be at least 262560",
            ),
            (
                |c| c.channels[0].record_bytes_max = 512 * KIB,
                "must be at most 523630; raise longest_record_bytes",
            ),
            (|c| c.channels[0].topic.clear(), "length of its topic = 0: must be 1 to 256"),
            (|c| c.writer.fifo_priority = Some(100), "fifo_priority = 100: must be 1 to 99"),
        ];
        for (break_it, says) in cases {
            let mut config = good();
            break_it(&mut config);
            let said = config.check().unwrap_err().to_string();
            assert!(said.contains(says), "{says:?} is not in {said:?}");
        }
    }
}
