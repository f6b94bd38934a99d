// SPDX-License-Identifier: MIT OR Apache-2.0
//! The writer thread: polls the rings and keeps the loss window. [`super::thread`] runs it.
//!
//! It polls because a wakeup would be a system call, which the append side must not make.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::Duration;

use super::meters::{Ended, Meters, RecordingState, WriterReport, raise};
use super::ram::{Ram, Window};
use super::registry::Addition;
use super::stage::{Stage, Stop};
use crate::channel::Consumer;
use crate::incident::keeper::Order;
use crate::incident::{IncidentError, Kept};
use crate::ledger::Amount;
use crate::ring::{HEADER_BYTES, Header};
use crate::source::now_ns;
use crate::task::Probe;

/// The longest interval between polls at high rates.
const PAUSE_MIN: Duration = Duration::from_millis(1);

/// The state of the thread.
pub struct Writer {
    /// The rings.
    pub consumers: Vec<Consumer>,
    /// The receiver of channels that are declared later.
    pub additions: Receiver<Addition>,
    /// The receiver of orders to take or release incidents.
    pub orders: Receiver<Order>,
    /// The destination of records.
    pub stage: Stage,
    /// The memory that holds records until an incident asks for them; None: they are written at
    /// once.
    pub ram: Option<Ram>,
    /// The interval between polls at low rates.
    pub poll: Duration,
    /// If a poll finds at least this much, the next one follows at once.
    pub busy_bytes: usize,
    /// Set when no more records come; the thread is then unparked.
    pub stop: Arc<AtomicBool>,
    /// Statistics for other threads.
    pub meters: Arc<Meters>,
}

