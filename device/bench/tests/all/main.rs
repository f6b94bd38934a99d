// SPDX-License-Identifier: MIT OR Apache-2.0
//! Workloads, what fio is told and what it says, and when a device may be written to.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

mod fio_files;
mod point;
mod safety;
mod spec;
