// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tracks the used parts of the data area, and finds free space. `store` and `examine` use it.

use crate::format::geometry::Geometry;
use crate::format::records::Extent;

/// The data area, with its used ranges, in any order until they are sorted.
#[derive(Debug, Clone)]
pub struct Places {
    start: u64,
    end: u64,
    align: u64,
    /// The start and length of each used range.
    taken: Vec<(u64, u64)>,
}

/// The free space, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Free {
    pub total_bytes: u64,
    /// The largest extent that can be made.
    pub largest_bytes: u64,
}

impl Places {
    pub fn new(geometry: &Geometry) -> Places {
        let (start, end) = (geometry.data_start(), geometry.data_end());
        Places { start, end, align: geometry.align_bytes, taken: Vec::new() }
    }

    /// The length of an extent in one place. If it is too long, it is everything.
    pub fn length(&self, extent_bytes: u64) -> u64 {
        extent_bytes.min(self.end).next_multiple_of(self.align)
    }

    /// Marks both places of an extent as used.
    pub fn take(&mut self, extent: &Extent) {
        let length = self.length(extent.bytes);
        self.taken.extend(
            [Some(extent.start), extent.spare].into_iter().flatten().map(|at| (at, length)),
        );
    }

    /// Whether an extent may lie at its place, without considering the others.
    pub fn is_valid(&self, extent: &Extent) -> bool {
        let length = self.length(extent.bytes);
        let fits = |start: u64| {
            start >= self.start
                && (start - self.start) % self.align == 0
                && start <= self.end
                && length <= self.end - start
        };
        extent.bytes > 0
            && extent.bytes <= self.end
            && extent.valid_bytes <= extent.bytes
            && fits(extent.start)
            && extent.spare.is_none_or(fits)
    }

    fn sort(&mut self) {
        self.taken.sort_unstable();
    }

    /// Whether two used ranges overlap.
    pub fn overlap(&mut self) -> bool {
        self.sort();
        self.taken.windows(2).any(|two| two[0].0.saturating_add(two[0].1) > two[1].0)
    }

    fn gaps(&mut self) -> Vec<(u64, u64)> {
        self.sort();
        let mut gaps = Vec::with_capacity(self.taken.len() + 1);
        let mut at = self.start;
        for &(start, length) in &self.taken {
            if start > at {
                gaps.push((at, start - at));
            }
            at = at.max(start.saturating_add(length));
        }
        if self.end > at {
            gaps.push((at, self.end - at));
        }
        gaps
    }

    /// Finds the smallest gap with enough room, so that large ones stay.
    pub fn find(&mut self, extent_bytes: u64) -> Option<u64> {
        let length = self.length(extent_bytes);
        let gaps = self.gaps();
        let (start, _) = gaps.into_iter().filter(|gap| gap.1 >= length).min_by_key(|gap| gap.1)?;
        self.taken.push((start, length));
        Some(start)
    }

    pub fn free(&mut self) -> Free {
        let gaps = self.gaps();
        Free {
            total_bytes: gaps.iter().map(|gap| gap.1).sum(),
            largest_bytes: gaps.iter().map(|gap| gap.1).max().unwrap_or(0),
        }
    }
}
