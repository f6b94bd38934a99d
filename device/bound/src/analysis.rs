// SPDX-License-Identifier: MIT OR Apache-2.0
//! Response-time analysis of k2: what a task waits for at most, term by term.
//!
//! k2 serves real-time levels in order and never takes back what the device has: fixed priorities
//! without preemption (Davis, Burns, Bril, Lukkien: Controller Area Network schedulability
//! analysis: refuted, revisited and revised, 2007), with queues of first-in first-out inside a
//! level. `docs/reference/bound.md` derives the sums below.

use crate::Work;
use crate::device::{Around, Device, Op};
use crate::tasks::{BackgroundOp, Task, TaskOp, TaskSet};

/// Without splitting, k2 merges background up to this (`K2_MERGE_BYTES_MAX`).
const MERGE_KIB_MAX: u64 = 128;
/// A window as long as this, or so many jobs in a row, is taken for one without end.
const WINDOW_NS_MAX: u64 = 60_000_000_000;
const JOBS_MAX: u64 = 10_000;

/// What a job waits for at most, in ns; the bound is their sum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Terms {
    /// Its own I/Os on the device, and those of its jobs before, if they are late.
    pub own: u64,
    /// Computing.
    pub cpu: u64,
    /// Requests of its level that came before.
    pub same_level: u64,
    /// Requests of higher levels, until its last request starts.
    pub higher_levels: u64,
    /// What the device has when an I/O comes: pieces of background, requests of lower levels.
    pub blocking: u64,
    /// Flushes of the background, which go past k2, but for what the cache holds.
    pub flush: u64,
    /// Background that has waited for `background_wait_ms_max`.
    pub background_wait: u64,
    /// Pauses of the flash and the writing back of the cache, from all that is written meanwhile.
    pub stalls: u64,
    /// Taken off: how much later than the first the last of several jobs comes.
    pub later: u64,
}

impl Terms {
    pub fn sum(&self) -> u64 {
        let waits = [
            self.own,
            self.cpu,
            self.same_level,
            self.higher_levels,
            self.blocking,
            self.flush,
            self.background_wait,
            self.stalls,
        ];
        waits.iter().fold(0_u64, |sum, ns| sum.saturating_add(*ns)).saturating_sub(self.later)
    }
}

/// Of one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response {
    /// From a job's time to the end of its last I/O. None: no bound, as the work may pile up.
    pub job: Option<Terms>,
    /// Of one I/O, from when the thread begins it.
    pub io: Option<Terms>,
}

impl Response {
    /// None: there is none.
    pub fn bound_ns(&self) -> Option<u64> {
        self.job.map(|terms| terms.sum())
    }

    pub fn meets(&self, deadline_us: u64) -> bool {
        self.bound_ns().is_some_and(|bound_ns| bound_ns <= deadline_us * 1_000)
    }
}

/// A response for each task, in the order of the set.
pub fn responses(device: &Device, set: &TaskSet) -> Vec<Response> {
    let load = Load::new(device, set);
    let mut found = vec![Response { job: None, io: None }; set.tasks.len()];
    let mut order: Vec<usize> = (0..set.tasks.len()).collect();
    order.sort_by_key(|index| set.tasks[*index].level);
    for index in order {
        let job = load.job(index, &found);
        let io = job.and_then(|_| load.window(index, 1, &found));
        found[index] = Response { job, io };
    }
    found
}

/// What each request does to the device.
struct Load<'a> {
    device: &'a Device,
    set: &'a TaskSet,
    /// Of each task: its I/O as a whole, its requests, and how often it waits for the device: a durable write and the
    /// flush behind it come one after the other.
    whole: Vec<Work>,
    parts: Vec<Vec<Work>>,
    waits: Vec<u64>,
    /// Commands of the background, one of each kind, as large as they get.
    background: Vec<Work>,
    flush: Work,
    /// The largest write of all, in KiB.
    write_kib_max: u64,
    cache_is_used: bool,
}

