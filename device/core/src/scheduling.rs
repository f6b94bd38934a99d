// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real-time scheduling of the calling thread: for recorders, and for the reader of a trace; and of
//! other threads: for the kernel's workers.

use std::io;

/// How a thread is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduling {
    /// As in `sched_setscheduler(2)`.
    policy: i32,
    priority: i32,
}

/// Runs the calling thread under SCHED_FIFO.
pub fn set_fifo(priority: u8) -> io::Result<()> {
    set_fifo_of(0, priority)
}

/// Runs a thread under SCHED_FIFO; 0 is the calling one.
pub fn set_fifo_of(thread: u32, priority: u8) -> io::Result<()> {
    set_scheduling_of(thread, Scheduling { policy: libc::SCHED_FIFO, priority: priority.into() })
}

/// What [`scheduling_of`] gave.
pub fn set_scheduling_of(thread: u32, scheduling: Scheduling) -> io::Result<()> {
    let parameter = libc::sched_param { sched_priority: scheduling.priority };
    // SAFETY: the structure lives through the call.
    match unsafe { libc::sched_setscheduler(number(thread)?, scheduling.policy, &parameter) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A thread's policy and priority; its nice value stays when they change.
pub fn scheduling_of(thread: u32) -> io::Result<Scheduling> {
    let thread = number(thread)?;
    // SAFETY: no memory is passed.
    let policy = unsafe { libc::sched_getscheduler(thread) };
    if policy < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut parameter = libc::sched_param { sched_priority: 0 };
    // SAFETY: the structure lives through the call.
    match unsafe { libc::sched_getparam(thread, &mut parameter) } {
        0 => Ok(Scheduling { policy, priority: parameter.sched_priority }),
        _ => Err(io::Error::last_os_error()),
    }
}

fn number(thread: u32) -> io::Result<i32> {
    i32::try_from(thread).map_err(|_| io::ErrorKind::InvalidInput.into())
}
