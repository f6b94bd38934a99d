// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scheduler's events in binary, and what text and binary have in common.

use super::fields::Fields;
use crate::event::EventKind;
use crate::sched::{Context, SchedTask, Switch, Waking};

/// Bits of `prev_state` that say for what a thread sleeps or that it is gone; those above them mark preemption.
const STATE_MASK: i64 = 0xff;
/// Of `common_flags`.
const HARDIRQ: u8 = 0x08;
const SOFTIRQ: u8 = 0x10;
const NMI: u8 = 0x40;

/// Fields: `prev_pid prev_comm prev_prio prev_state next_pid next_comm next_prio`.
pub fn switch(fields: &Fields) -> Option<EventKind> {
    let runnable = fields.int(3)? & STATE_MASK == 0;
    Some(EventKind::Switch(Switch { prev: task(fields, 0)?, runnable, next: task(fields, 4)? }))
}

/// Fields: `pid comm prio common_flags`.
pub fn waking(fields: &Fields) -> Option<EventKind> {
    let flags = fields.u8(3)?;
    let context = match flags {
        _ if flags & (HARDIRQ | NMI) != 0 => Context::Interrupt,
        _ if flags & SOFTIRQ != 0 => Context::Softirq,
        _ => Context::Thread,
    };
    Some(EventKind::Waking(Waking { woken: task(fields, 0)?, context: Some(context) }))
}

/// Its number, its name and the priority, from field `first` on; `prev_state` stands behind them.
fn task(fields: &Fields, first: usize) -> Option<SchedTask> {
    let (pid, comm) = (fields.u32(first)?, fields.comm(first + 1)?);
    Some(SchedTask { pid, comm, prio: fields.i32(first + 2)? })
}
