// SPDX-License-Identifier: MIT OR Apache-2.0
//! The causes of an I/O's time in which none of its requests was queued or in flight: what its own thread did.

use super::cause::{CpuWait, Fact, HadCpu, Sleep, Waker};
use super::rows::Item;
use super::thread_time::{Doing, Stay, Woken, had_cpu};
use super::waiting::Waiting;
use super::words::context_word;
use crate::intervals::Intervals;
use crate::sched::SchedTask;

/// All that is known, each with its time in ns; no request was queued or in flight in `idle`.
pub fn facts(waiting: &Waiting, item: &Item, idle: &Intervals) -> Vec<(u64, Fact)> {
    let served_ns = item.own.iter().map(|request| request.end_ns()).max().unwrap_or(0);
    let before = Intervals::new([(item.row.at_ns, served_ns)]);
    let spans = [("submission", idle.overlap(&before)), ("post", idle.minus(&before))];
    let stays = waiting.stays(item);
    let mut facts = Vec::new();
    for (stays, (span, when)) in
        stays.iter().flat_map(|stays| spans.iter().map(move |of| (stays, of)))
    {
        let running = met(stays, when, Doing::Running);
        facts.extend(running.map(|met| (met.ns, Fact::Running { span })));
        facts.extend(met(stays, when, Doing::Asleep).map(|met| (met.ns, asleep(span, &met))));
        let ready = met(stays, when, Doing::Ready);
        facts.extend(ready.map(|met| (met.ns, cpu_wait(waiting, span, when, &met))));
    }
    facts.push(dirty_throttle(waiting, item, idle, stays.as_deref()));
    let locked = waiting.locked.during(item.row.pid, item.during_ns()).overlap(idle);
    facts.push((locked.total_ns(), Fact::Lock { times: locked.iter().count() as u64 }));
    facts
}

fn asleep(span: &'static str, met: &Met) -> Fact {
    let (from_ns, to_ns) = met.longest;
    let woken = met.stay.woken.map(|woken| waker(&woken, from_ns));
    let longest = Box::new(Sleep { ns: to_ns - from_ns, woken });
    Fact::Asleep { span, times: met.times, longest }
}

fn cpu_wait(waiting: &Waiting, span: &'static str, when: &Intervals, met: &Met) -> Fact {
    let (from_ns, to_ns) = met.longest;
    let cpu = met.stay.cpu;
    let had_cpu = cpu.and_then(|cpu| had_cpu(&waiting.trace.sched, cpu, met.longest));
    let begin_ns = when.iter().map(|(begin, _)| begin).filter(|begin| *begin <= from_ns).max();
    let woken = met.stay.woken.map(|woken| waker(&woken, begin_ns.unwrap_or(from_ns)));
    let had_cpu = had_cpu.map(words_of_task);
    let longest = Box::new(CpuWait { ns: to_ns - from_ns, cpu, woken, had_cpu });
    Fact::CpuWait { span, times: met.times, longest }
}

/// The event has the length of the pause; where sleep is known, only that counts.
fn dirty_throttle(
    waiting: &Waiting,
    item: &Item,
    idle: &Intervals,
    stays: Option<&[Stay]>,
) -> (u64, Fact) {
    let (from_ns, to_ns) = item.during_ns();
    let mut paused = waiting.paused.during(item.row.pid, (from_ns, to_ns)).overlap(idle);
    if let Some(stays) = stays {
        let asleep = stays.iter().filter(|stay| stay.doing == Doing::Asleep);
        paused = paused.overlap(&Intervals::new(asleep.map(|stay| (stay.from_ns, stay.to_ns))));
    }
    let all = &waiting.trace.dirty_pauses;
    let first = all.partition_point(|pause| pause.begin_ns < from_ns);
    let times = all[first..].iter().take_while(|pause| pause.begin_ns < to_ns);
    let times = times.filter(|pause| pause.pid == item.row.pid && pause.pause_ns > 0).count();
    (paused.total_ns(), Fact::DirtyThrottle { times: times as u64 })
}

/// Stays of one kind.
struct Met<'a> {
    ns: u64,
    times: u64,
    /// The part of `stay` that lies in those moments.
    longest: (u64, u64),
    stay: &'a Stay,
}

fn met<'a>(stays: &'a [Stay], when: &Intervals, doing: Doing) -> Option<Met<'a>> {
    let of_kind = stays.iter().filter(|stay| stay.doing == doing);
    let parts = of_kind.flat_map(|stay| {
        let parts = when.within(stay.from_ns, stay.to_ns).to_vec();
        parts.into_iter().map(move |part| (part, stay))
    });
    let parts: Vec<((u64, u64), &Stay)> = parts.collect();
    let ns = parts.iter().map(|((from, to), _)| to - from).sum();
    let times = parts.len() as u64;
    let (longest, stay) = parts.into_iter().max_by_key(|((from, to), _)| to - from)?;
    Some(Met { ns, times, longest, stay })
}

/// The waker, and how long the thread had slept by then, within the span that began at `begin_ns`.
fn waker(woken: &Woken, begin_ns: u64) -> Waker {
    let (pid, comm) = woken.by;
    let slept_ns = woken.at_ns.checked_sub(begin_ns.max(woken.slept_since_ns));
    let context = woken.context.map(context_word);
    Waker { slept_ns, pid, comm: comm.to_string(), context }
}

/// The kernel's priority in the terms of `chrt` and `nice`.
fn words_of_task((task, ns): (SchedTask, Option<u64>)) -> HadCpu {
    let (class, priority) = match task {
        SchedTask { pid: 0, .. } => ("idle", None),
        SchedTask { prio, .. } if prio < 0 => ("deadline", None),
        SchedTask { prio, .. } if prio < 100 => ("real_time", Some(99 - prio)),
        SchedTask { prio, .. } => ("normal", Some(prio - 120)),
    };
    HadCpu { pid: task.pid, comm: task.comm.to_string(), class, priority, ns }
}