impl Writer {
    /// Runs until `stop` is set, or until no segment is left.
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
            not_durable: accounts.map(|now| now.not_durable()).sum(),
        }
    }

    fn record(&mut self) -> Ended {
        if self.ram.is_none() {
            self.stage.begin_early();
        }
        let mut looked_ns = now_ns();
        let mut pause = PAUSE_MIN;
        loop {
            // Read before the poll, which then finds everything appended before the stop.
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

    /// Polls the rings, then pauses. After much data it does not pause; the less data, the longer
    /// the pause. A burst therefore waits for one long pause at most.
    fn round(
        &mut self,
        since_ns: u64,
        looked_ns: u64,
        stopping: bool,
        pause: &mut Duration,
    ) -> Result<(), Stop> {
        // Before the rings, which already hold all records that an incident must include.
        let orders: Vec<Order> = self.orders.try_iter().collect();
        let drained = self.drain(since_ns);
        self.follow(orders);
        let drained_bytes = drained?;
        if stopping {
            self.write_rest(since_ns)?;
            return self.stage.finish();
        }
        let moved_bytes = drained_bytes.max(self.write_windows(self.busy_bytes)?);
        self.stage.keep_time()?;
        *pause = if moved_bytes >= self.busy_bytes / 2 {
            PAUSE_MIN
        } else {
            (*pause * 2).min(self.poll)
        };
        if moved_bytes >= self.busy_bytes {
            Ok(())
        } else {
            self.sleep(looked_ns + pause.as_nanos() as u64)
        }
    }

    /// Empties the rings of the records that they hold at the beginning. Returns the number of
    /// bytes.
    fn drain(&mut self, since_ns: u64) -> Result<usize, Stop> {
        let mut drained_bytes = 0;
        let mut at = 0;
        while at < self.consumers.len() {
            let left = self.consumers[at].ring.used();
            if at == 0 {
                // After the look at a shared ring: a channel is declared before its records appear
                // there.
                self.take_additions()?;
            }
            let consumer = &mut self.consumers[at];
            at += 1;
            // A ring has at least one channel, whose account has the use of the ring.
            consumer.ledgers[0].ring_used(left as u64);
            drained_bytes += left;
            if let Some(ram) = &mut self.ram {
                ram.look(now_ns());
            }
            empty(consumer, left, since_ns, &mut self.stage, self.ram.as_mut())?;
        }
        if let Some(ram) = &mut self.ram {
            ram.looked();
        }
        Ok(drained_bytes)
    }

    /// Writes records of windows from the memory, about `bytes` of them. Returns the number of
    /// bytes. Less at a time leaves more room in the rings.
    fn write_windows(&mut self, bytes: usize) -> Result<usize, Stop> {
        let Some(ram) = &mut self.ram else { return Ok(0) };
        let written_bytes = ram.write(bytes, &mut self.stage)?;
        if ram.has_done() {
            self.stage.end_window()?;
        }
        while let Some(window) = ram.take_done() {
            answer(&mut self.stage, window);
        }
        Ok(written_bytes)
    }

    /// Writes what the windows want at the end of the recording.
    fn write_rest(&mut self, since_ns: u64) -> Result<(), Stop> {
        loop {
            let Some(ram) = &mut self.ram else { return Ok(()) };
            ram.close();
            ram.write(usize::MAX, &mut self.stage)?;
            // The memory may have had no room for all.
            if self.drain(since_ns)? == 0 {
                break;
            }
        }
        self.write_windows(usize::MAX)?;
        self.ram.iter_mut().for_each(Ram::end);
        Ok(())
    }

    /// Executes orders. If the requester has given up waiting, it releases the incident itself.
    fn follow(&mut self, orders: Vec<Order>) {
        for order in orders {
            match order {
                Order::Keep { name, last, answer } => match &mut self.ram {
                    Some(ram) => ram.open(name, last, answer, now_ns()),
                    None => {
                        let _ = answer.send(self.stage.keep(&name, last));
                    }
                },
                Order::Release { name } => {
                    self.ram.iter_mut().for_each(|ram| ram.cancel(&name));
                    self.stage.release(&name);
                }
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
            self.ram.iter_mut().for_each(|ram| ram.add_channel(Arc::clone(&ledger)));
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
                // The stop ends the pause. An early return only makes it poll earlier.
                thread::park_timeout(Duration::from_nanos(until_ns.saturating_sub(now_ns())));
                return Ok(());
            }
            self.stage.wait(until_ns);
            self.stage.keep_time()?;
        }
        Ok(())
    }

    /// Counts records as lost until the stop, because no segment is left.
    fn discard(&mut self) {
        self.ram.take().iter_mut().for_each(Ram::end);
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

/// Takes about `left_bytes` of records from a ring, fewer if the memory has no room.
fn empty(
    consumer: &mut Consumer,
    mut left_bytes: usize,
    since_ns: u64,
    stage: &mut Stage,
    mut ram: Option<&mut Ram>,
) -> Result<(), Stop> {
    while left_bytes > 0 {
        let mut pushed = Ok(());
        let shown = consumer.ring.next(|header, payload| {
            left_bytes = left_bytes.saturating_sub(HEADER_BYTES + header.bytes as usize);
            let channel = consumer.first + usize::from(header.channel);
            if let Some(ram) = &mut ram {
                // At most 10,000 channels; the configuration was checked.
                return ram.put(Header { channel: channel as u16, ..header }, payload, stage);
            }
            pushed = stage.push(channel, header, payload, since_ns);
            pushed.is_ok()
        });
        pushed?;
        if shown != Some(true) {
            break;
        }
    }
    Ok(())
}

/// Keeps the segments of a window whose records are durable.
fn answer(stage: &mut Stage, window: Window) {
    let Window { name, answer, from_ns, there_from_ns, has_records, .. } = window;
    let kept = if has_records {
        stage.keep_since(&name, there_from_ns)
    } else {
        Err(IncidentError::Nothing(name))
    };
    let whole = |mut kept: Kept| {
        kept.incident.asked_ns += there_from_ns - from_ns;
        Kept { durable: true, ..kept }
    };
    // If the requester has given up waiting, it releases the incident itself.
    let _ = answer.send(kept.map(whole));
}
