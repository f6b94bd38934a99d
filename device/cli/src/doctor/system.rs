// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the facts for `steady doctor` from sysfs and /proc. It changes nothing.
//!
//! The two directories are parameters, so that tests can use synthetic ones.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use steadyio_core::kworkers::{self, Kind, Threads};
use steadyio_watch::declared;

use super::layers::{Devices, Layers, names_in, unescaped, without_lazytime, words_of};
use crate::power::{PowerState, power_states};

/// The flag of a kernel thread in linux/sched.h.
const PF_KTHREAD: u64 = 0x0020_0000;
/// The policy in linux/sched.h.
const SCHED_FIFO: u64 = 1;
const SCHED_RR: u64 = 2;
const SCHED_DEADLINE: u64 = 6;
const KTHREADD: &str = "2";

/// The directories to read.
pub struct Roots {
    /// `/sys`.
    pub sys: PathBuf,
    /// `/proc`.
    pub proc: PathBuf,
    /// `/lib/modules/RELEASE` of the running kernel.
    pub modules: PathBuf,
}

/// All facts about a system.
#[derive(Debug, Clone, Default)]
pub struct System {
    /// The major and minor number of the kernel's release.
    pub kernel: (u32, u32),
    pub disk: Disk,
    pub realtime: Vec<Task>,
    /// The SCHED_FIFO priorities of the kernel's workers that complete a card's requests; 0:
    /// another policy.
    pub workers: Vec<u8>,
    /// The same of the disk's interrupts, as far as they are threads (PREEMPT_RT).
    pub interrupts: Vec<u8>,
    /// The swap on the disk.
    pub swaps: Vec<PathBuf>,
    /// The files on the disk that are open with O_SYNC or O_DSYNC.
    pub sync_writers: Vec<SyncWriter>,
    /// The limits of control groups on the disk, in files of cgroup 2.
    pub cgroup_limits: Vec<CgroupLimit>,
    /// The mount points of ext4 on the disk without lazytime.
    pub without_lazytime: Vec<PathBuf>,
    pub power: Vec<PowerState>,
    pub layers: Layers,
    /// The tasks that programs have declared to k2.
    pub declared: Vec<declared::Task>,
    /// Whether k2's module is installed for this kernel.
    pub k2_installed: bool,
    /// The facts that could not be read, in words.
    pub unseen: Vec<String>,
}

#[derive(Debug, Clone, Default)]
pub struct Disk {
    /// The kernel name, for example `mmcblk0`.
    pub name: String,
    pub schedulers: Vec<String>,
    pub scheduler: String,
    pub write_back: bool,
    pub fua: bool,
    /// 0: unknown.
    pub tags: u64,
    /// None if the scheduler has no such limit.
    pub async_depth: Option<AsyncDepth>,
    pub is_card: bool,
    /// Whether it is an eMMC: a card, but not an SD card.
    pub is_emmc: bool,
    /// Whether the card's command queue is in use.
    pub command_queue: bool,
    pub behind_usb: bool,
    /// The paths of an NVMe drive, such as `nvme0c0n1`. Its requests go to them, so they have the
    /// scheduler and its tags. Empty: the disk itself has.
    pub paths: Vec<String>,
}

/// The number of tags for all requests except synchronous reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsyncDepth {
    /// The file below the disk's sysfs folder.
    pub file: &'static str,
    pub tags: u64,
}

/// A program's thread with a real-time policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    pub thread: u32,
    pub name: String,
    pub policy: Policy,
    pub priority: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    Fifo,
    RoundRobin,
    /// It precedes every priority of the other two.
    Deadline,
}

