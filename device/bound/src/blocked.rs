// SPDX-License-Identifier: MIT OR Apache-2.0
//! What k2 keeps for declared tasks: how long a request may be blocked, and the shortest last piece.
//! `analysis` calls it.

use crate::Work;
use crate::commands::{PIECE_KIB_MIN, Requests, limit_ns, task_cut_kib, task_op};
use crate::device::{Device, Op};
use crate::tasks::{BackgroundOp, Task, TaskSet};

/// The limits if k2 cuts everything below a declared task so that no request is blocked for longer.
/// A command of a lane is not cut.
pub struct Declared {
    /// For each task, the longest time for which lower levels block a request.
    pub blocks_ns: Vec<u64>,
    /// The shortest time of a request's last piece, which starts when the window ends.
    pub last_ns: Vec<u64>,
}

impl Declared {
    pub fn of(device: &Device, set: &TaskSet, parts: &[Vec<Requests>], lane: &[Work]) -> Declared {
        let blocks_ns = |task: &Task| {
            if task.lane {
                return u64::MAX;
            }
            let below = set.tasks.iter().zip(parts).filter(|(other, _)| other.level > task.level);
            let of_lanes =
                below.clone().filter(|(other, _)| other.lane).flat_map(|(_, parts)| parts);
            let calls = of_lanes.map(|call| &call.each).chain(lane);
            let lane_ns = calls.map(|call| call.ns).max().unwrap_or(0);
            let ops = below.map(|(other, _)| task_op(other));
            let background = set.background.as_ref().map_or(&[][..], |bg| match bg.op {
                BackgroundOp::Read => &[Op::Read][..],
                BackgroundOp::Write => &[Op::Write],
                BackgroundOp::ReadWrite => &[Op::Read, Op::Write],
            });
            let least_ns = |op: Op| limit_ns(device, set, op, PIECE_KIB_MIN);
            let least_ns = ops.chain(background.iter().copied()).map(least_ns).max().unwrap_or(0);
            least_ns.max(task.block_us(&set.k2) * 1_000).max(lane_ns)
        };
        let last_ns = |(task, parts): (&Task, &Vec<Requests>)| match task_cut_kib(device, set, task)
        {
            None => parts.last().map_or(0, |part| part.each.ns),
            Some(_) => device.command(task_op(task), 1).ns,
        };
        Declared {
            blocks_ns: set.tasks.iter().map(blocks_ns).collect(),
            last_ns: set.tasks.iter().zip(parts).map(last_ns).collect(),
        }
    }
}
