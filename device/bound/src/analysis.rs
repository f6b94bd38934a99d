// SPDX-License-Identifier: MIT OR Apache-2.0
//! Response-time analysis of k2: the longest wait of a task, term by term. `steady bound`, `search`
//! and `advice` call it.
//!
//! k2 serves real-time levels in order and never preempts the device. That is fixed priorities
//! without preemption (Davis, Burns, Bril, Lukkien: Controller Area Network schedulability
//! analysis: refuted, revisited and revised, 2007), with queues of first-in first-out inside a
//! level. `docs/reference/bound.md` derives the sums below.

use std::cmp::Ordering;

use crate::Work;
use crate::blocked::Declared;
use crate::commands::{
    Requests, background_commands, commands_of, host_ns, is_flushed, jump_once_ns, lane_commands,
    requests,
};
use crate::device::{Around, Device};
use crate::longest::{Ranked, forced_ns, most_of, not_within};
use crate::tasks::{LEVELS, Task, TaskSet};
pub use crate::terms::{Response, Terms};

/// The limit of rounds in which bounds that depend on each other are computed again. The results of
/// each round are valid bounds.
const ROUNDS_MAX: usize = 16;
/// A window of this length, or this number of jobs in a row, counts as unbounded.
const WINDOW_NS_MAX: u64 = 600_000_000_000;
const JOBS_MAX: u64 = 10_000;
/// Above this share of higher levels, the limit of a window's end is not used. It is rounded by this
/// factor, which exceeds all errors of floating point.
const SHARE_MAX: f64 = 0.999;
const BELOW: f64 = 1.0 - 1e-9;

/// The bound of each task in ns; None if there is none, or it is not known yet.
pub type Bounds = Vec<Option<u64>>;

/// The response of each task, in the order of the set.
pub fn responses(device: &Device, set: &TaskSet) -> Vec<Response> {
    let load = Load::new(device, set);
    let mut bounds = load.bounds(LEVELS, None, ROUNDS_MAX - 1);
    let mut found = vec![Response { job: None, io: None }; set.tasks.len()];
    for index in load.order(LEVELS) {
        let job = load.job(index, &bounds);
        let io = job.and_then(|_| load.batch(index, &bounds));
        found[index] = Response { job, io };
        bounds[index] = found[index].bound_ns();
    }
    found
}

/// The bounds of some tasks; those of others may be missing. Tasks of high levels take least work.
///
/// Lower levels affect a task only by how often they come while it waits. If their shortest and
/// their longest bounds give the same result, no bound between them changes it.
pub fn bounds_of(device: &Device, set: &TaskSet, wanted: &[usize]) -> Bounds {
    let load = Load::new(device, set);
    let level_max = wanted.iter().map(|index| set.tasks[*index].level).max().unwrap_or(0);
    let longest = load.bounds(level_max, None, ROUNDS_MAX);
    if load.depends_on_lower(level_max) {
        let shortest = load.bounds(level_max, Some(0), ROUNDS_MAX);
        if wanted.iter().any(|index| shortest[*index] != longest[*index]) {
            return load.bounds(LEVELS, None, ROUNDS_MAX);
        }
    }
    longest
}

#[cfg(test)]
thread_local! {
    /// The number of windows that were analyzed: most of the work.
    pub static WINDOWS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// The load of each request on the device.
struct Load<'a> {
    device: &'a Device,
    set: &'a TaskSet,
    /// For each task: the work of a whole I/O, its requests, and the number of waits for the
    /// device. A durable write and the flush after it are two waits.
    whole: Vec<Work>,
    parts: Vec<Vec<Requests>>,
    waits: Vec<u64>,
    /// For each task: the highest number of commands per I/O, counting requests and their pieces.
    commands: Vec<u64>,
    /// The commands of the background that take longest in some way.
    background: Vec<Work>,
    /// The same for a lane, whose commands k2 does not cut.
    lane: Vec<Work>,
    /// For each level: the commands that can block it.
    blockers: Vec<Blockers>,
    /// For each level: the commands that can block longest if there is only one.
    single: Vec<Vec<Work>>,
    /// For each level: the cost of an interruption between adjacent pieces of a request.
    jumps: Vec<Work>,
    flush: Work,
    /// The largest write into the cache, in KiB; 0: none.
    write_kib_max: u64,
    /// The longest time from a flush of the background to its end.
    flushed_ns: u64,
    /// The limits with declared tasks.
    declared: Option<Declared>,
}