impl<'a> Load<'a> {
    fn new(device: &'a Device, set: &'a TaskSet) -> Load<'a> {
        let host_ns = set.host.command_us * 1_000;
        let with_host = |work: Work| Work { ns: work.ns.saturating_add(host_ns), ..work };
        let parts: Vec<Vec<Work>> = set
            .tasks
            .iter()
            .map(|task| {
                let sizes = (0..task.parts(&set.k2)).map(|part| part_kib(task, set, part));
                sizes.map(|kib| with_host(device.command(task_op(task), kib))).collect()
            })
            .collect();
        let flush = with_host(device.flush());
        let of_all = |(task, parts): (&Task, &Vec<Work>)| {
            let written: Work = parts.iter().copied().sum();
            if is_flushed(device, task) { (written + flush, 2) } else { (written, 1) }
        };
        let (whole, waits) = set.tasks.iter().zip(&parts).map(of_all).unzip();
        let background: Vec<Work> =
            background_commands(device, set).into_iter().map(with_host).collect();
        let mut commands = parts.iter().flatten().chain(&background);
        let cache_is_used = commands.any(|command| command.cached_kib > 0);
        let write_kib_max = write_kib_max(set);
        Load { device, set, whole, parts, waits, background, flush, write_kib_max, cache_is_used }
    }

    /// The longest of any number of jobs in a row that are each late for the next.
    fn job(&self, index: usize, found: &[Response]) -> Option<Terms> {
        let task = &self.set.tasks[index];
        let (period_ns, jitter_ns) = (task.period_us * 1_000, task.jitter_us * 2_000);
        let mut longest: Option<Terms> = None;
        for jobs in 1..=JOBS_MAX {
            let mut terms = self.window(index, jobs * task.ios, found)?;
            let window_ns = terms.sum();
            let each_again = [terms.own, terms.same_level, terms.blocking, terms.cpu];
            if each_again.iter().fold(0, |sum: u64, ns| sum.saturating_add(*ns)) > jobs * period_ns
            {
                return None;
            }
            terms.later = ((jobs - 1) * period_ns).saturating_sub(jitter_ns);
            if longest.is_none_or(|longest| longest.sum() < terms.sum()) {
                longest = Some(terms);
            }
            if window_ns <= (jobs * period_ns).saturating_sub(jitter_ns) {
                return longest;
            }
        }
        None
    }

    /// The longest time that so many I/Os of a task take, one right after the other, with what blocks
    /// them longest.
    fn window(&self, index: usize, ios: u64, found: &[Response]) -> Option<Terms> {
        let mut longest = Terms::default();
        for blocking in self.blocking(index, ios * self.waits[index]) {
            let terms = self.window_with(index, ios, blocking, found)?;
            if longest.sum() < terms.sum() {
                longest = terms;
            }
        }
        Some(longest)
    }

    /// The window grows until what comes in it is done in it.
    fn window_with(
        &self,
        index: usize,
        ios: u64,
        blocking: Work,
        found: &[Response],
    ) -> Option<Terms> {
        let task = &self.set.tasks[index];
        let waits = ios * self.waits[index];
        let last_ns = match self.waits[index] {
            1 => self.parts[index].last()?.ns,
            _ => self.flush.ns,
        };
        let is_of_level = |(other, task_there): &(usize, &Task)| {
            *other != index && task_there.level == task.level
        };
        let same_level = self.set.tasks.iter().enumerate().filter(is_of_level);
        let same_level = same_level.map(|(other, _)| self.whole[other]).sum::<Work>() * waits;
        let own = self.whole[index] * ios;
        let cpu_ns = (task.cpu_us() * 1_000).saturating_mul(ios);
        let around = Around {
            waits,
            between_kib: if waits > 1 { self.device.written_kib_max(cpu_ns) } else { 0 },
            write_kib_max: self.write_kib_max,
            cache_is_used: self.cache_is_used,
        };
        let mut start_ns = 0;
        loop {
            let higher = self.higher_levels(task.level, start_ns, found)?;
            let flush = self.flushes(start_ns);
            let forced = self.forced(start_ns);
            let all = own + same_level + blocking + higher + flush + forced;
            let terms = Terms {
                own: own.ns,
                cpu: cpu_ns,
                same_level: same_level.ns,
                higher_levels: higher.ns,
                blocking: blocking.ns,
                flush: flush.ns,
                background_wait: forced.ns,
                stalls: self.device.stalls_ns(all, &around),
                later: 0,
            };
            let next_ns = terms.sum().saturating_sub(last_ns);
            if next_ns <= start_ns {
                return Some(terms);
            }
            if next_ns > WINDOW_NS_MAX {
                return None;
            }
            start_ns = next_ns;
        }
    }

    /// What the device may have each time that the task waits: as many commands of lower levels and
    /// of the background as may be in flight. With room for several, one more may slip in between two
    /// requests of the same I/O. Of one command each is looked at, since a short write may stall the
    /// flash; of several, the longest times and the largest writes are taken together.
    fn blocking(&self, index: usize, waits: u64) -> Vec<Work> {
        let level = self.set.tasks[index].level;
        let inflight_max = usize::try_from(self.set.k2.inflight_max).unwrap_or(usize::MAX);
        let slipped_in = if inflight_max > 1 { self.parts[index].len() - 1 } else { 0 };
        let blocking_max = inflight_max.saturating_add(slipped_in);
        let tasks = self.set.tasks.iter().zip(&self.parts);
        let lower = tasks.filter(|(task, _)| task.level > level).flat_map(|(_, parts)| parts);
        let mut commands: Vec<Work> = lower.copied().collect();
        if blocking_max == 1 && waits == 1 {
            commands.extend(&self.background);
            commands.push(Work::default());
            return commands;
        }
        for command in &self.background {
            commands.extend(std::iter::repeat_n(*command, blocking_max));
        }
        let most = |what: fn(&Work) -> u64| -> u64 {
            let mut found: Vec<u64> = commands.iter().map(what).collect();
            found.sort_unstable_by(|a, b| b.cmp(a));
            found.into_iter().take(blocking_max).fold(0, u64::saturating_add)
        };
        let ns = most(|work| work.ns);
        let (written_kib, cached_kib) =
            (most(|work| work.written_kib), most(|work| work.cached_kib));
        vec![Work { ns, written_kib, cached_kib, flushes: 0 } * waits]
    }

    /// Requests of higher levels that come until the last request starts, and those of jobs that
    /// were not done when the window began. None: they pile up.
    fn higher_levels(&self, level: u64, start_ns: u64, found: &[Response]) -> Option<Work> {
        let mut sum = Work::default();
        for (index, task) in self.set.tasks.iter().enumerate() {
            if task.level >= level {
                continue;
            }
            let carried_ns = found[index].job?.sum();
            let from_ns =
                start_ns.saturating_add(carried_ns).saturating_add(task.jitter_us * 2_000);
            let jobs = from_ns / (task.period_us * 1_000) + 1;
            sum = sum + self.whole[index] * jobs.saturating_mul(task.ios);
        }
        Some(sum)
    }

    fn flushes(&self, start_ns: u64) -> Work {
        let distance_us = self.set.background.as_ref().and_then(|bg| bg.flush_distance_us_min);
        let Some(distance_us) = distance_us else { return Work::default() };
        self.flush * (start_ns / (distance_us * 1_000) + 1)
    }

    /// Background that is served before real-time, since it has waited for so long.
    fn forced(&self, start_ns: u64) -> Work {
        let wait_ms = self.set.k2.background_wait_ms_max;
        if wait_ms == 0 {
            return Work::default();
        }
        let most = |what: fn(&Work) -> u64| self.background.iter().map(what).max().unwrap_or(0);
        let (written_kib, cached_kib) =
            (most(|work| work.written_kib), most(|work| work.cached_kib));
        let command = Work { ns: most(|work| work.ns), written_kib, cached_kib, flushes: 0 };
        command * (start_ns / (wait_ms * 1_000_000) + 1)
    }
}

