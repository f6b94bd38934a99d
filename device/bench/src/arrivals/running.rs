// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state that the threads of a point share: whether it is over, and how to wait for that.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use steadyio_core::scheduling::set_fifo;

use crate::transfer::LoadError;

/// The shared state of a point's threads.
pub struct Running {
    pub(super) started: Instant,
    pub(super) ends: Option<Instant>,
    pub(super) over: AtomicBool,
    /// The number of jobs that do not wait for their first arrival yet.
    pub(super) starting: AtomicUsize,
    /// The thread to wake when another ends.
    pub(super) waiter: Thread,
}

impl Running {
    /// Whether all jobs wait for their first arrival, so that nothing delays their start.
    pub fn has_begun(&self) -> bool {
        self.starting.load(Ordering::Acquire) == 0
    }

    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire) || self.ends.is_some_and(|ends| Instant::now() >= ends)
    }

    /// Ends the point.
    pub fn end(&self) {
        self.over.store(true, Ordering::Release);
        self.waiter.unpark();
    }

    /// Waits. Returns false if the point ended before that, which it checks now and then.
    pub fn wait_until(&self, due: Instant, look_every: Duration) -> bool {
        let until = self.ends.map_or(due, |ends| ends.min(due));
        loop {
            if self.over.load(Ordering::Acquire) {
                return false;
            }
            let now = Instant::now();
            if now >= until {
                return self.ends.is_none_or(|ends| now < ends);
            }
            thread::park_timeout((until - now).min(look_every));
        }
    }
}

/// Runs the calling thread under SCHED_FIFO at this priority, 1 to 99.
pub fn under_fifo(priority: u64) -> Result<(), LoadError> {
    set_fifo(priority as u8).map_err(|source| LoadError::Io {
        what: format!("SCHED_FIFO {priority} (needs root, CAP_SYS_NICE or RLIMIT_RTPRIO)"),
        source,
    })
}
