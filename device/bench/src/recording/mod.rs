// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures a caller that records periodic data: with the pool, or as in the ext4 recording paper.
//! `steady record` calls it, and `steady-recipe` for the paper's ways.
//!
//! [`session`] runs a recording. [`caller`] is the measured thread; in [`recipes`] it calls write()
//! itself, and [`recipe`] names these. [`place`] finds the file system, and [`result`] is the
//! result.

pub mod caller;
pub mod place;
pub mod recipe;
pub mod recipes;
pub mod result;
pub mod session;
