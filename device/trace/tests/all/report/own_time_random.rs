// SPDX-License-Identifier: MIT OR Apache-2.0
//! A random scheduler that knows the state of each thread at any time. The report finds all of it,
//! and claims nothing where one event of the thread is missing.

use std::collections::BTreeMap;

use proptest::prelude::*;
use steadyio_trace::event::{Comm, Event, EventKind};
use steadyio_trace::report::thread_time::{Doing, had_cpu, stays};
use steadyio_trace::sched::{Sched, SchedTask, Switch, Waking};

const CPUS: usize = 2;
const THREADS: u32 = 5;
/// The one that is looked at.
const OWN: u32 = 1;
const FROM_NS: u64 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Did {
    Ran,
    Waited,
    Slept,
}

/// A random step: the time until it, the CPU, the kind of step, and a number that chooses a thread.
type Step = (u64, usize, u8, usize);

struct Machine {
    now_ns: u64,
    on: [u32; CPUS],
    ready: Vec<u32>,
    asleep: Vec<u32>,
    events: Vec<Event>,
    /// The thread's state: since when it has it, and which one.
    doing: (u64, Did),
    did: Vec<(u64, u64, Did)>,
    /// Which thread had which CPU, from when to when.
    had: Vec<(usize, u32, u64, u64)>,
    since_ns: [u64; CPUS],
}

fn task(pid: u32) -> SchedTask {
    SchedTask { pid, comm: Comm::default(), prio: 120 }
}

impl Machine {
    fn new() -> Machine {
        let mut machine = Machine {
            now_ns: 1,
            on: [0; CPUS],
            ready: vec![OWN],
            asleep: (2..=THREADS).collect(),
            events: Vec::new(),
            doing: (1, Did::Waited),
            did: Vec::new(),
            had: Vec::new(),
            since_ns: [1; CPUS],
        };
        machine.give(0, 0, true);
        machine.now_ns = FROM_NS;
        machine
    }

    fn set(&mut self, pid: u32, did: Did) {
        if pid == OWN {
            let (since_ns, before) = self.doing;
            let from_ns = since_ns.max(FROM_NS);
            if self.now_ns > from_ns {
                self.did.push((from_ns, self.now_ns, before));
            }
            self.doing = (self.now_ns, did);
        }
    }

    /// Adds an event in the context of the thread that runs on that CPU.
    fn event(&mut self, cpu: usize, what: EventKind) {
        let (time_ns, pid, comm) = (self.now_ns, self.on[cpu], Comm::default());
        self.events.push(Event { time_ns, cpu: cpu as u32, pid, comm, what });
    }

    /// The CPU goes on with a ready thread, or with none.
    fn give(&mut self, cpu: usize, chosen: usize, runnable: bool) {
        let next = match self.ready.len() {
            0 => 0,
            count => self.ready.remove(chosen % count),
        };
        let prev = std::mem::replace(&mut self.on[cpu], next);
        let switch = Switch { prev: task(prev), runnable, next: task(next) };
        self.event(cpu, EventKind::Switch(switch));
        self.had.push((cpu, prev, self.since_ns[cpu], self.now_ns));
        self.since_ns[cpu] = self.now_ns;
        self.set(next, Did::Ran);
    }

    fn wake(&mut self, by_cpu: usize, pid: u32) {
        let waking = Waking { woken: task(pid), context: None, completed_ns: None };
        self.event(by_cpu, EventKind::Waking(waking));
    }

    fn step(&mut self, (later_ns, cpu, what, chosen): Step) {
        self.now_ns += later_ns;
        let current = self.on[cpu];
        match what {
            // It sleeps; perhaps another CPU has woken it before it has left this one.
            0 | 1 if current != 0 => {
                let early = what == 1;
                if early {
                    self.wake(1 - cpu, current);
                    self.now_ns += 1;
                }
                self.give(cpu, chosen, false);
                self.set(current, if early { Did::Waited } else { Did::Slept });
                if early { &mut self.ready } else { &mut self.asleep }.push(current);
            }
            // It is preempted, if there is somebody for it.
            2 if current != 0 && !self.ready.is_empty() => {
                self.give(cpu, chosen, true);
                self.set(current, Did::Waited);
                self.ready.push(current);
            }
            3 | 4 if !self.asleep.is_empty() => {
                let pid = self.asleep.remove(chosen % self.asleep.len());
                self.wake(cpu, pid);
                self.set(pid, Did::Waited);
                self.ready.push(pid);
            }
            _ if current == 0 && !self.ready.is_empty() => self.give(cpu, chosen, true),
            _ => {}
        }
    }

