// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets of moments, as half-open intervals in ns: when one request waited, and when others were in flight.

/// Sorted, none empty, none touching another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Intervals(Vec<(u64, u64)>);

impl Intervals {
    /// From intervals in any order, which may overlap; those that end before they begin are empty.
    pub fn new(intervals: impl IntoIterator<Item = (u64, u64)>) -> Intervals {
        let mut sorted: Vec<(u64, u64)> =
            intervals.into_iter().filter(|(begin, end)| begin < end).collect();
        sorted.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::new();
        for (begin, end) in sorted {
            match merged.last_mut() {
                Some(last) if begin <= last.1 => last.1 = last.1.max(end),
                _ => merged.push((begin, end)),
            }
        }
        Intervals(merged)
    }

    /// Each interval, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().copied()
    }

    /// The same as a list.
    pub fn to_vec(&self) -> Vec<(u64, u64)> {
        self.0.clone()
    }

    /// No moment at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The moments from one to another.
    pub fn within(&self, from: u64, to: u64) -> Intervals {
        let first = self.0.partition_point(|(_, end)| *end <= from);
        let later = self.0[first..].iter().take_while(|(begin, _)| *begin < to);
        let clipped = later.map(|(begin, end)| ((*begin).max(from), (*end).min(to)));
        Intervals(clipped.filter(|(begin, end)| begin < end).collect())
    }

    /// All moments of either.
    pub fn union(&self, other: &Intervals) -> Intervals {
        Intervals::new(self.iter().chain(other.iter()))
    }

    /// The moments of both.
    pub fn overlap(&self, other: &Intervals) -> Intervals {
        let (mut left, mut right) = (self.iter().peekable(), other.iter().peekable());
        let mut both = Vec::new();
        while let (Some(&(begin, end)), Some(&(other_begin, other_end))) =
            (left.peek(), right.peek())
        {
            let common = (begin.max(other_begin), end.min(other_end));
            if common.0 < common.1 {
                both.push(common);
            }
            if end < other_end {
                left.next()
            } else {
                right.next()
            };
        }
        Intervals(both)
    }

    /// The moments of the first that are not of the second.
    pub fn minus(&self, other: &Intervals) -> Intervals {
        let mut left = Vec::new();
        let mut others = other.iter().peekable();
        for (mut begin, end) in self.iter() {
            while let Some(&(other_begin, other_end)) = others.peek() {
                if other_begin >= end {
                    break;
                }
                if begin < other_begin {
                    left.push((begin, other_begin));
                }
                begin = begin.max(other_end);
                if other_end > end {
                    break;
                }
                others.next();
            }
            if begin < end {
                left.push((begin, end));
            }
        }
        Intervals(left)
    }

    /// How long altogether.
    pub fn total_ns(&self) -> u64 {
        self.iter().map(|(begin, end)| end - begin).sum()
    }
}
