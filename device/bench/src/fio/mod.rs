// SPDX-License-Identifier: MIT OR Apache-2.0
//! fio as the engine of a bench.
//!
//! [`job`] writes points as a job file, [`think`] the pauses that fio has no option for;
//! [`process`] runs it, [`virtual_time`] starts it quickly where time is virtual; [`output`] reads
//! its result.

pub mod job;
pub mod output;
pub mod process;
pub mod think;
pub mod virtual_time;
