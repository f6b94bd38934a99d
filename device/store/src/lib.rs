// SPDX-License-Identifier: MIT OR Apache-2.0
//! A store of contiguous extents by number on a device, instead of a file system. `steady store`
//! and `capi` use it.
//!
//! A file system chooses the place of a file, and so the number of commands for a read. Here the
//! data of an id is one range of the device, and all metadata is in memory. Loading n bytes takes
//! exactly `n / command_bytes` commands, rounded up. New contents go to a new place. One record of
//! 4 KiB then publishes them, together with all other changes, so a power cut leaves the state
//! before or after.
//!
//! A store has no names, no directories, no extents that grow, and one writer at a time.
//!
//! Reading order: [`storage`] (the device or file of a store), [`mod@format`] (the bytes),
//! [`places`] (free space), [`examine`] (the records of a device), [`store`] (open, change, make
//! durable), [`contents`] (load and unload piece by piece), [`check`] (read and report everything),
//! [`repair`] (a superblock from its copy).

pub mod check;
pub mod contents;
pub mod error;
pub mod examine;
pub mod format;
pub mod places;
mod problem;
pub mod repair;
pub mod storage;
pub mod store;

pub use steadyio_core::memory::AlignedBuffer;
