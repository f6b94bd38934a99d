// SPDX-License-Identifier: MIT OR Apache-2.0
//! The time line for Perfetto.

mod known;
mod random;
mod read;
mod sample;
