// SPDX-License-Identifier: MIT OR Apache-2.0
//! The workload's `[host]`: what is in it, and what a workload with one may hold.

use std::time::Duration;

use serde::Deserialize;

use steadyio_core::range::bounded;

/// The table's name; a sweep reaches its keys as `host.KEY`, so no job may have this name.
pub const HOST: &str = "host";

/// Cores, and what each I/O costs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// How many threads can compute at the same time.
    #[serde(deserialize_with = "bounded::<_, 1, 64>")]
    pub cores: u64,
    /// Of these, how many can be in request-pre.
    #[serde(deserialize_with = "bounded::<_, 1, 64>")]
    pub pre_at_once: u64,
    /// Software before the device's queue, in us.
    #[serde(deserialize_with = "bounded::<_, 0, 1_000_000>")]
    pub pre_us: u64,
    /// Software after the device's interrupt, in us.
    #[serde(deserialize_with = "bounded::<_, 0, 1_000_000>")]
    pub post_us: u64,
}

impl Host {
    /// Time of request-pre.
    pub fn pre(&self) -> Duration {
        Duration::from_micros(self.pre_us)
    }

    /// Time of request-post.
    pub fn post(&self) -> Duration {
        Duration::from_micros(self.post_us)
    }
}
