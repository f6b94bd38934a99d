// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds settings that break a bound on latency, from facts about the system. Pure: it reads no
//! file. `steady doctor` and `steady apply` call it.
//!
//! docs/reference/k2.md, "Causes of delay", has the reasons and the sizes.

use std::slice;

use super::finding::{Finding, finding, word};
use super::system::{Disk, Policy, System, Task};
use super::{declared, judge};

/// With fewer tags, an eighth of them for real-time is a single one.
const TAGS_MIN: u64 = 16;
/// At this priority a task leaves no higher one for the workers.
const PRIORITY_MAX: u8 = 99;
const NAMED: usize = 5;
/// The kernels for which kernel/k2/Kbuild builds.
const K2_KERNELS: [(u32, u32); 3] = [(6, 1), (6, 12), (7, 3)];

/// All findings, the worst first.
pub fn findings(system: &System) -> Vec<Finding> {
    let rules = [
        realtime_tasks,
        scheduler,
        multipath,
        cgroup_limits,
        swap,
        no_fua,
        sync_writers_on_6_1,
        few_tags,
        stale_async_depth,
        no_lazytime,
        behind_usb,
    ];
    let settings = rules.iter().filter_map(|rule| rule(system));
    settings.chain(judge::all(system)).chain(declared::all(system)).collect()
}

/// Requests end in a thread of the kernel, and such a task prevents the thread from running.
fn realtime_tasks(system: &System) -> Option<Finding> {
    let disk = &system.disk;
    // Any of the threads may be the next to run.
    let lowest = ending_threads(system).min()?;
    let above = |task: &&Task| task.policy == Policy::Deadline || task.priority >= lowest;
    let tasks: Vec<&Task> = system.realtime.iter().filter(above).collect();
    let top = tasks.iter().map(|task| task.priority).max()?;
    let is_beatable = tasks.iter().all(|t| t.policy != Policy::Deadline) && top < PRIORITY_MAX;
    let policy = if lowest == 0 { "SCHED_OTHER".into() } else { format!("SCHED_FIFO {lowest}") };
    Some(Finding {
        id: "realtime-tasks",
        overrun: None,
        text: format!(
            "{}: requests of {} complete in kernel threads under {policy}; while such a task \
             computes on their CPU, threads that wait for the disk wait for it",
            names(&tasks),
            disk.name
        ),
        fix: is_beatable.then(|| {
            format!("steady with --device /dev/{} --kworkers-fifo {} -- PROGRAM", disk.name, top + 1)
        }),
        advice: (!is_beatable).then(|| {
            format!(
                "no priority is above these tasks: give them SCHED_FIFO below {PRIORITY_MAX} \
                 (chrt --fifo --pid PRIORITY THREAD), or keep them off the CPU of the disk's interrupt"
            )
        }),
    })
}

/// The priorities of the threads that end requests: of the interrupt, if it is a thread, and of a
/// card's workers.
fn ending_threads(system: &System) -> impl Iterator<Item = u8> {
    let workers = if needs_workers(system) { &system.workers[..] } else { &[] };
    let unseen = (needs_workers(system) && workers.is_empty()).then_some(0);
    workers.iter().chain(&system.interrupts).copied().chain(unseen)
}

/// A card's do, unless it has a command queue and no scheduler makes kblockd pass requests to the
/// driver.
fn needs_workers(system: &System) -> bool {
    let disk = &system.disk;
    let ends_in_the_interrupt =
        disk.command_queue && (system.kernel >= (6, 12) || disk.scheduler == "none");
    disk.is_card && !ends_in_the_interrupt
}

