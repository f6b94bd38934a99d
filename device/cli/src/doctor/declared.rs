// SPDX-License-Identifier: MIT OR Apache-2.0
//! Findings about declared tasks: those that k2 does not guard, and those that broke something.
//! Pure, like `findings`, which calls it.

use steadyio_watch::declared::Task;

use super::finding::{Finding, finding};
use super::system::System;

pub fn all(system: &System) -> Vec<Finding> {
    let disk = &system.disk.name;
    let unarmed = system.declared.iter().filter(|task| !task.is_armed());
    let faulty = system.declared.iter().flat_map(|task| faults(disk, task));
    unarmed.map(|task| not_armed(disk, task)).chain(faulty).collect()
}

fn name(disk: &str, task: &Task) -> String {
    format!("the task that process {} declared on level {} of {disk}", task.pid, task.level)
}

/// A finding about a task that is not armed. docs/reference/k2.md has the states.
fn not_armed(disk: &str, task: &Task) -> Finding {
    let advice = match task.state.as_str() {
        "no-limits" => format!("device_limits is not set: run steady apply for /dev/{disk}"),
        "block-too-short" => {
            "its block_us is below the limit of a 4 KiB command: state a longer one, which steady \
             bound computes"
                .into()
        }
        "level-taken" => "another task of the same owner has this level: give it its own".into(),
        "owner-gone" => {
            "its process has ended, but another one has the file open: end that, too".into()
        }
        _ => format!("echo k2 > /sys/block/{disk}/queue/scheduler arms it again"),
    };
    let text = format!("{} is not armed: {}", name(disk, task), task.state);
    Finding { advice: Some(advice), ..finding("declared-unarmed", text) }
}

/// Advice for each count; the worst first.
const ADVICE: [(&str, &str); 11] = [
    ("over_k2", "k2 should have kept it: please report this, with rt_declared and the trace"),
    ("over_device", "a command took longer than device_limits: probe the device for longer"),
    (
        "over_dispatch",
        "the driver began a command late: raise the priority of the disk's kworkers, or command_us",
    ),
    ("over_bypass", "a flush, or on 6.1 a durable write, was with the device: keep them off it"),
    ("over_forced", "background had waited for background_wait_ms_max: raise it, or set it to 0"),
    ("over_early_job", "jobs come earlier than declared: state the jitter that the task has"),
    ("over_late_job", "jobs come later than declared: state the jitter that the task has"),
    ("foreign", "other programs use its level, and are served below it: give them another one"),
    ("early", "jobs come earlier than declared: state the jitter that the task has"),
    ("late", "jobs come later than declared: state the jitter that the task has"),
    ("interrupted", "another scheduler was selected while the task was armed"),
];

/// One finding per task: all its counts, and advice for the worst of them.
fn faults(disk: &str, task: &Task) -> Option<Finding> {
    let (_, advice) = ADVICE.iter().find(|(name, _)| task.fault(name) > 0)?;
    let counted = task.faults.iter().filter(|(_, count)| *count > 0);
    let counts: Vec<String> = counted.map(|(name, count)| format!("{name} {count}")).collect();
    let text = format!("{}: {} in {} jobs", name(disk, task), counts.join(", "), task.jobs);
    Some(Finding { advice: Some((*advice).into()), ..finding("declared-faults", text) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(state: &str, faults: &[(&str, u64)]) -> System {
        let faults = faults.iter().map(|(name, count)| (name.to_string(), *count)).collect();
        let (level, pid, jobs) = (2, 71, 500);
        let task = Task { level, pid, jobs, faults, state: state.into(), ..Task::default() };
        let mut system = System { declared: vec![task], ..System::default() };
        system.disk.name = "mmcblk0".into();
        system
    }

    #[test]
    fn an_armed_task_without_faults_is_no_finding() {
        assert_eq!(all(&system("armed", &[("late", 0), ("over_k2", 0)])), []);
    }

    #[test]
    fn a_task_that_is_not_armed_says_why_and_what_helps() {
        for (state, part) in [
            ("no-limits", "steady apply"),
            ("block-too-short", "steady bound"),
            ("level-taken", "give it its own"),
            ("owner-gone", "end that, too"),
            ("no-k2", "echo k2"),
        ] {
            let found = all(&system(state, &[]));
            assert_eq!(found.len(), 1);
            assert_eq!(found[0].id, "declared-unarmed");
            let text = &found[0].text;
            assert!(text.contains("process 71") && text.ends_with(state), "{text}");
            assert!(found[0].advice.as_deref().unwrap_or_default().contains(part), "{found:?}");
        }
    }

    #[test]
    fn faults_are_all_named_and_the_worst_has_the_advice() {
        let found = all(&system("armed", &[("late", 2), ("over_device", 1)]));
        assert_eq!(found.len(), 1);
        let text = &found[0].text;
        assert!(text.ends_with(": late 2, over_device 1 in 500 jobs"), "{text}");
        assert!(found[0].advice.as_deref().unwrap_or_default().contains("probe"), "{found:?}");
    }
}
