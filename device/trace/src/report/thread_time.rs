// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reconstructs a thread's state between two moments (running, runnable or asleep), and the thread
//! that ran on a CPU. `waiting`, `own_time` and `perfetto` use it.
//!
//! Nothing is guessed. A thread that is switched out without having been switched in, or that
//! continues without a wakeup, has incomplete events. Then it has no result.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::by_key;
use crate::event::{Comm, Context, Event, EventKind, SchedTask, Switch, Waking};
use crate::sched::Sched;

/// A period in which a thread kept one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stay {
    pub from_ns: u64,
    pub to_ns: u64,
    pub doing: Doing,
    /// The end of the sleep before this period, or of this sleep. `None` if the thread was not
    /// woken, or was preempted.
    pub woken: Option<Woken>,
    /// The CPU that it got when it was ready, if any.
    pub cpu: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// It runs, perhaps with interrupts on top.
    Running,
    /// It is runnable, and waits for a CPU.
    Ready,
    Asleep,
}

/// The end of a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Woken {
    pub at_ns: u64,
    pub slept_since_ns: u64,
    /// The thread in whose context the wakeup ran.
    pub by: (u32, Comm),
    /// The context: thread, softirq or interrupt, if known.
    pub context: Option<Context>,
    /// The time in ns of the completed request, if its completion woke the thread.
    pub completed_ns: Option<u64>,
}

/// The states of `pid` from one moment to another, without gaps. It was running at the first
/// moment, and also at the second if `runs_at_end`. `None` if events are incomplete.
pub fn stays(sched: &Sched, pid: u32, when: (u64, u64), runs_at_end: bool) -> Option<Vec<Stay>> {
    let (from_ns, to_ns) = when;
    let doing = Doing::Running;
    let mut of = Thread { stays: Vec::new(), since_ns: from_ns, doing, woken: None };
    let own = sched.of_thread_after(pid, from_ns);
    for event in own.take_while(|event| event.time_ns <= to_ns) {
        match event.what {
            EventKind::Switch(switch) if switch.prev.pid == pid => of.leave(event, switch)?,
            EventKind::Switch(switch) if switch.next.pid == pid => of.get_cpu(event)?,
            EventKind::Waking(Waking { woken, context, completed_ns }) if woken.pid == pid => {
                let (at_ns, by) = (event.time_ns, (event.pid, event.comm));
                of.wake(Woken { at_ns, slept_since_ns: at_ns, by, context, completed_ns });
            }
            _ => {}
        }
    }
    // Without any switch, the switches of this thread may not have been traced.
    let (first_ns, last_ns) = sched.seen_ns(pid)?;
    let is_known = !of.stays.is_empty() || first_ns <= from_ns && to_ns <= last_ns;
    if !is_known || runs_at_end && of.doing != Doing::Running {
        return None;
    }
    let woken = of.woken.filter(|_| of.doing == Doing::Ready);
    of.end(to_ns, woken, None);
    Some(of.stays)
}

/// The state of a thread while its events are read.
struct Thread {
    stays: Vec<Stay>,
    since_ns: u64,
    doing: Doing,
    /// The last wakeup. It may come from another CPU before the thread has left its own.
    woken: Option<Woken>,
}

impl Thread {
    fn end(&mut self, to_ns: u64, woken: Option<Woken>, cpu: Option<u32>) {
        let (from_ns, doing) = (self.since_ns, self.doing);
        if to_ns > from_ns {
            self.stays.push(Stay { from_ns, to_ns, doing, woken, cpu });
        }
        self.since_ns = to_ns;
    }

    fn leave(&mut self, event: &Event, switch: Switch) -> Option<()> {
        if self.doing != Doing::Running {
            return None;
        }
        self.end(event.time_ns, None, None);
        self.doing = if switch.runnable { Doing::Ready } else { Doing::Asleep };
        self.woken = self.woken.filter(|_| !switch.runnable);
        Some(())
    }

