// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parts of the machine that tests of several crates need, and a report if they are missing.
//!
//! Some tests need root, a loop device or tracefs. On a machine without these they end early and
//! count as passed, and each calls [`skip`]: `scripts/test` prints the skipped tests, with the
//! reasons, in its last lines. [`LoopDisk`] is a block device for one test, [`Sysfs`] a folder with
//! disks whose counters it sets. [`alone_on_this_machine`] is for parts that a machine has only
//! once, since another run of the tests may be in progress.
//!
//! Tests also read recordings with [`recording`], and count allocations with [`CountingAllocator`].

#![allow(clippy::expect_used, clippy::print_stderr, reason = "only tests call it")]

mod allocator;
mod disk;
pub mod recording;
mod sysfs;

use std::env;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::thread;

use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;

pub use allocator::CountingAllocator;
pub use disk::LoopDisk;
pub use sysfs::Sysfs;

/// Reports that the calling test ends early, or leaves out a part: on standard error, and as a line
/// `CRATE::TEST`, tab, reason in the file that `$STEADYIO_SKIPS` names.
pub fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
    let Some(path) = env::var_os("STEADYIO_SKIPS") else { return };
    let line = format!("{}\t{}\n", test_name(), reason.replace(['\n', '\t'], " ").trim_end());
    let file = OpenOptions::new().create(true).append(true).open(path);
    // In one write, because tests of several processes write to it.
    file.and_then(|mut file| file.write_all(line.as_bytes())).expect("the file of $STEADYIO_SKIPS");
}

/// The name of the test, from Cargo's environment and the thread.
fn test_name() -> String {
    let package = env::var("CARGO_PKG_NAME").unwrap_or_else(|_| "test".into());
    let current = thread::current();
    format!("{}::{}", package.replace('-', "_"), current.name().unwrap_or("unnamed"))
}

/// Whether this is root; skips the test if not.
pub fn is_root(needed_for: &str) -> bool {
    let is_root = geteuid().is_root();
    if !is_root {
        skip(&format!("{needed_for} needs root"));
    }
    is_root
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
