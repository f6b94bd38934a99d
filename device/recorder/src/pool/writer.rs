// SPDX-License-Identifier: MIT OR Apache-2.0
//! The writer thread: polls the rings and keeps the loss window.
//!
//! It polls because a wakeup would be a system call, which the append side must not make.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::Duration;

use super::meters::{Ended, Meters, RecordingState, WriterReport, raise};
use super::registry::Addition;
use super::stage::{Stage, Stop};
use crate::channel::Consumer;
use crate::incident::keeper::Order;
use crate::ledger::Amount;
use crate::ring::{HEADER_BYTES, Header};
use crate::source::now_ns;
use crate::task::Probe;

/// Longest interval between polls at high rates.
const PAUSE_MIN: Duration = Duration::from_millis(1);

/// State of the thread.
pub struct Writer {
    /// The rings.
    pub consumers: Vec<Consumer>,
    /// Channels that are declared meanwhile.
    pub additions: Receiver<Addition>,
    /// Incidents that are to be taken or released.
    pub orders: Receiver<Order>,
    /// Where records go.
    pub stage: Stage,
    /// Interval between polls at low rates.
    pub poll: Duration,
    /// With at least this much in the rings, it polls again at once.
    pub busy_bytes: usize,
    /// Set when no more records come; then the thread is unparked.
    pub stop: Arc<AtomicBool>,
    /// Statistics for other threads.
    pub meters: Arc<Meters>,
}

impl Writer {
    /// Runs until told to stop, or until no segment is left.
    pub fn run(mut self) -> WriterReport {
        let probe = Probe::new();
        let ended = self.record();
        if ended != Ended::Finished {
            self.meters.set_state(RecordingState::Ended(ended));
            self.discard();
        }
        let ledgers = self.consumers.iter().flat_map(|consumer| &consumer.ledgers);
        let accounts = ledgers.map(|ledger| ledger.snapshot());
        let (engine, direct) = self.stage.engine();
        WriterReport {
            engine,
            direct,
            writes: self.stage.writes.clone(),
            syncs: self.stage.syncs.clone(),
            rotations: self.stage.rotations.clone(),
            kernel: probe.read(),
            ended,
            not_durable: accounts.map(|now| now.received.records - now.durable.records).sum(),
        }
    }

    fn record(&mut self) -> Ended {
        self.stage.begin_early();
        let mut looked_ns = now_ns();
        let mut pause = PAUSE_MIN;
        loop {
            // Before the poll, which then finds what was appended before the stop.
            let stopping = self.stop.load(Ordering::Acquire);
            let since_ns = looked_ns;
            looked_ns = now_ns();
            raise(&self.meters.poll_gap_ns_max, looked_ns - since_ns);
            match self.round(since_ns, looked_ns, stopping, &mut pause) {
                Ok(()) if stopping => return Ended::Finished,
                Ok(()) | Err(Stop::SegmentLost) => {}
                Err(Stop::AllFull) => {
                    self.meters.set_trouble("all segments are full".into());
                    return Ended::Full;
                }
                Err(Stop::Failed) => {
                    self.stage.abandon();
                    return Ended::Failed;
                }
            }
        }
    }

    /// Polls the rings, then pauses: not at all after much data, and the longer the less there was.
    /// A burst then waits for one long pause at most.
    fn round(
        &mut self,
        since_ns: u64,
        looked_ns: u64,
        stopping: bool,
        pause: &mut Duration,
    ) -> Result<(), Stop> {
        // Before the rings: what an incident is to have is in them at the latest.
        let orders: Vec<Order> = self.orders.try_iter().collect();
        let drained = self.drain(since_ns);
        self.follow(orders);
        let drained_bytes = drained?;
        if stopping {
            return self.stage.finish();
        }
        self.stage.keep_time()?;
        *pause = if drained_bytes >= self.busy_bytes / 2 {
            PAUSE_MIN
        } else {
            (*pause * 2).min(self.poll)
        };
        if drained_bytes >= self.busy_bytes {
            Ok(())
        } else {
            self.sleep(looked_ns + pause.as_nanos() as u64)
        }
    }

    /// Empties the rings, as far as they were filled at the beginning; returns how much that was.
    fn drain(&mut self, since_ns: u64) -> Result<usize, Stop> {
        let mut drained_bytes = 0;
        let mut at = 0;
        while at < self.consumers.len() {
            let mut left = self.consumers[at].ring.used();
            if at == 0 {
                // Behind the look at a ring that all share: whose records are seen there has been
                // declared before.
                self.take_additions()?;
            }
            let consumer = &mut self.consumers[at];
            at += 1;
            // A ring has one channel at least; the first one's account tells of it.
            consumer.ledgers[0].ring_used(left as u64);
            drained_bytes += left;
            while left > 0 {
                let stage = &mut self.stage;
                let mut pushed = Ok(());
                let shown = consumer.ring.next(|header, payload| {
                    left = left.saturating_sub(HEADER_BYTES + header.bytes as usize);
                    let channel = consumer.first + usize::from(header.channel);
                    pushed = stage.push(channel, header, payload, since_ns);
                    pushed.is_ok()
                });
                pushed?;
                if shown.is_none() {
                    break;
                }
            }
        }
        Ok(drained_bytes)
    }

    /// The requester may have given up waiting. It then releases the incident.
    fn follow(&mut self, orders: Vec<Order>) {
        for order in orders {
            match order {
                Order::Keep { name, last, answer } => {
                    let _ = answer.send(self.stage.keep(&name, last));
                }
                Order::Release { name } => self.stage.release(&name),
            }
        }
    }

    fn take_additions(&mut self) -> Result<(), Stop> {
        let added = self.seen_additions();
        if added.is_empty() { Ok(()) } else { self.stage.add_channels(added) }
    }

    /// Returns the channels declared since the last call. The writer empties their rings from now
    /// on.
    fn seen_additions(&mut self) -> Vec<Addition> {
        let mut added: Vec<Addition> = self.additions.try_iter().collect();
        if added.is_empty() {
            return added;
        }
        let count: usize = self.consumers.iter().map(|consumer| consumer.ledgers.len()).sum();
        for (first, addition) in (count..).zip(&mut added) {
            let ledger = Arc::clone(&addition.ledger);
            match addition.ring.take() {
                Some(ring) => self.consumers.push(Consumer { ring, ledgers: vec![ledger], first }),
                None => self.consumers[0].ledgers.push(ledger),
            }
        }
        added
    }

    fn sleep(&mut self, until_ns: u64) -> Result<(), Stop> {
        while now_ns() < until_ns {
            if self.stage.is_idle() {
                // Until the stop at the latest; an early return only polls earlier.
                thread::park_timeout(Duration::from_nanos(until_ns.saturating_sub(now_ns())));
                return Ok(());
            }
            self.stage.wait(until_ns);
            self.stage.keep_time()?;
        }
        Ok(())
    }

    /// No segment is left: further records are lost, and counted, until the stop.
    fn discard(&mut self) {
        loop {
            let stopping = self.stop.load(Ordering::Acquire);
            self.seen_additions();
            let orders: Vec<Order> = self.orders.try_iter().collect();
            self.follow(orders);
            for consumer in &mut self.consumers {
                let ledgers = &consumer.ledgers;
                let count = |header: Header| {
                    let ledger = &ledgers[usize::from(header.channel)];
                    ledger.lost_in_writing(Amount { records: 1, bytes: header.bytes.into() });
                    true
                };
                while consumer.ring.next(|header, _| count(header)).is_some() {}
            }
            if stopping {
                return;
            }
            thread::park_timeout(self.poll);
        }
    }
}
