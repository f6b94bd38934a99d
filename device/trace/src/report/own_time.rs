// SPDX-License-Identifier: MIT OR Apache-2.0
//! The causes of an I/O's time in which none of its requests was queued or in flight: what its own thread did.

use super::cause::{Cause, Facts};
use super::rows::Item;
use super::thread_time::{Doing, Stay, Woken, had_cpu};
use super::waiting::Waiting;
use super::words::{by, count, thread, us};
use crate::intervals::Intervals;
use crate::sched::SchedTask;

/// All that is known; no request was queued or in flight in `idle`.
pub fn causes(waiting: &Waiting, item: &Item, idle: &Intervals) -> Vec<Cause> {
    let served_ns = item.own.iter().map(|request| request.end_ns()).max().unwrap_or(0);
    let before = Intervals::new([(item.row.at_ns, served_ns)]);
    let spans = [("submission", idle.overlap(&before)), ("post", idle.minus(&before))];
    let stays = waiting.stays(item);
    let mut causes = Vec::new();
    for (span, when) in spans {
        let Some(stays) = &stays else { continue };
        let met = |doing| met(stays, &when, doing);
        causes.extend(met(Doing::Running).map(|met| {
            let text = format!("of {span} running on a CPU");
            Cause::new(met.ns, "running", Facts::of("span", span), &text)
        }));
        causes.extend(met(Doing::Asleep).map(|met| asleep(span, &met)));
        causes.extend(met(Doing::Ready).map(|met| cpu_wait(waiting, span, &when, &met)));
    }
    causes.push(dirty_throttle(waiting, item, idle, stays.as_deref()));
    let locked = waiting.locked.during(item.row.pid, item.during_ns()).overlap(idle);
    let times = locked.iter().count() as u64;
    let text = format!("waiting for a lock of the kernel ({})", count(times, "time"));
    causes.push(Cause::new(locked.total_ns(), "lock", Facts::of("times", times), &text));
    causes
}

fn asleep(span: &'static str, met: &Met) -> Cause {
    let (from_ns, to_ns) = met.longest;
    let waker = met.stay.woken.map(|woken| waker(&woken, from_ns));
    let (facts, end) = match waker {
        Some(Waker { facts, by, .. }) => (Some(facts), format!("woken {by}")),
        None => (None, "to the end of the I/O".into()),
    };
    let text = match met.times {
        1 => format!("of {span} asleep, {end}"),
        times => {
            format!("of {span} asleep {times} times, longest {} us, {end}", us(to_ns - from_ns))
        }
    };
    let longest = Facts::of("ns", to_ns - from_ns).and_all("woken", facts);
    let facts = Facts::of("span", span).and("times", met.times).and_all("longest", longest);
    Cause::new(met.ns, "asleep", facts, &text)
}

/// Its thread was runnable, waiting for a CPU.
fn cpu_wait(waiting: &Waiting, span: &'static str, when: &Intervals, met: &Met) -> Cause {
    let (from_ns, to_ns) = met.longest;
    let cpu = met.stay.cpu;
    let had = cpu.and_then(|cpu| had_cpu(&waiting.trace.sched, cpu, met.longest));
    let (had_facts, had) = had.map(|(task, ns)| had_by(&task, ns)).unzip();
    let begin_ns = when.iter().map(|(begin, _)| begin).filter(|begin| *begin <= from_ns).max();
    let waker = met.stay.woken.map(|woken| waker(&woken, begin_ns.unwrap_or(from_ns)));
    let (woken, before) = match waker {
        Some(Waker { facts, slept_ns: Some(ns), by }) => {
            (Some(facts), format!("woken after {} us {by}", us(ns)))
        }
        Some(Waker { facts, slept_ns: None, by }) => (Some(facts), format!("woken before {by}")),
        None => (None, "preempted".into()),
    };
    let many = match met.times {
        1 => String::new(),
        times => format!("a CPU {times} times, longest {} us for ", us(to_ns - from_ns)),
    };
    let on = cpu.map_or("a CPU".into(), |cpu| format!("CPU {cpu}"));
    let had: String = had.unwrap_or_default();
    let text = format!("of {span} runnable, waiting for {many}{on}{had}, {before}");
    let longest = Facts::of("ns", to_ns - from_ns)
        .and("cpu", cpu)
        .and_all("woken", woken)
        .and_all("had_cpu", had_facts);
    let facts = Facts::of("span", span).and("times", met.times).and_all("longest", longest);
    Cause::new(met.ns, "cpu_wait", facts, &text)
}

/// The thread that ran on a CPU and for how long, if that is known; its priority is in the terms of `chrt` and `nice`.
fn had_by(task: &SchedTask, ns: Option<u64>) -> (Facts, String) {
    let (class, priority, text) = match (task.pid, task.prio) {
        (0, _) => ("idle", None, String::new()),
        (_, prio) if prio < 0 => ("deadline", None, "deadline".into()),
        (_, prio) if prio < 100 => {
            ("real_time", Some(99 - prio), format!("real-time {}", 99 - prio))
        }
        (_, prio) => ("normal", Some(prio - 120), format!("nice {}", prio - 120)),
    };
    let comm = task.comm.to_string();
    let name = thread(&comm, task.pid);
    let text = match (task.pid, ns) {
        (0, Some(ns)) => format!(", idle for {} us of it", us(ns)),
        (0, None) => ", idle before".into(),
        (_, Some(ns)) => format!(" where {name}, {text}, ran for {} us of it", us(ns)),
        (_, None) => format!(" where {name}, {text}, ran last"),
    };
    let facts = Facts::of("pid", task.pid).and("comm", comm).and("class", class);
    (facts.and("priority", priority).and("ns", ns), text)
}

struct Waker {
    facts: Facts,
    /// How long it had slept by then, within the span; `None` if it was woken before the span began.
    slept_ns: Option<u64>,
    by: String,
}

fn waker(woken: &Woken, begin_ns: u64) -> Waker {
    let (pid, comm) = (woken.by.0, woken.by.1.to_string());
    let slept_ns = woken.at_ns.checked_sub(begin_ns.max(woken.slept_since_ns));
    let by = by(&comm, pid, woken.context);
    let facts = Facts::of("slept_ns", slept_ns).and("pid", pid).and("comm", comm);
    let facts = facts.and("context", woken.context.map(|on| on.into_str()));
    Waker { facts, slept_ns, by }
}

/// The event has the length of the pause; where sleep is known, only that counts.
fn dirty_throttle(
    waiting: &Waiting,
    item: &Item,
    idle: &Intervals,
    stays: Option<&[Stay]>,
) -> Cause {
    let (from_ns, to_ns) = item.during_ns();
    let mut paused = waiting.paused.during(item.row.pid, (from_ns, to_ns)).overlap(idle);
    if let Some(stays) = stays {
        let asleep = stays.iter().filter(|stay| stay.doing == Doing::Asleep);
        paused = paused.overlap(&Intervals::new(asleep.map(|stay| (stay.from_ns, stay.to_ns))));
    }
    let all = &waiting.trace.dirty_pauses;
    let first = all.partition_point(|pause| pause.begin_ns < from_ns);
    let begun = all[first..].iter().take_while(|pause| pause.begin_ns < to_ns);
    let own = begun.filter(|pause| pause.pid == item.row.pid && pause.end_ns > pause.begin_ns);
    let times = own.count();
    let text = format!("throttled in balance_dirty_pages ({})", count(times as u64, "pause"));
    Cause::new(paused.total_ns(), "dirty_throttle", Facts::of("times", times), &text)
}

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
