// SPDX-License-Identifier: MIT OR Apache-2.0
//! Jobs whose I/Os come at times of their own: a job's `arrivals`.
//!
//! fio waits from one I/O to the next, so a delay of one also delays all that follow. Here the
//! times do not depend on the I/Os: after one that is late, the next comes at its own time, or at
//! once if that has passed.
//!
//! [`schedule`] computes the times. [`load`] runs the threads that keep them, next to fio's jobs,
//! and [`busy`] runs threads that compute meanwhile.

pub mod busy;
pub mod load;
pub mod schedule;