    /// Until the thread has a CPU; that is the moment at which the I/O ends. Then it leaves it.
    fn finish(&mut self) -> u64 {
        self.now_ns += 5;
        if let Some(place) = self.asleep.iter().position(|pid| *pid == OWN) {
            self.asleep.remove(place);
            self.wake(0, OWN);
            self.set(OWN, Did::Waited);
            self.ready.push(OWN);
            self.now_ns += 7;
        }
        if let Some(place) = self.ready.iter().position(|pid| *pid == OWN) {
            let others = self.on[0];
            self.give(0, place, true);
            if others != 0 {
                self.ready.push(others);
            }
            self.now_ns += 3;
        }
        self.set(OWN, Did::Ran);
        let end_ns = self.now_ns;
        let cpu = self.on.iter().position(|pid| *pid == OWN).unwrap();
        self.now_ns += 1;
        self.give(cpu, 0, false);
        end_ns
    }
}

fn sched(events: &[Event]) -> Sched {
    let mut sched = Sched::default();
    sched.of_all = true;
    events.iter().for_each(|event| sched.take(*event));
    sched
}

fn is_of_own(event: &Event) -> bool {
    match event.what {
        EventKind::Switch(Switch { prev, next, .. }) => prev.pid == OWN || next.pid == OWN,
        EventKind::Waking(waking) => waking.woken.pid == OWN,
        _ => false,
    }
}

fn run(steps: &[Step]) -> (Machine, u64) {
    let mut machine = Machine::new();
    steps.iter().for_each(|step| machine.step(*step));
    let end_ns = machine.finish();
    (machine, end_ns)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec((1..50_u64, 0..CPUS, 0..6_u8, any::<usize>()), 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_a_thread_did_is_found_to_the_ns(steps in steps()) {
        let (machine, end_ns) = run(&steps);
        let sched = sched(&machine.events);
        let found = stays(&sched, OWN, (FROM_NS, end_ns), true).expect("nothing is missing");
        let kind = |doing| match doing {
            Doing::Running => Did::Ran,
            Doing::Ready => Did::Waited,
            Doing::Asleep => Did::Slept,
        };
        let did: Vec<_> = found.iter().map(|stay| (stay.from_ns, stay.to_ns, kind(stay.doing))).collect();
        prop_assert_eq!(did, machine.did);
        for stay in found {
            let Some(cpu) = stay.cpu else { continue };
            let mut had: BTreeMap<u32, u64> = BTreeMap::new();
            for (on, pid, from_ns, to_ns) in &machine.had {
                let common = to_ns.min(&stay.to_ns).saturating_sub(*from_ns.max(&stay.from_ns));
                if *on == cpu as usize && common > 0 {
                    *had.entry(*pid).or_default() += common;
                }
            }
            let (task, ns) = had_cpu(&sched, cpu, (stay.from_ns, stay.to_ns)).expect("known");
            prop_assert_eq!(ns, had.values().max().copied());
            prop_assert_eq!(had.get(&task.pid).copied(), ns);
        }
    }

    #[test]
    fn with_one_event_of_the_thread_missing_nothing_is_said(steps in steps(), which: prop::sample::Index) {
        let (mut machine, end_ns) = run(&steps);
        let during = |event: &Event| (FROM_NS + 1..=end_ns).contains(&event.time_ns);
        let places: Vec<usize> = (0..machine.events.len())
            .filter(|place| is_of_own(&machine.events[*place]) && during(&machine.events[*place]))
            .collect();
        prop_assume!(!places.is_empty());
        machine.events.remove(places[which.index(places.len())]);
        prop_assert_eq!(stays(&sched(&machine.events), OWN, (FROM_NS, end_ns), true), None);
    }
}
