// SPDX-License-Identifier: MIT OR Apache-2.0
//! Starts fio quickly on a kernel whose time is virtual. `process` calls it.
//!
//! User Mode Linux with `time-travel=inf-cpu` advances its clock by 256 ns per clock read and, when
//! all processes sleep, to the next timer. fio calibrates its clock when it starts: it spins 51
//! times until 1.28 ms have passed, 5,000 clock reads each, 5 to 10 s of wall time in all. A
//! stopped fio lets the machine go idle, so the clock jumps: each stop here ends one spin. The
//! calibration's result is not used (the job file asks for `clock_gettime`).

use std::fs;
use std::process::Child;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use steadyio_core::diagnostic;
use steadyio_core::kernel::Kernel;
use steadyio_core::scheduling::set_fifo;

/// The number of spins in fio 3.33's calibration (`calibrate_cpu_clock` in its gettime.c). If
/// another version spins more often, the rest takes its full time; if less often, the remaining
/// stops fall into the idle time before the first point.
const SPINS: u32 = 51;
/// The time for fio to start the next spin. Short, to save clock reads.
const SPIN_STARTED: Duration = Duration::from_micros(50);
/// Longer than one spin.
const SPIN_OVER: Duration = Duration::from_millis(2);

/// Whether the kernel runs in virtual time with free CPU work, from its command line.
pub fn is_virtual() -> bool {
    let arguments = fs::read_to_string("/proc/cmdline").unwrap_or_default();
    arguments.split_whitespace().any(|argument| argument == "time-travel=inf-cpu")
}

/// Stops and continues a new fio through its calibration; returns early if it ends.
pub fn skip_calibration(fio: &Child) {
    let Some(pid) = i32::try_from(fio.id()).ok().and_then(Pid::from_raw) else { return };
    if runs_when_it_wakes() {
        stop_and_continue(pid);
        return;
    }
    thread::scope(|scope| {
        scope.spawn(|| {
            if let Err(error) = set_fifo(1) {
                diagnostic!("steady: fio starts slowly: cannot run under SCHED_FIFO: {error}");
            }
            stop_and_continue(pid);
        });
    });
}

/// Whether a thread that wakes runs at once. From 6.6 on it waits for the end of fio's slice,
/// unless it has a real-time class. Then the calibration would take its full time.
fn runs_when_it_wakes() -> bool {
    Kernel::running().release.starts_with("6.1.")
}

fn stop_and_continue(pid: Pid) {
    for _ in 0..SPINS {
        thread::sleep(SPIN_STARTED);
        if kill_process(pid, Signal::STOP).is_err() {
            return;
        }
        thread::sleep(SPIN_OVER);
        if kill_process(pid, Signal::CONT).is_err() {
            return;
        }
    }
}
