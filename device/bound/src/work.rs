// SPDX-License-Identifier: MIT OR Apache-2.0
//! What requests make the device do.

use std::iter::Sum;
use std::ops::{Add, Mul};

/// Time on the device, and the data written meanwhile: stalls depend on the data, not on the time.
/// Sums that do not fit are held at the largest number, which no window reaches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    pub ns: u64,
    /// Onto the flash.
    pub written_kib: u64,
    /// Into the volatile cache,
    pub cached_kib: u64,
    /// by so many writes.
    pub cached_writes: u64,
    /// Each writes back what the cache holds.
    pub flushes: u64,
}

impl Add for Work {
    type Output = Work;

    fn add(self, other: Work) -> Work {
        Work {
            ns: self.ns.saturating_add(other.ns),
            written_kib: self.written_kib.saturating_add(other.written_kib),
            cached_kib: self.cached_kib.saturating_add(other.cached_kib),
            cached_writes: self.cached_writes.saturating_add(other.cached_writes),
            flushes: self.flushes.saturating_add(other.flushes),
        }
    }
}

impl Mul<u64> for Work {
    type Output = Work;

    fn mul(self, times: u64) -> Work {
        Work {
            ns: self.ns.saturating_mul(times),
            written_kib: self.written_kib.saturating_mul(times),
            cached_kib: self.cached_kib.saturating_mul(times),
            cached_writes: self.cached_writes.saturating_mul(times),
            flushes: self.flushes.saturating_mul(times),
        }
    }
}

impl Sum for Work {
    fn sum<I: Iterator<Item = Work>>(works: I) -> Work {
        works.fold(Work::default(), Add::add)
    }
}
