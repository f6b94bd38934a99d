// SPDX-License-Identifier: MIT OR Apache-2.0
//! Orders the commands of several callers in one process, as `/dev/chardiskN` does for all: higher
//! levels first, then the longest wait, and few commands of the background at a time. `nvme` uses
//! it.
//!
//! A drive has no order of its own that programs can rely on, so a command waits here until it may
//! go. The background takes only some of the commands in flight: if its thread gets no CPU, the
//! others still go.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// `linux/ioprio.h`
const IOPRIO_WHO_PROCESS: libc::c_int = 1;
const IOPRIO_CLASS_SHIFT: libc::c_long = 13;
const IOPRIO_CLASS_RT: libc::c_long = 1;
/// The level of a real-time thread without an I/O priority, as in chario.
const LEVEL_OF_SCHEDULER: u8 = 4;

/// The priority of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// 0, the highest, to 7.
    RealTime(u8),
    Background,
}

impl Level {
    /// The level of the calling thread, by the rules of `/dev/chardiskN`: its I/O priority, or its
    /// scheduling class.
    pub fn of_caller() -> Level {
        // SAFETY: this reads the priority of the calling thread.
        let ioprio = unsafe { libc::syscall(libc::SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0) };
        if ioprio >> IOPRIO_CLASS_SHIFT == IOPRIO_CLASS_RT {
            return Level::RealTime((ioprio & 7) as u8);
        }
        // SAFETY: as above.
        match unsafe { libc::sched_getscheduler(0) } {
            libc::SCHED_FIFO | libc::SCHED_RR => Level::RealTime(LEVEL_OF_SCHEDULER),
            _ => Level::Background,
        }
    }
}

/// The commands of all callers together.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The commands in flight.
    pub commands: u32,
    /// Those of the background; fewer, so that it never takes all.
    pub background_commands: u32,
    /// The longest command of the background.
    pub background_bytes: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { commands: 32, background_commands: 1, background_bytes: 128 << 10 }
    }
}

/// The place of a command among those that wait.
type Ticket = (Level, u64);

/// Decides which command goes next.
#[derive(Debug)]
struct Turns {
    limits: Limits,
    waiting: BTreeSet<Ticket>,
    next: u64,
    in_flight: u32,
    background: u32,
}

impl Turns {
    fn wait(&mut self, level: Level) -> Ticket {
        let ticket = (level, self.next);
        self.next += 1;
        self.waiting.insert(ticket);
        ticket
    }

    /// Starts a waiting command if it is the first and within the limits.
    fn start(&mut self, ticket: Ticket) -> bool {
        let is_background = ticket.0 == Level::Background;
        let has_room = self.in_flight < self.limits.commands
            && (!is_background || self.background < self.limits.background_commands);
        if !has_room || self.waiting.first() != Some(&ticket) {
            return false;
        }
        self.waiting.remove(&ticket);
        self.in_flight += 1;
        self.background += u32::from(is_background);
        true
    }

    fn end(&mut self, level: Level) {
        self.in_flight -= 1;
        self.background -= u32::from(level == Level::Background);
    }
}

/// The order of all callers that share it.
#[derive(Debug)]
pub struct Order {
    limits: Limits,
    turns: Mutex<Turns>,
    changed: Condvar,
}

impl Order {
    pub fn new(limits: Limits) -> Order {
        let turns =
            Turns { limits, waiting: BTreeSet::new(), next: 0, in_flight: 0, background: 0 };
        Order { limits, turns: Mutex::new(turns), changed: Condvar::new() }
    }

    pub fn limits(&self) -> Limits {
        self.limits
    }

