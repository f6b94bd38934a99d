// SPDX-License-Identifier: MIT OR Apache-2.0
//! The candidates: all combinations of the knobs' values, numbered; the last knob varies fastest.
//! `search` and `knob` use it.

/// The number of values of each knob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grid(Vec<usize>);

impl Grid {
    /// A grid with this number of values per knob, each at least 1.
    pub fn new(sizes: Vec<usize>) -> Grid {
        Grid(sizes)
    }

    /// The number of candidates.
    pub fn candidates(&self) -> usize {
        self.0.iter().product()
    }

    /// The number of knobs with more than one value.
    pub fn dimensions(&self) -> usize {
        self.0.iter().filter(|&&size| size > 1).count()
    }

    /// The index of each knob's value at a candidate.
    pub fn at(&self, candidate: usize) -> Vec<usize> {
        let mut rest = candidate;
        let mut values: Vec<usize> = self
            .0
            .iter()
            .rev()
            .map(|&size| {
                let value = rest % size;
                rest /= size;
                value
            })
            .collect();
        values.reverse();
        values
    }

    /// Whether no knob is higher at `a` than at `b`.
    pub fn is_below(&self, a: usize, b: usize) -> bool {
        let (mut a, mut b) = (a, b);
        self.0.iter().rev().all(|&size| {
            let is_below = a % size <= b % size;
            (a, b) = (a / size, b / size);
            is_below
        })
    }
}
