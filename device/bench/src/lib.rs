// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measuring the latency of storage on Linux, under loads that can be repeated.
//!
//! The path of a bench, in reading order: [`spec`] reads and checks a workload and says what is to run; [`run`]
//! leads through it: it sets the device up, has [`fio`] run the points, or [`host`] where software is to take time,
//! and puts the device back; [`mod@record`] holds what came out.
//!
//! [`program`] makes the same record of what a program of somebody else's left that measured by itself.
//!
//! [`recording`] measures what a caller sees that records periodic data, by the recorder of `steadyio-recorder` or as
//! programs on ext4 do it.

pub mod fio;
pub mod host;
pub mod program;
pub mod record;
pub mod recording;
pub mod run;
pub mod spec;
