// SPDX-License-Identifier: MIT OR Apache-2.0
//! A store against a plain model of it, on a disk whose power can be cut at any moment; damaged and
//! foreign devices; real files.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]
#![allow(clippy::print_stderr, clippy::print_stdout)]

mod damage;
mod disk;
mod files;
mod limits;
mod model;
mod power_cut;
mod repaired;
mod stored;
mod writers;
