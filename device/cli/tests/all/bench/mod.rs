// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady bench`.

mod check;
mod filesystem;
mod host;
mod knobs;
mod tune;
