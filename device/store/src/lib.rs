// SPDX-License-Identifier: MIT OR Apache-2.0
//! A store: contiguous extents of a device by number, instead of a file system.
//!
//! Where a file lies, and so how many commands a read takes, is the file system's to choose. Here
//! the data of an id are one range of the device, and what is known of all ranges is in memory:
//! loading n bytes takes `n / command_bytes` commands, rounded up, and no other. New contents go to
//! a new place, and one record of 4 KiB makes them, and all that was changed with them, count: a
//! power cut leaves the state before or after.
//!
//! Not for this: names, directories, extents that grow, several writers at a time.
//!
//! Reading order: [`storage`] (what a store lies on), [`mod@format`] (the bytes), [`places`] (where is
//! room), [`examine`] (what is on a device), [`store`] (open, change, make durable), [`contents`]
//! (load and unload piece by piece), [`check`] (everything read and said),
//! [`repair`] (a superblock from its copy).

pub mod check;
pub mod contents;
pub mod error;
pub mod examine;
pub mod format;
pub mod places;
pub mod repair;
pub mod storage;
pub mod store;

pub use steadyio_core::memory::AlignedBuffer;
