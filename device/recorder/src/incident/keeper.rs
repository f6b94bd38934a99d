// SPDX-License-Identifier: MIT OR Apache-2.0
//! Takes and releases incidents for any thread that may wait. `control` and `capi` call it. It
//! gives orders to the writer thread, which selects the segments, and writes the incident's file.
//!
//! Neither append() nor the writer thread waits for it. Taking an incident has this order: the
//! writer thread pins the segments; the file becomes durable; the records received before become
//! durable; the caller gets its answer. Releasing it removes the file first, and then the pins. So
//! after a power cut at any moment, everything that an answer confirmed is kept. Several threads
//! may take incidents at a time; only their names must differ.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{IncidentError, Kept, check_name, files};
use crate::config::RamConfig;
use crate::pool::flush::{Flush, Flushed};
use crate::pool::registry::Registry;

/// The time limit for the writer thread, and again for the records. A failing device may never
/// answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time limit for the writer thread if it has to write its memory, even to a slow card.
const RAM_PATIENCE: Duration = Duration::from_secs(600);

type Answer = Result<Kept, IncidentError>;

/// An order for the writer thread.
#[derive(Debug)]
pub enum Order {
    Keep { name: String, last: Duration, answer: SyncSender<Answer> },
    Release { name: String },
}

/// Takes and releases incidents.
#[derive(Debug)]
pub struct Keeper {
    dir: PathBuf,
    registry: Arc<Registry>,
    /// The memory of the writer thread.
    ram: Option<RamConfig>,
    state: Mutex<State>,
    /// Signalled when an incident was taken or rejected.
    taken: Condvar,
}

#[derive(Debug)]
struct State {
    /// The sender of orders; None when no more are accepted.
    orders: Option<Sender<Order>>,
    /// The names of incidents that are being taken.
    names: Vec<String>,
}

/// An incident that is being taken.
struct Taking<'a> {
    keeper: &'a Keeper,
    name: &'a str,
    orders: Sender<Order>,
    answered: Receiver<Answer>,
}

impl Keeper {
    /// Also returns the receiver of orders, for the writer thread.
    pub(crate) fn new(
        dir: PathBuf,
        registry: Arc<Registry>,
        ram: Option<RamConfig>,
    ) -> (Keeper, Receiver<Order>) {
        let (orders, given) = channel();
        let state = Mutex::new(State { orders: Some(orders), names: Vec::new() });
        (Keeper { dir, registry, ram, state, taken: Condvar::new() }, given)
    }

    /// A poisoned lock is fine: a caller panicked between two complete changes.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the records received within this time until now. It waits until they are durable, for
    /// a part of the loss window, so a real-time thread must not call it. A recorder that holds
    /// records in memory keeps those of the time after it, too, and this waits for them.
    pub fn keep(&self, name: &str, last: Duration) -> Answer {
        check_name(name)?;
        if last.is_zero() {
            return Err(IncidentError::NoTime(name.into()));
        }
        // This flush only waits. Losses are left for other flushes to report.
        let received = Flush::new(&self.registry.ledgers(), &Arc::default());
        let taking = self.begin(name, last)?;
        let kept = taking.pin()?;
        files::write(&self.dir, &kept.incident).inspect_err(|_| unpin(&taking.orders, name))?;
        drop(taking);
        let durable = kept.durable || received.wait(PATIENCE) != Flushed::Timeout;
        Ok(Kept { durable, ..kept })
    }

    /// Reserves the name, and sends the order.
    fn begin<'a>(&'a self, name: &'a str, last: Duration) -> Result<Taking<'a>, IncidentError> {
        let mut state = self.lock();
        let orders = state.orders.clone().ok_or_else(|| ended(name))?;
        let is_taken = state.names.iter().any(|taken| taken == name);
        if is_taken || files::path_of(&self.dir, name).exists() {
            return Err(IncidentError::Exists(name.into()));
        }
        self.check_number(name, &state.names)?;
        let (answer, answered) = sync_channel(1);
        let order = Order::Keep { name: name.into(), last, answer };
        orders.send(order).map_err(|_| ended(name))?;
        state.names.push(name.into());
        Ok(Taking { keeper: self, name, orders, answered })
    }

    /// Rejects an incident beyond the limit, before anything is written for it.
    fn check_number(&self, name: &str, taking: &[String]) -> Result<(), IncidentError> {
        let Some(max) = self.ram.and_then(|ram| ram.incidents_max) else { return Ok(()) };
        let is_new = |name: &&String| !files::path_of(&self.dir, name).exists();
        let there = files::count(&self.dir)? + taking.iter().filter(is_new).count();
        if (there as u64) < max {
            Ok(())
        } else {
            Err(IncidentError::TooMany { name: name.into(), max })
        }
    }

    /// Releases an incident. Its segments may then be overwritten, unless another incident keeps
    /// them.
    pub fn release(&self, name: &str) -> Result<(), IncidentError> {
        let state = self.lock();
        let orders = state.orders.as_ref().ok_or_else(|| ended(name))?;
        files::remove(&self.dir, name)?;
        unpin(orders, name);
        Ok(())
    }

    /// Accepts no more orders.
    pub(crate) fn close(&self) {
        self.lock().orders = None;
    }

    /// Waits until the files of all incidents are written. Another recorder may use the pool
    /// afterwards. The writer thread must have ended.
    pub(crate) fn settle(&self) {
        let mut state = self.lock();
        while !state.names.is_empty() {
            state = self.taken.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Pins the segments, without a file.
    #[cfg(test)]
    pub(crate) fn pin(&self, name: &str, last: Duration) -> Answer {
        self.begin(name, last)?.pin()
    }
}

impl Taking<'_> {
    /// Waits until the writer thread has pinned the segments.
    fn pin(&self) -> Answer {
        let name = self.name;
        let after = self.keeper.ram.map(|ram| ram.after);
        let waited = after.map_or(PATIENCE, |after| RAM_PATIENCE.saturating_add(after));
        match self.answered.recv_timeout(waited) {
            Ok(kept) => kept,
            Err(RecvTimeoutError::Disconnected) => Err(ended(name)),
            Err(RecvTimeoutError::Timeout) => {
                // The writer thread may still execute the order.
                unpin(&self.orders, name);
                Err(IncidentError::NoAnswer { name: name.into(), waited })
            }
        }
    }
}

impl Drop for Taking<'_> {
    fn drop(&mut self) {
        self.keeper.lock().names.retain(|name| name != self.name);
        self.keeper.taken.notify_all();
    }
}

fn ended(name: &str) -> IncidentError {
    IncidentError::Ended(name.into())
}

/// Unpins. A writer thread that has ended selects no segments any more.
fn unpin(orders: &Sender<Order>, name: &str) {
    let _ = orders.send(Order::Release { name: name.into() });
}
