// SPDX-License-Identifier: MIT OR Apache-2.0
//! The durations of calls and the reasons for which they waited: by call, thread, process, cgroup
//! and file. It also lists the calls that queued no request of their own. `record` and
//! `shown` use it.

use std::collections::BTreeSet;

use serde::Serialize;

use super::distribution::Distribution;
use super::own_time::WaitsAlike;
use super::rows::Item;
use super::shown::Shown;
use super::thread_time::{Doing, stays};
use super::waited_for::WaitedFor;
use super::waiting::Wait;
use super::words::us;
use super::{by_key, sorted};
use crate::event::Call;
use crate::intervals::Intervals;
use crate::io::{Io, Processes, Trace};
use crate::sched::Sched;

/// All calls of one name, including those with requests of their own.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallSum {
    /// The kernel's name of the call, or `page_fault`.
    pub call: &'static str,
    pub count: u64,
    /// The sum of their durations, in ns.
    pub sum_ns: u64,
    /// The time per thing waited for, in ns, the largest first. The sum is `sum_ns`.
    pub waits: Vec<WaitSum>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaitSum {
    pub waited_for: &'static str,
    pub ns: u64,
}

/// All I/Os and other calls of one thread, process, cgroup or file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallsOf {
    /// The number of the thread or process. For a cgroup or a path, the number of the thread that
    /// made the last call.
    pub pid: u32,
    /// The thread's name at the last call. For a process, the name of the thread that made it.
    pub comm: String,
    /// The cgroup, in a table of cgroups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
    /// The file, in a table of files, if its path is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The file descriptor, in a table of files, if the path is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fd: Option<i32>,
    pub ios: u64,
    /// The number of bytes that its I/Os moved.
    pub bytes: u64,
    /// The sum of their durations, in ns.
    pub sum_ns: u64,
    #[serde(flatten)]
    pub times: Distribution,
    /// For a thread: the CPU time from the end of one I/O to the end of the next, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_per_io: Option<Distribution>,
}

/// Calls of one kind, without a request of their own, that waited mostly for the same thing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallGroup {
    /// `read`, `write`, or the name of another call.
    pub op: &'static str,
    pub waited_for: &'static str,
    /// The sum of their durations, in ns.
    pub sum_ns: u64,
    #[serde(flatten)]
    pub times: Distribution,
}

/// One of the longest calls.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorstCall {
    /// The time of the call in ns, on the trace's clock.
    pub at_ns: u64,
    pub total_ns: u64,
    pub call: &'static str,
    /// The file of its descriptor, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    pub pid: u32,
    pub comm: String,
    /// Whether some of its own requests are unknown.
    pub incomplete: bool,
    /// Its waits, the longest first.
    pub waits: Vec<CallWait>,
}

/// The total time that one call waited for one thing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallWait {
    #[serde(rename = "waited_for")]
    pub what: WaitedFor,
    pub ns: u64,
    pub times: u64,
    pub text: String,
}

/// Calls by name, the longest sum first.
pub fn sums(shown: &Shown) -> Vec<CallSum> {
    let all = shown.ios.iter().chain(&shown.calls);
    let by_call = by_key(all.filter_map(|item| Some((item.row.call?, item))));
    let sums = by_call.into_iter().map(|(call, items)| {
        let waits = by_key(items.iter().flat_map(|item| item.waits.iter()));
        let sums = waits.into_iter().map(|(what, ns)| (what.into_str(), ns.into_iter().sum()));
        let waits = sorted(sums.map(|(waited_for, ns)| WaitSum { waited_for, ns }), |sum| sum.ns);
        let sum_ns = waits.iter().map(|wait| wait.ns).sum();
        CallSum { call, count: items.len() as u64, sum_ns, waits }
    });
    sorted(sums, |sum| sum.sum_ns)
}

/// The common value of a row's calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Whose<'a> {
    /// A thread or process.
    Pid(u32),
    Cgroup(&'a str),
    /// An index into [`Trace::files`].
    File(usize),
    /// The descriptor of a process, if its file is unknown.
    Fd(u32, i32),
}

/// Calls grouped by `key`, the longest sum first.
pub fn of<'a>(shown: &Shown, key: impl Fn(&Io) -> Option<Whose<'a>>) -> Vec<CallsOf> {
    let all = shown.calls.iter().chain(&shown.ios);
    let alike = by_key(all.filter_map(|item| Some((key(item.io?)?, item))));
    let sums = alike.into_iter().filter_map(|(whose, items)| {
        let named = items.iter().filter(|item| !item.row.comm.is_empty());
        let last = named.max_by_key(|item| item.during_ns().1).or(items.first())?;
        let pid = match whose {
            Whose::Pid(pid) | Whose::Fd(pid, _) => pid,
            Whose::Cgroup(_) | Whose::File(_) => last.row.pid,
        };
        let times_ns: Vec<u64> = items.iter().map(|item| item.row.total_ns).collect();
        Some(CallsOf {
            pid,
            comm: last.row.comm.clone(),
            cgroup: last.row.cgroup.clone().filter(|_| matches!(whose, Whose::Cgroup(_))),
            path: last.row.path.clone().filter(|_| matches!(whose, Whose::File(_))),
            fd: if let Whose::Fd(_, fd) = whose { Some(fd) } else { None },
            ios: items.iter().filter(|item| !item.own.is_empty()).count() as u64,
            bytes: items.iter().filter_map(|item| item.row.bytes).sum(),
            sum_ns: times_ns.iter().sum(),
            times: Distribution::of(times_ns)?,
            cpu_per_io: None,
        })
    });
    sorted(sums, |sum| sum.sum_ns)
}

