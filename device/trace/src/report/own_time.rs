// SPDX-License-Identifier: MIT OR Apache-2.0
//! Describes a thread's waits and activity, in words and as facts. For a call without a request
//! they fill its whole time; for an I/O, the time in which none of its requests was queued or in
//! flight. `case` and `calls` use it.

use serde_json::{Value, json};

use super::by_key;
use super::cause::Cause;
use super::rows::Item;
use super::thread_time::{Woken, had_cpu};
use super::waited_for::WaitedFor;
use super::waiting::{Wait, Waiting, length};
use super::words::{by, count, request_text, thread, us};
use crate::event::SchedTask;
use crate::intervals::Intervals;
use crate::sched::Sched;

/// The causes by span and kind of wait. In `idle`, no request of the I/O was queued or in flight.
pub fn causes(waiting: &Waiting, item: &Item, idle: &Intervals) -> Vec<Cause> {
    let served_ns = item.own.iter().map(|request| request.end_ns()).max().unwrap_or(0);
    let span = |wait: &Wait| if wait.from_ns < served_ns { "submission" } else { "post" };
    let is_known = |wait: &Wait| wait.what != WaitedFor::Unknown || wait.stay.is_some();
    let is_idle = |wait: &Wait| !idle.within(wait.from_ns, wait.to_ns).is_empty();
    let waits = waiting.of(item).into_iter().filter(|wait| is_known(wait) && is_idle(wait));
    let alike = by_key(waits.map(|wait| ((span(&wait), wait.what), wait)));
    let cause = |((span, what), waits): ((&'static str, WaitedFor), Vec<Wait>)| {
        let alike = WaitsAlike::of(&waits)?;
        let (longest, text) = alike.describe(&waiting.trace.sched, idle);
        let facts = json!({
            "span": span, "waited_for": what, "times": alike.times, "longest": longest,
        });
        Some(Cause::new(alike.ns, "own_thread", facts, &format!("of {span} {text}")))
    };
    alike.into_iter().filter_map(cause).collect()
}

/// Waits for the same thing.
pub struct WaitsAlike<'a> {
    pub ns: u64,
    pub times: u64,
    longest: Wait<'a>,
}

impl<'a> WaitsAlike<'a> {
    /// Groups the waits; `None` if there are none.
    pub fn of(waits: &[Wait<'a>]) -> Option<WaitsAlike<'a>> {
        let longest = *waits.iter().max_by_key(|wait| length(wait))?;
        let (ns, times) = (waits.iter().map(length).sum(), waits.len() as u64);
        Some(WaitsAlike { ns, times, longest })
    }

    /// The longest wait as facts, and all of them in words. In `idle`, no request of the thread was
    /// queued or in flight.
    pub fn describe(&self, sched: &Sched, idle: &Intervals) -> (Value, String) {
        let Wait { what, from_ns, to_ns, stay, request } = self.longest;
        let woken = stay.and_then(|stay| stay.woken).map(|woken| waker(&woken, from_ns, idle));
        let cpu = stay.filter(|_| what == WaitedFor::Cpu).and_then(|stay| stay.cpu);
        let had = cpu.and_then(|cpu| had_cpu(sched, cpu, (from_ns, to_ns)));
        let (had_facts, had) = had.map(|(task, ns)| had_by(&task, ns)).unzip();
        let mut text = match (what, stay) {
            (WaitedFor::Unknown, Some(_)) => "asleep".to_string(),
            _ => what.title().to_string(),
        };
        if self.times > 1 {
            text += &format!(" {}, longest {} us", count(self.times, "time"), us(to_ns - from_ns));
        }
        text += &request.map_or(String::new(), |request| format!(": {}", request_text(request)));
        text += &cpu.map_or(String::new(), |cpu| format!(": CPU {cpu}{}", had.unwrap_or_default()));
        text += &match &woken {
            _ if request.is_some() => String::new(),
            Some(Waker { slept_ns: Some(ns), by, .. }) if what == WaitedFor::Cpu => {
                format!(", woken after {} us {by}", us(*ns))
            }
            Some(Waker { by, .. }) if what == WaitedFor::Cpu => format!(", woken before {by}"),
            Some(Waker { by, .. }) => format!(", woken {by}"),
            None if what == WaitedFor::Cpu => ", preempted".into(),
            None => String::new(),
        };
        let woken = woken.map(|woken| woken.facts);
        let ns = to_ns - from_ns;
        (json!({"ns": ns, "cpu": cpu, "woken": woken, "had_cpu": had_facts}), text)
    }
}

/// The thread that had a CPU, and for how long, if known. Its priority is printed in the terms of
/// `chrt` and `nice`.
fn had_by(task: &SchedTask, ns: Option<u64>) -> (Value, String) {
    let (class, priority, text) = match (task.pid, task.prio) {
        (0, _) => ("idle", None, String::new()),
        (_, ..0) => ("deadline", None, "deadline".into()),
        (_, prio @ ..100) => ("real_time", Some(99 - prio), format!("real-time {}", 99 - prio)),
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
    let facts = json!({
        "pid": task.pid, "comm": comm, "class": class, "priority": priority, "ns": ns,
    });
    (facts, text)
}

struct Waker {
    facts: Value,
    /// The length of its sleep until then without a request of its own; `None` if it was woken
    /// before that.
    slept_ns: Option<u64>,
    by: String,
}

/// The waker that ended the sleep in which the thread was at `from_ns`, or an earlier sleep.
fn waker(woken: &Woken, from_ns: u64, idle: &Intervals) -> Waker {
    let idle = idle.within(0, from_ns + 1);
    let begin_ns = idle.iter().next_back().map_or(from_ns, |(begin, _)| begin);
    let slept_ns = woken.at_ns.checked_sub(begin_ns.max(woken.slept_since_ns));
    let (pid, comm) = (woken.by.0, woken.by.1.to_string());
    let by = by(&comm, pid, woken.context);
    let context = woken.context.map(|on| on.into_str());
    let facts = json!({"slept_ns": slept_ns, "pid": pid, "comm": comm, "context": context});
    Waker { facts, slept_ns, by }
}
