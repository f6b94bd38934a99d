// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes the declarations of a task set with `rt_block_us`: the limits of the device's times, and
//! each task. `steady bound` prints them.

use steadyio_core::declared::{Owner, Task as Declaration};

use crate::BoundError;
use crate::analysis::Response;
use crate::device::{Device, Op};
use crate::tasks::{Task, TaskSet};

fn fits(what: &str, number: u64) -> Result<u32, BoundError> {
    let most = u32::MAX;
    let error = |_| BoundError(format!("{what} = {number}: must be at most {most} for k2"));
    u32::try_from(number).map_err(error)
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
        let base_ns = fits("the time of a command in ns", base_ns + set.host.command_us * 1_000)?;
        let per_kib_ns = fits("the time of a KiB in ns", per_kib_ns)?;
        Ok(format!("{name} {base_ns} {per_kib_ns}"))
    };
    Ok(format!("{} {}", words("read", Op::Read)?, words("write", Op::Write)?))
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
    task.check_period(flush_us).map_err(BoundError)?;
    let name = |key: &str| format!("task {}: {key}", task.name);
    Ok(Declaration {
        level: fits(&name("level"), task.level)?,
        period_us: fits(&name("period_us"), task.period_us)?,
        jitter_us: fits(&name("jitter_us"), task.declared_jitter_us())?,
        think_us: fits(&name("think_us"), task.think_us(flush_us))?,
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
