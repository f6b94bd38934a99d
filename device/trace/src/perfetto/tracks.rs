// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tracks, and what happens on them, in time order.
//!
//! One group per device, with two counters and the lanes of each layer; one per process, with its threads and the
//! lanes of each; one of CPUs, where switches tell what ran there. The lanes of one layer or thread have the same name, which makes Perfetto show them as one.

use std::collections::BTreeMap;

use super::lanes;
use super::slices::{self, Calls, Layer, Slice};
use crate::event::{Comm, Dev};
use crate::io::{Origin, Trace};
use crate::report::rows::Item;
use crate::report::waiting::{Wait, WaitedFor, Waiting};
use crate::sched::{SchedEvent, SchedWhat, Switch};

/// A row, or a group of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Track {
    /// What it is called.
    pub name: String,
    /// Shown when selected.
    pub description: String,
    /// Index of its group in [`Timeline::tracks`].
    pub group: Option<usize>,
    /// Place within the group.
    pub rank: i32,
    pub kind: TrackKind,
}

/// What a track is, beside its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrackKind {
    Slices,
    /// Its events are counts.
    Counter,
    Process(u32),
    /// Its lanes are in it.
    Thread {
        process: u32,
        thread: u32,
    },
}

/// What happens at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MomentKind {
    /// The slice with this index in [`Timeline::slices`] begins.
    Request(usize),
    /// So does one within it, for the wait with this index.
    Wait(usize, usize),
    /// The I/O with this index in [`Trace::ios`] begins.
    Io(usize),
    /// The call with this index in [`Trace::calls_without_request`] begins.
    Call(usize),
    /// A thread begins to run.
    Runs(u32, Comm),
    /// Within an I/O or a call, its thread begins to wait for this.
    Waited(WaitedFor),
    /// What began last on the track ends.
    End,
    /// So many from now on.
    Count(i64),
}

/// A moment on a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    pub time_ns: u64,
    /// Index in [`Timeline::tracks`].
    pub track: usize,
    /// What happens.
    pub what: MomentKind,
}

/// A slice of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Index in [`Trace::requests`].
    pub request: usize,
    /// It is the last that the request's flow reaches, and not the only one.
    pub last: bool,
    /// The flow passes here: there is a slice before or behind.
    pub linked: bool,
    /// Where and when.
    pub slice: Slice,
}

/// A trace as it is drawn.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// Groups come before what is in them.
    pub tracks: Vec<Track>,
    /// In the order of the requests, and of time.
    pub slices: Vec<Placed>,
    /// In time order; on one track also within a moment.
    pub points: Vec<Point>,
}

impl Timeline {
    /// Of all I/Os and requests, and of these calls; `names` are those of devices that are known.
    pub fn of(trace: &Trace, names: &BTreeMap<Dev, String>, calls: &[usize]) -> Timeline {
        let mut timeline = Timeline { slices: place(trace), ..Timeline::default() };
        timeline.add_threads(trace, calls);
        timeline.add_cpus(trace);
        let mut on_device: BTreeMap<Dev, Vec<usize>> = BTreeMap::new();
        for (index, placed) in timeline.slices.iter().enumerate() {
            on_device.entry(trace.requests[placed.request].dev).or_default().push(index);
        }
        for (dev, own) in on_device {
            let name = names.get(&dev).cloned().unwrap_or_else(|| dev.to_string());
            timeline.add_device(&name, &own, trace);
        }
        // Stable, so that what ends at a moment does so before the next begins on that lane.
        timeline.points.sort_by_key(|point| point.time_ns);
        timeline
    }

