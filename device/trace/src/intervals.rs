// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets of moments, as half-open intervals in ns: when one request waited, and when others were in flight.

use rangemap::RangeSet;

/// None empty, none touching another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Intervals(RangeSet<u64>);

impl Intervals {
    /// From intervals in any order, which may overlap; those that end before they begin are empty.
    pub fn new(intervals: impl IntoIterator<Item = (u64, u64)>) -> Intervals {
        let not_empty = intervals.into_iter().filter(|(begin, end)| begin < end);
        Intervals(not_empty.map(|(begin, end)| begin..end).collect())
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> {
        self.0.iter().map(|range| (range.start, range.end))
    }

    pub fn to_vec(&self) -> Vec<(u64, u64)> {
        self.iter().collect()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The moments from one to another.
    pub fn within(&self, from: u64, to: u64) -> Intervals {
        if from >= to {
            return Intervals::default();
        }
        let met = self.0.overlapping(from..to);
        Intervals(met.map(|range| range.start.max(from)..range.end.min(to)).collect())
    }

    /// All moments of either.
    pub fn union(&self, other: &Intervals) -> Intervals {
        Intervals(self.0.union(&other.0).collect())
    }

    /// The moments of both.
    pub fn overlap(&self, other: &Intervals) -> Intervals {
        Intervals(self.0.intersection(&other.0).collect())
    }

    /// The moments of the first that are not of the second.
    pub fn minus(&self, other: &Intervals) -> Intervals {
        let mut left = self.0.clone();
        other.0.iter().for_each(|range| left.remove(range.clone()));
        Intervals(left)
    }

    pub fn total_ns(&self) -> u64 {
        self.iter().map(|(begin, end)| end - begin).sum()
    }
}