impl Policy {
    /// The kernel's name.
    pub fn word(self) -> &'static str {
        match self {
            Policy::Fifo => "SCHED_FIFO",
            Policy::RoundRobin => "SCHED_RR",
            Policy::Deadline => "SCHED_DEADLINE",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncWriter {
    pub process: u32,
    pub path: PathBuf,
}

/// A line of `io.max`, `io.latency` or `io.cost.qos`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupLimit {
    /// The file of cgroup 2, below /sys.
    pub file: PathBuf,
    pub line: String,
}

impl System {
    /// Reads the facts about a disk; `numbers` are the device numbers of it and its partitions.
    pub fn read(roots: &Roots, disk: &str, numbers: &[u64]) -> io::Result<System> {
        let release = fs::read_to_string(roots.proc.join("sys/kernel/osrelease"))?;
        let devices = Devices::of(&roots.sys, disk, numbers);
        let mut system = System {
            kernel: major_minor(&release),
            disk: read_disk(&roots.sys, disk)?,
            swaps: swaps(&roots.proc, &devices),
            cgroup_limits: cgroup_limits(&roots.sys, &devices.numbers),
            without_lazytime: without_lazytime(&roots.proc, &devices),
            k2_installed: module_is_installed(&roots.modules, "k2"),
            power: power_states(&roots.sys, disk),
            layers: Layers::read(&roots.sys, &roots.proc, disk, &devices),
            ..System::default()
        };
        if system.disk.is_card && !sees_hosts(&roots.sys.join("kernel/debug")) {
            system.unseen.push(
                "whether the host suspends the card, and whether the card has manual background \
                 operations: debugfs is not mounted on /sys/kernel/debug, or not yours"
                    .into(),
            );
        }
        system.look_at_declared_tasks(&roots.sys);
        let threads = Threads::of(&roots.sys, disk);
        system.look_at_processes(&roots.proc, &devices.numbers, &threads)?;
        Ok(system)
    }

    fn look_at_declared_tasks(&mut self, sys: &Path) {
        let file = sys.join("block").join(&self.disk.name).join("queue/iosched/rt_declared");
        // Another scheduler has no such file.
        let Ok(text) = fs::read_to_string(file) else { return };
        match declared::parse(&text) {
            Ok(tasks) => self.declared = tasks,
            Err(error) => self.unseen.push(format!("declared tasks: {error}")),
        }
    }