    fn add_threads(&mut self, trace: &Trace, calls: &[usize]) {
        let mut by_thread: BTreeMap<u32, Vec<OnThread<'_>>> = BTreeMap::new();
        for own in on_threads(trace, calls) {
            by_thread.entry(own.pid).or_default().push(own);
        }
        let mut processes: BTreeMap<u32, Vec<(u32, Vec<OnThread<'_>>)>> = BTreeMap::new();
        for (pid, own) in by_thread {
            processes.entry(trace.processes.of(pid)).or_default().push((pid, own));
        }
        for (process, threads) in processes {
            let first = threads.iter().find(|(pid, _)| *pid == process).unwrap_or(&threads[0]);
            let name = first.1[0].comm.to_string();
            self.add(name, None, 0, TrackKind::Process(process));
            threads.into_iter().for_each(|(thread, own)| self.add_thread(process, thread, own));
        }
    }

    fn add_thread(&mut self, process: u32, thread: u32, mut own: Vec<OnThread<'_>>) {
        own.sort_by_key(|one| one.when);
        let comm = own[0].comm;
        let kind = TrackKind::Thread { process, thread };
        let group = self.add(comm.to_string(), None, 0, kind);
        let lanes = lanes::assign(own.iter().map(|one| one.when));
        let first = self.add_lanes(&comm.to_string(), group, 0, &lanes);
        for (one, lane) in own.into_iter().zip(lanes) {
            let waits = one.waits.iter();
            let waits =
                waits.map(|wait| (MomentKind::Waited(wait.what), (wait.from_ns, wait.to_ns)));
            self.add_slice(first + lane, one.when, one.what, waits);
        }
    }

    /// Which thread ran on each CPU, where that is certain.
    fn add_cpus(&mut self, trace: &Trace) {
        let mut by_cpu: BTreeMap<u32, Vec<Run>> = BTreeMap::new();
        for run in runs(trace) {
            by_cpu.entry(run.cpu).or_default().push(run);
        }
        if by_cpu.is_empty() {
            return;
        }
        let group = self.add_group("CPUs".into(), String::new());
        for (rank, (cpu, runs)) in by_cpu.into_iter().enumerate() {
            let track = self.add(format!("CPU {cpu}"), Some(group), rank as i32, TrackKind::Slices);
            for run in runs {
                let what = MomentKind::Runs(run.thread, run.comm);
                self.add_slice(track, run.when, what, std::iter::empty());
            }
        }
    }

    fn add_device(&mut self, name: &str, own: &[usize], trace: &Trace) {
        let group = self.add_group(format!("device {name}"), account(trace));
        let mut requests: Vec<usize> =
            own.iter().map(|index| self.slices[*index].request).collect();
        requests.dedup();
        let requests = requests.iter().map(|request| &trace.requests[*request]);
        let in_flight = counts(requests.map(|r| (r.begin_ns(), slices::end_ns(r))));
        self.add_counter("requests queued or in flight", group, 0, in_flight);
        let of_layer = |slices: &[Placed], layer: Layer| -> Vec<usize> {
            own.iter().copied().filter(|index| slices[*index].slice.layer == layer).collect()
        };
        let with_device = of_layer(&self.slices, Layer::Device);
        let with_device = counts(with_device.into_iter().map(|index| self.when(index)));
        self.add_counter("requests in flight", group, 1, with_device);
        for (rank, layer) in Layer::ALL.into_iter().enumerate() {
            let own = of_layer(&self.slices, layer);
            self.add_layer(layer, group, 2 + rank as i32, own);
        }
    }

    fn add_layer(&mut self, layer: Layer, group: usize, rank: i32, mut own: Vec<usize>) {
        own.sort_by_key(|index| self.when(*index));
        let lanes = lanes::assign(own.iter().map(|index| self.when(*index)));
        let first = self.add_lanes(layer.title(), group, rank, &lanes);
        for (index, lane) in own.into_iter().zip(lanes) {
            let waits = self.slices[index].slice.waits.clone().into_iter().enumerate();
            let waits =
                waits.map(|(number, (_, from, to))| (MomentKind::Wait(index, number), (from, to)));
            self.add_slice(first + lane, self.when(index), MomentKind::Request(index), waits);
        }
    }

    fn when(&self, index: usize) -> (u64, u64) {
        let slice = &self.slices[index].slice;
        (slice.begin_ns, slice.end_ns)
    }

    fn add_group(&mut self, name: String, description: String) -> usize {
        let group = self.add(name, None, 0, TrackKind::Slices);
        self.tracks[group].description = description;
        group
    }

    fn add(&mut self, name: String, group: Option<usize>, rank: i32, kind: TrackKind) -> usize {
        self.tracks.push(Track { name, description: String::new(), group, rank, kind });
        self.tracks.len() - 1
    }

    /// Returns the index of the first.
    fn add_lanes(&mut self, name: &str, group: usize, rank: i32, lanes: &[usize]) -> usize {
        let first = self.tracks.len();
        let count = lanes.iter().max().map_or(0, |highest| highest + 1);
        let (name, description) = (name.to_string(), String::new());
        let lane = Track { name, description, group: Some(group), rank, kind: TrackKind::Slices };
        self.tracks.resize(first + count, lane);
        first
    }

    /// With what lies within it, in order.
    fn add_slice(
        &mut self,
        track: usize,
        when: (u64, u64),
        what: MomentKind,
        within: impl Iterator<Item = (MomentKind, (u64, u64))>,
    ) {
        let begin = |what, time_ns| Point { time_ns, track, what };
        self.points.push(begin(what, when.0));
        for (what, (from_ns, to_ns)) in within.filter(|(_, (from_ns, to_ns))| from_ns < to_ns) {
            self.points.push(begin(what, from_ns));
            self.points.push(begin(MomentKind::End, to_ns));
        }
        self.points.push(begin(MomentKind::End, when.1));
    }

    fn add_counter(&mut self, name: &str, group: usize, rank: i32, counts: Vec<(u64, i64)>) {
        let track = self.add(name.to_string(), Some(group), rank, TrackKind::Counter);
        let point = |(time_ns, count)| Point { time_ns, track, what: MomentKind::Count(count) };
        self.points.extend(counts.into_iter().map(point));
    }
}

/// A thread had a CPU.
struct Run {
    cpu: u32,
    thread: u32,
    comm: Comm,
    when: (u64, u64),
}

/// From each switch to a thread to the next one on that CPU, if that is from the same thread. Not of idle.
fn runs(trace: &Trace) -> Vec<Run> {
    let mut running: BTreeMap<u32, (u32, u64)> = BTreeMap::new();
    let mut runs = Vec::new();
    for SchedEvent { time_ns, cpu, what } in trace.sched.events().iter().copied() {
        match what {
            SchedWhat::Switch(Switch { prev, next, .. }) => {
                let before = running.insert(cpu, (next.pid, time_ns));
                let same = before.filter(|(thread, _)| *thread == prev.pid && *thread != 0);
                runs.extend(same.map(|(thread, since_ns)| {
                    let when = (since_ns, time_ns);
                    Run { cpu, thread, comm: prev.comm, when }
                }));
            }
            SchedWhat::Lost => drop(running.remove(&cpu)),
            SchedWhat::Waking { .. } => {}
        }
    }
    runs
}

/// As "fio 1234".
pub fn thread_name(thread: u32, comm: Comm) -> String {
    format!("{comm} {thread}").trim_start().to_string()
}

/// An I/O or another call, as it is drawn on its thread's track.
struct OnThread<'a> {
    pid: u32,
    comm: Comm,
    when: (u64, u64),
    what: MomentKind,
    /// Without those that its requests show, and without what nobody knows.
    waits: Vec<Wait<'a>>,
}

