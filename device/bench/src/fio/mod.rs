// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a point's jobs with fio. `run` calls it.
//!
//! [`job`] writes points as a job file, and [`think`] adds pauses for which fio has no option.
//! [`process`] runs fio, [`virtual_time`] starts it quickly where time is virtual, and [`output`]
//! parses its result.

pub mod job;
pub mod output;
pub mod process;
pub mod think;
pub mod virtual_time;
