// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the kernel's threads that complete a disk's requests under SCHED_FIFO, while a program
//! runs. `steady with` uses it, and a bench with a variant that asks for it.
//!
//! mmcblk completes each request in a worker of the workqueue `mmc_complete`. If the block layer
//! itself passes requests to a driver, a worker of `kblockd` does so. Both workqueues are
//! WQ_HIGHPRI, so each CPU has one pool of workers for both (`kworker/CPU:NUMBERH`), and any of
//! them may be next. They run under SCHED_OTHER. A real-time task that computes prevents them from
//! running, and so delays threads that wait for the card. Completions that a worker raises continue
//! in `ksoftirqd/CPU`. Until that has run, completions of interrupts wait there too, including
//! those of timers.
//!
//! With PREEMPT_RT or `threadirqs` an interrupt's handler is a thread, too: `irq/NUMBER-NAME`, under
//! SCHED_FIFO 50. Timers, k2's among them, then fire in `ktimers/CPU`, under SCHED_FIFO 1.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use crate::diagnostic;
use crate::scheduling::{Scheduling, scheduling_of, set_fifo_of, set_scheduling_of};
use rustix::io::Errno;

const KTHREADD: &str = "2";
/// The kernel cuts a thread's name after so many bytes.
const NAME_BYTES_MAX: usize = 15;

/// Why nothing can be raised for a disk.
pub const NONE: &str = "no kernel thread completes its requests (it is not an eMMC or SD card, and \
                        its interrupt has no thread, which PREEMPT_RT or threadirqs gives it)";

/// Whether a worker completes requests of this disk.
pub fn end_requests_of(disk: &str) -> bool {
    disk.starts_with("mmcblk")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A worker of a high-priority pool, or a thread that runs softirqs.
    Worker,
    /// The handler of an interrupt of the disk's host.
    Interrupt,
}

/// Tells which of the kernel's threads complete a disk's requests.
#[derive(Debug, Clone, Default)]
pub struct Threads {
    is_card: bool,
    /// The numbers of the host's interrupts, if it is on a bus that states them.
    interrupts: Vec<u32>,
    /// The names in sysfs of the disk and of all above it: drivers give one to the interrupt.
    names: Vec<String>,
}

impl Threads {
    /// Reads a disk's place below `sys`, which is `/sys`.
    pub fn of(sys: &Path, disk: &str) -> Threads {
        let dir = fs::canonicalize(sys.join("block").join(disk)).unwrap_or_default();
        let interrupts = dir.ancestors().map(interrupts_of).find(|numbers| !numbers.is_empty());
        let name = |dir: &Path| dir.file_name().map(|name| name.to_string_lossy().into_owned());
        Threads {
            is_card: end_requests_of(disk),
            interrupts: interrupts.unwrap_or_default(),
            names: dir.ancestors().filter_map(name).collect(),
        }
    }

    /// What a `/proc/PID/stat`, `PID (NAME) STATE PARENT ...`, describes; None if it is another
    /// thread. It must be a child of kthreadd, because any program may give itself such a name.
    pub fn kind_of(&self, stat: &str) -> Option<Kind> {
        let (head, rest) = stat.rsplit_once(") ")?;
        let (_, name) = head.split_once(" (")?;
        if rest.split_whitespace().nth(1) != Some(KTHREADD) {
            return None;
        }
        match is_worker(name) {
            true => Some(Kind::Worker),
            false => self.is_interrupt(name).then_some(Kind::Interrupt),
        }
    }

    /// `irq/NUMBER-NAME`, or `irq/NUMBER-s-NAME` for a handler that was a thread anyway.
    fn is_interrupt(&self, thread: &str) -> bool {
        let parts = thread.strip_prefix("irq/").and_then(|rest| rest.split_once('-'));
        let Some((number, name)) = parts else { return false };
        if number.parse().is_ok_and(|number| self.interrupts.contains(&number)) {
            return true;
        }
        let name = name.strip_prefix("s-").unwrap_or(name);
        let bytes_max = NAME_BYTES_MAX - (thread.len() - name.len()).min(NAME_BYTES_MAX);
        !name.is_empty() && self.names.iter().any(|one| one.get(..bytes_max).unwrap_or(one) == name)
    }

    /// Whether any thread completes this disk's requests.
    pub fn exist(&self) -> io::Result<bool> {
        Ok(self.is_card || self.list()?.iter().any(|(_, kind)| *kind == Kind::Interrupt))
    }

    fn list(&self) -> io::Result<Vec<(u32, Kind)>> {
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc")? {
            let name = entry?.file_name();
            let Some(thread) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
            // A process that has ended has no file.
            let stat = fs::read_to_string(format!("/proc/{thread}/stat")).unwrap_or_default();
            found.extend(self.kind_of(&stat).map(|kind| (thread, kind)));
        }
        Ok(found)
    }
}

/// The numbers of a device's interrupts, as a folder in sysfs has them.
fn interrupts_of(device: &Path) -> Vec<u32> {
    let entries = fs::read_dir(device.join("msi_irqs")).into_iter().flatten().flatten();
    let messages: Vec<u32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    if !messages.is_empty() {
        return messages;
    }
    let line = fs::read_to_string(device.join("irq")).ok();
    line.and_then(|text| text.trim().parse().ok())
        .filter(|number| *number > 0)
        .into_iter()
        .collect()
}

/// Threads that run under SCHED_FIFO until this is dropped.
#[derive(Debug)]
pub struct Raised {
    threads: Threads,
    priority: u8,
    before: BTreeMap<u32, Scheduling>,
}