    fn turns(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The commands of one call. Dropping it ends all.
#[derive(Debug)]
pub struct Call<'a> {
    order: Option<(&'a Order, Level)>,
    ticket: Option<Ticket>,
    in_flight: u32,
}

impl<'a> Call<'a> {
    /// A call at a level; None: it waits for nobody.
    pub fn new(order: Option<(&'a Order, Level)>) -> Call<'a> {
        Call { order, ticket: None, in_flight: 0 }
    }

    /// Starts a command. If it must wait, this waits for others, but returns false if commands of
    /// this call are in flight: their ends may be what others wait for, so they come first.
    pub fn start(&mut self) -> bool {
        if let Some((order, level)) = self.order {
            let mut turns = order.turns();
            let ticket = *self.ticket.get_or_insert_with(|| turns.wait(level));
            while !turns.start(ticket) {
                if self.in_flight > 0 {
                    return false;
                }
                turns = order.changed.wait(turns).unwrap_or_else(PoisonError::into_inner);
            }
            self.ticket = None;
            order.changed.notify_all();
        }
        self.in_flight += 1;
        true
    }

    /// A command has ended.
    pub fn end(&mut self) {
        self.in_flight -= 1;
        if let Some((order, level)) = self.order {
            order.turns().end(level);
            order.changed.notify_all();
        }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if let (Some((order, _)), Some(ticket)) = (self.order, self.ticket) {
            order.turns().waiting.remove(&ticket);
            order.changed.notify_all();
        }
        while self.in_flight > 0 {
            self.end();
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    const LIMITS: Limits = Limits { commands: 3, background_commands: 2, background_bytes: 4096 };

    fn turns() -> Turns {
        Turns { limits: LIMITS, waiting: BTreeSet::new(), next: 0, in_flight: 0, background: 0 }
    }

    #[test]
    fn higher_levels_go_first_then_the_longest_wait() {
        let mut turns = turns();
        let order = [Level::Background, Level::RealTime(4), Level::RealTime(0), Level::RealTime(4)];
        let tickets = order.map(|level| turns.wait(level));
        for first in [2, 1, 3] {
            for other in [0, 1, 2, 3].into_iter().filter(|other| *other != first) {
                assert!(!turns.start(tickets[other]), "{other} before {first}");
            }
            assert!(turns.start(tickets[first]));
        }
        // Three are in flight.
        assert!(!turns.start(tickets[0]));
        turns.end(Level::RealTime(0));
        assert!(turns.start(tickets[0]));
    }

    #[test]
    fn the_background_leaves_room_for_real_time() {
        let mut turns = turns();
        let tickets = [Level::Background; 3].map(|level| turns.wait(level));
        assert!(turns.start(tickets[0]) && turns.start(tickets[1]) && !turns.start(tickets[2]));
        let urgent = turns.wait(Level::RealTime(7));
        assert!(turns.start(urgent));
        turns.end(Level::RealTime(7));
        assert!(!turns.start(tickets[2]));
        turns.end(Level::Background);
        assert!(turns.start(tickets[2]));
    }

    #[test]
    fn a_call_with_commands_in_flight_does_not_wait_for_others() {
        let order = Order::new(Limits { background_commands: 1, ..LIMITS });
        let mut call = Call::new(Some((&order, Level::Background)));
        assert!(call.start() && !call.start());
        call.end();
        assert!(call.start());
        drop(call);
        let left = order.turns();
        assert_eq!((left.in_flight, left.background, left.waiting.len()), (0, 0, 0));
    }

    #[test]
    fn a_real_time_call_goes_before_those_that_wait_longer() {
        let order = Arc::new(Order::new(Limits { commands: 1, ..LIMITS }));
        let went = Arc::new(Mutex::new(Vec::new()));
        let mut first = Call::new(Some((&order, Level::RealTime(7))));
        assert!(first.start());
        let levels = [Level::Background, Level::Background, Level::RealTime(0)];
        thread::scope(|scope| {
            for (waiting, level) in levels.into_iter().enumerate() {
                let (order, went) = (order.clone(), went.clone());
                scope.spawn(move || {
                    let mut call = Call::new(Some((&order, level)));
                    assert!(call.start());
                    went.lock().unwrap().push(level);
                });
                while first.order.unwrap().0.turns().waiting.len() <= waiting {
                    thread::sleep(Duration::from_millis(1));
                }
            }
            first.end();
        });
        let expected = [Level::RealTime(0), Level::Background, Level::Background];
        assert_eq!(*went.lock().unwrap(), expected);
    }
}
