// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration of a recorder, checked before anything is created.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::mcap::layout::NEARLY_FULL;
use super::ring::HEADER_BYTES;

/// Alignment of all writes: the block size of ext4 and of flash translation.
pub const BLOCK_BYTES: u64 = 4096;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const UNIT_BYTES: (u64, u64) = (8 * KIB, 16 * MIB);
const SEGMENT_BYTES: (u64, u64) = (256 * KIB, 64 * GIB);
const SEGMENTS: (u64, u64) = (2, 10_000);
const RING_BYTES: (u64, u64) = (4 * KIB, 4 * GIB);
const RECORD_BYTES_MAX: u64 = 8 * MIB;
const CHANNELS_MAX: u64 = 1_000;
const TOPIC_BYTES_MAX: u64 = 256;
const LOSS_WINDOW_MS: (u64, u64) = (2, 3_600_000);
/// A segment with less room for data than this many units would be mostly index and padding.
const UNITS_PER_SEGMENT_MIN: u64 = 4;
/// The writer thread polls this often per loss window,
const POLLS_PER_WINDOW: u32 = 8;
/// but within these limits: rarer polls would need huge rings.
const POLL: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(20));
/// A ring must last for this many polls, or a single late one would lose records.
const POLLS_PER_RING_MIN: u32 = 4;

/// Defaults.
pub mod defaults {
    use std::time::Duration;

    use super::{HEADER_BYTES, MIB};

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
    /// Ring for records that are not paced.
    const UNPACED_RING_BYTES: u64 = 32 * MIB;

    /// Ring for records of up to so many bytes.
    pub fn ring_bytes(record_bytes_max: u64, period: Option<Duration>) -> u64 {
        let slot = record_bytes_max.saturating_add(HEADER_BYTES as u64);
        let slots = match period.map_or(0, |period| period.as_nanos()) {
            0 => UNPACED_RING_BYTES.div_ceil(slot),
            ns => u64::try_from(RING_TIME.as_nanos().div_ceil(ns)).unwrap_or(u64::MAX),
        };
        slot.saturating_mul(slots).max(MIB)
    }
}

/// How the bytes of a channel are to be understood, as MCAP has it; names may be empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Schema {
    /// Name of the type.
    pub name: String,
    /// Language of the definition, `jsonschema` or `protobuf` for example.
    pub encoding: String,
    pub data: Vec<u8>,
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
    pub record_bytes_max: u64,
    /// Time between records; None if irregular.
    pub period: Option<Duration>,
    /// Memory between caller and writer thread.
    pub ring_bytes: u64,
}

/// How much is kept. Each becomes a number of segments before anything is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retention {
    /// This many segments.
    Segments(u64),
    /// As many segments as fit into this many bytes.
    Bytes(u64),
    /// As many segments as leave this many bytes of the file system free.
    MinFreeBytes(u64),
    /// Enough segments for this long, if all channels have a period.
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

/// A recorder: one pool of segments in one directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecorderConfig {
    /// Where the segments are; nothing else should be there.
    pub dir: PathBuf,
    /// What is recorded.
    pub channels: Vec<ChannelConfig>,
    /// How much a power cut may lose, in time.
    pub loss_window: Duration,
    /// Largest write; ideally a multiple of the device's erase block.
    pub unit_bytes: u64,
    /// Size of a segment.
    pub segment_bytes: u64,
    /// How much is kept.
    pub retention: Retention,
    /// What happens when all segments are full.
    pub when_full: WhenFull,
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

fn wrong(key: impl Display, value: impl Display, reason: impl Display) -> ConfigError {
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
    /// Payload per second at the period; None without one.
    pub fn bytes_per_s(&self) -> Option<f64> {
        self.period.map(|period| self.record_bytes_max as f64 / period.as_secs_f64())
    }

    fn check(&self, unit_bytes: u64, poll: Duration) -> Result<(), ConfigError> {
        let key = |field: &str| format!("channel {:?}: {field}", self.topic);
        within(&key("length of its topic"), self.topic.len() as u64, (1, TOPIC_BYTES_MAX))?;
        within(&key("record_bytes_max"), self.record_bytes_max, (1, RECORD_BYTES_MAX))?;
        if self.record_bytes_max > record_bytes_max(unit_bytes) {
            let reason = format!("must be at most half of unit_bytes ({unit_bytes}); raise that");
            return Err(wrong(key("record_bytes_max"), self.record_bytes_max, reason));
        }
        within(&key("ring_bytes"), self.ring_bytes, RING_BYTES)?;
        if self.period.is_some_and(|period| period.is_zero()) {
            return Err(wrong(
                key("period"),
                "0",
                "must be longer than 0; omit it if there is none",
            ));
        }
        let slot = self.record_bytes_max + HEADER_BYTES as u64;
        let polls = u128::from(POLLS_PER_RING_MIN) * poll.as_nanos();
        let records = self.period.map_or(0, |period| polls.div_ceil(period.as_nanos()));
        let need = slot * (u64::try_from(records).unwrap_or(u64::MAX / slot)).max(2);
        if self.ring_bytes < need {
            let reason = format!(
                "must be at least {need}: the writer thread polls every {poll:?}, and the ring \
                 must last for {POLLS_PER_RING_MIN} polls"
            );
            return Err(wrong(key("ring_bytes"), self.ring_bytes, reason));
        }
        Ok(())
    }
}

