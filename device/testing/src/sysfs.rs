// SPDX-License-Identifier: MIT OR Apache-2.0
//! A folder like sysfs with disks, whose counters a test sets.

use std::fs;
use std::path::{Path, PathBuf};

const CLASSES: [&str; 11] =
    ["rt0", "rt1", "rt2", "rt3", "rt4", "rt5", "rt6", "rt7", "metadata", "best_effort", "idle"];

/// The folder; dropping it removes the folder.
pub struct Sysfs(tempfile::TempDir);

impl Sysfs {
    pub fn new() -> Sysfs {
        let sysfs = Sysfs(tempfile::tempdir().expect("temporary directory"));
        fs::create_dir_all(sysfs.root().join("block")).expect("block");
        sysfs
    }

    pub fn root(&self) -> &Path {
        self.0.path()
    }

    fn file(&self, disk: &str, file: &str) -> PathBuf {
        self.root().join("block").join(disk).join(file)
    }

    /// Sets a file, and makes it if needed.
    pub fn set(&self, disk: &str, file: &str, text: &str) {
        let path = self.file(disk, file);
        fs::create_dir_all(path.parent().expect("folder")).expect("folder");
        // Atomically, as a reader sees the kernel's files.
        let unfinished = path.with_extension("new");
        fs::write(&unfinished, text).expect("file");
        fs::rename(unfinished, path).expect("file");
    }

    /// A disk without requests under a scheduler that counts nothing.
    pub fn add(&self, disk: &str, scheduler: &str) {
        self.set(disk, "stat", " 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n");
        self.choose(disk, scheduler);
    }

    /// Changes the scheduler as the kernel does: the files of the previous one vanish.
    pub fn choose(&self, disk: &str, scheduler: &str) {
        let _ = fs::remove_dir_all(self.file(disk, "queue/iosched"));
        self.set(disk, "queue/scheduler", &format!("none [{scheduler}]\n"));
        if scheduler != "k2" {
            return;
        }
        for class in CLASSES {
            self.set_latency(disk, class, "count 0 sum_ns 0 max_ns 0 late 0", "");
        }
        let waits = "count 0 over 0 max_ns 0 unguarded 0 max_ns 0 sum_ns 0\n";
        self.set(disk, "queue/iosched/rt_blocked", waits);
        let causes = "stall 0 lane 0 unguarded 0 early 0 background 0 lower 0 rt 0 device 0";
        self.set(disk, "queue/iosched/rt_excess", &format!("{causes} max_ns 0\n"));
        self.set(disk, "queue/iosched/rt_declared", "");
        self.set(disk, "queue/iosched/rt_block_us", "440\n");
        self.set(disk, "queue/iosched/rt_deadline_us", "0 0 0 0 5000 0 0 0\n");
        let counts = "inserted 0 merged 0 dispatched 0 split 0 retried 0 deferred 0 completed 0";
        self.set(disk, "queue/iosched/counts", &format!("rt {counts}\nbackground {counts}\n"));
    }

    pub fn set_latency(&self, disk: &str, class: &str, head: &str, buckets: &str) {
        self.set(disk, &format!("queue/iosched/latency_{class}"), &format!("{head}\n{buckets}\n"));
    }

    pub fn remove(&self, disk: &str) {
        fs::remove_dir_all(self.file(disk, "")).expect("disk");
    }
}

impl Default for Sysfs {
    fn default() -> Sysfs {
        Sysfs::new()
    }
}