impl Raised {
    /// Raises the existing threads.
    pub fn new(threads: Threads, priority: u8) -> io::Result<Raised> {
        let mut raised = Raised { threads, priority, before: BTreeMap::new() };
        raised.raise_new()?;
        Ok(raised)
    }

    /// Raises threads that are new. The kernel starts and ends workers as needed.
    pub fn raise_new(&mut self) -> io::Result<()> {
        let threads = self.threads.list()?;
        let is_there = |thread: &u32| threads.iter().any(|(one, _)| one == thread);
        self.before.retain(|thread, _| is_there(thread));
        for (thread, _) in threads {
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
        let threads = self.threads.list().unwrap_or_default();
        for (thread, was) in &self.before {
            if !threads.iter().any(|(one, _)| one == thread) {
                continue;
            }
            if let Err(error) = set_scheduling_of(*thread, *was) {
                diagnostic!("steady: kernel thread {thread} stays under SCHED_FIFO: {error}");
            }
        }
    }
}

/// A worker of the high-priority pool of a CPU, or a thread that runs softirqs or timers.
fn is_worker(name: &str) -> bool {
    let of_cpu = ["ksoftirqd/", "ktimers/"].iter().find_map(|prefix| name.strip_prefix(prefix));
    of_cpu.is_some_and(|cpu| cpu.parse::<u32>().is_ok()) || is_high_priority(name)
}

/// `kworker/CPU:NUMBERH-WORKQUEUE`. Workers of unbound pools have a `u` before the number.
fn is_high_priority(name: &str) -> bool {
    let of_cpu = name.strip_prefix("kworker/").and_then(|rest| rest.split_once(':'));
    let Some((cpu, of_pool)) = of_cpu else { return false };
    let kind = of_pool.trim_start_matches(|byte: char| byte.is_ascii_digit());
    cpu.parse::<u32>().is_ok() && (kind == "H" || kind.starts_with("H-") || kind.starts_with("H+"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn of_kernel(name: &str) -> String {
        format!("77 ({name}) I 2 0 0")
    }

    #[test]
    fn workers_of_the_high_priority_pools_and_of_softirqs_are_told_from_others() {
        let kind = |stat: &str| Threads::default().kind_of(stat);
        for name in [
            "kworker/0:0H",
            "kworker/0:1H-mmc_complete",
            "kworker/12:10H+kblockd",
            "ksoftirqd/3",
            "ktimers/0",
        ] {
            assert_eq!(kind(&of_kernel(name)), Some(Kind::Worker), "{name}");
        }
        for name in [
            "kworker/0:1-events",
            "kworker/u8:1-flush",
            "kworker/u9:0H",
            "kworker/R-kblockd",
            "ksoftirqd/x",
            "irq/24-nvme0q1",
        ] {
            assert_eq!(kind(&of_kernel(name)), None, "{name}");
        }
        assert_eq!(kind("77 (kworker/0:0H) S 1 0 0"), None, "a program with such a name");
        assert_eq!(kind(""), None);
    }

    /// The threads of a disk at a place in a synthetic sysfs.
    fn at(path: &str, disk: &str, files: &[&str]) -> (tempfile::TempDir, Threads) {
        let sys = tempfile::tempdir().unwrap();
        let dir = sys.path().join(path);
        fs::create_dir_all(&dir).unwrap();
        fs::create_dir(sys.path().join("block")).unwrap();
        symlink(&dir, sys.path().join("block").join(disk)).unwrap();
        for file in files {
            let file = sys.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "11\n").unwrap();
        }
        let threads = Threads::of(sys.path(), disk);
        (sys, threads)
    }

    #[test]
    fn an_interrupt_is_the_disks_by_its_number() {
        let host = "devices/pci0000:00/0000:00:04.0";
        let place = format!("{host}/nvme/nvme0/nvme0n1");
        let files = ["msi_irqs/24", "msi_irqs/25", "irq"].map(|name| format!("{host}/{name}"));
        let (_sys, nvme) = at(&place, "nvme0n1", &files.each_ref().map(String::as_str));
        let kind = |name: &str| nvme.kind_of(&of_kernel(name));
        assert_eq!(kind("irq/24-nvme0q0"), Some(Kind::Interrupt));
        assert_eq!(kind("irq/25-anything"), Some(Kind::Interrupt));
        assert_eq!(kind("irq/11-other"), None, "the line is not in use");
        assert_eq!(nvme.kind_of("77 (irq/24-nvme0q0) S 1 0 0"), None);
        let (_sys, old) = at(&place, "nvme0n1", &[&files[2]]);
        assert_eq!(old.kind_of(&of_kernel("irq/11-other")), Some(Kind::Interrupt));
    }

    #[test]
    fn an_interrupt_is_a_cards_by_the_name_of_its_host() {
        let place =
            "devices/platform/fe330000.mmc-controller/mmc_host/mmc1/mmc1:0001/block/mmcblk1";
        let (_sys, card) = at(place, "mmcblk1", &[]);
        let kind = |name: &str| card.kind_of(&of_kernel(name));
        for name in ["irq/33-mmc1", "irq/33-s-mmc1", "irq/33-fe330000", "irq/133-fe33000"] {
            assert_eq!(kind(name), Some(Kind::Interrupt), "{name}");
        }
        for name in ["irq/33-mmc0", "irq/33-mmc10", "irq/33-fe330001", "irq/33-", "irq/33"] {
            assert_eq!(kind(name), None, "{name}");
        }
    }
}
