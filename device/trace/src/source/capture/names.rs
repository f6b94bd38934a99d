// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the names, processes and cgroups of threads from `/proc`, at the beginning and end of a
//! capture.

use std::collections::BTreeSet;
use std::fs;

use super::folder::Meta;
use crate::source::pid_namespace;

impl Meta {
    /// Adds all present threads, except those that end while they are read. It adds none in a
    /// namespace with other numbers than those in events.
    pub(super) fn add_threads(&mut self) {
        if pid_namespace::other_than_initial().is_some() {
            return;
        }
        for process in numbers("/proc") {
            self.cgroups.extend(cgroup_of(process).map(|cgroup| (process, cgroup)));
            for thread in threads_of(process) {
                let name = fs::read_to_string(format!("/proc/{process}/task/{thread}/comm"));
                let Ok(name) = name else { continue };
                self.threads.insert(thread, name.trim_end_matches('\n').to_string());
                if thread != process {
                    self.processes.insert(thread, process);
                }
            }
        }
    }
}

/// The threads of a process; empty if the process is gone.
pub fn threads_of(process: u32) -> BTreeSet<u32> {
    numbers(&format!("/proc/{process}/task"))
}

/// The cgroup of a process, in the hierarchy of version 2, or in that of the I/O controller of
/// version 1. `None` if the process is gone.
fn cgroup_of(process: u32) -> Option<String> {
    let lines = fs::read_to_string(format!("/proc/{process}/cgroup")).ok()?;
    let fields = |line| str::split_once(line, ':')?.1.split_once(':');
    let all: Vec<(&str, &str)> = lines.lines().filter_map(fields).collect();
    let has_io = |(controllers, _): &&(&str, &str)| controllers.split(',').any(|of| of == "blkio");
    // The line of version 2 comes last. It names controllers only on systems without version 1.
    all.iter().find(has_io).or(all.last()).map(|(_, path)| path.to_string())
}

pub(super) fn numbers(dir: &str) -> BTreeSet<u32> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok()).collect()
}
