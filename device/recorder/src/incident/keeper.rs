// SPDX-License-Identifier: MIT OR Apache-2.0
//! Takes and releases incidents for any thread that may wait. `control` and `capi` call it. It
//! gives orders to the writer thread, which selects the segments, and writes the incident's file.
//!
//! Neither append() nor the writer thread waits for it. Taking an incident has this order: the
//! writer thread pins the segments; the file becomes durable; the records received before become
//! durable; the caller gets its answer. Releasing it removes the file first, and then the pins. So
//! after a power cut at any moment, everything that an answer confirmed is kept.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{IncidentError, Kept, check_name, files};
use crate::pool::flush::{Flush, Flushed};
use crate::pool::registry::Registry;

/// The time limit for the writer thread, and again for the records. A failing device may never
/// answer.
const PATIENCE: Duration = Duration::from_secs(10);

type Answer = Result<Kept, IncidentError>;

/// An order for the writer thread.
#[derive(Debug)]
pub enum Order {
    Keep { name: String, last: Duration, answer: SyncSender<Answer> },
    Release { name: String },
}

/// Takes and releases incidents, one at a time.
#[derive(Debug)]
pub struct Keeper {
    dir: PathBuf,
    registry: Arc<Registry>,
    /// The sender of orders. Locked while an incident is taken or released.
    orders: Mutex<Option<Sender<Order>>>,
}

impl Keeper {
    /// Also returns the receiver of orders, for the writer thread.
    pub(crate) fn new(dir: PathBuf, registry: Arc<Registry>) -> (Keeper, Receiver<Order>) {
        let (orders, given) = channel();
        (Keeper { dir, registry, orders: Mutex::new(Some(orders)) }, given)
    }

    /// Locks the sender. A poisoned lock is fine: a caller panicked, and the sender is unchanged.
    fn lock(&self) -> MutexGuard<'_, Option<Sender<Order>>> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the records received within this time until now. It waits until they are durable, for
    /// a part of the loss window, so a real-time thread must not call it.
    pub fn keep(&self, name: &str, last: Duration) -> Answer {
        check_name(name)?;
        if last.is_zero() {
            return Err(IncidentError::NoTime(name.into()));
        }
        let guard = self.lock();
        let orders = guard.as_ref().ok_or_else(|| ended(name))?;
        if files::path_of(&self.dir, name).exists() {
            return Err(IncidentError::Exists(name.into()));
        }
        // This flush only waits. Losses are left for other flushes to report.
        let received = Flush::new(&self.registry.ledgers(), &Arc::default());
        let kept = pin(orders, name, last)?;
        files::write(&self.dir, &kept.incident).inspect_err(|_| unpin(orders, name))?;
        drop(guard);
        Ok(Kept { durable: received.wait(PATIENCE) != Flushed::Timeout, ..kept })
    }

    /// Releases an incident. Its segments may then be overwritten, unless another incident keeps
    /// them.
    pub fn release(&self, name: &str) -> Result<(), IncidentError> {
        let guard = self.lock();
        let orders = guard.as_ref().ok_or_else(|| ended(name))?;
        files::remove(&self.dir, name)?;
        unpin(orders, name);
        Ok(())
    }

    /// Waits for orders in progress, and accepts no more. Another recorder may use the pool
    /// afterwards.
    pub(crate) fn close(&self) {
        *self.lock() = None;
    }

    /// Pins the segments, without a file.
    #[cfg(test)]
    pub(crate) fn pin(&self, name: &str, last: Duration) -> Answer {
        let guard = self.lock();
        pin(guard.as_ref().ok_or_else(|| ended(name))?, name, last)
    }
}

fn ended(name: &str) -> IncidentError {
    IncidentError::Ended(name.into())
}

fn pin(orders: &Sender<Order>, name: &str, last: Duration) -> Answer {
    let (answer, answered) = sync_channel(1);
    let order = Order::Keep { name: name.into(), last, answer };
    orders.send(order).map_err(|_| ended(name))?;
    match answered.recv_timeout(PATIENCE) {
        Ok(kept) => kept,
        Err(RecvTimeoutError::Disconnected) => Err(ended(name)),
        Err(RecvTimeoutError::Timeout) => {
            // The writer thread may still execute the order.
            unpin(orders, name);
            Err(IncidentError::NoAnswer { name: name.into(), waited: PATIENCE })
        }
    }
}

/// Unpins. A writer thread that has ended selects no segments any more.
fn unpin(orders: &Sender<Order>, name: &str) {
    let _ = orders.send(Order::Release { name: name.into() });
}
