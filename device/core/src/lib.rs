// SPDX-License-Identifier: MIT OR Apache-2.0
//! The common parts of the crates that measure, record and trace, so that none depends on another.
//!
//! In reading order: users name a device by a [`device_name`], [`device`] finds it, and
//! [`identity`] identifies it. [`knobs`] reads and sets the attributes of its queue, each a
//! [`value`], and [`knob_guard`] restores them in any case. [`declared`] declares real-time tasks
//! to k2; [`blocked`] reads k2's counts of waits. [`occupied`] finds the users of a disk and its
//! contents. [`interrupt`] ends a run early, [`mod@diagnostic`] writes to standard error, and
//! [`memory`] allocates memory without page faults. [`scheduling`] makes a thread real-time,
//! [`kworkers`] the kernel's threads for a card. [`latency`] counts latencies while they happen,
//! [`histogram`] has their distribution, and [`kernel`] describes the measured kernel. [`random`]
//! makes loads the same everywhere, and [`quantity`] parses sizes and times.

pub mod blocked;
pub mod declared;
pub mod device;
pub mod device_name;
pub mod diagnostic;
pub mod histogram;
pub mod identity;
pub mod interrupt;
pub mod kernel;
pub mod knob_guard;
pub mod knobs;
pub mod kworkers;
pub mod latency;
pub mod memory;
pub mod occupied;
pub mod quantity;
pub mod random;
pub mod range;
pub mod scheduling;
pub mod value;
