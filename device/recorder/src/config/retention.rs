// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes the number of segments to keep, from the configured retention and the free space.
//! `config` calls it.

use std::path::Path;
use std::time::Duration;

use super::limits::{ConfigError, SEGMENTS, within, wrong};
use super::values::{RecorderConfig, Retention};
use crate::mcap::layout::Layout;
use crate::mcap::names::is_segment;
use crate::sizing::segments_for;

/// The number of segments of a retention.
pub(super) enum Segments {
    Known(u64),
    /// The number that the channels fill in this time.
    For(Duration),
}

/// The file system of a directory, or of its nearest existing parent.
struct Space {
    free_bytes: u64,
    /// The number of segments in the directory.
    segments: u64,
    /// The size of these segments in bytes.
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

    /// The usable space. Existing segments count as free, because they are overwritten.
    fn usable_bytes(&self) -> u64 {
        self.free_bytes + self.held_bytes
    }
}

impl RecorderConfig {
    /// The number of segments of the retention.
    pub(super) fn retained_segments(&self) -> Result<Segments, ConfigError> {
        let segments = match self.retention {
            Retention::Time(time) => return Ok(Segments::For(time)),
            Retention::Segments(segments) => segments,
            Retention::Bytes(bytes) => bytes / self.segment_bytes,
            Retention::MinFreeBytes(keep) => {
                let space = Space::of(&self.dir)?;
                let wanted = space.usable_bytes().saturating_sub(keep) / self.segment_bytes;
                // Existing recordings are kept even if other files have taken the space.
                wanted.max(space.segments)
            }
        };
        within("number of segments", segments, SEGMENTS)?;
        Ok(Segments::Known(segments))
    }

    /// Rejects a time that the available segments cannot keep.
    pub(super) fn segments_for(&self, time: Duration, layout: &Layout) -> Result<u64, ConfigError> {
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

    /// A note if incidents keep segments, because fewer are left for recording.
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

    /// The time in whole seconds that this number of segments keeps; None if unknown.
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

    /// A note if other files have taken space that should stay free.
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
