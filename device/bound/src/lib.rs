// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes the latest time at which a real-time request completes. `steady bound` and `steady tune
//! --bound` call it.
//!
//! Problem: a measured maximum is the longest that occurred. A deadline needs the longest that can
//! occur, with the reason, before the tasks run.
//!
//! [`device`] computes how long a command can take; [`tasks`] has the tasks' requests and k2's
//! knobs. `commands` turns a request into commands, and [`analysis`] adds up its waits with
//! `longest`. [`advice`] finds the change of k2 or of a task that shortens a bound most. [`buffer`]
//! computes the buffer that a program needs if no change helps. [`declared`] makes the declarations
//! on which a bound depends, and [`share`] estimates their cost for the background. [`search`] looks
//! for the knobs that cost it least. `docs/reference/bound.md` has the mathematics and its sources.
//! There is no I/O and no clock here; times are whole nanoseconds.

pub mod advice;
pub mod analysis;
mod blocked;
pub mod buffer;
mod commands;
pub mod declared;
pub mod device;
mod fault;
mod longest;
pub mod search;
pub mod share;
pub mod tasks;
mod terms;
mod work;

pub use work::Work;

/// A file that cannot be used; the text names the key, the value and the allowed values.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BoundError(pub String);
