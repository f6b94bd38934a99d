// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the kernel's workers that complete a card's requests under SCHED_FIFO, while a program
//! runs. `steady with` uses it, and a bench with a variant that asks for it.
//!
//! mmcblk completes each request in a worker of the workqueue `mmc_complete`. If the block layer
//! itself passes requests to a driver, a worker of `kblockd` does so. Both workqueues are
//! WQ_HIGHPRI, so each CPU has one pool of workers for both (`kworker/CPU:NUMBERH`), and any of
//! them may be next. They run under SCHED_OTHER. A real-time task that computes prevents them from
//! running, and so delays threads that wait for the card. Completions that a worker raises continue
//! in `ksoftirqd/CPU`. Until that has run, completions of interrupts wait there too, including
//! those of timers.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use crate::diagnostic;
use crate::scheduling::{Scheduling, scheduling_of, set_fifo_of, set_scheduling_of};
use rustix::io::Errno;

const KTHREADD: &str = "2";

/// Whether such a worker completes requests of this disk. With other drivers, they complete in the
/// interrupt.
pub fn end_requests_of(disk: &str) -> bool {
    disk.starts_with("mmcblk")
}

/// Workers that run under SCHED_FIFO until this is dropped.
#[derive(Debug)]
pub struct Raised {
    priority: u8,
    before: BTreeMap<u32, Scheduling>,
}

impl Raised {
    /// Raises the existing workers.
    pub fn new(priority: u8) -> io::Result<Raised> {
        let mut raised = Raised { priority, before: BTreeMap::new() };
        raised.raise_new()?;
        Ok(raised)
    }

    /// Raises workers that are new. The kernel starts and ends workers as needed.
    pub fn raise_new(&mut self) -> io::Result<()> {
        let workers = workers()?;
        self.before.retain(|thread, _| workers.contains(thread));
        for thread in workers {
            if self.before.contains_key(&thread) {
                continue;
            }
            match scheduling_of(thread)
                .and_then(|was| set_fifo_of(thread, self.priority).map(|()| was))
            {
                Ok(was) => drop(self.before.insert(thread, was)),
                // The worker has ended.
                Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Drop for Raised {
    fn drop(&mut self) {
        // Another thread may have got the number.
        let workers = workers().unwrap_or_default();
        for (thread, was) in &self.before {
            if !workers.contains(thread) {
                continue;
            }
            if let Err(error) = set_scheduling_of(*thread, *was) {
                diagnostic!("steady: kernel thread {thread} stays under SCHED_FIFO: {error}");
            }
        }
    }
}

/// The workers of the high-priority pools of all CPUs, and the threads that run softirqs.
fn workers() -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(thread) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        // A process that has ended has no file.
        let stat = fs::read_to_string(format!("/proc/{thread}/stat")).unwrap_or_default();
        if is_worker(&stat) {
            found.push(thread);
        }
    }
    Ok(found)
}

/// Whether a `/proc/PID/stat`, `PID (NAME) STATE PARENT ...`, describes such a worker. It must be a
/// child of kthreadd, because any program may give itself such a name.
pub fn is_worker(stat: &str) -> bool {
    let Some((head, rest)) = stat.rsplit_once(") ") else { return false };
    let Some((_, name)) = head.split_once(" (") else { return false };
    let softirqs = name.strip_prefix("ksoftirqd/").is_some_and(|cpu| cpu.parse::<u32>().is_ok());
    (softirqs || is_high_priority(name)) && rest.split_whitespace().nth(1) == Some(KTHREADD)
}

/// `kworker/CPU:NUMBERH-WORKQUEUE`. Workers of unbound pools have a `u` before the number.
fn is_high_priority(name: &str) -> bool {
    let of_cpu = name.strip_prefix("kworker/").and_then(|rest| rest.split_once(':'));
    let Some((cpu, of_pool)) = of_cpu else { return false };
    let kind = of_pool.trim_start_matches(|byte: char| byte.is_ascii_digit());
    cpu.parse::<u32>().is_ok() && (kind == "H" || kind.starts_with("H-") || kind.starts_with("H+"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_of_the_high_priority_pools_and_of_softirqs_are_told_from_others() {
        for name in
            ["kworker/0:0H", "kworker/0:1H-mmc_complete", "kworker/12:10H+kblockd", "ksoftirqd/3"]
        {
            assert!(is_worker(&format!("77 ({name}) I 2 0 0")), "{name}");
        }
        for name in [
            "kworker/0:1-events",
            "kworker/u8:1-flush",
            "kworker/u9:0H",
            "kworker/R-kblockd",
            "ksoftirqd/x",
        ] {
            assert!(!is_worker(&format!("77 ({name}) I 2 0 0")), "{name}");
        }
        assert!(!is_worker("77 (kworker/0:0H) S 1 0 0"), "a program with such a name");
        assert!(!is_worker(""));
    }
}
