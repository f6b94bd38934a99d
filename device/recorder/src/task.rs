// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the kernel's counters of a thread (how often it slept or was preempted), sets its
//! scheduling, and says why it did not start. The bench and the writer thread use it.
//!
//! A call that took long either slept (a voluntary switch: something blocked), was preempted (an
//! involuntary switch, or time spent runnable but not running), or neither: interrupts, the
//! hypervisor, cold caches. The counters distinguish these cases.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_setaffinity};
use serde::Serialize;
use steadyio_core::scheduling;

use super::config::IoPriority;

/// The counters of one thread, or their growth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Voluntary context switches: the thread slept.
    pub voluntary_switches: u64,
    /// Involuntary context switches: the thread was preempted.
    pub involuntary_switches: u64,
    /// Page faults without I/O.
    pub minor_faults: u64,
    /// Page faults that read from a device.
    pub major_faults: u64,
    /// The time in which it was runnable but not running; None if the kernel does not count it.
    pub run_delay_ns: Option<u64>,
    /// The time on the CPU in user mode.
    pub user_ns: u64,
    /// The time on the CPU in the kernel.
    pub system_ns: u64,
}

impl Counters {
    /// The growth since `before`.
    pub fn since(&self, before: &Counters) -> Counters {
        Counters {
            voluntary_switches: self.voluntary_switches - before.voluntary_switches,
            involuntary_switches: self.involuntary_switches - before.involuntary_switches,
            minor_faults: self.minor_faults - before.minor_faults,
            major_faults: self.major_faults - before.major_faults,
            run_delay_ns: self.run_delay_ns.zip(before.run_delay_ns).map(|(now, then)| now - then),
            user_ns: self.user_ns - before.user_ns,
            system_ns: self.system_ns - before.system_ns,
        }
    }
}

/// Reads the counters of the thread that made it.
#[derive(Debug)]
pub struct Probe {
    /// None if the kernel keeps no scheduler statistics (CONFIG_SCHED_INFO).
    schedstat: Option<File>,
}

impl Probe {
    /// Opens the counters of the calling thread.
    pub fn new() -> Probe {
        Probe { schedstat: File::open("/proc/thread-self/schedstat").ok() }
    }

    /// Reads the counters, with two system calls and no clock.
    pub fn read(&self) -> Counters {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the kernel fills the structure; if it fails, zeroes are valid as well.
        let usage = unsafe {
            libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
            usage.assume_init()
        };
        let count = |value: libc::c_long| u64::try_from(value).unwrap_or(0);
        let ns = |time: libc::timeval| {
            let (s, us) = (u64::try_from(time.tv_sec), u64::try_from(time.tv_usec));
            s.unwrap_or(0) * 1_000_000_000 + us.unwrap_or(0) * 1_000
        };
        Counters {
            voluntary_switches: count(usage.ru_nvcsw),
            involuntary_switches: count(usage.ru_nivcsw),
            minor_faults: count(usage.ru_minflt),
            major_faults: count(usage.ru_majflt),
            run_delay_ns: self.run_delay_ns(),
            user_ns: ns(usage.ru_utime),
            system_ns: ns(usage.ru_stime),
        }
    }

    /// The second of the three numbers in the file.
    fn run_delay_ns(&self) -> Option<u64> {
        let mut text = [0; 96];
        let read = self.schedstat.as_ref()?.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(&text[..read]).ok()?;
        text.split_ascii_whitespace().nth(1)?.parse().ok()
    }
}

impl Default for Probe {
    fn default() -> Probe {
        Probe::new()
    }
}

/// The CPU time of the whole process so far, including ended threads.
pub fn process_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// Locks everything that the process has mapped, including code and stacks, into memory. False if
/// that exceeds the limit, which counts all mapped memory, used or not.
pub fn lock_process() -> io::Result<bool> {
    match rustix::mm::mlockall(rustix::mm::MlockAllFlags::CURRENT) {
        Ok(()) => Ok(true),
        Err(Errno::NOMEM | Errno::PERM) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Keeps the calling thread on one CPU.
pub fn set_cpu(cpu: usize) -> io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}

/// Sets the I/O priority of the calling thread.
pub fn set_io_priority(priority: IoPriority) -> io::Result<()> {
    scheduling::set_io_priority(priority.class, priority.level)
}

/// Adds to an error the name of the thread, and the most frequent reason.
pub fn not_started(thread: &'static str) -> impl Fn(io::Error) -> io::Error {
    move |error| {
        let hint = match error.kind() {
            io::ErrorKind::WouldBlock => {
                " (a limit on threads: ulimit -u, or TasksMax= in systemd)"
            }
            _ => "",
        };
        io::Error::new(error.kind(), format!("cannot start {thread}: {error}{hint}"))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_sleep_is_a_voluntary_switch() {
        let probe = Probe::new();
        let before = probe.read();
        thread::sleep(Duration::from_millis(1));
        assert!(probe.read().since(&before).voluntary_switches >= 1);
    }

    #[test]
    fn settings_that_cannot_be_are_refused() {
        assert!(steadyio_core::scheduling::set_fifo(100).is_err());
        assert!(set_cpu(100_000).is_err());
        assert!(set_io_priority(IoPriority { class: 7, level: 0 }).is_err());
    }

    #[test]
    fn a_limit_on_threads_is_named() {
        let says = |error| not_started("it")(io::Error::from_raw_os_error(error)).to_string();
        let limit = "(a limit on threads: ulimit -u, or TasksMax= in systemd)";
        assert!(says(libc::EAGAIN).ends_with(limit), "{}", says(libc::EAGAIN));
        assert!(says(libc::EPERM).starts_with("cannot start it: Operation not permitted"));
    }
}