    /// Records a wakeup. The first one counts, because `sched_wakeup` follows `sched_waking`.
    fn wake(&mut self, waker: Woken) {
        match self.doing {
            Doing::Running => self.woken = Some(waker),
            Doing::Ready => {}
            Doing::Asleep => {
                self.woken = Some(self.after_sleep(waker));
                self.end(waker.at_ns, self.woken, None);
                self.doing = Doing::Ready;
            }
        }
    }

    /// The wakeup that ends the present sleep.
    fn after_sleep(&self, waker: Woken) -> Woken {
        let slept_since_ns = self.since_ns;
        Woken { at_ns: waker.at_ns.max(slept_since_ns), slept_since_ns, ..waker }
    }

    fn get_cpu(&mut self, event: &Event) -> Option<()> {
        let woken = match self.doing {
            Doing::Running => return None,
            Doing::Ready => self.woken,
            // No sleep ends without a wakeup, so this one came while the thread was still running.
            Doing::Asleep => Some(self.after_sleep(self.woken?)),
        };
        self.doing = Doing::Ready;
        self.end(event.time_ns, woken, Some(event.cpu));
        (self.doing, self.woken) = (Doing::Running, None);
        Some(())
    }
}

/// A period in which a thread certainly had a CPU.
pub struct Run {
    pub cpu: u32,
    pub task: SchedTask,
    pub from_ns: u64,
    pub to_ns: u64,
}

/// The runs: each lasts from a switch to a thread to the next switch on that CPU, if this is from
/// the same thread. The first switch on a CPU shows which thread had it since the beginning of the
/// trace: this run begins at 0.
pub fn runs<'a>(events: impl Iterator<Item = &'a Event>) -> impl Iterator<Item = Run> {
    let mut running: HashMap<u32, Option<(u32, u64)>> = HashMap::new();
    events.filter_map(move |Event { time_ns, cpu, what, .. }| match what {
        EventKind::Switch(Switch { prev, next, .. }) => {
            let before = running.insert(*cpu, Some((next.pid, *time_ns)));
            let (pid, from_ns) = before.unwrap_or(Some((prev.pid, 0)))?;
            let run = Run { cpu: *cpu, task: *prev, from_ns, to_ns: *time_ns };
            (pid == prev.pid).then_some(run)
        }
        EventKind::Lost { .. } => {
            running.insert(*cpu, None);
            None
        }
        _ => None,
    })
}

/// The thread that ran longest on `cpu`, and its certain time. If no time is certain, or only some
/// threads were traced, it is the thread that ran last.
pub fn had_cpu(sched: &Sched, cpu: u32, during_ns: (u64, u64)) -> Option<(SchedTask, Option<u64>)> {
    let (from_ns, to_ns) = during_ns;
    let is_of_cpu = |of: &&Event| of.cpu == cpu && !matches!(of.what, EventKind::Waking(_));
    let events = &sched.events;
    let begin = events.partition_point(|event| event.time_ns <= from_ns);
    let end = events.partition_point(|event| event.time_ns < to_ns).max(begin);
    let before = events[..begin].iter().rev().find(is_of_cpu);
    let until = events[end..].iter().find(is_of_cpu);
    let during = events[begin..end].iter().filter(is_of_cpu).chain(until);
    let had = runs(before.into_iter().chain(during.clone())).map(|run| {
        let ns = run.to_ns.min(to_ns).saturating_sub(run.from_ns.max(from_ns));
        (run.task.pid, (ns, run.task))
    });
    let sums = by_key(had).into_values();
    let sums = sums.map(|had| (had.iter().map(|(ns, _)| ns).sum::<u64>(), had[0].1));
    let longest = sums.max_by_key(|(ns, task)| (*ns, Reverse(task.pid)));
    let last = during.rev().find_map(|event| match event.what {
        EventKind::Switch(switch) => Some(switch.prev),
        _ => None,
    });
    let certain = longest.filter(|(ns, _)| *ns > 0 && sched.of_all);
    certain.map(|(ns, task)| (task, Some(ns))).or(last.map(|task| (task, None)))
}
