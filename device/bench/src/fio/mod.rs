// SPDX-License-Identifier: MIT OR Apache-2.0
//! fio as the engine of a bench.
//!
//! [`job`] says points in fio's words, [`think`] pauses for which fio has none; [`process`] runs it,
//! [`virtual_time`] makes that quick where time is virtual; [`output`] reads what it reports.

pub mod job;
pub mod output;
pub mod process;
pub mod think;
pub mod virtual_time;
