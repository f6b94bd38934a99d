// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names and numbers of threads, from `/proc`.

use std::fs;

use super::folder::Meta;
use crate::source::pid_namespace;

impl Meta {
    /// All threads that are there now, as far as they stay long enough to be read. None where they have other numbers
    /// than in events.
    pub(super) fn add_threads(&mut self) {
        if pid_namespace::other_than_initial().is_some() {
            return;
        }
        for process in numbers("/proc") {
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

/// The threads of a process, none if it is gone.
pub fn threads_of(process: u32) -> Vec<u32> {
    numbers(&format!("/proc/{process}/task"))
}

fn numbers(dir: &str) -> Vec<u32> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut all: Vec<u32> =
        entries.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok()).collect();
    all.sort_unstable();
    all
}
