// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measuring and keeping storage latency on Linux.
//!
//! The path of a bench, in reading order: [`spec`] and [`spec_check`] read a workload,
//! [`expand`] turns it into points, [`safety`] decides whether it may write, [`knob_guard`]
//! and [`knobs`] set the device up and put it back, [`fio_job`] and [`think`] say it in fio's
//! words, [`prepared`] makes a [`filesystem`] if asked to and starts programs [`beside`] it,
//! [`fio`] runs it, or [`host`] in its place, [`fio_output`], [`histogram`], [`point`] and [`record`] hold what
//! came out; [`mod@bench`] leads through all of it.
//!
//! [`recorder`] puts periodic data on a disk while its caller never waits; it has a path of its own.
//! [`trace`] follows each I/O through the layers of the kernel; [`model`] computes from measured spans what a
//! storage stack could reach.

pub mod bench;
pub mod beside;
pub mod device;
pub mod expand;
pub mod filesystem;
pub mod fio;
pub mod fio_job;
pub mod fio_output;
pub mod histogram;
pub mod host;
pub mod interrupt;
pub mod knob_guard;
pub mod knobs;
pub mod model;
pub mod point;
pub mod prepared;
pub mod random;
mod range;
pub mod record;
pub mod recorder;
pub mod safety;
mod scheduling;
pub mod spec;
pub mod spec_check;
pub mod think;
pub mod trace;
pub mod virtual_time;
