// SPDX-License-Identifier: MIT OR Apache-2.0
//! Workloads, and what fio is told and what it says.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

mod fio_files;
mod point;
mod spec;
