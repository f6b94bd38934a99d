// SPDX-License-Identifier: MIT OR Apache-2.0
//! Monitors storage latency in production, with counters that the kernel keeps anyway. `steady
//! watch` and `steady doctor` use it.
//!
//! In reading order: [`sysfs`] finds disks. [`k2`] parses the scheduler's files, [`declared`] its
//! list of declared tasks, [`stat`] the block layer's counters. [`sample`] has all counters of a
//! disk at one moment, and [`interval`] computes the events between two samples. [`wear`] reads the
//! wear of a device, and [`recorder`] the losses of recorders. [`watch`] reads everything once per
//! interval, and reports each change once. [`metrics`] converts a snapshot for Prometheus, and
//! [`server`] serves it.

pub mod declared;
pub mod interval;
pub mod k2;
mod known;
pub mod metrics;
pub mod recorder;
pub mod sample;
pub mod server;
pub mod stat;
pub mod sysfs;
mod unclear;
pub mod watch;
pub mod wear;
