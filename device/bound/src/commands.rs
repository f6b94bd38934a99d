// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes the commands that requests become: their sizes, and the longest time of the device for
//! them. `analysis` and `declared` call it.

use crate::Work;
use crate::device::{Device, Op};
use crate::tasks::{BackgroundOp, Task, TaskOp, TaskSet};

/// The smallest piece of k2 (`K2_PIECE_MIN`).
pub const PIECE_KIB_MIN: u64 = 4;

pub fn host_ns(set: &TaskSet) -> u64 {
    set.host.command_us * 1_000
}

/// k2's limit of a command's time.
pub fn limit_ns(device: &Device, set: &TaskSet, op: Op, kib: u64) -> u64 {
    let (base_ns, per_kib_ns) = device.limit(op);
    base_ns + host_ns(set) + kib * per_kib_ns
}

/// The smallest size into which a task's request is cut, except the last piece. None: it is not
/// cut, because no declared task is above it, or because it goes to a lane.
pub fn task_cut_kib(device: &Device, set: &TaskSet, task: &Task) -> Option<u64> {
    if set.k2.rt_block_us == 0 || task.lane {
        return None;
    }
    let above = set.declared().filter(|(_, other)| other.level < task.level);
    let block_us = above.map(|(_, other)| other.block_us(&set.k2)).min()?;
    Some(cut_kib(device, set, task_op(task), block_us))
}

/// The largest piece that ends in time by the limits, in units of the smallest; at least one unit.
pub fn cut_kib(device: &Device, set: &TaskSet, op: Op, block_us: u64) -> u64 {
    let (base_ns, per_kib_ns) = device.limit(op);
    let room_ns = (block_us * 1_000).saturating_sub(base_ns + host_ns(set));
    let kib = room_ns / per_kib_ns.max(1);
    (kib - kib % PIECE_KIB_MIN).max(PIECE_KIB_MIN)
}

/// The jump to a request of a task that is cut, if its pieces are adjacent. With one command in
/// flight, only requests of higher levels, flushes and forced background can come between them.
/// `None`: each piece counts with a jump.
pub fn jump_once_ns(device: &Device, set: &TaskSet, task: &Task) -> Option<u64> {
    let is_cached = task.op == TaskOp::Write && device.has_cache();
    if set.k2.inflight_max > 1 || is_cached {
        return None;
    }
    task_cut_kib(device, set, task).map(|_| device.jump_ns(task_op(task)))
}

pub fn commands_of(device: &Device, set: &TaskSet, task: &Task) -> u64 {
    let piece_kib = task_cut_kib(device, set, task).unwrap_or(u64::MAX);
    let pieces = |part| part_kib(task, set, part).div_ceil(piece_kib);
    let last = task.parts(&set.k2) - 1;
    last * pieces(0) + pieces(last)
}

/// Requests of one I/O that are alike.
#[derive(Debug, Clone, Copy)]
pub struct Requests {
    pub each: Work,
    pub count: u64,
}

/// The requests of an I/O: all but the last are alike.
pub fn requests(device: &Device, set: &TaskSet, task: &Task) -> Vec<Requests> {
    let piece_kib = task_cut_kib(device, set, task);
    let last = task.parts(&set.k2) - 1;
    let of = |part, count| {
        let kib = part_kib(task, set, part);
        Requests { each: request(device, set, task, kib, piece_kib), count }
    };
    let all = [of(0, last), of(last, 1)];
    all.into_iter().filter(|requests| requests.count > 0).collect()
}

/// The work of a request, in pieces of at least `piece_kib`. Small pieces may go into the cache if
/// the whole would bypass it.
fn request(device: &Device, set: &TaskSet, task: &Task, kib: u64, piece_kib: Option<u64>) -> Work {
    let op = task_op(task);
    let pieces = piece_kib.map_or(1, |piece_kib| kib.div_ceil(piece_kib));
    let whole = device.command(op, kib);
    if pieces == 1 {
        return Work { ns: whole.ns.saturating_add(host_ns(set)), ..whole };
    }
    let (base_ns, per_kib_ns) = device.limit(op);
    let jumps_ns = (pieces - 1) * jump_once_ns(device, set, task).unwrap_or(0);
    let ns = pieces * (base_ns + host_ns(set)) + kib * per_kib_ns - jumps_ns;
    let is_cached = op == Op::Write && device.has_cache();
    Work {
        ns,
        written_kib: if op == Op::Read { 0 } else { kib },
        cached_kib: if is_cached { kib } else { 0 },
        cached_writes: if is_cached { pieces } else { 0 },
        flushes: 0,
    }
}

fn part_kib(task: &Task, set: &TaskSet, part: u64) -> u64 {
    if task.lane {
        return task.kib;
    }
    (task.kib - part * set.k2.max_sectors_kb).min(set.k2.max_sectors_kb)
}

/// Whether the kernel sends a flush after each of its writes.
pub fn is_flushed(device: &Device, task: &Task) -> bool {
    task.durable && device.has_cache()
}

pub fn task_op(task: &Task) -> Op {
    match (task.op, task.durable) {
        (TaskOp::Read, _) => Op::Read,
        (TaskOp::Write, false) => Op::Write,
        (TaskOp::Write, true) => Op::DurableWrite,
    }
}

/// The commands of the background. A request may have any size up to the largest. A write into the
/// cache may take longer than a larger one, which bypasses it.
pub fn background_commands(device: &Device, set: &TaskSet) -> Vec<Work> {
    let Some(background) = &set.background else { return Vec::new() };
    let kib = piece_kib(set);
    let mut commands = Vec::new();
    if background.op != BackgroundOp::Write {
        commands.push((Op::Read, kib));
    }
    if background.op != BackgroundOp::Read {
        commands.push((Op::Write, kib));
        let cached_kib = device.cached_kib_max(kib);
        if cached_kib > 0 && cached_kib < kib {
            commands.push((Op::Write, cached_kib));
        }
        commands.extend(background.durable.then_some((Op::DurableWrite, kib)));
    }
    if background.discard_kib > 0 {
        commands.push((Op::Discard, background.discard_kib));
    }
    commands.into_iter().map(|(op, kib)| device.command(op, kib)).collect()
}

/// The commands of a lane. They may have any size up to the longest, and may be durable.
pub fn lane_commands(device: &Device, set: &TaskSet) -> Vec<Work> {
    let Some(lane) = &set.lane else { return Vec::new() };
    let mut commands = Vec::new();
    if lane.op != BackgroundOp::Write {
        commands.push((Op::Read, lane.kib));
    }
    if lane.op != BackgroundOp::Read {
        commands.extend([(Op::Write, lane.kib), (Op::DurableWrite, lane.kib)]);
        let cached_kib = device.cached_kib_max(lane.kib);
        commands.extend((cached_kib > 0).then_some((Op::Write, cached_kib)));
    }
    commands.into_iter().map(|(op, kib)| device.command(op, kib)).collect()
}

/// The largest piece that the device gets of a background request. A plug merges adjacent requests
/// before k2 sees them.
pub fn piece_kib(set: &TaskSet) -> u64 {
    let Some(background) = &set.background else { return 0 };
    let merged_kib = if background.merges { u64::MAX } else { background.kib };
    let whole_kib = merged_kib.min(set.k2.max_sectors_kb);
    if set.k2.split_kib() > 0 { whole_kib.min(set.k2.split_kib()) } else { whole_kib }
}
