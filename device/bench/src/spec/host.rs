// SPDX-License-Identifier: MIT OR Apache-2.0
//! The workload's `[host]`: its fields. [`crate::host`] runs such a load.

use std::time::Duration;

use serde::Deserialize;

use steadyio_core::range::bounded;

/// The table's name. A sweep names its keys `host.KEY`, so no job may have this name.
pub const HOST: &str = "host";

/// The cores, and the time of each I/O on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// The number of threads that can compute at the same time.
    #[serde(deserialize_with = "bounded::<_, 1, 64>")]
    pub cores: u64,
    /// The number of threads that can be in request-pre at the same time.
    #[serde(deserialize_with = "bounded::<_, 1, 64>")]
    pub pre_at_once: u64,
    /// The software time before the device's queue, in us.
    #[serde(deserialize_with = "bounded::<_, 0, 1_000_000>")]
    pub pre_us: u64,
    /// The software time of each command that a card without a command queue takes in addition, in
    /// us; part of request-pre.
    #[serde(default, deserialize_with = "bounded::<_, 0, 1_000_000>")]
    pub command_us: u64,
    /// The software time after the device's interrupt, in us.
    #[serde(deserialize_with = "bounded::<_, 0, 1_000_000>")]
    pub post_us: u64,
}

impl Host {
    /// The time of request-pre, with so many additional commands.
    pub fn pre(&self, commands: u64) -> Duration {
        Duration::from_micros(self.pre_us + commands * self.command_us)
    }

    /// The time of request-post.
    pub fn post(&self) -> Duration {
        Duration::from_micros(self.post_us)
    }
}