    fn look_at_processes(
        &mut self,
        proc: &Path,
        numbers: &[u64],
        threads: &Threads,
    ) -> io::Result<()> {
        let kthreadd = fs::read_to_string(proc.join(KTHREADD).join("stat")).unwrap_or_default();
        if !kthreadd.contains("(kthreadd)") {
            self.unseen.push(
                "the kernel's threads and other users' programs: /proc shows some processes only \
                 (hidepid, or a PID namespace); ask again as root on the host"
                    .into(),
            );
        }
        let mut closed = 0;
        for process in numbered(proc)? {
            let dir = proc.join(process.to_string());
            for thread in numbered(&dir.join("task")).unwrap_or_default() {
                // The thread may have ended.
                let stat = fs::read_to_string(dir.join(format!("task/{thread}/stat")));
                let stat = stat.unwrap_or_default();
                match threads.kind_of(&stat) {
                    Some(Kind::Worker) => self.workers.push(kernel_priority(&stat)),
                    Some(Kind::Interrupt) => self.interrupts.push(kernel_priority(&stat)),
                    None => {}
                }
                self.realtime.extend(task(thread, &stat));
            }
            match sync_files(&dir, process, numbers) {
                Ok(found) => self.sync_writers.extend(found),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => closed += 1,
                Err(_) => {}
            }
        }
        if closed > 0 {
            let what =
                format!("open files of {closed} processes, which are not yours: ask as root");
            self.unseen.push(what);
        }
        Ok(())
    }
}

/// Whether debugfs shows a folder of each mmc host, which needs root.
fn sees_hosts(debugfs: &Path) -> bool {
    let mut entries = fs::read_dir(debugfs).into_iter().flatten().flatten();
    entries.any(|entry| entry.file_name().to_string_lossy().starts_with("mmc"))
}

fn major_minor(release: &str) -> (u32, u32) {
    let mut parts = release.split(|byte: char| !byte.is_ascii_digit());
    let mut next = || parts.next().and_then(|part| part.parse().ok()).unwrap_or(0);
    (next(), next())
}

fn read_disk(sys: &Path, name: &str) -> io::Result<Disk> {
    let dir = fs::canonicalize(sys.join("block").join(name))?;
    let read_in = |dir: &Path, file: &str| {
        fs::read_to_string(dir.join(file)).map(|text| text.trim().to_string())
    };
    let read = |file: &str| read_in(&dir, file);
    let paths = nvme_paths(sys, name);
    let queues: Vec<PathBuf> = match &paths[..] {
        [] => vec![dir.clone()],
        paths => paths.iter().map(|path| sys.join("block").join(path)).collect(),
    };
    let has_other = |queue: &&PathBuf| {
        read_in(queue, "queue/scheduler").is_ok_and(|schedulers| chosen(&schedulers) != "k2")
    };
    let queue = queues.iter().find(has_other).unwrap_or(&queues[0]);
    let schedulers = read_in(queue, "queue/scheduler")?;
    let is_usb =
        |part: &str| part.strip_prefix("usb").is_some_and(|bus| bus.parse::<u32>().is_ok());
    Ok(Disk {
        name: name.into(),
        scheduler: chosen(&schedulers).into(),
        schedulers: schedulers.split(' ').map(|one| one.trim_matches(['[', ']']).into()).collect(),
        write_back: read("queue/write_cache").is_ok_and(|text| text == "write back"),
        fua: read("queue/fua").is_ok_and(|text| text == "1"),
        tags: read_in(queue, "queue/nr_requests")?.parse().unwrap_or(0),
        async_depth: AsyncDepth::read(&dir),
        is_card: kworkers::end_requests_of(name),
        is_emmc: read("device/type").is_ok_and(|text| text == "MMC"),
        command_queue: read("device/cmdq_en").is_ok_and(|text| text != "0"),
        behind_usb: dir.components().any(|part| part.as_os_str().to_str().is_some_and(is_usb)),
        paths,
    })
}

/// The paths of `nvme0n1` are `nvme0c0n1` and so on (drivers/nvme/host/multipath.c).
pub fn nvme_paths(sys: &Path, name: &str) -> Vec<String> {
    let parts = name.strip_prefix("nvme").and_then(|rest| rest.split_once('n'));
    let Some((subsystem, space)) = parts else { return Vec::new() };
    let (start, end) = (format!("nvme{subsystem}c"), format!("n{space}"));
    let is_path = |name: &String| name.starts_with(&start) && name.ends_with(&end);
    names_in(&sys.join("block")).into_iter().filter(is_path).collect()
}

impl AsyncDepth {
    /// Reads the limit. Since Linux 7.0 it is a file of the block layer; before, only mq-deadline
    /// has it.
    fn read(disk: &Path) -> Option<Self> {
        ["queue/iosched/async_depth", "queue/async_depth"].into_iter().find_map(|file| {
            let tags = fs::read_to_string(disk.join(file)).ok()?.trim().parse().ok()?;
            Some(Self { file, tags })
        })
    }
}

/// The selected scheduler in a list such as `none [mq-deadline] k2`.
fn chosen(schedulers: &str) -> &str {
    schedulers
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .map_or("none", |one| one.0)
}

/// Whether depmod's list has the module. Its lines begin with the module's path.
fn module_is_installed(modules: &Path, name: &str) -> bool {
    let list = fs::read_to_string(modules.join("modules.dep")).unwrap_or_default();
    let files = list.lines().filter_map(|line| line.split(':').next()?.rsplit('/').next());
    files.filter_map(|file| file.split_once(".ko")).any(|(module, _)| module == name)
}

/// The swap partitions of the disk, and swap files on its file systems.
fn swaps(proc: &Path, devices: &Devices) -> Vec<PathBuf> {
    let list = fs::read_to_string(proc.join("swaps")).unwrap_or_default();
    let paths = list.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    let is_of_disk = |path: &PathBuf| match fs::metadata(path) {
        Ok(meta) => [meta.rdev(), meta.dev()].iter().any(|one| devices.numbers.contains(one)),
        Err(_) => path.parent() == Some(Path::new("/dev")) && devices.has(path),
    };
    paths.map(unescaped).filter(is_of_disk).collect()
}

/// The limits in all control groups. A group without the controller has no such files.
fn cgroup_limits(sys: &Path, numbers: &[u64]) -> Vec<CgroupLimit> {
    const FILES: [&str; 3] = ["io.max", "io.latency", "io.cost.qos"];
    let devices = words_of(numbers);
    let mut found = Vec::new();
    let mut groups = vec![sys.join("fs/cgroup")];
    while let Some(group) = groups.pop() {
        for file in FILES.map(|name| group.join(name)) {
            let text = fs::read_to_string(&file).unwrap_or_default();
            let is_of_disk = |line: &&str| {
                let (device, limit) = line.split_once(' ').unwrap_or((*line, ""));
                devices.iter().any(|d| d == device) && !limit.starts_with("enable=0")
            };
            let lines = text.lines().filter(is_of_disk);
            found.extend(lines.map(|line| CgroupLimit { file: file.clone(), line: line.into() }));
        }
        let entries = fs::read_dir(&group).into_iter().flatten().flatten();
        let is_dir = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
        groups.extend(entries.filter(is_dir).map(|entry| entry.path()));
    }
    found.sort_by(|one, other| one.file.cmp(&other.file));
    found
}

fn numbered(dir: &Path) -> io::Result<Vec<u32>> {
    let names = fs::read_dir(dir)?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut found: Vec<u32> = names.filter_map(|name| name.parse().ok()).collect();
    found.sort_unstable();
    Ok(found)
}

/// The fields after the name. Their index is their number in proc_pid_stat(5) minus 3.
fn fields(stat: &str) -> Option<(&str, Vec<&str>)> {
    let (head, rest) = stat.rsplit_once(") ")?;
    Some((head.split_once(" (")?.1, rest.split_whitespace().collect()))
}

fn number(fields: &[&str], field: usize) -> u64 {
    fields.get(field - 3).and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn task(thread: u32, stat: &str) -> Option<Task> {
    let (name, fields) = fields(stat)?;
    let policy = match number(&fields, 41) {
        SCHED_FIFO => Policy::Fifo,
        SCHED_RR => Policy::RoundRobin,
        SCHED_DEADLINE => Policy::Deadline,
        _ => return None,
    };
    // The kernel's own real-time threads do not compute for long.
    let is_program = number(&fields, 9) & PF_KTHREAD == 0;
    let priority = u8::try_from(number(&fields, 40)).unwrap_or(u8::MAX);
    is_program.then(|| Task { thread, name: name.into(), policy, priority })
}

fn kernel_priority(stat: &str) -> u8 {
    let Some((_, fields)) = fields(stat) else { return 0 };
    match number(&fields, 41) {
        SCHED_FIFO | SCHED_RR => u8::try_from(number(&fields, 40)).unwrap_or(0),
        _ => 0,
    }
}

/// The files of a process that are on the disk (or are it), open for writing with O_SYNC or
/// O_DSYNC.
fn sync_files(dir: &Path, process: u32, numbers: &[u64]) -> io::Result<Vec<SyncWriter>> {
    let mut found = Vec::new();
    for file in numbered(&dir.join("fd"))? {
        let link = dir.join(format!("fd/{file}"));
        let info = fs::read_to_string(dir.join(format!("fdinfo/{file}"))).unwrap_or_default();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|text| i32::from_str_radix(text.trim(), 8).ok()).unwrap_or(0);
        // O_SYNC contains O_DSYNC.
        if flags & libc::O_DSYNC == 0 || flags & libc::O_ACCMODE == libc::O_RDONLY {
            continue;
        }
        let Ok(meta) = fs::metadata(&link) else { continue };
        if numbers.contains(&meta.dev()) || numbers.contains(&meta.rdev()) {
            let path = fs::read_link(&link).unwrap_or(link);
            found.push(SyncWriter { process, path });
        }
    }
    Ok(found)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A thread's `stat` with the fields that are read: PF_ flags, priority, policy.
    fn stat(thread: u32, name: &str, flags: u64, priority: u8, policy: u64) -> String {
        let parent = if flags == 0 { "1" } else { KTHREADD };
        let fields: Vec<String> = (3..=52)
            .map(|field| match field {
                3 => "S".into(),
                4 => parent.into(),
                9 => flags.to_string(),
                40 => priority.to_string(),
                41 => policy.to_string(),
                _ => "0".into(),
            })
            .collect();
        format!("{thread} ({name}) {}\n", fields.join(" "))
    }

    fn put(root: &Path, path: &str, text: &str) {
        let file = root.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    fn put_thread(proc: &Path, thread: u32, stat: &str) {
        put(proc, &format!("{thread}/stat"), stat);
        put(proc, &format!("{thread}/task/{thread}/stat"), stat);
        fs::create_dir_all(proc.join(format!("{thread}/fd"))).unwrap();
    }

    /// The directories of a system with a card, at the sysfs path `path`.
    fn roots(dir: &Path, path: &str) -> Roots {
        let roots = ["sys", "proc", "modules"].map(|name| dir.join(name));
        let [sys, proc, modules] = roots.clone();
        let disk = format!("devices/{path}/block/mmcblk0");
        for (name, text) in [
            ("queue/scheduler", "none [mq-deadline] k2\n"),
            ("queue/write_cache", "write back\n"),
            ("queue/fua", "0\n"),
            ("queue/nr_requests", "64\n"),
            ("queue/iosched/async_depth", "48\n"),
            ("device/cmdq_en", "1\n"),
            ("device/type", "MMC\n"),
        ] {
            put(&sys, &format!("{disk}/{name}"), text);
        }
        fs::create_dir_all(sys.join("block")).unwrap();
        symlink(sys.join(&disk), sys.join("block/mmcblk0")).unwrap();
        put(&proc, "sys/kernel/osrelease", "6.12.3+deb13-amd64\n");
        put_thread(&proc, 2, &stat(2, "kthreadd", PF_KTHREAD, 0, 0));
        fs::create_dir_all(sys.join("kernel/debug/mmc0")).unwrap();
        put(&modules, "modules.dep", "kernel/a.ko.xz: kernel/b.ko\nextra/k2.ko.xz:\n");
        Roots { sys, proc, modules }
    }

    #[test]
    fn a_card_is_read_as_sysfs_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let system = System::read(&roots(dir.path(), "platform/mmc_host"), "mmcblk0", &[]).unwrap();
        let disk = &system.disk;
        assert_eq!((system.kernel, disk.scheduler.as_str()), ((6, 12), "mq-deadline"));
        assert_eq!(disk.schedulers, ["none", "mq-deadline", "k2"]);
        assert!(disk.write_back && !disk.fua && disk.is_card && disk.is_emmc && disk.command_queue);
        assert!(!disk.behind_usb && disk.tags == 64 && system.k2_installed);
        let depth = AsyncDepth { file: "queue/iosched/async_depth", tags: 48 };
        assert_eq!(disk.async_depth, Some(depth));
        assert_eq!(system.unseen, [""; 0]);
    }

    #[test]
    fn a_drive_with_paths_has_their_scheduler_and_tags() {
        let dir = tempfile::tempdir().unwrap();
        let roots = roots(dir.path(), "platform");
        for (name, scheduler) in [
            ("nvme0c0n1", "none [k2]"),
            ("nvme0c1n1", "[none] k2"),
            ("nvme0c0n2", "[bfq]"),
            ("nvme1c0n1", "[bfq]"),
        ] {
            put(&roots.sys, &format!("block/{name}/queue/scheduler"), scheduler);
            put(&roots.sys, &format!("block/{name}/queue/nr_requests"), "1023\n");
        }
        // As Linux 6.12 shows it.
        fs::create_dir_all(roots.sys.join("block/nvme0n1/queue")).unwrap();
        let disk = System::read(&roots, "nvme0n1", &[]).unwrap().disk;
        assert_eq!((disk.scheduler.as_str(), disk.tags), ("none", 1_023));
        assert_eq!(disk.paths, ["nvme0c0n1", "nvme0c1n1"]);
        let path = System::read(&roots, "nvme0c0n1", &[]).unwrap().disk;
        assert_eq!((path.scheduler.as_str(), path.paths.len()), ("k2", 0));
    }

    #[test]
    fn usb_is_a_folder_above_the_disk() {
        let dir = tempfile::tempdir().unwrap();
        let system = System::read(&roots(dir.path(), "pci/usb2/2-1"), "mmcblk0", &[]).unwrap();
        assert!(system.disk.behind_usb);
    }

    #[test]
    fn programs_of_realtime_are_told_from_the_kernels_threads_and_workers() {
        let dir = tempfile::tempdir().unwrap();
        let roots = roots(dir.path(), "platform/mmc_host/mmc0");
        put_thread(&roots.proc, 16, &stat(16, "migration/0", PF_KTHREAD, 99, SCHED_FIFO));
        put_thread(&roots.proc, 20, &stat(20, "kworker/0:1H-kblockd", PF_KTHREAD, 60, SCHED_FIFO));
        put_thread(&roots.proc, 21, &stat(21, "kworker/1:0H", PF_KTHREAD, 0, 0));
        put_thread(&roots.proc, 22, &stat(22, "irq/38-mmc0", PF_KTHREAD, 50, SCHED_FIFO));
        put_thread(&roots.proc, 23, &stat(23, "irq/39-mmc1", PF_KTHREAD, 40, SCHED_FIFO));
        put_thread(&roots.proc, 70, &stat(70, "a) b (c", 0, 10, SCHED_FIFO));
        put(&roots.proc, "70/task/71/stat", &stat(71, "loop", 0, 20, SCHED_RR));
        put(&roots.proc, "70/task/72/stat", &stat(72, "edf", 0, 0, SCHED_DEADLINE));
        put_thread(&roots.proc, 80, &stat(80, "sh", 0, 0, 0));
        let system = System::read(&roots, "mmcblk0", &[]).unwrap();
        assert_eq!((system.workers, system.interrupts), (vec![60, 0], vec![50]));
        let found: Vec<_> =
            system.realtime.iter().map(|t| (t.thread, t.name.as_str(), t.policy)).collect();
        let wanted = [
            (70, "a) b (c", Policy::Fifo),
            (71, "loop", Policy::RoundRobin),
            (72, "edf", Policy::Deadline),
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn what_proc_hides_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let roots = roots(dir.path(), "platform");
        fs::remove_dir_all(roots.proc.join(KTHREADD)).unwrap();
        let system = System::read(&roots, "mmcblk0", &[]).unwrap();
        assert!(system.unseen[0].contains("hidepid"), "{:?}", system.unseen);
    }

    #[test]
    fn limits_of_control_groups_are_found_by_the_disk() {
        let dir = tempfile::tempdir().unwrap();
        let roots = roots(dir.path(), "platform");
        let limit = "179:0 rbps=max wbps=1048576 riops=max wiops=max";
        put(&roots.sys, "fs/cgroup/a.slice/b.service/io.max", &format!("{limit}\n8:0 rbps=1\n"));
        put(&roots.sys, "fs/cgroup/a.slice/io.latency", "");
        put(&roots.sys, "fs/cgroup/io.cost.qos", "179:0 enable=0 ctrl=auto\n8:0 enable=1\n");
        let number = rustix::fs::makedev(179, 0);
        let system = System::read(&roots, "mmcblk0", &[number]).unwrap();
        let file = roots.sys.join("fs/cgroup/a.slice/b.service/io.max");
        assert_eq!(system.cgroup_limits, [CgroupLimit { file, line: limit.into() }]);
    }

    #[test]
    fn ext4_without_lazytime_is_found_by_its_device() {
        let dir = tempfile::tempdir().unwrap();
        let roots = roots(dir.path(), "platform");
        let lines = "30 1 179:1 / / rw,relatime shared:1 - ext4 /dev/root rw\n\
                     31 1 179:2 / /data rw - ext4 /dev/mmcblk0p2 rw,lazytime\n\
                     32 1 179:2 / /more rw - vfat /dev/mmcblk0p2 rw\n\
                     33 1 8:1 / /other rw - ext4 /dev/sda1 rw\n\
                     34 1 179:1 / /image ro - ext4 /dev/mmcblk0p1 ro\n";
        put(&roots.proc, "self/mountinfo", lines);
        let numbers = [1, 2].map(|minor| rustix::fs::makedev(179, minor));
        let system = System::read(&roots, "mmcblk0", &numbers).unwrap();
        assert_eq!(system.without_lazytime, [PathBuf::from("/")]);
    }

    #[test]
    fn swap_and_files_with_o_sync_are_found_by_their_device() {
        let dir = tempfile::tempdir().unwrap();
        let roots = roots(dir.path(), "platform");
        let file = dir.path().join("my data");
        fs::write(&file, "").unwrap();
        let escaped = file.display().to_string().replace(' ', "\\040");
        // Nodes that are not there: of the disk, and of one whose name begins alike.
        let nodes = "/dev/mmcblk0p77 partition 8 0 -3\n/dev/mmcblk0p777 partition 8 0 -3\n";
        fs::create_dir_all(roots.sys.join("block/mmcblk0/mmcblk0p77")).unwrap();
        put(&roots.proc, "swaps", &format!("Filename\n{escaped} file 8 0 -2\n{nodes}"));
        put_thread(&roots.proc, 70, &stat(70, "logger", 0, 0, 0));
        for (number, flags) in [("3", "02"), ("4", "0110001"), ("5", "04010002"), ("6", "04010000")]
        {
            symlink(&file, roots.proc.join(format!("70/fd/{number}"))).unwrap();
            put(
                &roots.proc,
                &format!("70/fdinfo/{number}"),
                &format!("pos:\t0\nflags:\t{flags}\n"),
            );
        }
        let number = fs::metadata(&file).unwrap().dev();
        let system = System::read(&roots, "mmcblk0", &[number]).unwrap();
        assert_eq!(system.swaps, [file.clone(), "/dev/mmcblk0p77".into()]);
        let writer = SyncWriter { process: 70, path: file };
        assert_eq!(system.sync_writers, [writer.clone(), writer], "4 and 5: O_DSYNC, O_SYNC");
        let other = System::read(&roots, "mmcblk0", &[number + 1]).unwrap();
        assert!(other.swaps == [PathBuf::from("/dev/mmcblk0p77")] && other.sync_writers.is_empty());
    }
}
