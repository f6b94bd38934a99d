// SPDX-License-Identifier: MIT OR Apache-2.0
//! The workload of a bench (`docs/spec/workload-1.md`), from the file to the list of what runs.
//!
//! [`workload`], [`host`] and [`busy`] are what a file holds, with the limits of `range` for its
//! numbers; [`check`], `arrivals_check` and `host_check` refuse what does not go together; [`expand`]
//! makes variants and points of it.

mod arrivals_check;
pub mod busy;
pub mod check;
pub mod expand;
pub mod host;
mod host_check;
pub mod workload;
