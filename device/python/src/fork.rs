// SPDX-License-Identifier: MIT OR Apache-2.0
//! Detects children of fork(), which have no writer thread. `recorder` and `channel` check for
//! it before each call.
//!
//! Every fork increments a number, so a check costs an append one load; getpid() would be a system
//! call.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::PyResult;
use pyo3::exceptions::PyOSError;

use crate::errors::StateError;

static FORKS: AtomicU64 = AtomicU64::new(0);

extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Counts forks from now on, also those of other native code.
pub fn watch() -> PyResult<()> {
    // SAFETY: the function does nothing but an atomic addition, and is never unloaded.
    match unsafe { libc::pthread_atfork(None, None, Some(in_child)) } {
        0 => Ok(()),
        error => Err(PyOSError::new_err(format!("pthread_atfork: error {error}"))),
    }
}

/// The process that something was made in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process(u64);

impl Process {
    pub fn current() -> Process {
        Process(FORKS.load(Ordering::Relaxed))
    }

    /// Fails in a child of it.
    pub fn check(self) -> PyResult<()> {
        if self == Process::current() {
            return Ok(());
        }
        let text = "this process was forked from the one that records: only that one can";
        Err(StateError::new_err(text))
    }
}
