// SPDX-License-Identifier: MIT OR Apache-2.0
//! Segments: written, cut off, damaged, completed and read.

mod damage;
mod encoder;
mod other_files;
mod random;
mod recover;
mod segment;
mod unreadable;