fn part_kib(task: &Task, set: &TaskSet, part: u64) -> u64 {
    (task.kib - part * set.k2.max_sectors_kb).min(set.k2.max_sectors_kb)
}

/// Whether the kernel sends a flush behind each of its writes.
fn is_flushed(device: &Device, task: &Task) -> bool {
    task.durable && device.has_cache()
}

fn task_op(task: &Task) -> Op {
    match (task.op, task.durable) {
        (TaskOp::Read, _) => Op::Read,
        (TaskOp::Write, false) => Op::Write,
        (TaskOp::Write, true) => Op::DurableWrite,
    }
}

fn background_commands(device: &Device, set: &TaskSet) -> Vec<Work> {
    let Some(background) = &set.background else { return Vec::new() };
    let kib = piece_kib(set);
    let mut ops = Vec::new();
    if background.op != BackgroundOp::Write {
        ops.push(Op::Read);
    }
    if background.op != BackgroundOp::Read {
        ops.push(Op::Write);
        ops.extend(background.durable.then_some(Op::DurableWrite));
    }
    let mut commands: Vec<Work> = ops.iter().map(|op| device.command(*op, kib)).collect();
    if background.discard_kib > 0 {
        commands.push(device.command(Op::Discard, background.discard_kib));
    }
    commands
}

/// The most that the device gets of a background request at once.
fn piece_kib(set: &TaskSet) -> u64 {
    let Some(background) = &set.background else { return 0 };
    let merged_kib = match (background.merges, set.k2.split_kib) {
        (false, _) => background.kib,
        (true, 0) => background.kib.max(MERGE_KIB_MAX),
        (true, _) => u64::MAX,
    };
    let whole_kib = merged_kib.min(set.k2.max_sectors_kb);
    if set.k2.split_kib > 0 { whole_kib.min(set.k2.split_kib) } else { whole_kib }
}

fn write_kib_max(set: &TaskSet) -> u64 {
    let writes = set.tasks.iter().filter(|task| task.op == TaskOp::Write).map(|task| task.kib);
    writes.chain([piece_kib(set)]).map(|kib| kib.min(set.k2.max_sectors_kb)).max().unwrap_or(0)
}
