// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of workloads, of fio's job files, and of fio's results.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

mod fio_files;
mod point;
mod spec;
