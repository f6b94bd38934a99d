// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared by the crates that measure, record and trace, so that none depends on another.
//!
//! In reading order: [`device_name`] is how users name one, [`device`] finds it, [`identity`] tells which it is, [`knobs`] reads and
//! sets what its queue offers, each a [`value`], and [`knob_guard`] restores it whatever happens;
//! [`declared`] tells k2 about real-time tasks; [`blocked`] is what k2 counts of waits;
//! [`occupied`] tells who uses a disk and what it holds; [`interrupt`] ends a run early,
//! [`mod@diagnostic`] writes to standard error, [`memory`] is what no page fault can hit,
//! [`scheduling`] makes a thread real-time, and [`kworkers`] the kernel's for a card; [`latency`]
//! counts latencies while they happen, [`histogram`] says what they were, [`kernel`] on what they
//! were measured; [`random`] makes loads the same everywhere.

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
pub mod random;
pub mod range;
pub mod scheduling;
pub mod value;
