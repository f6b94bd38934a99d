// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes the declarations of a task set with `rt_block_us`: the limits of the device's times, and
//! each task. `steady bound` prints them.

use steadyio_core::declared::{Owner, Task as Declaration};

use crate::BoundError;
use crate::analysis::Response;
use crate::commands::{PIECE_KIB_MIN, limit_ns};
use crate::device::{Device, Op};
use crate::fault::{Fault, fault};
use crate::tasks::{Task, TaskSet};

/// The number of tasks that k2 takes per disk (`K2_DECLARED_MAX`).
const TASKS_MAX: usize = 32;

fn fits<T: TryFrom<u64>>(what: &str, number: u64) -> Result<T, BoundError> {
    T::try_from(number).map_err(|_| BoundError(format!("{what} = {number}: is too long for k2")))
}

/// The text for `iosched/device_limits`, in ns.
pub fn device_limits(device: &Device, set: &TaskSet) -> Result<String, BoundError> {
    if !device.has_writes() {
        return Err(BoundError(format!(
            "{}: has no [write], and k2 needs limits of reads and writes (steady probe --write)",
            device.name
        )));
    }
    let words = |name: &str, op: Op| -> Result<String, BoundError> {
        let (base_ns, per_kib_ns) = device.limit(op);
        let base_ns: u32 = fits("the time of a command", base_ns + set.host.command_us * 1_000)?;
        let per_kib_ns: u32 = fits("the time of a KiB", per_kib_ns)?;
        Ok(format!("{name} {base_ns} {per_kib_ns}"))
    };
    Ok(format!("{} {}", words("read", Op::Read)?, words("write", Op::Write)?))
}

/// The jitter of a job's first request: what is computed before it delays it, too.
fn jitter_us(task: &Task) -> u64 {
    task.jitter_us + (task.cpu_us() * task.at_once).div_ceil(2)
}

/// The longest time without a request inside a job, which computes after one I/O and before the
/// next. The flush of a durable write is not a request that k2 sees.
fn think_us(task: &Task, flush_us: u64) -> u64 {
    1 + 2 * task.cpu_us() * task.at_once + flush_us
}

/// Rejects what k2 rejects.
pub(crate) fn check(device: &Device, set: &TaskSet) -> Result<(), Fault> {
    if set.k2.rt_block_us == 0 {
        return Ok(());
    }
    let count = set.declared().count();
    if count > TASKS_MAX {
        return fault(
            "task",
            format!("{count} tasks with rt_block_us: k2 takes at most {TASKS_MAX} declarations"),
        );
    }
    let least_ns = [Op::Read, Op::Write].map(|op| limit_ns(device, set, op, PIECE_KIB_MIN));
    let least_us = least_ns.into_iter().min().unwrap_or(0).div_ceil(1_000);
    for (number, task) in set.declared() {
        let block_us = task.block_us(&set.k2);
        if block_us < least_us {
            let own = task.block_us.is_some();
            let place = format!("task/{number}/block_us");
            let (place, key) =
                if own { (place.as_str(), "block_us") } else { ("k2/rt_block_us", "rt_block_us") };
            let text = format!(
                "task {}: {key} = {block_us}: must be at least {least_us}, the limit of the smallest command",
                task.name
            );
            return fault(place, text);
        }
        check_period(task, 0).or_else(|text| fault(format!("task/{number}/period_us"), text))?;
    }
    Ok(())
}

fn check_period(task: &Task, flush_us: u64) -> Result<(), String> {
    let (jitter_us, think_us) = (jitter_us(task), think_us(task, flush_us));
    let least_us = 2 * jitter_us + think_us;
    if task.period_us > least_us {
        return Ok(());
    }
    Err(format!(
        "task {}: period_us = {}: must be above {least_us} with rt_block_us: the declaration has \
         2 jitter_us = {} and think_us = {think_us}",
        task.name,
        task.period_us,
        2 * jitter_us
    ))
}

/// The declaration of a task. `found`: its bound.
fn declaration(
    device: &Device,
    set: &TaskSet,
    task: &Task,
    found: &Response,
) -> Result<Declaration, BoundError> {
    let flush_us = match &found.io {
        Some(io) if task.durable && device.has_cache() => io.sum().div_ceil(1_000),
        _ => 0,
    };
    check_period(task, flush_us).map_err(BoundError)?;
    let name = |key: &str| format!("task {}: {key}", task.name);
    Ok(Declaration {
        level: fits(&name("level"), task.level)?,
        period_us: fits(&name("period_us"), task.period_us)?,
        jitter_us: fits(&name("jitter_us"), jitter_us(task))?,
        think_us: fits(&name("think_us"), think_us(task, flush_us))?,
        block_us: fits(&name("block_us"), task.block_us(&set.k2))?,
        exact: 0,
        sporadic: false,
        owner: Owner::Process,
    })
}

/// The declarations of a set with `rt_block_us`, in the order of its tasks. None: it is not
/// declared, as its calls go to a lane.
pub fn declarations(
    device: &Device,
    set: &TaskSet,
    found: &[Response],
) -> Result<Vec<Option<Declaration>>, BoundError> {
    let of = |(task, found): (&Task, &Response)| {
        (!task.lane).then(|| declaration(device, set, task, found)).transpose()
    };
    set.tasks.iter().zip(found).map(of).collect()
}
