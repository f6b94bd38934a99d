// SPDX-License-Identifier: MIT OR Apache-2.0
//! Workload files.

mod filesystem;
mod workload;