fn names(tasks: &[&Task]) -> String {
    let one = |task: &&Task| {
        let priority = match task.policy {
            Policy::Deadline => String::new(),
            _ => format!(" {}", task.priority),
        };
        format!("{} ({}, {}{priority})", task.name, task.thread, task.policy.word())
    };
    let shown: Vec<String> = tasks.iter().take(NAMED).map(one).collect();
    match tasks.len().saturating_sub(NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn scheduler(system: &System) -> Option<Finding> {
    let disk = &system.disk;
    if disk.scheduler == "k2" {
        return None;
    }
    let queues = if disk.paths.is_empty() { slice::from_ref(&disk.name) } else { &disk.paths[..] };
    let choose = |queue: &String| format!("echo k2 > /sys/block/{queue}/queue/scheduler");
    let choose = queues.iter().map(choose).collect::<Vec<_>>().join(" && ");
    let text = format!(
        "the scheduler of {} is {}: requests of the real-time class have no bound",
        disk.name, disk.scheduler
    );
    if disk.schedulers.iter().any(|one| one == "k2") {
        return Some(Finding {
            id: "scheduler",
            text,
            fix: Some(choose),
            advice: None,
            overrun: None,
        });
    }
    let (fix, advice) = if !K2_KERNELS.contains(&system.kernel) {
        return Some(no_k2(system, &text));
    } else if system.k2_installed {
        (Some(format!("modprobe k2 && {choose}")), None)
    } else {
        let build = "k2 is not installed for this kernel: build it first (docs/reference/k2.md, \
                     Building), and run this next to its k2.ko";
        (Some(format!("insmod k2.ko && {choose}")), Some(build.to_string()))
    };
    let text = format!("{text}; k2 is not loaded");
    Some(Finding { id: "k2-not-loaded", text, fix, advice, overrun: None })
}

/// Paths are hidden disks without a device number (drivers/nvme/host/multipath.c).
fn multipath(system: &System) -> Option<Finding> {
    let Disk { name, paths, .. } = &system.disk;
    (!paths.is_empty()).then(|| Finding {
        advice: Some(
            "nvme_core.multipath=N on the kernel's command line makes a disk of a drive with one path"
                .into(),
        ),
        ..finding(
            "nvme-multipath",
            format!(
                "{name} passes its requests to {}: udev does not see these, so their scheduler is lost \
                 at a reboot, and no task can be declared for them",
                paths.join(", ")
            ),
        )
    })
}

fn no_k2(system: &System, text: &str) -> Finding {
    let (major, minor) = system.kernel;
    let known = K2_KERNELS.map(|(major, minor)| format!("{major}.{minor}")).join(", ");
    Finding {
        id: "k2-kernel",
        overrun: None,
        text: format!("{text}; k2 does not build for Linux {major}.{minor}"),
        fix: None,
        advice: Some(format!("use one of Linux {known} (docs/reference/kernels.md)")),
    }
}

fn cgroup_limits(system: &System) -> Option<Finding> {
    let first = system.cgroup_limits.first()?;
    let more = system.cgroup_limits.len() - 1;
    let (device, _) = first.line.split_once(' ')?;
    let file = first.file.display();
    let none = match first.file.file_name()?.to_str()? {
        "io.max" => "rbps=max wbps=max riops=max wiops=max",
        "io.cost.qos" => "enable=0",
        _ => "target=0",
    };
    Some(Finding {
        id: "cgroup-limits",
        overrun: None,
        text: format!(
            "{file} has \"{}\" ({more} more such lines): I/Os of that group, and except with io.max \
             those of others, wait before the scheduler sees them, whatever their priority",
            first.line
        ),
        fix: Some(format!("echo '{device} {none}' > {}", word(&first.file))),
        advice: Some("and take the limit out of the unit that sets it".into()),
    })
}

/// Measured on 6.1. A 6.12 kernel writes the times even with lazytime (docs/results/s4.md).
fn no_lazytime(system: &System) -> Option<Finding> {
    let first = system.without_lazytime.first()?;
    (system.kernel < (6, 12)).then(|| Finding {
        id: "no-lazytime",
        overrun: None,
        text: format!(
            "{} is ext4 without lazytime: each write changes a file's times, and a write() may wait \
             while the journal writes them",
            first.display()
        ),
        fix: Some(format!("mount -o remount,lazytime {}", word(first))),
        advice: Some("and add lazytime to its options in /etc/fstab".into()),
    })
}

fn swap(system: &System) -> Option<Finding> {
    let first = system.swaps.first()?;
    Some(Finding {
        id: "swap",
        overrun: None,
        text: format!(
            "swap is on {} ({}): reading memory back from there waits for the device, and \
             writing memory out delays it further",
            system.disk.name,
            first.display()
        ),
        fix: Some(format!(
            "swapoff {}",
            system.swaps.iter().map(|path| word(path)).collect::<Vec<_>>().join(" ")
        )),
        advice: Some(
            "and take it out of /etc/fstab; or lock the program's memory (mlockall)".into(),
        ),
    })
}

fn no_fua(system: &System) -> Option<Finding> {
    let disk = &system.disk;
    if !disk.write_back || disk.fua {
        return None;
    }
    // mmc-utils, for eMMC. The kernel turns the cache on again when the card is initialized.
    let fix = disk.is_emmc.then(|| format!("mmc cache disable /dev/{}", disk.name));
    Some(Finding {
        id: "no-fua",
        overrun: None,
        text: format!(
            "{} has a write cache and no FUA: each O_DSYNC write, fsync and journal commit flushes \
             all of the cache, and flushes bypass every scheduler",
            disk.name
        ),
        fix,
        advice: Some(if disk.is_emmc {
            "writes are slower without the cache, and it is back after each reset of the card; or \
             have the background sync rarely"
                .into()
        } else {
            "have the background sync rarely, and write in advance what must be durable".to_string()
        }),
    })
}

fn sync_writers_on_6_1(system: &System) -> Option<Finding> {
    // Without a write cache, the kernel sends no FUA.
    if system.kernel >= (6, 12) || !system.disk.write_back {
        return None;
    }
    let first = system.sync_writers.first()?;
    let more = system.sync_writers.len() - 1;
    Some(Finding {
        id: "sync-writers",
        overrun: None,
        text: format!(
            "{} is open with O_SYNC or O_DSYNC by process {} ({more} more such files): before Linux \
             6.12 such writes bypass the scheduler, in full",
            first.path.display(),
            first.process
        ),
        fix: None,
        advice: Some("keep these writes small, or use Linux 6.12, where k2 splits them".into()),
    })
}

fn few_tags(system: &System) -> Option<Finding> {
    let disk = &system.disk;
    if disk.tags == 0 || disk.tags >= TAGS_MIN {
        return None;
    }
    Some(Finding {
        id: "few-tags",
        overrun: None,
        text: format!(
            "{} has {} tags: k2 keeps an eighth of them for real-time tasks, and beyond that a \
             real-time request waits until one of the background has ended",
            disk.name, disk.tags
        ),
        fix: Some(format!("echo 64 > /sys/block/{}/queue/nr_requests", disk.name)),
        advice: (disk.scheduler == "none")
            .then(|| "choose the scheduler first: it resets the number".into()),
    })
}

/// Linux before 7.0: block/mq-deadline.c uses an old number of tags.
///
/// All writes share these tags, also those of real-time, so a real-time write may wait behind the
/// background's.
fn stale_async_depth(system: &System) -> Option<Finding> {
    let disk = &system.disk;
    let depth = disk.async_depth?;
    let usual = (disk.tags * 3 / 4).max(1);
    // k2 limits only the background.
    if disk.scheduler == "k2" || (usual..=disk.tags.max(1)).contains(&depth.tags) {
        return None;
    }
    let (name, tags, all) = (&disk.name, depth.tags, disk.tags);
    let effect = if tags < usual {
        "background writes fill them, and a real-time write waits for one, seconds in the worst case"
    } else {
        "it limits nothing"
    };
    let text = format!(
        "async_depth of {name} is {tags} and nr_requests {all}: {} keeps the depth when nr_requests \
         changes. Writes of all priorities share {tags} tags: {effect}",
        disk.scheduler
    );
    Some(Finding {
        fix: Some(format!("echo {usual} > /sys/block/{name}/{}", depth.file)),
        advice: Some("again after each change of nr_requests".into()),
        ..finding("async-depth", text)
    })
}

fn behind_usb(system: &System) -> Option<Finding> {
    system.disk.behind_usb.then(|| Finding {
        id: "usb",
        overrun: None,
        text: format!(
            "{} is behind USB: bridge and hub queue, reset and sleep by rules of their own, and \
             other devices share the bus",
            system.disk.name
        ),
        fix: None,
        advice: Some("use a slot of the board (mmcblk, nvme) for what needs a bound".into()),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::system::{AsyncDepth, CgroupLimit, SyncWriter};
    use super::*;

    /// A system without findings.
    fn good() -> System {
        let disk = Disk {
            name: "mmcblk0".into(),
            schedulers: ["none", "mq-deadline", "k2"].map(String::from).into(),
            scheduler: "k2".into(),
            write_back: false,
            fua: true,
            tags: 64,
            async_depth: None,
            is_card: true,
            is_emmc: true,
            command_queue: false,
            behind_usb: false,
            paths: Vec::new(),
        };
        System {
            kernel: (6, 1),
            disk,
            workers: vec![0, 0],
            k2_installed: true,
            ..System::default()
        }
    }

    fn fifo(priority: u8) -> Task {
        Task { thread: 7, name: "control".into(), policy: Policy::Fifo, priority }
    }

    fn only(system: &System) -> Finding {
        let mut found = findings(system);
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }

    fn ids(system: &System) -> Vec<&'static str> {
        findings(system).iter().map(|finding| finding.id).collect()
    }

    #[test]
    fn a_good_system_has_no_finding() {
        assert_eq!(findings(&good()), []);
    }

    #[test]
    fn a_realtime_task_at_or_above_the_workers_is_named_with_the_priority_that_helps() {
        let mut system = System { realtime: vec![fifo(10), fifo(40)], ..good() };
        let found = only(&system);
        assert!(found.text.starts_with("control (7, SCHED_FIFO 10), control (7, SCHED_FIFO 40):"));
        let fix = "steady with --device /dev/mmcblk0 --kworkers-fifo 41 -- PROGRAM";
        assert_eq!(found.fix.as_deref(), Some(fix));
        system.workers = vec![41, 41];
        assert_eq!(ids(&system), [""; 0]);
        system.workers = vec![41, 40];
        assert_eq!(ids(&system), ["realtime-tasks"], "one worker is not raised far enough");
    }

    #[test]
    fn above_some_tasks_there_is_no_priority() {
        let deadline = Task { policy: Policy::Deadline, priority: 0, ..fifo(0) };
        for task in [fifo(99), deadline] {
            let found = only(&System { realtime: vec![task], workers: vec![99], ..good() });
            assert_eq!((found.fix, found.advice.is_some()), (None, true));
        }
    }

    #[test]
    fn realtime_tasks_delay_no_request_that_ends_in_the_interrupt() {
        let with_queue = |kernel, scheduler: &str| {
            let mut system = System { realtime: vec![fifo(1)], kernel, ..good() };
            system.disk.command_queue = true;
            system.disk.scheduler = scheduler.into();
            ids(&system).contains(&"realtime-tasks")
        };
        assert!(with_queue((6, 1), "k2") && !with_queue((6, 1), "none"));
        assert!(!with_queue((6, 12), "k2"));
        let mut disk = System { realtime: vec![fifo(1)], ..good() };
        disk.disk.is_card = false;
        assert_eq!(ids(&disk), [""; 0]);
    }

    #[test]
    fn with_interrupt_threads_realtime_tasks_delay_each_disk() {
        let mut system = System { realtime: vec![fifo(49)], interrupts: vec![50, 51], ..good() };
        system.disk.is_card = false;
        assert_eq!(ids(&system), [""; 0]);
        system.realtime.push(fifo(50));
        let found = only(&system);
        assert!(found.text.contains("SCHED_FIFO 50)") && !found.text.contains("SCHED_FIFO 49)"));
        assert!(found.fix.is_some_and(|line| line.contains("--kworkers-fifo 51")));
        system.disk.is_card = true;
        system.realtime = vec![fifo(1)];
        assert_eq!(ids(&system), ["realtime-tasks"], "a card's workers are below");
    }

    #[test]
    fn another_scheduler_is_a_finding_and_the_line_gets_k2_from_where_it_is() {
        let mut system = good();
        system.disk.scheduler = "mq-deadline".into();
        let found = only(&system);
        assert_eq!(found.fix.as_deref(), Some("echo k2 > /sys/block/mmcblk0/queue/scheduler"));
        system.disk.schedulers.retain(|one| one != "k2");
        let found = only(&system);
        assert_eq!(found.id, "k2-not-loaded");
        assert!(found.fix.is_some_and(|line| line.starts_with("modprobe k2 && echo k2")));
        system.k2_installed = false;
        assert!(only(&system).fix.is_some_and(|line| line.starts_with("insmod k2.ko && ")));
    }

    #[test]
    fn the_scheduler_of_a_drive_with_paths_is_set_on_each() {
        let mut system = good();
        system.disk.paths = ["nvme0c0n1", "nvme0c1n1"].map(String::from).into();
        assert_eq!(only(&system).id, "nvme-multipath");
        system.disk.scheduler = "none".into();
        let found = findings(&system);
        let choose = "echo k2 > /sys/block/nvme0c0n1/queue/scheduler && \
                      echo k2 > /sys/block/nvme0c1n1/queue/scheduler";
        assert_eq!((found[0].id, found[0].fix.as_deref()), ("scheduler", Some(choose)));
        assert_eq!(found[1].id, "nvme-multipath");
    }

    #[test]
    fn where_k2_does_not_build_nothing_is_to_be_built() {
        let mut system = good();
        system.disk.scheduler = "none".into();
        system.disk.schedulers.retain(|one| one != "k2");
        system.kernel = (6, 6);
        let found = only(&system);
        assert_eq!((found.id, found.fix.as_deref()), ("k2-kernel", None));
        assert!(found.text.ends_with("k2 does not build for Linux 6.6"), "{found:?}");
        assert!(found.advice.unwrap().starts_with("use one of Linux 6.1, 6.12, 7.3"));
    }

    #[test]
    fn a_cache_without_fua_is_a_finding() {
        let mut system = good();
        system.disk.fua = false;
        assert_eq!(ids(&system), [""; 0]);
        system.disk.write_back = true;
        assert_eq!(only(&system).fix.as_deref(), Some("mmc cache disable /dev/mmcblk0"));
        assert_eq!(only(&system).id, "no-fua");
        // The cache of an SD card has other commands.
        system.disk.is_emmc = false;
        assert_eq!(only(&system).fix, None);
    }

    #[test]
    fn sync_writers_count_before_6_12() {
        let writer = SyncWriter { process: 5, path: "/data/log".into() };
        let mut system = System { sync_writers: vec![writer], ..good() };
        assert_eq!(ids(&system), [""; 0], "without a cache the kernel asks for no FUA");
        system.disk.write_back = true;
        let found = findings(&system).remove(0);
        assert!(found.text.contains("/data/log") && found.fix.is_none(), "{found:?}");
        system.kernel = (6, 12);
        assert_eq!(ids(&system), [""; 0]);
    }

    #[test]
    fn the_line_of_a_control_group_lifts_its_limit() {
        let limit = |file: &str, line: &str| {
            let limits = vec![CgroupLimit { file: file.into(), line: line.into() }];
            only(&System { cgroup_limits: limits, ..good() }).fix.unwrap()
        };
        let line = "echo '179:0 rbps=max wbps=max riops=max wiops=max' > /sys/fs/cgroup/a/io.max";
        assert_eq!(limit("/sys/fs/cgroup/a/io.max", "179:0 rbps=max wbps=1000"), line);
        let line = "echo '179:0 enable=0' > /sys/fs/cgroup/io.cost.qos";
        assert_eq!(limit("/sys/fs/cgroup/io.cost.qos", "179:0 enable=1 ctrl=auto"), line);
        let line = "echo '179:0 target=0' > '/sys/fs/cgroup/a\\x2db/io.latency'";
        assert_eq!(limit("/sys/fs/cgroup/a\\x2db/io.latency", "179:0 target=5000"), line);
        let line = "echo '179:0 target=0' > /sys/fs/cgroup/a/io.latency";
        assert_eq!(limit("/sys/fs/cgroup/a/io.latency", "179:0 target=5000"), line);
    }

    #[test]
    fn lazytime_counts_before_6_12() {
        let mut system = System { without_lazytime: vec!["/data".into()], ..good() };
        let line = "mount -o remount,lazytime /data";
        assert_eq!(only(&system).fix.as_deref(), Some(line));
        system.without_lazytime = vec!["/it's here".into()];
        let line = "mount -o remount,lazytime '/it'\\''s here'";
        assert_eq!(only(&system).fix.as_deref(), Some(line));
        system.kernel = (6, 12);
        assert_eq!(ids(&system), [""; 0]);
    }

    #[test]
    fn an_async_depth_of_another_number_of_tags_is_found_but_not_of_k2() {
        let found = |scheduler: &str, file: &'static str, depth, tags| {
            let mut system = good();
            system.disk.scheduler = scheduler.into();
            system.disk.async_depth = Some(AsyncDepth { file, tags: depth });
            system.disk.tags = tags;
            let found = findings(&system).into_iter().find(|one| one.id == "async-depth");
            found.and_then(|one| one.fix)
        };
        let (old, new) = ("queue/iosched/async_depth", "queue/async_depth");
        let fix = "echo 192 > /sys/block/mmcblk0/queue/iosched/async_depth";
        for depth in [1, 2, 128, 191, 257] {
            assert_eq!(found("mq-deadline", old, depth, 256).as_deref(), Some(fix), "{depth}");
        }
        for depth in [192, 200, 256] {
            assert_eq!(found("mq-deadline", old, depth, 256), None, "{depth}");
        }
        // Three quarters of two tags, rounded down.
        assert_eq!(found("bfq", new, 1, 2), None);
        let fix = "echo 48 > /sys/block/mmcblk0/queue/async_depth";
        assert_eq!(found("kyber", new, 2, 64).as_deref(), Some(fix));
        assert_eq!(found("k2", new, 2, 64), None);
    }

    #[test]
    fn swap_tags_and_usb() {
        let swapping = System { swaps: vec!["/dev/mmcblk0p3".into()], ..good() };
        assert_eq!(only(&swapping).fix.as_deref(), Some("swapoff /dev/mmcblk0p3"));
        let mut few = good();
        few.disk.tags = 2;
        let line = "echo 64 > /sys/block/mmcblk0/queue/nr_requests";
        assert_eq!(only(&few).fix.as_deref(), Some(line));
        let mut usb = good();
        usb.disk.behind_usb = true;
        assert_eq!(only(&usb).id, "usb");
    }
}
