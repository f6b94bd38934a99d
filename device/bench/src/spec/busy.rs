// SPDX-License-Identifier: MIT OR Apache-2.0
//! The workload's `[[busy]]`: real-time tasks that compute while the jobs run. `arrivals::busy`
//! runs them.

use serde::Deserialize;
use steadyio_core::value::Value;

use steadyio_core::range::bounded;

/// A task on each CPU that alternately computes and rests.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Busy {
    /// Unique in the workload.
    pub name: String,
    /// It runs under SCHED_FIFO at this priority.
    #[serde(deserialize_with = "bounded::<_, 1, 99>")]
    pub fifo: u64,
    /// The time of each computation, in us.
    #[serde(deserialize_with = "bounded::<_, 1, 500_000>")]
    pub busy_us: u64,
    /// The time of each rest, in us. Without it nothing else would ever run.
    #[serde(deserialize_with = "bounded::<_, 100, 60_000_000>")]
    pub idle_us: u64,
    /// Sweep points at which it runs; empty: all.
    #[serde(default)]
    pub at: Vec<Value>,
}
