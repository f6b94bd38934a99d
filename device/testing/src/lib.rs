// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parts of the machine that tests of several crates need, and a report if they are missing.
//!
//! Some tests need root, a loop device or tracefs. On a machine without these they end early and
//! count as passed, and each calls [`skip`]: `scripts/test` prints the skipped tests, with the
//! reasons, in its last lines. [`LoopDisk`] is a block device for one test, [`Sysfs`] a folder with
//! disks whose counters it sets. [`alone_on_this_machine`] is for parts that a machine has only
//! once, since another run of the tests may be in progress.
//!
//! Tests also read recordings with [`recording`], check JSON with [`valid_json`], and count
//! allocations with [`CountingAllocator`].

#![allow(clippy::expect_used, clippy::print_stderr, reason = "only tests call it")]

mod allocator;
mod disk;
mod json;
pub mod recording;
mod skips;
mod sysfs;

use std::env;
use std::fs::{File, OpenOptions};

use rustix::fs::{FlockOperation, flock};

pub use allocator::CountingAllocator;
pub use disk::LoopDisk;
pub use json::valid_json;
pub use skips::{is_root, skip};
pub use sysfs::Sysfs;

/// How many inputs a random test tries: `usual`, or `PROPTEST_CASES`, as `make soak` sets it.
pub fn cases(usual: u32) -> u32 {
    env::var("PROPTEST_CASES").map_or(usual, |said| said.parse().expect("PROPTEST_CASES: a number"))
}

/// Waits until no other test, of this run or another, uses this name. The caller owns the name
/// while the file lives.
pub fn alone_on_this_machine(name: &str) -> File {
    let path = env::temp_dir().join(format!("steadyio-tests-{name}.lock"));
    let mut options = OpenOptions::new();
    let file = options.create(true).truncate(false).write(true).open(&path).expect("lock file");
    flock(&file, FlockOperation::LockExclusive).expect("lock");
    file
}
