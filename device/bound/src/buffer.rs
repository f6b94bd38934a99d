// SPDX-License-Identifier: MIT OR Apache-2.0
//! The buffer that a program needs if stalls of the device are most of a bound, because no knob
//! helps then. `steady bound` prints it.

use crate::analysis::Terms;
use crate::tasks::Task;

const NS_PER_US: u64 = 1_000;
const KIB: u64 = 1_024;

/// The memory for data that arrives, or is consumed, while a task waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffer {
    /// The rate in the long run.
    pub bytes_s: u64,
    /// The amount at that rate during the bound.
    pub bytes: u64,
}

impl Buffer {
    pub fn of(task: &Task, bound_ns: u64) -> Buffer {
        let job_bytes = u128::from(task.ios * task.kib * KIB);
        let period_ns = u128::from(task.period_us * NS_PER_US);
        let per =
            |ns: u128| u64::try_from((job_bytes * ns).div_ceil(period_ns)).unwrap_or(u64::MAX);
        Buffer { bytes_s: per(1_000_000_000), bytes: per(u128::from(bound_ns)) }
    }

    pub fn kib(self) -> u64 {
        self.bytes.div_ceil(KIB)
    }

    pub fn kib_s(self) -> u64 {
        self.bytes_s.div_ceil(KIB)
    }
}

/// Whether pauses of the flash and a full cache are more than half of a bound.
pub fn is_mostly_stalls(terms: &Terms) -> bool {
    terms.stalls > terms.sum() / 2
}
