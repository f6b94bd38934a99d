// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures the latency of storage on Linux, under repeatable loads.
//!
//! The path of a bench, in reading order: [`spec`] reads and checks a workload and plans its
//! points; [`run`] sets the device up, has [`fio`] run the points, or [`host`] where software takes
//! time, with [`arrivals`] beside it where I/Os have times of their own, and restores the device;
//! [`mod@record`] is the result.
//!
//! [`program`] makes the same record of what a program left that measured itself.
//!
//! [`recording`] measures a caller that records periodic data, with the recorder of
//! `steadyio-recorder` or as programs on ext4 do it.

pub mod arrivals;
pub mod fio;
pub mod host;
pub mod program;
pub mod record;
pub mod recording;
pub mod run;
pub mod spec;
pub mod transfer;
