// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures the latency of storage on Linux, under repeatable loads. `steady bench`, `steady with`,
//! `steady tune` and `steady record` use it.
//!
//! The path of a bench, in reading order: [`spec`] reads and checks a workload and plans its
//! points. [`run`] sets the device up, runs the points, and restores the device. [`fio`] runs a
//! point's jobs, or [`host`] if software takes time; [`arrivals`] runs jobs whose I/Os start at
//! times of their own. [`mod@record`] is the result.
//!
//! [`program`] makes the same record from the output of a program that measured itself.
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