/// The longest record that a unit takes.
pub fn record_bytes_max(unit_bytes: u64) -> u64 {
    unit_bytes / 2
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

    /// A record is submitted to the device at this age at the latest; the rest of the loss window
    /// is for the device.
    pub fn flush_after(&self) -> Duration {
        self.loss_window / 2
    }

    /// Checks everything that can be known without creating anything, and returns the number of
    /// segments. Reads the free space of the file system if retention depends on it.
    pub fn check(&self) -> Result<u64, ConfigError> {
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
        within("number of channels", self.channels.len() as u64, (1, CHANNELS_MAX))?;
        for (i, channel) in self.channels.iter().enumerate() {
            channel.check(self.unit_bytes, self.poll())?;
            if self.channels[..i].iter().any(|other| other.topic == channel.topic) {
                return Err(wrong("topic", &channel.topic, "two channels have this topic"));
            }
        }
        self.writer.check()?;
        let segments = self.segments()?;
        within("number of segments", segments, SEGMENTS)?;
        Ok(segments)
    }

    fn segments(&self) -> Result<u64, ConfigError> {
        match self.retention {
            Retention::Segments(segments) => Ok(segments),
            Retention::Bytes(bytes) => Ok(bytes / self.segment_bytes),
            Retention::MinFreeBytes(keep) => {
                let free = usable_bytes(&self.dir)?;
                Ok(free.saturating_sub(keep) / self.segment_bytes)
            }
            Retention::Time(time) => {
                let rates: Option<Vec<f64>> =
                    self.channels.iter().map(ChannelConfig::bytes_per_s).collect();
                let rates = rates.ok_or_else(|| {
                    wrong("retention (time)", format!("{time:?}"), "every channel needs a period")
                })?;
                let bytes = rates.iter().sum::<f64>() * time.as_secs_f64();
                let segments = bytes / self.segment_bytes as f64;
                // One more, because the oldest is being overwritten as soon as the one before it is
                // nearly full.
                Ok((segments + 1.0 / NEARLY_FULL as f64).ceil() as u64 + 1)
            }
        }
    }
}

/// Free space of a directory's file system (of its parent's, if the directory does not exist);
/// segments that are already in the directory count as free.
fn usable_bytes(dir: &Path) -> Result<u64, ConfigError> {
    let there = if dir.exists() { dir } else { dir.parent().unwrap_or(dir) };
    let there = if there.as_os_str().is_empty() { Path::new(".") } else { there };
    let stat = rustix::fs::statvfs(there)
        .map_err(|error| wrong("dir", dir.display(), format!("no file system: {error}")))?;
    let held = std::fs::read_dir(dir).map_or(0, |entries| {
        let lengths = entries.flatten().filter_map(|entry| entry.metadata().ok());
        lengths.filter(|meta| meta.is_file()).map(|meta| meta.len()).sum()
    });
    Ok(stat.f_bavail * stat.f_frsize + held)
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
            channels: vec![ChannelConfig {
                topic: "a".into(),
                message_encoding: String::new(),
                schema: None,
                record_bytes_max: 16 * KIB,
                period: Some(Duration::from_millis(5)),
                ring_bytes: MIB,
            }],
            loss_window: Duration::from_millis(500),
            unit_bytes: 512 * KIB,
            segment_bytes: 16 * MIB,
            retention: Retention::Segments(4),
            when_full: WhenFull::Recycle,
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
        // 3.28 MB/s for a minute: 11.7 segments, and the one being overwritten.
        assert_eq!(with(Retention::Time(Duration::from_secs(60))).check().unwrap(), 13);
        let error = with(Retention::MinFreeBytes(u64::MAX)).check().unwrap_err();
        assert_eq!(error.to_string(), "number of segments = 0: must be 2 to 10000");
    }

    #[test]
    fn a_wrong_value_is_named_with_what_is_allowed() {
        type Break = fn(&mut RecorderConfig);
        let cases: [(Break, &str); 9] = [
            (|c| c.unit_bytes = 9_000, "unit_bytes = 9000: must be a multiple of 4096"),
            (|c| c.segment_bytes = MIB, "segment_bytes = 1048576: must be at least 4 times"),
            (|c| c.loss_window = Duration::ZERO, "loss_window (ms) = 0: must be 2 to"),
            (|c| c.channels.clear(), "number of channels = 0: must be 1 to 1000"),
            (|c| c.channels.push(c.channels[0].clone()), "topic = a: two channels"),
            (
                |c| c.channels[0].ring_bytes = 64 * KIB,
                "ring_bytes = 65536: must be at least 262400",
            ),
            (|c| c.channels[0].record_bytes_max = 300 * KIB, "half of unit_bytes"),
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
