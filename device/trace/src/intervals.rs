// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets of moments, as half-open intervals in ns, such as the times at which requests were in
//! flight. `io` and the report use them.

use rangemap::RangeSet;

/// The intervals. None is empty, and none touches another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Intervals(RangeSet<u64>);

impl Intervals {
    /// Makes a set from intervals in any order, which may overlap. An interval that ends before it
    /// begins is empty.
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

    /// The moments between two moments.
    pub fn within(&self, from: u64, to: u64) -> Intervals {
        if from >= to {
            return Intervals::default();
        }
        let met = self.0.overlapping(from..to);
        Intervals(met.map(|range| range.start.max(from)..range.end.min(to)).collect())
    }

    /// The moments in either set.
    pub fn union(&self, other: &Intervals) -> Intervals {
        Intervals(self.0.union(&other.0).collect())
    }

    /// The moments in both sets. This one should be the smaller: each of its intervals is looked up
    /// in the other.
    pub fn overlap(&self, other: &Intervals) -> Intervals {
        Intervals::new(self.iter().flat_map(|(from, to)| other.within(from, to).to_vec()))
    }

    /// The moments of this set that are not in the other.
    pub fn minus(&self, other: &Intervals) -> Intervals {
        let mut left = self.0.clone();
        other.0.iter().for_each(|range| left.remove(range.clone()));
        Intervals(left)
    }

    pub fn total_ns(&self) -> u64 {
        self.iter().map(|(begin, end)| end - begin).sum()
    }
}
