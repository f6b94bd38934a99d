// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a thread did between two moments: running, runnable or asleep; and which thread ran on that CPU meanwhile.
//!
//! Nothing is guessed. A thread that is switched out without having been switched in, or continues without a wakeup, is
//! incomplete, and then nothing is reported of it.

use std::collections::HashMap;

use crate::event::Comm;
use crate::sched::{Context, Sched, SchedEvent, SchedTask, SchedWhat, Switch};

/// A time in which a thread did one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stay {
    pub from_ns: u64,
    pub to_ns: u64,
    pub doing: Doing,
}

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// It runs; includes interrupts on that CPU.
    Running,
    /// It is runnable, waiting for a CPU.
    Ready {
        /// The CPU that it got then, if it did.
        cpu: Option<u32>,
        /// How it was woken; `None` if it was preempted.
        woken: Option<Woken>,
    },
    /// It sleeps.
    Asleep {
        /// How it was woken, if it was.
        woken: Option<Woken>,
    },
}

/// How a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Woken {
    /// When, in ns.
    pub at_ns: u64,
    /// When it had fallen asleep, in ns.
    pub slept_since_ns: u64,
    /// In the context of which thread.
    pub by: (u32, Comm),
    /// Thread, softirq or interrupt, if known.
    pub context: Option<Context>,
    /// By the completion of the request that completed then, in ns.
    pub completed_ns: Option<u64>,
}

/// As records have it.
pub fn context_word(context: Context) -> &'static str {
    match context {
        Context::Thread => "thread",
        Context::Softirq => "softirq",
        Context::Interrupt => "interrupt",
    }
}

/// What `pid` did from one moment, in which it was running, to another, in which it was too if `runs_at_end`; without
/// gaps. `None` if it is incomplete.
pub fn stays(
    sched: &Sched,
    pid: u32,
    (from_ns, to_ns): (u64, u64),
    runs_at_end: bool,
) -> Option<Vec<Stay>> {
    let mut of = Thread { stays: Vec::new(), since_ns: from_ns, state: State::Running(None) };
    let mut switches = 0;
    let own = sched.of_thread_after(pid, from_ns);
    for event in own.take_while(|event| event.time_ns <= to_ns) {
        match event.what {
            SchedWhat::Switch(switch) if switch.prev.pid == pid => of.leave(event, switch)?,
            SchedWhat::Switch(switch) if switch.next.pid == pid => of.get_cpu(event)?,
            SchedWhat::Waking { waking, by, completed_ns } if waking.woken.pid == pid => {
                let (at_ns, context) = (event.time_ns, waking.context);
                of.wake(Woken { at_ns, slept_since_ns: at_ns, by, context, completed_ns });
                continue;
            }
            _ => continue,
        }
        switches += 1;
    }
    // Without one, it may be a thread whose switches were not traced.
    let (first_ns, last_ns) = sched.seen_ns(pid)?;
    if switches == 0 && !(first_ns <= from_ns && to_ns <= last_ns) {
        return None;
    }
    let doing = match of.state {
        State::Running(_) => Doing::Running,
        _ if runs_at_end => return None,
        State::Ready(woken) => Doing::Ready { cpu: None, woken },
        State::Asleep(_) => Doing::Asleep { woken: None },
    };
    of.end(to_ns, doing);
    Some(of.stays)
}

/// A thread, while its events are read.
struct Thread {
    stays: Vec<Stay>,
    since_ns: u64,
    state: State,
}

enum State {
    /// With the last wakeup in that time: another CPU may wake it before it is switched out.
    Running(Option<Woken>),
    Ready(Option<Woken>),
    /// With that wakeup, until another comes.
    Asleep(Option<Woken>),
}

impl Thread {
    fn end(&mut self, to_ns: u64, doing: Doing) {
        if to_ns > self.since_ns {
            self.stays.push(Stay { from_ns: self.since_ns, to_ns, doing });
        }
        self.since_ns = to_ns;
    }

