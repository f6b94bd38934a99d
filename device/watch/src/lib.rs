// SPDX-License-Identifier: MIT OR Apache-2.0
//! Monitors storage latency in production, with counters that the kernel keeps anyway.
//!
//! In reading order: [`sysfs`] finds disks. [`k2`] understands the scheduler's files, [`declared`] its
//! list of declared tasks, [`stat`] the block layer's counters. [`sample`] is all of a disk at one moment and [`interval`] what happened between
//! two; [`wear`] reads how much of a device is used up, [`recorder`] what recorders lost. [`watch`]
//! looks again and again and says each change once. [`metrics`] shows a look to Prometheus, and
//! [`server`] lets it ask.

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
pub mod watch;
pub mod wear;
