// SPDX-License-Identifier: MIT OR Apache-2.0
//! A block layer that does at random what the kernel's does, emits the events of it, and remembers what was what.
//! Times are small numbers that never repeat, so a time names an event.
mod device;
mod flushes;
mod uring;

use std::collections::{BTreeMap, BTreeSet};

use steadyio_trace::event::{Call, Comm, Dev, Event, EventKind, Extent};
use steadyio_trace::io::{Mark, Marks, Piece};

use crate::events::{DISK, extent};
pub use uring::Ring;

/// What really happened to a request.
#[derive(Clone, Debug)]
pub struct Truth {
    pub letters: &'static str,
    pub sector: u64,
    pub bytes: u64,
    pub marks: Marks,
    /// For each of its bios: when it was queued, the thread, and the call.
    pub bios: Vec<(u64, u32, Option<usize>)>,
    pub cut: bool,
    pub pieces: Vec<Piece>,
    pub requeues: u32,
    pub error: i32,
}

/// What really happened in a system call.
#[derive(Clone, Debug)]
pub struct CallTruth {
    pub call: Call,
    pub pid: u32,
    pub entered_ns: u64,
    pub exited_ns: Option<u64>,
    /// Each request, and when this call's first bio of it was queued.
    pub requests: BTreeMap<usize, u64>,
    open: usize,
}

/// A request on its way: what is left of it, and where it is.
#[derive(Clone, Debug)]
struct Live {
    truth: usize,
    sector: u64,
    left: u32,
    place: Where,
    /// Sectors of the dispatch in flight, and the dispatch itself.
    stay: Option<(u32, Piece)>,
    /// Its driver's command, which is a part of it.
    key: u64,
    mergeable: bool,
    /// Sequence: flushes before and after the data.
    preflush: bool,
    postflush: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Where {
    /// In the plug of a thread.
    Plug(u32),
    Scheduler,
    Device,
    /// A piece ended; the rest is to be requeued.
    Parted,
    /// In the flush machinery.
    Flush,
}

#[derive(Clone, Debug)]
struct Task {
    pid: u32,
    call: Option<usize>,
    /// Bios that the call still has to queue.
    todo: u32,
}

/// How wild it gets.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub seed: u64,
    pub steps: u32,
    pub places: Places,
}

/// Where requests are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Places {
    /// Several may be at the same place at the same time.
    Shared,
    /// One at a place at a time, in a small part of the disk.
    Apart,
    /// The same, in a part that moves through the disk, which has several queues and a driver without events.
    Moving,
}

impl Places {
    fn dev(self) -> Dev {
        if self == Places::Moving { Dev { major: 259, minor: 0 } } else { DISK }
    }
}

pub struct Sim {
    shape: Shape,
    state: u64,
    pub time_ns: u64,
    pub events: Vec<Event>,
    pub requests: Vec<Truth>,
    pub calls: Vec<CallTruth>,
    live: Vec<Live>,
    tasks: Vec<Task>,
    flushes: flushes::Machine,
    ring: uring::State,
}

/// Runs it, and lets all that was begun end.
pub fn run(shape: Shape) -> Sim {
    run_with(shape, Ring::Absent)
}

/// The same with operations of io_uring.
pub fn run_with(shape: Shape, ring: Ring) -> Sim {
    let task = |pid| Task { pid, call: None, todo: 0 };
    let mut sim = Sim {
        shape,
        state: shape.seed | 1,
        time_ns: 0,
        events: Vec::new(),
        requests: Vec::new(),
        calls: Vec::new(),
        live: Vec::new(),
        tasks: (1..=4).map(task).collect(),
        flushes: flushes::Machine::default(),
        ring: uring::State::new(ring),
    };
    if ring != Ring::Absent {
        sim.start_ring();
    }
    for _ in 0..shape.steps {
        sim.step(true);
    }
    while !sim.is_idle() {
        sim.step(false);
    }
    sim
}

