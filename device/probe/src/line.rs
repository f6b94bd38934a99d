// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time by size: a part that each command has, and one per KiB.

/// A time that is off its line by no more is on it.
const ON_LINE: f64 = 0.02;

/// `base + per_kib * KiB`, in ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    pub base: f64,
    pub per_kib: f64,
}

/// Some sizes take less than their line says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Faster {
    /// Up to this size times are on the line; 0: none is.
    pub exact_kib: f64,
    /// By so much, of the line's time, at most.
    pub share: f64,
}

impl Line {
    /// A line that no point lies above; `None` with it: all are on it. A card that works on several
    /// stripes of a command at once has a line up to the size of a stripe. If no such line is found,
    /// it is the one through all, raised: a bound must not be too short.
    pub fn over(points: &[(f64, f64)]) -> Option<(Line, Option<Faster>)> {
        let all = Line::through(points)?;
        let of_first = |count: usize| {
            let line = Line::through(&points[..count])?;
            let is_exact = points[..count].iter().all(|point| line.above(*point) >= -ON_LINE);
            let is_over = points.iter().all(|point| line.above(*point) <= ON_LINE);
            (is_exact && is_over).then_some((line, count))
        };
        let raised = || {
            let most = points.iter().fold(0.0, |most: f64, point| most.max(all.above(*point)));
            let (base, per_kib) = (all.base * (1.0 + most), all.per_kib * (1.0 + most));
            (Line { base, per_kib }, 0)
        };
        let (line, exact) = (2..=points.len()).rev().find_map(of_first).unwrap_or_else(raised);
        let share = points.iter().fold(0.0, |most: f64, point| most.max(-line.above(*point)));
        let exact_kib = exact.checked_sub(1).map_or(0.0, |last| points[last].0);
        Some((line, (exact < points.len()).then_some(Faster { exact_kib, share })))
    }

    /// How far above the line a point lies, of the line.
    fn above(self, (kib, ns): (f64, f64)) -> f64 {
        ns / self.at(kib) - 1.0
    }

    /// The line with the least squares of relative errors through (KiB, ns) points; both parts at
    /// least 0. None for fewer than two sizes.
    pub fn through(points: &[(f64, f64)]) -> Option<Line> {
        let (mut s, mut sx, mut sy, mut sxx, mut sxy) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for (x, y) in points.iter().filter(|(_, y)| *y > 0.0) {
            let weight = 1.0 / (y * y);
            s += weight;
            sx += weight * x;
            sy += weight * y;
            sxx += weight * x * x;
            sxy += weight * x * y;
        }
        let determinant = s * sxx - sx * sx;
        if determinant <= 1e-12 * s * sxx || s == 0.0 {
            return None;
        }
        let per_kib = (s * sxy - sx * sy) / determinant;
        let base = (sy - per_kib * sx) / s;
        Some(match (base < 0.0, per_kib < 0.0) {
            (_, true) => Line { base: sy / s, per_kib: 0.0 },
            (true, false) => Line { base: 0.0, per_kib: sxy / sxx },
            (false, false) => Line { base, per_kib },
        })
    }

    pub fn at(self, kib: f64) -> f64 {
        self.base + self.per_kib * kib
    }
}
