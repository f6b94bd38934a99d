// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads that compute under SCHED_FIFO while the jobs run: a workload's `[[busy]]`. `load` starts
//! them.
//!
//! One runs on each CPU, so that the worker that ends a request finds none free. In the lab
//! computing takes no time, but reading the clock does; so these threads read the clock.

use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::arrivals::running::{Running, under_fifo};
use crate::spec::busy::Busy;
use crate::transfer::{LoadError, sleep_exactly};

/// The interval of checks whether the jobs have begun.
const LOOK_EVERY: Duration = Duration::from_micros(100);

type Ended = Result<(), LoadError>;

/// Starts the threads. Each runs until the point is over, and ends the point if it cannot run.
pub fn start<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    busy: &'env [Busy],
    running: &'env Running,
) -> Vec<ScopedJoinHandle<'scope, Ended>> {
    if busy.is_empty() {
        return Vec::new();
    }
    let cpus = sched_getaffinity(None).unwrap_or_default();
    let places = (0..CpuSet::MAX_CPU).filter(|&cpu| cpus.is_set(cpu));
    places
        .flat_map(|cpu| busy.iter().map(move |busy| (cpu, busy)))
        .map(|(cpu, busy)| {
            scope.spawn(move || {
                let ended = compute_and_rest(cpu, busy, running);
                if ended.is_err() {
                    running.end();
                }
                ended
            })
        })
        .collect()
}

fn compute_and_rest(cpu: usize, busy: &Busy, running: &Running) -> Ended {
    sleep_exactly()?;
    let mut place = CpuSet::new();
    place.set(cpu);
    sched_setaffinity(None, &place)
        .map_err(|error| LoadError::Io { what: format!("CPU {cpu}"), source: error.into() })?;
    while !running.has_begun() && !running.is_over() {
        thread::sleep(LOOK_EVERY);
    }
    under_fifo(busy.fifo)?;
    while !running.is_over() {
        let until = Instant::now() + Duration::from_micros(busy.busy_us);
        while Instant::now() < until {}
        thread::park_timeout(Duration::from_micros(busy.idle_us));
    }
    Ok(())
}
