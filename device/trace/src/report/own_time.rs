// SPDX-License-Identifier: MIT OR Apache-2.0
//! The causes of an I/O's time in which none of its requests was queued or in flight: what its own thread did.

use super::cause::{Cause, CpuWait, Fact, HadCpu, Sleep, Waker};
use super::thread_time::{Doing, Stay, Woken, context_word, had_cpu, stays};
use crate::event::Call;
use crate::intervals::Intervals;
use crate::io::{DirtyPause, Io, Trace};
use crate::sched::SchedTask;

/// An I/O, and when none of its requests was queued or in flight.
pub struct OwnTime<'a> {
    trace: &'a Trace,
    io: &'a Io,
    /// Before the completion of its last request, and after it.
    spans: [(&'static str, Intervals); 2],
    /// `None` if not all of it is known.
    stays: Option<Vec<Stay>>,
}

impl<'a> OwnTime<'a> {
    /// Of this I/O, with no request queued or in flight in `idle`; its last request completed at `served_ns`.
    pub fn new(trace: &'a Trace, io: &'a Io, idle: &Intervals, served_ns: u64) -> OwnTime<'a> {
        let before = Intervals::new([(io.entered_ns, served_ns)]);
        let spans = [("submission", idle.overlap(&before)), ("post", idle.minus(&before))];
        // An io_uring operation can complete while its thread sleeps.
        let runs_at_end = io.call != Call::IoUringEnter;
        let stays = stays(&trace.sched, io.pid, (io.entered_ns, io.exited_ns), runs_at_end);
        OwnTime { trace, io, spans, stays }
    }

    /// All that is known.
    pub fn causes(&self) -> Vec<Cause> {
        let of_threads = self.stays.iter().flat_map(|stays| {
            let of = |(span, when): &(&'static str, Intervals)| {
                [
                    running(stays, span, when),
                    asleep(stays, span, when),
                    self.ready(stays, span, when),
                ]
            };
            self.spans.iter().flat_map(of)
        });
        of_threads.chain([self.dirty_throttle(), self.lock()]).flatten().collect()
    }

    fn ready(&self, stays: &[Stay], span: &'static str, when: &Intervals) -> Option<Cause> {
        let is_ready = |doing: &Doing| matches!(doing, Doing::Ready { .. });
        let Met { ns, times, longest, stay } = met(stays, when, is_ready)?;
        let Doing::Ready { cpu, woken } = stay.doing else { return None };
        let sched = &self.trace.sched;
        let had_cpu = cpu.and_then(|cpu| had_cpu(sched, cpu, longest)).map(words_of_task);
        let begin_ns =
            when.iter().map(|(begin, _)| begin).filter(|begin| *begin <= longest.0).max();
        let woken = woken.map(|woken| waker(&woken, begin_ns.unwrap_or(longest.0)));
        let longest = Box::new(CpuWait { ns: longest.1 - longest.0, cpu, woken, had_cpu });
        Some(Fact::CpuWait { span, times, longest }.lasting(ns))
    }

    fn lock(&self) -> Option<Cause> {
        let (begin, end) = (self.io.entered_ns, self.io.exited_ns);
        let own = self.trace.lock_waits.iter().filter(|wait| wait.pid == self.io.pid);
        let own = own.filter(|wait| wait.begin_ns < end && begin < wait.end_ns);
        let waits = Intervals::new(own.map(|wait| (wait.begin_ns, wait.end_ns)));
        let [(_, before), (_, behind)] = &self.spans;
        let met = waits.overlap(&before.union(behind));
        let times = met.iter().count() as u64;
        (times > 0).then_some(Fact::Lock { times }.lasting(met.total_ns()))
    }

    /// The event has the length of the pause; where sleep is known, only that counts.
    fn dirty_throttle(&self) -> Option<Cause> {
        let all = &self.trace.dirty_pauses;
        let (begin, end) = (self.io.entered_ns, self.io.exited_ns);
        let first = all.partition_point(|pause| pause.begin_ns < begin);
        let own: Vec<_> = all[first..]
            .iter()
            .take_while(|pause| pause.begin_ns < end)
            .filter(|pause| pause.pid == self.io.pid)
            .collect();
        let lasts = |(index, pause): (usize, &&DirtyPause)| {
            let next_ns = own.get(index + 1).map_or(end, |next| next.begin_ns);
            (pause.begin_ns, next_ns.min(pause.begin_ns.saturating_add(pause.pause_ns)))
        };
        let mut paused = Intervals::new(own.iter().enumerate().map(lasts));
        if let Some(stays) = &self.stays {
            let asleep = stays.iter().filter(|stay| matches!(stay.doing, Doing::Asleep { .. }));
            paused = paused.overlap(&Intervals::new(asleep.map(|stay| (stay.from_ns, stay.to_ns))));
        }
        let [(_, before), (_, behind)] = &self.spans;
        let ns = paused.overlap(&before.union(behind)).total_ns();
        let times = own.iter().filter(|pause| pause.pause_ns > 0).count() as u64;
        (ns > 0).then_some(Fact::DirtyThrottle { times }.lasting(ns))
    }
}

fn running(stays: &[Stay], span: &'static str, when: &Intervals) -> Option<Cause> {
    let met = met(stays, when, |doing| *doing == Doing::Running)?;
    Some(Fact::Running { span }.lasting(met.ns))
}

fn asleep(stays: &[Stay], span: &'static str, when: &Intervals) -> Option<Cause> {
    let is_asleep = |doing: &Doing| matches!(doing, Doing::Asleep { .. });
    let Met { ns, times, longest: (from_ns, to_ns), stay } = met(stays, when, is_asleep)?;
    let Doing::Asleep { woken } = stay.doing else { return None };
    let woken = woken.map(|woken| waker(&woken, from_ns));
    Some(
        Fact::Asleep { span, times, longest: Box::new(Sleep { ns: to_ns - from_ns, woken }) }
            .lasting(ns),
    )
}

/// Stays of one kind.
struct Met<'a> {
    ns: u64,
    times: u64,
    /// The part of `stay` that lies in those moments.
    longest: (u64, u64),
    stay: &'a Stay,
}

fn met<'a>(stays: &'a [Stay], when: &Intervals, is: impl Fn(&Doing) -> bool) -> Option<Met<'a>> {
    let parts: Vec<((u64, u64), &Stay)> = stays
        .iter()
        .filter(|stay| is(&stay.doing))
        .flat_map(|stay| {
            let parts = Intervals::new([(stay.from_ns, stay.to_ns)]).overlap(when).to_vec();
            parts.into_iter().map(move |part| (part, stay))
        })
        .collect();
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
