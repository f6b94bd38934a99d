// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recording periodic data so that the caller never waits for the disk.

pub mod mcap;
