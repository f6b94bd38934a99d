// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports tests that end early, because this machine lacks something.

use std::env;
use std::fs::OpenOptions;
use std::io::Write;
use std::thread;

use rustix::process::geteuid;

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
