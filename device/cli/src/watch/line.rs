// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints one line per disk and interval, for users.

use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::time::{Duration, UNIX_EPOCH};

use steadyio_watch::declared::ARMED;
use steadyio_watch::interval::{
    BlockedInterval, ClassInterval, DeclaredInterval, DiskInterval, OperationInterval,
};
use steadyio_watch::recorder::RecorderInterval;
use steadyio_watch::watch::{Device, Interval};

const HEAD: &str = "time      disk          class requests p50/p99/longest ms ...\n";
const HEAD_EVERY: u64 = 20;

/// The lines, with a header: repeated in a terminal, once in a file.
pub struct Lines {
    is_terminal: bool,
    shown: u64,
}

impl Lines {
    pub fn new() -> Lines {
        Lines { is_terminal: io::stdout().is_terminal(), shown: 0 }
    }

    pub fn of(&mut self, interval: &Interval) -> String {
        let has_head = self.shown == 0 || self.is_terminal && self.shown % HEAD_EVERY == 0;
        let mut text = if has_head { HEAD.to_string() } else { String::new() };
        self.shown += 1;
        let time = clock(interval.now_ns);
        for device in &interval.devices {
            text += &format!("{time} {:<12}  {}\n", device.device, of_device(device));
        }
        for recorder in &interval.recorders {
            text += &format!("{time} recorder {}  {}\n", recorder.socket, of_recorder(recorder));
        }
        text
    }
}

/// The time of day in UTC.
fn clock(now_ns: u64) -> String {
    let now = UNIX_EPOCH + Duration::from_secs(now_ns / 1_000_000_000);
    let text = humantime::format_rfc3339_seconds(now).to_string();
    text.split('T').next_back().unwrap_or_default().to_string()
}

fn of_device(device: &Device) -> String {
    let Some(scheduler) = &device.scheduler else { return "is not there".into() };
    let mut text = match &device.interval {
        None => "seen for the first time".into(),
        Some(interval) => of_interval(scheduler, interval),
    };
    if let Some(ratio) = device.wear.as_ref().and_then(|wear| wear.used_ratio) {
        let _ = write!(text, "  wear {:.0} %", ratio * 100.0);
    }
    text
}

fn of_interval(scheduler: &str, interval: &DiskInterval) -> String {
    let mut parts = Vec::new();
    match &interval.classes {
        Some(classes) => {
            parts.extend(classes.iter().map(of_class));
            let late: u64 = classes.iter().map(|class| class.late).sum();
            parts.push(format!("late {late}"));
        }
        None => {
            parts.push(scheduler.to_string());
            parts.push(of_operation("reads", &interval.reads));
            parts.push(of_operation("writes", &interval.writes));
            parts.push(format!("busy {:.0} %", interval.busy_ratio * 100.0));
        }
    }
    parts.extend(interval.blocked.as_ref().map(of_blocked));
    parts.extend(interval.declared.iter().map(of_declared));
    parts.join("  ")
}

fn ms(ns: Option<u64>) -> String {
    ns.map_or("-".into(), |ns| format!("{:.2}", ns as f64 / 1e6))
}

fn of_class(class: &ClassInterval) -> String {
    let ClassInterval { class: name, count, p50_ns, p99_ns, max_ns, late, .. } = class;
    let late = if *late > 0 { format!(" ({late} late)") } else { String::new() };
    format!("{name} {count} {}/{}/{}{late}", ms(*p50_ns), ms(*p99_ns), ms(*max_ns))
}

fn of_operation(name: &str, operation: &OperationInterval) -> String {
    match operation.mean_ns {
        Some(mean_ns) => format!("{name} {} mean {}", operation.count, ms(Some(mean_ns))),
        None => format!("{name} 0"),
    }
}

fn of_blocked(blocked: &BlockedInterval) -> String {
    let mut text = format!("blocked {}", blocked.count);
    if let Some(sum_ns) = blocked.sum_ns.filter(|sum_ns| *sum_ns > 0) {
        let _ = write!(text, " for {} ms", ms(Some(sum_ns)));
    }
    if blocked.over > 0 {
        let _ = write!(text, " ({} too long)", blocked.over);
    }
    text
}

fn of_declared(task: &DeclaredInterval) -> String {
    let mut words = vec![format!("declared rt{}", task.level)];
    if task.state != ARMED {
        words.push(format!("is not armed ({})", task.state));
    }
    words.extend(task.faults.iter().map(|(name, count)| format!("{name} {count}")));
    words.join(" ")
}

fn of_recorder(recorder: &RecorderInterval) -> String {
    let Some(state) = &recorder.state else { return "does not answer".into() };
    let RecorderInterval { received, lost, late_syncs, .. } = recorder;
    format!("{state}  received {received}  lost {lost}  late syncs {late_syncs}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_shows_what_was_late() {
        let class = ClassInterval {
            class: "rt4",
            count: 100,
            p50_ns: Some(310_000),
            p99_ns: Some(5_120_000),
            max_ns: Some(6_144_000),
            late: 2,
            deadline_ns: Some(5_000_000),
        };
        assert_eq!(of_class(&class), "rt4 100 0.31/5.12/6.14 (2 late)");
    }

    #[test]
    fn waits_show_how_long_and_which_broke_the_bound() {
        let blocked = BlockedInterval {
            count: 3,
            over: 1,
            unguarded: 1,
            sum_ns: Some(1_200_000),
            ..BlockedInterval::default()
        };
        assert_eq!(of_blocked(&blocked), "blocked 3 for 1.20 ms (1 too long)");
    }

    #[test]
    fn a_declared_task_shows_its_state_and_what_it_broke() {
        let faults = [("late".into(), 2), ("over_device".into(), 1)].into();
        let mut task = DeclaredInterval { level: 2, pid: 7, state: ARMED.into(), faults };
        assert_eq!(of_declared(&task), "declared rt2 late 2 over_device 1");
        (task.state, task.faults) = ("no-limits".into(), [].into());
        assert_eq!(of_declared(&task), "declared rt2 is not armed (no-limits)");
    }

    #[test]
    fn times_are_of_the_day() {
        assert_eq!(clock(1_764_120_902_500_000_000), "01:35:02Z");
    }
}
