// SPDX-License-Identifier: MIT OR Apache-2.0
//! Jobs with arrivals: their I/Os start at times of their own. `run` calls it.
//!
//! fio waits from one I/O to the next, so a delay of one also delays all that follow. Here the
//! times do not depend on the I/Os. After a late I/O, the next starts at its own time, or at once
//! if that has passed.
//!
//! [`schedule`] computes the times. [`load`] runs the threads that keep them, at the same time as
//! fio's jobs, and [`busy`] runs threads that compute meanwhile.

pub mod busy;
pub mod load;
mod running;
pub mod schedule;
