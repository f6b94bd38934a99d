// SPDX-License-Identifier: MIT OR Apache-2.0
//! Causes in words, for people: the terminal and the lab's report print the field `text` of the record as it is.
//!
//! Each text begins with its time in us. None has a semicolon, so that a page can list several in one line.

use super::cause::{CpuWait, Fact, HadCpu, Other, Sleep, Waker};
use super::words::{self, behalf, count, op_and_size, thread, us};

impl Fact {
    pub(super) fn text(&self) -> String {
        match self {
            Fact::Behind { requests, longest, .. } => {
                let requests = count(*requests, "request");
                format!("queued in the block layer behind {requests} in flight, {}", other(longest))
            }
            Fact::Shared { requests, longest, .. } => {
                let requests = count(*requests, "other request");
                format!("in flight together with {requests}, {}", other(longest))
            }
            Fact::Flush { own: true, .. } => "in its own flush".into(),
            Fact::Flush { requests, .. } => {
                format!("with {} in flight", count(*requests, "flush"))
            }
            Fact::Discard { own: true, .. } => "in its own discard".into(),
            Fact::Discard { requests, .. } => {
                format!("with {} in flight", count(*requests, "discard"))
            }
            Fact::Requeued { times, .. } => {
                format!("requeued by the driver {}", count(*times, "time"))
            }
            Fact::Pieces { pieces, .. } => format!("between the {pieces} pieces it was served in"),
            Fact::Cut { requests, .. } => {
                format!("between completions: the bio was split into {requests} requests")
            }
            Fact::Merged { bios, .. } => {
                format!("until the last bio was merged into it ({})", count(*bios, "merge"))
            }
            Fact::DeviceSlow { op, bytes, device_ns, p50_ns, of_count, others, .. } => format!(
                "because the device was slower than usual: {} us for {} (median {} of {of_count} \
                 alike), {}",
                us(*device_ns),
                op_and_size(op, *bytes),
                us(*p50_ns),
                beside(*others)
            ),
            Fact::TagWait => "waiting for a tag, or throttled".into(),
            Fact::Journal { requests, .. } => pending(*requests, "journal request"),
            Fact::Writeback { requests, .. } => pending(*requests, "writeback request"),
            Fact::Running { span, .. } => format!("of {span} running on a CPU"),
            Fact::CpuWait { span, times, longest, .. } => cpu_wait(span, *times, longest),
            Fact::Asleep { span, times, longest, .. } => asleep(span, *times, longest),
            Fact::DirtyThrottle { times, .. } => {
                format!("throttled in balance_dirty_pages ({})", count(*times, "pause"))
            }
            Fact::Lock { times, .. } => {
                format!("waiting for a lock of the kernel ({})", count(*times, "time"))
            }
        }
    }
}

fn beside(others: u64) -> String {
    match others {
        0 => "no other in flight".into(),
        others => format!("{} in flight", count(others, "other")),
    }
}

fn pending(requests: u64, one: &str) -> String {
    format!("with {} pending and none of its own", count(requests, one))
}

/// The request that was in the way for longest.
fn other(other: &Other) -> String {
    let pieces =
        if other.pieces > 1 { format!(", {} pieces", other.pieces) } else { String::new() };
    format!(
        "longest: {} sector {} by {}, {}{pieces}, {} of its {} us in flight",
        op_and_size(other.op, other.bytes),
        other.sector,
        thread(&other.comm, other.pid),
        behalf(other.origin, other.inode),
        us(other.overlap_ns),
        us(other.device_ns)
    )
}

fn cpu_wait(span: &str, times: u64, wait: &CpuWait) -> String {
    let cpu = wait.cpu.map_or("a CPU".into(), |cpu| format!("CPU {cpu}"));
    let had = wait.had_cpu.as_ref().map_or_else(String::new, had_cpu);
    let before = match &wait.woken {
        Some(waker) => woken(waker),
        None => "preempted".into(),
    };
    match times {
        1 => format!("of {span} runnable, waiting for {cpu}{had}, {before}"),
        times => format!(
            "of {span} runnable, waiting for a CPU {times} times, longest {} us for {cpu}{had}, \
             {before}",
            us(wait.ns)
        ),
    }
}

fn asleep(span: &str, times: u64, sleep: &Sleep) -> String {
    let end = match &sleep.woken {
        Some(waker) => format!("woken {}", by(waker)),
        None => "to the end of the I/O".into(),
    };
    match times {
        1 => format!("of {span} asleep, {end}"),
        times => format!("of {span} asleep {times} times, longest {} us, {end}", us(sleep.ns)),
    }
}

fn had_cpu(had: &HadCpu) -> String {
    let name = thread(&had.comm, had.pid);
    let priority = match (had.class, had.priority) {
        ("real_time", Some(priority)) => format!("real-time {priority}"),
        ("normal", Some(nice)) => format!("nice {nice}"),
        (class, _) => class.into(),
    };
    match (had.class, had.ns) {
        ("idle", Some(ns)) => format!(", idle for {} us of it", us(ns)),
        ("idle", None) => ", idle before".into(),
        (_, Some(ns)) => format!(" where {name}, {priority}, ran for {} us of it", us(ns)),
        (_, None) => format!(" where {name}, {priority}, ran last"),
    }
}

fn woken(waker: &Waker) -> String {
    match waker.slept_ns {
        Some(ns) => format!("woken after {} us {}", us(ns), by(waker)),
        None => format!("woken before {}", by(waker)),
    }
}

fn by(waker: &Waker) -> String {
    words::by(&waker.comm, waker.pid, waker.context)
}
