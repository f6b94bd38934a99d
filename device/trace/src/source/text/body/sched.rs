// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scheduler's events: as their formats print them, and as trace-cmd's plugin does.

use super::Body;
use crate::event::{Comm, EventKind};
use crate::sched::{SchedTask, Switch, Waking};
use crate::source::text::scan::{Parsed, Scan};

/// `prev_comm=dd prev_pid=20 prev_prio=120 prev_state=D ==> next_comm=sh next_pid=21 next_prio=49`, of trace-cmd
/// `dd:20 [120] D ==> sh:21 [49]`
pub fn switch<'a>(scan: &mut Scan<'a>) -> Parsed<'a, Body> {
    let (prev, runnable);
    let next = if scan.passes("prev_comm=") {
        let mut left = Scan::new(scan.before_last(" ==> next_comm=")?);
        prev = task(&mut left, [" prev_pid=", " prev_prio="])?;
        left.literal(" prev_state=")?;
        runnable = is_runnable(&mut left)?;
        task(scan, [" next_pid=", " next_prio="])?
    } else {
        let mut left = Scan::new(scan.before_last(" ==> ")?);
        prev = short(&mut left)?;
        left.literal(" ")?;
        runnable = is_runnable(&mut left)?;
        short(scan)?
    };
    scan.end()?;
    Ok(Body { what: EventKind::Switch(Switch { prev, runnable, next }), comm: prev.comm })
}

/// `comm=dd pid=20 prio=120 target_cpu=001`, of trace-cmd `dd:20 [120] CPU:001`; some kernels and versions say
/// `success=1` before the CPU.
pub fn waking<'a>(scan: &mut Scan<'a>) -> Parsed<'a, Body> {
    let formatted = scan.passes("comm=");
    let woken = if formatted { task(scan, [" pid=", " prio="])? } else { short(scan)? };
    scan.passes(" success=1");
    scan.literal(if formatted { " target_cpu=" } else { " CPU:" })?;
    scan.decimal::<u32>("a CPU")?;
    scan.end()?;
    Ok(EventKind::Waking(Waking { woken, context: None }).into())
}

/// A name, and behind the two texts the thread's number and priority.
fn task<'a>(scan: &mut Scan<'a>, [pid, prio]: [&'static str; 2]) -> Parsed<'a, SchedTask> {
    let comm = Comm::new(scan.before_last(pid)?);
    let pid = scan.decimal("a thread")?;
    scan.literal(prio)?;
    Ok(SchedTask { pid, comm, prio: scan.signed("a priority")? })
}

/// `dd:20 [120]`
fn short<'a>(scan: &mut Scan<'a>) -> Parsed<'a, SchedTask> {
    let mut behind = *scan;
    let named = behind.before_last(" [")?;
    let mut named = Scan::new(named);
    let comm = Comm::new(named.before_last(":")?);
    let pid = named.decimal("a thread")?;
    named.end()?;
    let prio = behind.signed("a priority")?;
    behind.literal("]")?;
    *scan = behind;
    Ok(SchedTask { pid, comm, prio })
}

/// `R`, `R+`, or the letters of what it sleeps for.
fn is_runnable<'a>(scan: &mut Scan<'a>) -> Parsed<'a, bool> {
    let state = scan.word("a state")?;
    scan.end()?;
    Ok(matches!(state, b"R" | b"R+"))
}
