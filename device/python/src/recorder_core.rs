// SPDX-License-Identifier: MIT OR Apache-2.0
//! The recorder that a `Recorder` and its channels share.

use std::mem::ManuallyDrop;

use pyo3::prelude::*;
use steadyio_capi::handle::RecorderHandle;

use crate::fork::Process;

/// The recorder of the C interface, and the process that it works in.
pub struct Core {
    handle: ManuallyDrop<RecorderHandle>,
    process: Process,
}

impl Core {
    pub fn new(handle: RecorderHandle) -> Core {
        Core { handle: ManuallyDrop::new(handle), process: Process::current() }
    }

    pub fn handle(&self) -> &RecorderHandle {
        &self.handle
    }

    pub fn check(&self) -> PyResult<()> {
        self.process.check()
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // In a child of fork() there is no thread to wait for, and the files are the parent's.
        if self.process != Process::current() {
            return;
        }
        // SAFETY: not used again.
        let handle = unsafe { ManuallyDrop::take(&mut self.handle) };
        let mut handle = Some(handle);
        // It finishes, which waits for the device.
        let dropped = Python::try_attach(|py| {
            let handle = handle.take();
            py.detach(|| drop(handle));
        });
        if dropped.is_none() {
            drop(handle);
        }
    }
}