impl Sim {
    /// A number below `n`: xorshift64*.
    fn below(&mut self, n: u64) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        (self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % n
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn emit(&mut self, cpu: u32, pid: u32, mut what: EventKind) -> u64 {
        match &mut what {
            EventKind::BioQueue(at)
            | EventKind::BackMerge(at)
            | EventKind::FrontMerge(at)
            | EventKind::RequestMerge(at)
            | EventKind::GetRequest(at)
            | EventKind::Insert(at)
            | EventKind::Issue(at)
            | EventKind::Requeue(at)
            | EventKind::Complete { extent: at, .. }
            | EventKind::BioSplit { bio: at, .. } => at.dev = self.shape.places.dev(),
            _ => {}
        }
        self.time_ns += 1 + self.below(4);
        let worker = uring::WORKERS.contains(&pid);
        let comm = Comm::new(if worker { uring::WORKER_NAME } else { "sim" }.as_bytes());
        self.events.push(Event { time_ns: self.time_ns, cpu, pid, comm, what });
        self.time_ns
    }

    fn cpu(&mut self) -> u32 {
        self.below(2) as u32
    }

    fn is_idle(&self) -> bool {
        self.live.is_empty()
            && self.flushes.is_idle()
            && self.ring.is_idle()
            && self.tasks.iter().all(|task| task.call.is_none() && task.todo == 0)
    }

    fn step(&mut self, begin: bool) {
        let kinds = if self.ring.kind == Ring::Absent { 8 } else { 11 };
        match self.below(kinds) {
            8.. => self.step_ring(begin),
            0..3 => self.step_thread(begin),
            3 => self.merge_in_scheduler(),
            4 => self.step_flush(),
            5 => self.dispatch(),
            _ => self.step_device(),
        }
    }

    /// The last thread is the kernel's: it queues without calls.
    fn step_thread(&mut self, begin: bool) {
        let nth = self.below(self.tasks.len() as u64) as usize;
        let Task { pid, call, todo } = self.tasks[nth];
        let cpu = self.cpu();
        if todo > 0 {
            self.tasks[nth].todo -= 1;
            self.submit(cpu, pid, call);
            if todo == 1 {
                self.unplug(cpu, pid);
            }
        } else if let Some(call) = call {
            if self.calls[call].open == 0 {
                let kind = self.calls[call].call;
                let exit = EventKind::CallExit { call: kind, result: 4096 };
                self.calls[call].exited_ns = Some(self.emit(cpu, pid, exit));
                self.tasks[nth].call = None;
            }
        } else if begin {
            self.tasks[nth].todo = self.below(4) as u32;
            if pid < 4 {
                self.tasks[nth].call = Some(self.begin_call(cpu, pid));
            }
        }
    }

    fn begin_call(&mut self, cpu: u32, pid: u32) -> usize {
        let call = [Call::Pread64, Call::Pwrite64, Call::Fsync][self.below(3) as usize];
        let enter = EventKind::CallEnter { call, fd: None };
        let entered_ns = self.emit(cpu, pid, enter);
        let requests = BTreeMap::new();
        self.calls.push(CallTruth { call, pid, entered_ns, exited_ns: None, requests, open: 0 });
        self.calls.len() - 1
    }

    /// One bio: cut, merged or made a request of.
    fn submit(&mut self, cpu: u32, pid: u32, call: Option<usize>) {
        let kind = call.map_or(Call::Pwrite64, |call| self.calls[call].call);
        if kind == Call::Fsync && !self.one_in(3) {
            return self.submit_flush(cpu, pid, call);
        }
        if kind != Call::Pread64 && self.one_in(6) {
            return self.submit_sequence(cpu, pid, call);
        }
        let letters = if kind == Call::Pread64 { "RS" } else { "W" };
        let Some((mut sector, mut sectors)) = self.room() else { return };
        let queued_ns = self.emit(cpu, pid, EventKind::BioQueue(extent(letters, sector, sectors)));
        let mut cut = false;
        while sectors > 0 {
            let mut part = sectors;
            if sectors > 8 && self.one_in(3) {
                part = 8 * (1 + self.below(u64::from(sectors / 8 - 1)) as u32);
                let new_sector = sector + u64::from(part);
                self.emit(
                    cpu,
                    pid,
                    EventKind::BioSplit { bio: extent(letters, sector, 0), new_sector },
                );
                cut = true;
            }
            let bio = (queued_ns, pid, call);
            if !self.merge_bio(cpu, extent(letters, sector, part), bio) {
                self.get_request(cpu, letters, extent(letters, sector, part), bio, cut);
            }
            sector += u64::from(part);
            sectors -= part;
        }
    }

    /// A place, near others so that there is something to merge.
    fn room(&mut self) -> Option<(u64, u32)> {
        let sectors = 8 * (1 + self.below(3) as u32);
        // Sector 0 cannot be told from none at the end of a flush.
        let (part, from) = match self.shape.places {
            Places::Shared => (12, 0),
            Places::Apart => (60, 0),
            Places::Moving => (60, 3 * self.requests.len() as u64),
        };
        let sector = 8 * (1 + from + self.below(part));
        let free = |live: &Live| {
            live.sector + u64::from(live.left) <= sector
                || sector + u64::from(sectors) <= live.sector
        };
        let shared = self.shape.places == Places::Shared;
        (shared || self.live.iter().all(free)).then_some((sector, sectors))
    }

    fn get_request(
        &mut self,
        cpu: u32,
        letters: &'static str,
        place: Extent,
        (queued_ns, pid, call): (u64, u32, Option<usize>),
        cut: bool,
    ) -> usize {
        let mut marks = Marks::default();
        marks.set(Mark::Queued, queued_ns);
        let bios = vec![(queued_ns, pid, call)];
        marks.set(Mark::GotRequest, self.emit(cpu, pid, EventKind::GetRequest(place)));
        let truth = Truth {
            letters,
            sector: place.sector,
            bytes: 0,
            marks,
            bios,
            cut,
            pieces: Vec::new(),
            requeues: 0,
            error: 0,
        };
        self.requests.push(truth);
        let truth = self.requests.len() - 1;
        self.add_to_call(call, truth, queued_ns);
        // The memory of a request that is over is the next one's.
        let is_free = |key: &u64| self.live.iter().all(|live| live.key != *key);
        let key = (1..).find(is_free).unwrap();
        self.live.push(Live {
            truth,
            sector: place.sector,
            left: place.sectors,
            place: Where::Plug(pid),
            stay: None,
            key,
            mergeable: true,
            preflush: false,
            postflush: false,
        });
        truth
    }

    fn add_to_call(&mut self, call: Option<usize>, request: usize, queued_ns: u64) {
        let Some(call) = call else { return };
        let call = &mut self.calls[call];
        if !call.requests.contains_key(&request) {
            call.open += 1;
        }
        let first = call.requests.entry(request).or_insert(queued_ns);
        *first = queued_ns.min(*first);
    }

    /// A back or front merge, if there is a neighbour that this thread can reach.
    fn merge_bio(
        &mut self,
        cpu: u32,
        place: Extent,
        (queued_ns, pid, call): (u64, u32, Option<usize>),
    ) -> bool {
        let end = place.sector + u64::from(place.sectors);
        let reach = |live: &Live, kind: &str, requests: &[Truth]| {
            live.mergeable
                && matches!(live.place, Where::Scheduler | Where::Plug(_))
                && (live.place == Where::Scheduler || live.place == Where::Plug(pid))
                && requests[live.truth].letters == kind
        };
        let letters = if place.op.sync { "RS" } else { "W" };
        let neighbour = self.live.iter().position(|live| {
            reach(live, letters, &self.requests)
                && (live.sector + u64::from(live.left) == place.sector || end == live.sector)
        });
        let Some(at) = neighbour else { return false };
        let back = self.live[at].sector + u64::from(self.live[at].left) == place.sector;
        let what = if back { EventKind::BackMerge(place) } else { EventKind::FrontMerge(place) };
        self.emit(cpu, pid, what);
        let live = &mut self.live[at];
        live.left += place.sectors;
        live.sector = live.sector.min(place.sector);
        let truth = live.truth;
        self.requests[truth].bios.push((queued_ns, pid, call));
        self.add_to_call(call, truth, queued_ns);
        true
    }

    /// A thread that has queued all gives its requests to the scheduler, or right to the driver.
    fn unplug(&mut self, cpu: u32, pid: u32) {
        while let Some(at) = self.live.iter().position(|live| live.place == Where::Plug(pid)) {
            self.live[at].place = Where::Scheduler;
            if self.one_in(2) {
                self.issue(at, cpu, pid);
            } else {
                self.insert(at, cpu, pid);
            }
        }
    }

    fn insert(&mut self, at: usize, cpu: u32, pid: u32) {
        let place = self.extent_of(at);
        let time_ns = self.emit(cpu, pid, EventKind::Insert(place));
        let truth = &mut self.requests[self.live[at].truth];
        if truth.marks.get(Mark::Inserted).is_none() && truth.marks.get(Mark::Issued).is_none() {
            truth.marks.set(Mark::Inserted, time_ns);
        }
    }

    fn extent_of(&self, at: usize) -> Extent {
        let live = &self.live[at];
        extent(self.requests[live.truth].letters, live.sector, live.left)
    }

    /// Two neighbours in the scheduler become one.
    fn merge_in_scheduler(&mut self) {
        let waits = |live: &Live| live.mergeable && live.place == Where::Scheduler;
        for first in 0..self.live.len() {
            let end = self.live[first].sector + u64::from(self.live[first].left);
            let next = self.live.iter().position(|live| {
                waits(live)
                    && live.sector == end
                    && self.requests[live.truth].letters
                        == self.requests[self.live[first].truth].letters
            });
            let Some(next) = next.filter(|_| waits(&self.live[first])) else { continue };
            let (cpu, place) = (self.cpu(), self.extent_of(next));
            self.emit(cpu, 77, EventKind::RequestMerge(place));
            let (gone, into) = (self.live[next].truth, self.live[first].truth);
            self.live[first].left += self.live[next].left;
            let bios = std::mem::take(&mut self.requests[gone].bios);
            for (queued_ns, _, call) in &bios {
                if let Some(call) = *call {
                    if self.calls[call].requests.remove(&gone).is_some() {
                        self.calls[call].open -= 1;
                    }
                }
                self.add_to_call(*call, into, *queued_ns);
            }
            self.requests[into].bios.extend(bios);
            self.live.remove(next);
            return;
        }
    }

    /// It is over.
    fn end(&mut self, at: usize) {
        let truth = self.live.remove(at).truth;
        self.end_for_calls(truth);
    }

    fn end_for_calls(&mut self, truth: usize) {
        let calls: BTreeSet<usize> =
            self.requests[truth].bios.iter().filter_map(|(_, _, call)| *call).collect();
        for call in calls {
            self.calls[call].open -= 1;
        }
    }
}
