// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lists the threads of a running process and of all its descendants, for `--pid`.

use std::fs;

use anyhow::bail;
use steadyio_trace::source::capture::names::threads_of;
use steadyio_trace::source::pid_namespace;

/// The threads that exist now. task_newtask events show later ones.
pub fn running(pid: u32) -> anyhow::Result<Vec<u32>> {
    let mut found = Vec::new();
    let mut open = vec![pid];
    while let Some(process) = open.pop() {
        for thread in threads_of(process) {
            found.push(thread);
            open.extend(children(process, thread));
        }
    }
    if found.is_empty() { bail!("--pid {pid}: no such process") } else { Ok(found) }
}

/// Rejects `--pid` in a namespace other than the initial one. Events have the numbers of the
/// initial PID namespace.
pub fn refuse_other_namespace() -> anyhow::Result<()> {
    if pid_namespace::other_than_initial().is_some() {
        bail!(
            "--pid: process numbers in this container differ from those in events (run steady \
             outside of it, or in one that shares the host's PID namespace, or start the program \
             with `-- PROGRAM`)"
        );
    }
    Ok(())
}

fn children(process: u32, thread: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{process}/task/{thread}/children"));
    list.unwrap_or_default().split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_its_threads_and_children() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let found = running(std::process::id()).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.contains(&child.id()), "its child");
        assert!(found.len() > 2, "this thread besides the main one: {found:?}");
    }

    #[test]
    fn a_process_that_is_not_there_is_named() {
        let error = running(u32::MAX).unwrap_err().to_string();
        assert_eq!(error, format!("--pid {}: no such process", u32::MAX));
    }
}
