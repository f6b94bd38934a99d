// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration of a recorder. It is checked before anything is created.
//!
//! This file has the check. `values` has the configuration, `limits` what is allowed,
//! [`channel`] the channels, [`defaults`] the default values, `retention` the number of segments,
//! and `memory` the limit of locked memory. `pool`, `steady record` and `capi` use it.

pub mod channel;
pub mod defaults;
pub(crate) mod limits;
mod memory;
mod retention;
pub(crate) mod values;

use std::collections::HashSet;

pub use channel::{
    ChannelConfig, LATCHED_KEY, RECORD_KEY, RECORD_PREFIX, Schema, is_latched, record_bytes_max,
};
pub(crate) use channel::{LateLimits, Schemas, check_latched};
pub use limits::{BLOCK_BYTES, CHANNELS_MAX, ConfigError, SEGMENTS, poll_of};
pub(crate) use limits::{bytes_in_memory, is_segment_size, wrong};
pub use values::{
    EngineChoice, IoPriority, LateRoom, OnFailure, RamConfig, RecorderConfig, Retention, WhenFull,
    WriterConfig,
};

use crate::mcap::layout::{Layout, LayoutError};
use crate::mcap::private::PROFILE_BYTES_MAX;
use crate::sizing::buffers_bytes;
use channel::check_ring;
use limits::{
    LATCHED_SHARE, LATE_DEFINITION_BYTES_MAX, LOSS_WINDOW_MS, RECORD_BYTES_MAX, SEGMENT_BYTES,
    UNIT_BYTES, UNITS_PER_SEGMENT_MIN, whole_blocks, within,
};
use retention::Segments;

impl RecorderConfig {
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