impl<'a> Load<'a> {
    fn new(device: &'a Device, set: &'a TaskSet) -> Load<'a> {
        let with_host = |work: Work| Work { ns: work.ns.saturating_add(host_ns(set)), ..work };
        let parts: Vec<Vec<Requests>> =
            set.tasks.iter().map(|task| requests(device, set, task)).collect();
        let flush = with_host(device.flush());
        let of_all = |(task, parts): (&Task, &Vec<Requests>)| {
            let written: Work = parts.iter().map(|part| part.each * part.count).sum();
            if is_flushed(device, task) { (written + flush, 2) } else { (written, 1) }
        };
        let (whole, waits) = set.tasks.iter().zip(&parts).map(of_all).unzip();
        let background: Vec<Work> =
            background_commands(device, set).into_iter().map(with_host).collect();
        let lane: Vec<Work> = lane_commands(device, set).into_iter().map(with_host).collect();
        let of_tasks = parts.iter().flatten().map(|part| &part.each);
        let all = of_tasks.chain(&background).chain(&lane);
        let write_kib_max = all.map(|command| device.cached_kib_max(command.cached_kib)).max();
        let write_kib_max = write_kib_max.unwrap_or(0);
        let commands = set.tasks.iter().map(|task| commands_of(device, set, task)).collect();
        let declared = (set.k2.rt_block_us > 0).then(|| Declared::of(device, set, &parts, &lane));
        let mut load = Load {
            device,
            set,
            whole,
            parts,
            waits,
            commands,
            background,
            lane,
            blockers: Vec::new(),
            single: Vec::new(),
            jumps: Vec::new(),
            flush,
            write_kib_max,
            flushed_ns: 0,
            declared,
        };
        load.blockers = (0..LEVELS).map(|level| load.blockers(level)).collect();
        let single =
            |blockers: &Blockers| not_within(blockers.commands.iter().chain([&Work::default()]));
        load.single = load.blockers.iter().map(single).collect();
        load.jumps = (0..LEVELS).map(|level| load.jump_after_others(level)).collect();
        load.flushed_ns = load.flushed_ns();
        load
    }

    /// The tasks up to a level, the highest level first.
    fn order(&self, level_max: u64) -> Vec<usize> {
        let tasks = &self.set.tasks;
        let mut order: Vec<usize> =
            (0..tasks.len()).filter(|index| tasks[*index].level <= level_max).collect();
        order.sort_by_key(|index| tasks[*index].level);
        order
    }

    /// The bounds of the tasks up to a level, with the bound `below` of all other tasks.
    ///
    /// The number of other tasks' requests in a window depends on the bounds of these tasks. So all
    /// bounds are computed again with the known ones, until none changes.
    fn bounds(&self, level_max: u64, below: Option<u64>, rounds_max: usize) -> Bounds {
        let first = |task: &Task| below.filter(|_| task.level > level_max);
        let mut found: Bounds = self.set.tasks.iter().map(first).collect();
        let order = self.order(level_max);
        // For each task, the step that computed its bound last, and the one that changed it.
        let (mut computed, mut changed) = (vec![0; found.len()], vec![0; found.len()]);
        let mut step = 0;
        for _ in 0..rounds_max {
            let first = step;
            for &index in &order {
                step += 1;
                let is_new = |other: usize| changed[other] > computed[index];
                if computed[index] > 0 && !self.depends_on(index).any(is_new) {
                    continue;
                }
                let bound_ns = self.job(index, &found).map(|terms| terms.sum());
                computed[index] = step;
                if found[index] != bound_ns {
                    (found[index], changed[index]) = (bound_ns, step);
                }
            }
            if changed.iter().all(|at| *at <= first) {
                break;
            }
        }
        found
    }

    /// The tasks whose bounds a task's depends on.
    fn depends_on(&self, index: usize) -> impl Iterator<Item = usize> {
        let level = self.set.tasks[index].level;
        let below = self.blockers[level as usize].tasks.iter().map(|(other, _)| *other);
        let above = (0..self.set.tasks.len())
            .filter(move |other| *other != index && self.set.tasks[*other].level <= level);
        above.chain(below)
    }

    /// Whether tasks up to a level may depend on bounds of tasks below it.
    fn depends_on_lower(&self, level_max: u64) -> bool {
        let levels = self.blockers.iter().take(level_max as usize + 1);
        let mut tasks = levels.flat_map(|blockers| &blockers.tasks);
        tasks.any(|(index, _)| self.set.tasks[*index].level > level_max)
    }

    /// The longest time of a flush. It waits for the commands in the device, and for the previous
    /// flush. The kernel merges flushes that come meanwhile.
    fn flushed_ns(&self) -> u64 {
        let of_tasks = self.parts.iter().flatten().map(|part| &part.each);
        let commands = of_tasks.chain(self.others());
        let longest = most_of(commands.map(|command| (command, 1)), 1) * self.set.k2.inflight_max;
        let work = longest + self.flush * 2;
        work.ns.saturating_add(self.device.stalls_ns(work, &self.around(1, 0)))
    }

    fn around(&self, waits: u64, between_ns: u64) -> Around {
        Around {
            waits,
            between_kib: if waits > 1 { self.device.written_kib_max(between_ns) } else { 0 },
            write_kib_max: self.write_kib_max,
            cache_is_used: self.write_kib_max > 0,
        }
    }

    /// The longest response in any number of successive jobs, each of which delays the next.
    fn job(&self, index: usize, found: &[Option<u64>]) -> Option<Terms> {
        let task = &self.set.tasks[index];
        let (period_ns, jitter_ns) = (task.period_us * 1_000, task.jitter_us * 2_000);
        let mut longest: Option<Terms> = None;
        if self.share(index, found) > 1.0 {
            return None;
        }
        let mut window_ns = 0;
        for jobs in 1..=JOBS_MAX {
            let mut terms = self.window(index, jobs, window_ns, found)?;
            window_ns = terms.sum();
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

    /// The share of the time, in the long run and without stalls, for a task's jobs and everything
    /// they wait for, if each job delays the next. Above 1 they pile up.
    fn share(&self, index: usize, found: &[Option<u64>]) -> f64 {
        let task = &self.set.tasks[index];
        let period_ns = task.period_us as f64 * 1e3;
        let waits = (task.batches() * self.waits[index]) as f64;
        let come = |other: usize| {
            let there = &self.set.tasks[other];
            there.ios as f64 * task.period_us as f64 / there.period_us as f64
        };
        let met = |other: usize| {
            let at_waits = waits * self.set.tasks[other].at_once as f64;
            if found[other].is_some() { come(other).min(at_waits) } else { at_waits }
        };
        let whole_ns = |other: usize| self.whole[other].ns as f64;
        let of_task = |other: usize| match self.set.tasks[other].level.cmp(&task.level) {
            Ordering::Less => come(other) * whole_ns(other),
            Ordering::Equal if other != index => met(other) * whole_ns(other),
            Ordering::Equal => task.ios as f64 * (whole_ns(index) + task.cpu_us() as f64 * 1e3),
            Ordering::Greater => 0.0,
        };
        let tasks_ns: f64 = (0..self.set.tasks.len()).map(of_task).sum();
        let places = waits * self.blocking_max(index) as f64;
        let blockers = &self.blockers[task.level as usize];
        let count = |at: usize| match blockers.tasks.get(at) {
            Some((other, parts)) => met(*other) * *parts as f64,
            None => places,
        };
        let mut left = places;
        let mut blocking_ns = 0.0;
        for (ns, at) in blockers.ranked.by_time() {
            if left <= 0.0 {
                break;
            }
            let taken = count(*at).min(left);
            left -= taken;
            blocking_ns += *ns as f64 * taken;
        }
        let blocks_ns = self.declared.as_ref().map_or(f64::INFINITY, |declared| {
            declared.blocks_ns[index] as f64 * self.waits_blocked(index, 1) as f64 * waits
        });
        (tasks_ns + blocking_ns.min(blocks_ns)) / period_ns
    }

    /// The longest time of this number of successive jobs of a task, with the longest blocking.
    /// `from_ns`: the time of fewer jobs.
    fn window(
        &self,
        index: usize,
        jobs: u64,
        from_ns: u64,
        found: &[Option<u64>],
    ) -> Option<Terms> {
        let task = &self.set.tasks[index];
        let window = Window { ios: jobs * task.ios, batches: jobs * task.batches(), from_ns };
        self.longest(index, &window, found)
    }

    /// The same for one batch of I/Os.
    fn batch(&self, index: usize, found: &[Option<u64>]) -> Option<Terms> {
        let ios = self.set.tasks[index].at_once;
        self.longest(index, &Window { ios, batches: 1, from_ns: 0 }, found)
    }

    fn longest(&self, index: usize, window: &Window, found: &[Option<u64>]) -> Option<Terms> {
        if self.declared.is_some()
            || self.blocking_max(index) > 1
            || window.batches * self.waits[index] > 1
        {
            return self.window_with(index, window, None, found);
        }
        // Each single command is tried, because a short write may stall the flash.
        let mut longest = Terms::default();
        for command in &self.single[self.set.tasks[index].level as usize] {
            let terms = self.window_with(index, window, Some(*command), found)?;
            if longest.sum() < terms.sum() {
                longest = terms;
            }
        }
        Some(longest)
    }

    /// The window grows until all requests that come in it also end in it. `blocking`: the command
    /// that blocks it, if there is only one.
    fn window_with(
        &self,
        index: usize,
        window: &Window,
        blocking: Option<Work>,
        found: &[Option<u64>],
    ) -> Option<Terms> {
        #[cfg(test)]
        WINDOWS.with(|count| count.set(count.get() + 1));
        let task = &self.set.tasks[index];
        let waits = window.batches * self.waits[index];
        let last_ns = match (self.waits[index], &self.declared) {
            (1, Some(declared)) => declared.last_ns[index],
            (1, None) => self.parts[index].last()?.each.ns,
            _ => self.flush.ns,
        };
        let own = self.whole[index] * window.ios;
        let cpu_ns = (task.cpu_us() * 1_000).saturating_mul(window.ios);
        let mut total_ns = window.from_ns;
        let mut least_ns = None;
        loop {
            let start_ns = total_ns.saturating_sub(last_ns);
            let same_level = self.same_level(index, waits, start_ns, found);
            let blocking = blocking.unwrap_or_else(|| self.blocking(index, waits, start_ns, found));
            let higher = self.higher_levels(task.level, start_ns, found)?;
            let flush = self.flushes(task.level, start_ns);
            let forced = self.forced(index, start_ns);
            let all = own + same_level + blocking + higher + flush + forced;
            // With several commands in flight, or durable writes that bypass k2, other writes
            // overlap with this task's own commands.
            let bypasses = is_flushed(self.device, task) && self.device.overlaps_durable(self.set);
            let overlaps = self.set.k2.inflight_max > 1 || bypasses;
            let between_ns = if overlaps { total_ns } else { cpu_ns };
            let terms = Terms {
                own: own.ns,
                cpu: cpu_ns,
                same_level: same_level.ns,
                higher_levels: higher.ns,
                blocking: blocking.ns,
                flush: flush.ns,
                background_wait: forced.ns,
                stalls: self.device.stalls_ns(all, &self.around(waits, between_ns)),
                later: 0,
            };
            let sum_ns = terms.sum();
            if sum_ns <= total_ns {
                return Some(terms);
            }
            let least_ns = *least_ns.get_or_insert_with(|| {
                self.least_ns(task.level, sum_ns.saturating_sub(higher.ns), last_ns, found)
            });
            total_ns = sum_ns.max(least_ns);
            if total_ns > WINDOW_NS_MAX {
                return None;
            }
        }
    }

    /// A limit below which no window of a level ends whose other terms take at least `rest_ns`: each
    /// higher task takes at least its share of the window. Starting there saves most of the steps.
    fn least_ns(&self, level: u64, rest_ns: u64, last_ns: u64, found: &[Option<u64>]) -> u64 {
        let (mut share, mut carried_ns) = (0.0, 0.0);
        for (index, each, task) in self.higher(level) {
            let carries_ns = found[index].unwrap_or(0) as f64 + task.jitter_us as f64 * 2e3;
            let share_of_task = each.ns as f64 * task.ios as f64 / (task.period_us as f64 * 1e3);
            share += share_of_task;
            carried_ns += share_of_task * carries_ns;
        }
        if share > SHARE_MAX {
            return 0;
        }
        let least_ns = (rest_ns as f64 + carried_ns - share * last_ns as f64) / (1.0 - share);
        (least_ns * BELOW) as u64
    }

    /// The number of a task's jobs that can be active in a window whose last request starts after
    /// `start_ns`. None: its bound is unknown.
    fn jobs_in(&self, index: usize, start_ns: u64, found: &[Option<u64>]) -> Option<u64> {
        let task = &self.set.tasks[index];
        let carried_ns = found[index]?;
        let from_ns = start_ns.saturating_add(carried_ns).saturating_add(task.jitter_us * 2_000);
        Some(from_ns / (task.period_us * 1_000) + 1)
    }

    /// The number of a task's I/Os that can be in a window, if there is at most one batch per wait.
    fn ios_met(&self, index: usize, waits: u64, start_ns: u64, found: &[Option<u64>]) -> u64 {
        let task = &self.set.tasks[index];
        let at_waits = waits.saturating_mul(task.at_once);
        let jobs = self.jobs_in(index, start_ns, found);
        jobs.map_or(at_waits, |jobs| jobs.saturating_mul(task.ios).min(at_waits))
    }

    /// The work of the same level: at each wait of the task, each other thread of its level has at
    /// most one batch in front.
    fn same_level(&self, index: usize, waits: u64, start_ns: u64, found: &[Option<u64>]) -> Work {
        let level = self.set.tasks[index].level;
        let others = (0..self.set.tasks.len())
            .filter(|other| *other != index && self.set.tasks[*other].level == level);
        others.map(|other| self.whole[other] * self.ios_met(other, waits, start_ns, found)).sum()
    }

    /// The commands that are no task's.
    fn others(&self) -> impl Iterator<Item = &Work> {
        self.background.iter().chain(&self.lane)
    }

    /// Others can be at every place, so a task's command that exceeds none of them adds nothing.
    fn blockers(&self, level: u64) -> Blockers {
        let (mut tasks, mut commands) = (Vec::new(), Vec::new());
        for (index, parts) in self.parts.iter().enumerate() {
            if self.set.tasks[index].level <= level {
                continue;
            }
            for Requests { each, count } in parts {
                if !self.others().any(|other| each.is_within(other)) {
                    tasks.push((index, *count));
                    commands.push(*each);
                }
            }
        }
        commands.extend(self.others().copied());
        Blockers { ranked: Ranked::of(&commands), tasks, commands }
    }

    /// The number of commands of lower levels and of the background that can be in the device when
    /// the task begins to wait. With several in flight, one more may slip in between two requests
    /// of the same batch, or between two pieces of a request.
    fn blocking_max(&self, index: usize) -> u64 {
        let inflight_max = self.set.k2.inflight_max;
        let commands = self.set.tasks[index].at_once * self.commands[index];
        if inflight_max > 1 { inflight_max + commands - 1 } else { 1 }
    }

    /// The work that blocks the task in all its waits: the longest times together with the largest
    /// writes, of at most as many tasks as come in the window.
    fn blocking(&self, index: usize, waits: u64, start_ns: u64, found: &[Option<u64>]) -> Work {
        let places = waits.saturating_mul(self.blocking_max(index));
        let blockers = &self.blockers[self.set.tasks[index].level as usize];
        let count = |at: usize| match blockers.tasks.get(at) {
            Some((other, parts)) => {
                self.ios_met(*other, waits, start_ns, found).saturating_mul(*parts)
            }
            None => places,
        };
        let most = blockers.ranked.most(places, count);
        let Some(declared) = &self.declared else { return most };
        // Only the end of each command blocks, but it may include a stall.
        let blocks_ns = declared.blocks_ns[index].saturating_mul(self.waits_blocked(index, waits));
        Work { ns: most.ns.min(blocks_ns), ..most }
    }

    /// The number of times that a declared task can be blocked in this number of waits. With
    /// several in flight, it can be blocked again before each further command of a batch.
    fn waits_blocked(&self, index: usize, waits: u64) -> u64 {
        let slipped_in = self.blocking_max(index) - self.set.k2.inflight_max;
        waits.saturating_mul(1 + slipped_in)
    }

    /// Requests of higher levels that come until the last request starts, and those of unfinished
    /// jobs from before the window. None: they pile up.
    fn higher_levels(&self, level: u64, start_ns: u64, found: &[Option<u64>]) -> Option<Work> {
        let mut sum = Work::default();
        for (index, each, task) in self.higher(level) {
            let jobs = self.jobs_in(index, start_ns, found)?;
            sum = sum + each * jobs.saturating_mul(task.ios);
        }
        Some(sum)
    }

    /// The tasks of higher levels, with the work of an I/O, and of the jump that follows it.
    fn higher(&self, level: u64) -> impl Iterator<Item = (usize, Work, &Task)> {
        let jump = self.jumps[level as usize];
        let tasks = self.set.tasks.iter().enumerate().filter(move |(_, task)| task.level < level);
        tasks.map(move |(index, task)| {
            let jumps: u64 = self.parts[index].iter().map(|part| part.count).sum();
            (index, self.whole[index] + jump * jumps, task)
        })
    }

    /// The cost of an interruption between adjacent pieces of a request.
    fn jump_after_others(&self, level: u64) -> Work {
        let cut = self.set.tasks.iter().filter(|task| task.level <= level);
        let jumps = cut.filter_map(|task| jump_once_ns(self.device, self.set, task));
        Work { ns: jumps.max().unwrap_or(0), ..Work::default() }
    }

    fn flushes(&self, level: u64, start_ns: u64) -> Work {
        let distance_us = self.set.background.as_ref().and_then(|bg| bg.flush_distance_us_min);
        let Some(distance_us) = distance_us else { return Work::default() };
        let (distance_ns, carried_ns) = (distance_us * 1_000, self.flushed_ns);
        let came = start_ns.saturating_add(carried_ns) / distance_ns + 1;
        // One may be in progress when the window begins, and one may wait for it.
        (self.flush + self.jumps[level as usize]) * came.min(start_ns / distance_ns + 3)
    }

    /// Background that is served before real-time, because it has waited for too long.
    fn forced(&self, index: usize, start_ns: u64) -> Work {
        let wait_ns = self.set.k2.background_wait_ms_max * 1_000_000;
        if wait_ns == 0 {
            return Work::default();
        }
        // Background that blocks, because it was in the device when the window began, waits again
        // from its end. Otherwise only lower levels and lanes can block.
        let level = self.set.tasks[index].level;
        let others_block =
            self.set.lane.is_some() || self.set.tasks.iter().any(|other| other.level > level);
        let at_once = u64::from(others_block);
        let pieces = start_ns / wait_ns + at_once;
        if pieces == 0 {
            return Work::default();
        }
        let most = most_of(self.background.iter().map(|command| (command, pieces)), pieces);
        let longest_ns = self.background.iter().map(|command| command.ns).max().unwrap_or(0);
        let (piece_ns, jump_ns) = match &self.declared {
            None => (longest_ns, 0),
            // While the task waits, each forced request is cut for it. The rest that continues
            // afterwards jumps back.
            Some(declared) => {
                let jump = self.jumps[level as usize];
                (longest_ns.min(declared.blocks_ns[index]), jump.ns)
            }
        };
        let window_ns = start_ns.saturating_sub((1 - at_once) * wait_ns);
        Work { ns: forced_ns(window_ns, wait_ns, piece_ns, jump_ns), ..most }
    }
}

/// The commands that can block a level.
struct Blockers {
    /// For the first commands: the task, and how many of its I/O's requests are alike. The others are
    /// no task's, and can be at every place.
    tasks: Vec<(usize, u64)>,
    commands: Vec<Work>,
    ranked: Ranked,
}

/// A task's I/Os that are analyzed together, their batches, and their shortest time.
struct Window {
    ios: u64,
    batches: u64,
    from_ns: u64,
}
