// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sends the entries of an io_uring, and waits. `nvme` and `timing` use it.

use std::io;
use std::thread;
use std::time::Duration;

use io_uring::{IoUring, cqueue, squeue};

/// The pause before the next try if the kernel takes nothing now.
const PAUSE: Duration = Duration::from_millis(1);

/// Sends all entries, and waits for an end. `Ok` without an end: a signal came, or the kernel was
/// short of memory. Then the caller calls again, which sends what has not been taken.
pub(crate) fn submit<S: squeue::EntryMarker, C: cqueue::EntryMarker>(
    ring: &IoUring<S, C>,
) -> io::Result<()> {
    let Err(error) = ring.submit_and_wait(1) else { return Ok(()) };
    if error.kind() == io::ErrorKind::Interrupted {
        return Ok(());
    }
    thread::sleep(PAUSE);
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EBUSY) => Ok(()),
        _ => Err(error),
    }
}
