// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time by size: a part that each command has, and one per KiB.

/// `base + per_kib * KiB`, in ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    pub base: f64,
    pub per_kib: f64,
}

impl Line {
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
