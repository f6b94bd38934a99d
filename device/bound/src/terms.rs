// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parts of a bound. `analysis` computes them, and `steady bound` prints them.

/// The longest waits of a job, in ns. Their sum is the bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Terms {
    /// Its own I/Os on the device, and those of its earlier jobs, if these are late.
    pub own: u64,
    /// Computing time.
    pub cpu: u64,
    /// Earlier requests of its level.
    pub same_level: u64,
    /// Requests of higher levels, until its last request starts.
    pub higher_levels: u64,
    /// The commands in the device when an I/O comes: pieces of background, requests of lower
    /// levels, a command of a lane.
    pub blocking: u64,
    /// Flushes of the background, which bypass k2, without the write-back of the cache.
    pub flush: u64,
    /// Background that has waited for `background_wait_ms_max`.
    pub background_wait: u64,
    /// Pauses of the flash and the write-back of the cache, for all data written meanwhile.
    pub stalls: u64,
    /// The delay of the last of several jobs behind the first, which is subtracted.
    pub later: u64,
}

impl Terms {
    pub fn sum(&self) -> u64 {
        let waits = [
            self.own,
            self.cpu,
            self.same_level,
            self.higher_levels,
            self.blocking,
            self.flush,
            self.background_wait,
            self.stalls,
        ];
        waits.iter().fold(0_u64, |sum, ns| sum.saturating_add(*ns)).saturating_sub(self.later)
    }
}

/// The response of one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response {
    /// The time from a job's arrival to the end of its last I/O. None: no bound, as the work may
    /// pile up.
    pub job: Option<Terms>,
    /// The time of one I/O, from the moment at which the thread begins it.
    pub io: Option<Terms>,
}

impl Response {
    /// The bound; None if there is none.
    pub fn bound_ns(&self) -> Option<u64> {
        self.job.map(|terms| terms.sum())
    }

    pub fn meets(&self, deadline_us: u64) -> bool {
        self.bound_ns().is_some_and(|bound_ns| bound_ns <= deadline_us * 1_000)
    }
}
