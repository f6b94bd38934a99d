// SPDX-License-Identifier: MIT OR Apache-2.0
//! The work of the device for a set of requests. `analysis` adds it up.

use std::iter::Sum;
use std::ops::{Add, Mul};

/// The time on the device, and the data written meanwhile, on which stalls depend. Sums that do not
/// fit saturate at the largest number, which exceeds every window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    pub ns: u64,
    /// The data written to the flash, in KiB.
    pub written_kib: u64,
    /// The data written into the volatile cache, in KiB.
    pub cached_kib: u64,
    /// The number of writes into the cache.
    pub cached_writes: u64,
    /// The number of flushes, each of which writes back the cache.
    pub flushes: u64,
}

impl Work {
    /// Whether it exceeds the other one in no way.
    pub(crate) fn is_within(&self, other: &Work) -> bool {
        self.ns <= other.ns
            && self.written_kib <= other.written_kib
            && self.cached_kib <= other.cached_kib
            && self.cached_writes <= other.cached_writes
            && self.flushes <= other.flushes
    }
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
