// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names and numbers of threads, from `/proc`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::source::pid_namespace;

/// All threads, their names and, where they are not the first of one, their processes, as far as they stay long enough to
/// be read; added to what is known. None where they have other numbers than in events.
pub fn add_threads(names: &mut BTreeMap<u32, String>, processes: &mut BTreeMap<u32, u32>) {
    if pid_namespace::other_than_initial().is_some() {
        return;
    }
    for process in numbers(Path::new("/proc")) {
        for thread in threads_of(process) {
            if let Ok(name) = fs::read_to_string(format!("/proc/{process}/task/{thread}/comm")) {
                names.insert(thread, name.trim_end_matches('\n').to_string());
                if thread != process {
                    processes.insert(thread, process);
                }
            }
        }
    }
}

/// The threads of a process, none if it is gone.
pub fn threads_of(process: u32) -> Vec<u32> {
    numbers(Path::new(&format!("/proc/{process}/task")))
}

/// Those of this process.
pub fn own_threads() -> Vec<u32> {
    threads_of(std::process::id())
}

fn numbers(dir: &Path) -> Vec<u32> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut all: Vec<u32> =
        entries.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok()).collect();
    all.sort_unstable();
    all
}