/// All I/Os, and of these calls those that did not only run.
fn on_threads<'a>(trace: &'a Trace, calls: &[usize]) -> Vec<OnThread<'a>> {
    let waiting = Waiting::new(trace);
    let is_drawn = |wait: &Wait| {
        !matches!(wait.what, WaitedFor::OwnRequest | WaitedFor::Running | WaitedFor::Unknown)
            || wait.woken.is_some()
    };
    let names = BTreeMap::new();
    let ios = trace.ios.iter().enumerate().map(|(index, io)| OnThread {
        pid: io.pid,
        comm: io.comm,
        when: (io.entered_ns, io.exited_ns),
        what: MomentKind::Io(index),
        waits: waiting.of(&Item::of_io(trace, io, &names)).into_iter().filter(is_drawn).collect(),
    });
    let calls = calls.iter().filter_map(|index| {
        let call = &trace.calls_without_request[*index];
        let waits = waiting.of(&Item::of_call(call));
        let waited = waits.iter().any(|wait| wait.what != WaitedFor::Running);
        waited.then(|| OnThread {
            pid: call.pid,
            comm: call.comm,
            when: (call.entered_ns, call.exited_ns),
            what: MomentKind::Call(*index),
            waits: waits.into_iter().filter(is_drawn).collect(),
        })
    });
    ios.chain(calls).collect()
}

/// The slices of all requests, each with its part in the flow from the I/O to the end.
fn place(trace: &Trace) -> Vec<Placed> {
    let calls = Calls::of(trace);
    let mut all = Vec::new();
    for request in 0..trace.requests.len() {
        let slices = slices::of_request(trace, &calls, request);
        let from_io = matches!(trace.requests[request].origin, Origin::Io(_));
        let linked = from_io || slices.len() > 1;
        let count = slices.len();
        all.extend(slices.into_iter().enumerate().map(|(number, slice)| {
            let last = linked && number + 1 == count;
            Placed { request, last, linked, slice }
        }));
    }
    all
}

/// How many of these are concurrent, at each moment at which that changes.
fn counts(intervals: impl Iterator<Item = (u64, u64)>) -> Vec<(u64, i64)> {
    let mut changes: BTreeMap<u64, i64> = BTreeMap::new();
    for (begin_ns, end_ns) in intervals {
        *changes.entry(begin_ns).or_default() += 1;
        *changes.entry(end_ns).or_default() -= 1;
    }
    let mut count = 0;
    let change = |(time_ns, change): (u64, i64)| {
        count += change;
        (change != 0).then_some((time_ns, count))
    };
    changes.into_iter().filter_map(change).collect()
}

/// How complete the trace is.
fn account(trace: &Trace) -> String {
    let account = &trace.account;
    let mut text = format!(
        "{} requests matched, {} at the edges of the trace, {} hit by lost events, {} unmatched; \
         {} of {} events lost.",
        account.matched,
        account.at_the_edges,
        account.hit_by_loss,
        account.unmatched_count,
        account.events_lost,
        account.events + account.events_lost,
    );
    for missing in &trace.missing {
        text.push_str(&format!(" No {}: {}.", missing.event, missing.consequence));
    }
    text
}