/// Calls by thread, the longest sum first.
pub fn of_threads(shown: &Shown) -> Vec<CallsOf> {
    let of_threads = by_key(shown.ios.iter().map(|item| (item.row.pid, item)));
    let mut threads = of(shown, |io| Some(Whose::Pid(io.pid)));
    for thread in &mut threads {
        let ios = of_threads.get(&thread.pid);
        thread.cpu_per_io = ios.and_then(|ios| cpu_per_io(&shown.waiting.trace.sched, ios));
    }
    threads
}

/// The CPU time of a thread from the end of one I/O to the end of the next, which `steady bound`
/// adds to the time of its I/Os. The first I/O has no such time. `None` if some of its switches are
/// unknown, or if it has several I/Os at once.
fn cpu_per_io(sched: &Sched, ios: &[&Item]) -> Option<Distribution> {
    let call = |item: &Item| item.io.map(|io| io.call);
    if ios.iter().any(|item| matches!(call(item), Some(Call::IoUringEnter | Call::IoSubmit))) {
        return None;
    }
    let mut ends_ns: Vec<u64> = ios.iter().map(|item| item.during_ns().1).collect();
    ends_ns.sort_unstable();
    let ran = |ends: &[u64]| {
        let stays = stays(sched, ios[0].row.pid, (ends[0], ends[1]), true)?;
        let running = stays.iter().filter(|stay| stay.doing == Doing::Running);
        Some(running.map(|stay| stay.to_ns - stay.from_ns).sum())
    };
    Distribution::of(ends_ns.windows(2).map(ran).collect::<Option<_>>()?)
}

/// Calls without a request of their own, the longest sum first.
pub fn groups(calls: &[Item]) -> Vec<CallGroup> {
    let alike = by_key(calls.iter().map(|item| ((item.row.op, item.most()), item.row.total_ns)));
    let groups = alike.into_iter().filter_map(|((op, what), times_ns)| {
        let (sum_ns, waited_for) = (times_ns.iter().sum(), what.into_str());
        Some(CallGroup { op, waited_for, sum_ns, times: Distribution::of(times_ns)? })
    });
    sorted(groups, |group| group.sum_ns)
}

/// The owner of a call's file: process and file descriptor. For io_uring and aio, the submitting
/// thread.
fn file_of(io: &Io, processes: &Processes) -> (u32, Option<i32>) {
    (if io.fd.is_some() { processes.of(io.pid) } else { io.pid }, io.fd)
}

/// Whether a call without a request of its own concerns storage. A read, a write, or a call that
/// fetches completions may be for a socket or a pipe. It concerns storage if it waited for storage,
/// or if other calls on the same file, or operations of the same thread, had requests.
fn is_of_storage(item: &Item, files: &BTreeSet<(u32, Option<i32>)>, processes: &Processes) -> bool {
    use WaitedFor::{Cpu, Lock, Running, Unknown, Worker};
    let Some(io) = item.io else { return false };
    let fetches = matches!(io.call, Call::IoUringEnter | Call::IoGetevents | Call::IoPgetevents);
    let may_be_elsewhere = (io.call.moves_data() || fetches) && !io.incomplete;
    let tells = |what: &WaitedFor| !matches!(what, Cpu | Lock | Running | Unknown | Worker);
    let file = if fetches { (io.pid, None) } else { file_of(io, processes) };
    !may_be_elsewhere || item.waits.keys().any(tells) || files.contains(&file)
}

/// The longest calls on storage without a request of their own.
pub fn worst(shown: &Shown, count: usize) -> Vec<WorstCall> {
    let waiting = &shown.waiting;
    let Trace { ios, processes, .. } = waiting.trace;
    let files: BTreeSet<_> = ios.iter().map(|io| file_of(io, processes)).collect();
    let of_storage = shown.calls.iter().filter(|item| is_of_storage(item, &files, processes));
    let longest = sorted(of_storage, |item| item.row.total_ns).into_iter().take(count);
    let worst = longest.filter_map(|item| {
        let waits = by_key(waiting.of(item).into_iter().map(|wait| (wait.what, wait)));
        let all_its_time = Intervals::new([item.during_ns()]);
        let wait = |(what, waits): (WaitedFor, Vec<Wait>)| {
            let alike = WaitsAlike::of(&waits)?;
            let (_, text) = alike.describe(&waiting.trace.sched, &all_its_time);
            let WaitsAlike { ns, times, .. } = alike;
            Some(CallWait { what, ns, times, text: format!("{} us {text}", us(ns)) })
        };
        Some(WorstCall {
            at_ns: item.row.at_ns,
            total_ns: item.row.total_ns,
            call: item.row.call?,
            path: item.row.path.clone(),
            pid: item.row.pid,
            comm: item.row.comm.clone(),
            incomplete: item.io?.incomplete,
            waits: sorted(waits.into_iter().filter_map(wait), |wait| wait.ns),
        })
    });
    worst.collect()
}
