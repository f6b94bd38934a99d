// SPDX-License-Identifier: MIT OR Apache-2.0
//! When is a real-time request done at the latest?
//!
//! Problem: a measured maximum is the longest of what was seen. A deadline needs the longest that
//! can be, with the reason, before the tasks run.
//!
//! [`device`] says how long a command can take, [`tasks`] who asks for what and how k2 is set.
//! `commands` has what a request becomes, and [`analysis`] adds up what it can wait for. [`advice`]
//! finds the change of k2 or of a task that shortens a bound most, and [`buffer`] what a program needs
//! where none does. [`declared`] makes the declarations that a bound rests on, and [`share`] estimates
//! their cost for the background; [`search`] looks for the knobs that cost it least. `docs/reference/bound.md` has the mathematics and its sources. No I/O and no clock here;
//! times are whole nanoseconds.

pub mod advice;
pub mod analysis;
pub mod buffer;
mod commands;
pub mod declared;
pub mod device;
mod fault;
pub mod search;
pub mod share;
pub mod tasks;
mod work;

pub use work::Work;

/// A file that cannot be used; the text names key, value and what is allowed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BoundError(pub String);