    fn leave(&mut self, event: &SchedEvent, switch: Switch) -> Option<()> {
        let State::Running(early) = self.state else { return None };
        self.end(event.time_ns, Doing::Running);
        self.state = if switch.runnable { State::Ready(None) } else { State::Asleep(early) };
        Some(())
    }

    /// The first wakeup counts: `sched_wakeup` follows `sched_waking`.
    fn wake(&mut self, waker: Woken) {
        match &mut self.state {
            State::Running(last) => *last = Some(waker),
            State::Ready(_) => {}
            State::Asleep(_) => {
                let woken = self.after_sleep(waker);
                self.end(waker.at_ns, Doing::Asleep { woken: Some(woken) });
                self.state = State::Ready(Some(woken));
            }
        }
    }

    /// The wakeup, with the sleep that it ends.
    fn after_sleep(&self, waker: Woken) -> Woken {
        let slept_since_ns = self.since_ns;
        Woken { at_ns: waker.at_ns.max(slept_since_ns), slept_since_ns, ..waker }
    }

    fn get_cpu(&mut self, event: &SchedEvent) -> Option<()> {
        let woken = match self.state {
            State::Running(_) => return None,
            State::Ready(woken) => woken,
            // No sleep ends without a wakeup, so it is the one that came while it was still running.
            State::Asleep(early) => Some(self.after_sleep(early?)),
        };
        self.end(event.time_ns, Doing::Ready { cpu: Some(event.cpu), woken });
        self.state = State::Running(None);
        Some(())
    }
}

/// Which thread ran on `cpu` for most of the time, and how long for certain: only between a switch to a thread and the
/// next one, if that is from the same thread. If that is never so, or only some threads were traced, which ran last.
pub fn had_cpu(
    sched: &Sched,
    cpu: u32,
    (from_ns, to_ns): (u64, u64),
) -> Option<(SchedTask, Option<u64>)> {
    let mut had: HashMap<u32, (u64, SchedTask)> = HashMap::new();
    let (mut since_ns, mut last, mut running) = (from_ns, None, at(sched, cpu, from_ns));
    for event in behind(sched, from_ns).filter(|event| event.cpu == cpu) {
        let until_ns = event.time_ns.min(to_ns);
        match event.what {
            SchedWhat::Switch(Switch { prev, next, .. }) => {
                // The first switch of all on this CPU shows which thread has run since the trace began.
                if running.is_none_or(|running| running == Some(prev.pid)) {
                    had.entry(prev.pid).or_insert((0, prev)).0 += until_ns - since_ns;
                }
                (last, running) = (Some(prev), Some(Some(next.pid)));
            }
            SchedWhat::Lost => running = Some(None),
            SchedWhat::Waking { .. } => continue,
        }
        since_ns = until_ns;
        if event.time_ns >= to_ns {
            break;
        }
    }
    // Of equal ones, the lower number: a map has no order.
    let longest = had.into_values().max_by_key(|(ns, task)| (*ns, std::cmp::Reverse(task.pid)));
    match longest.filter(|(ns, _)| *ns > 0 && sched.is_of_all()) {
        Some((ns, task)) => Some((task, Some(ns))),
        None => last.map(|task| (task, None)),
    }
}

/// Which thread runs on `cpu` at that moment, by the last switch; `Some(None)` after a loss.
fn at(sched: &Sched, cpu: u32, ns: u64) -> Option<Option<u32>> {
    let events = sched.events();
    let before = events[..events.partition_point(|event| event.time_ns <= ns)].iter().rev();
    let told = |event: &SchedEvent| match event.what {
        SchedWhat::Switch(switch) => Some(Some(switch.next.pid)),
        SchedWhat::Lost => Some(None),
        SchedWhat::Waking { .. } => None,
    };
    before.filter(|event| event.cpu == cpu).find_map(told)
}

/// The events after a moment.
fn behind(sched: &Sched, from_ns: u64) -> impl Iterator<Item = &SchedEvent> {
    let events = sched.events();
    events[events.partition_point(|event| event.time_ns <= from_ns)..].iter()
}
