// SPDX-License-Identifier: MIT OR Apache-2.0
//! The workload of a bench (`docs/spec/workload-1.md`), from the file to the list of points. `run`
//! and `steady tune` use it.
//!
//! [`workload`], [`host`] and [`busy`] are the fields of a file, with the limits of `range` for its
//! numbers. [`check`], `arrivals_check` and `host_check` reject contradictions. [`expand`] makes
//! variants and points from it.

mod arrivals_check;
pub mod busy;
pub mod check;
pub mod expand;
pub mod host;
mod host_check;
pub mod workload;
