// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real-time scheduling of the calling thread: for recorders, and for the reader of a trace.

use std::io;

/// Runs the calling thread under SCHED_FIFO.
pub fn set_fifo(priority: u8) -> io::Result<()> {
    let parameter = libc::sched_param { sched_priority: priority.into() };
    // SAFETY: the structure lives through the call; 0 is the calling thread.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameter) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
