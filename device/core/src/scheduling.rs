// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets the real-time scheduling and the I/O priority of the calling thread, for recorders, loads,
//! programs with declared tasks, the reader of a trace and the live view. It also sets the
//! scheduling of other threads, for [`super::kworkers`].

use std::io;

/// The scheduling of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduling {
    /// The policy, as in `sched_setscheduler(2)`.
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

/// Runs the calling thread without real-time priority. Programs that it starts inherit this.
pub fn leave_real_time() -> io::Result<()> {
    let real_time = [libc::SCHED_FIFO, libc::SCHED_RR, libc::SCHED_DEADLINE];
    if real_time.contains(&scheduling_of(0)?.policy) {
        set_scheduling_of(0, Scheduling { policy: libc::SCHED_OTHER, priority: 0 })?;
    }
    Ok(())
}

/// Restores the result of [`scheduling_of`].
pub fn set_scheduling_of(thread: u32, scheduling: Scheduling) -> io::Result<()> {
    let parameter = libc::sched_param { sched_priority: scheduling.priority };
    // SAFETY: the structure lives through the call.
    match unsafe { libc::sched_setscheduler(number(thread)?, scheduling.policy, &parameter) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A thread's policy and priority. Its nice value stays when they change.
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

/// Classes of `ioprio_set(2)`.
pub const IO_CLASS_REAL_TIME: u8 = 1;
pub const IO_CLASS_BEST_EFFORT: u8 = 2;
pub const IO_CLASS_IDLE: u8 = 3;

/// Sets the I/O priority of the calling thread. Class 0, level 0: follow the CPU priority. If
/// systemd has set the same priority for a service, nothing is set, because the service may have no
/// right to.
pub fn set_io_priority(class: u8, level: u8) -> io::Result<()> {
    const WHO_PROCESS: libc::c_int = 1;
    // linux/ioprio.h
    const CLASS_SHIFT: u32 = 13;
    let value = libc::c_int::from(class) << CLASS_SHIFT | libc::c_int::from(level);
    // SAFETY: two numbers, no memory; 0 is the calling thread.
    let now = unsafe { libc::syscall(libc::SYS_ioprio_get, WHO_PROCESS, 0) };
    if now == libc::c_long::from(value) {
        return Ok(());
    }
    // SAFETY: three numbers, no memory; 0 is the calling thread.
    match unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, value) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn number(thread: u32) -> io::Result<i32> {
    i32::try_from(thread).map_err(|_| io::ErrorKind::InvalidInput.into())
}
