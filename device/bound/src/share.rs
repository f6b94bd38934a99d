// SPDX-License-Identifier: MIT OR Apache-2.0
//! Estimates the cost of deadlines for the background. It uses usual times, so the result is not a
//! bound. `steady bound` prints it, and `search` minimizes it.

use crate::commands::{cut_kib, host_ns, piece_kib, task_op};
use crate::device::{Device, Op};
use crate::tasks::{Background, BackgroundOp, Task, TaskSet};

/// The share of the background's throughput that k2's cuts take, 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Loss {
    /// The share per declared task, in the order of the set. `split_kib` belongs to no task.
    pub tasks: Vec<f64>,
    pub all: f64,
}

/// The loss; `None` without background, or if a usual time is unknown.
///
/// A background whose requests are cut to one size loses the overhead of small commands. With
/// declared tasks, it is cut only while a job may come, which is 2 jitter + think before the job on
/// average, and for one more command per job, whose piece ends in time.
pub fn loss(device: &Device, set: &TaskSet) -> Option<Loss> {
    let background = set.background.as_ref()?;
    let mut uncut = set.clone();
    uncut.k2.split_kib = None;
    let whole_kib = piece_kib(&uncut);
    if set.k2.rt_block_us == 0 {
        let all = lost_rate(device, set, background, piece_kib(set), whole_kib)?;
        return Some(Loss { tasks: vec![0.0; set.tasks.len()], all });
    }
    let busy: Option<f64> = set.tasks.iter().map(|task| busy(device, set, task)).sum();
    let left = (1.0 - busy?).max(0.01);
    let of_task = |task: &Task| {
        if task.lane {
            return Some(0.0);
        }
        let lost = task_loss_us(device, set, background, task, whole_kib)?;
        Some((lost / task.period_us as f64 / left).min(1.0))
    };
    let tasks: Vec<f64> = set.tasks.iter().map(of_task).collect::<Option<_>>()?;
    let all = tasks.iter().sum::<f64>().min(1.0);
    Some(Loss { tasks, all })
}

fn usual_us(device: &Device, set: &TaskSet, op: Op, kib: u64) -> Option<f64> {
    let (usual_ns, _) = device.model_ns(op, kib)?;
    Some((usual_ns + host_ns(set)) as f64 / 1e3)
}

/// The average of both operations, if it reads and writes.
fn background_us(device: &Device, set: &TaskSet, background: &Background, kib: u64) -> Option<f64> {
    let us = |op| usual_us(device, set, op, kib);
    match background.op {
        BackgroundOp::Read => us(Op::Read),
        BackgroundOp::Write => us(Op::Write),
        BackgroundOp::ReadWrite => Some((us(Op::Read)? + us(Op::Write)?) / 2.0),
    }
}

fn lost_rate(
    device: &Device,
    set: &TaskSet,
    background: &Background,
    kib: u64,
    whole_kib: u64,
) -> Option<f64> {
    let us_per_kib = |kib: u64| Some(background_us(device, set, background, kib)? / kib as f64);
    Some(1.0 - us_per_kib(whole_kib)? / us_per_kib(kib)?)
}

/// The share of the time in which the device works for a task.
fn busy(device: &Device, set: &TaskSet, task: &Task) -> Option<f64> {
    let request_us = usual_us(device, set, task_op(task), task.kib)?;
    Some(task.ios as f64 * request_us / task.period_us as f64)
}

fn task_loss_us(
    device: &Device,
    set: &TaskSet,
    background: &Background,
    task: &Task,
    whole_kib: u64,
) -> Option<f64> {
    let ops: &[Op] = match background.op {
        BackgroundOp::Read => &[Op::Read],
        BackgroundOp::Write => &[Op::Write],
        BackgroundOp::ReadWrite => &[Op::Read, Op::Write],
    };
    let fits = |op: &Op| cut_kib(device, set, *op, task.block_us(&set.k2));
    let kib = ops.iter().map(fits).min()?.min(whole_kib);
    if kib == whole_kib {
        return Some(0.0);
    }
    let lost = lost_rate(device, set, background, kib, whole_kib)?;
    let due_us = (2 * task.jitter_us + 2 * task.cpu_us() * task.at_once) as f64;
    Some(due_us * lost + background_us(device, set, background, 0)?)
}
