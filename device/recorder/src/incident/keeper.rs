// SPDX-License-Identifier: MIT OR Apache-2.0
//! Takes and releases incidents for any thread that may wait: for the writer thread, which chooses
//! the segments, and for the file that makes the choice last.
//!
//! Neither append() nor the writer thread waits for any of it. When an incident is taken the order
//! is: the writer thread pins the segments; the file becomes durable; what was received before
//! becomes durable; the answer. When it is released: the file goes, then the pins. So at any moment
//! that a power cut may choose, what the answer promised is kept.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{IncidentError, Kept, check_name, files};
use crate::pool::flush::{Flush, Flushed};
use crate::pool::registry::Registry;

/// For the writer thread, and again for the records: a device that fails may take for ever.
const PATIENCE: Duration = Duration::from_secs(10);

type Answer = Result<Kept, IncidentError>;

/// What the writer thread is to do.
#[derive(Debug)]
pub enum Order {
    Keep { name: String, last: Duration, answer: SyncSender<Answer> },
    Release { name: String },
}

/// See the module's head.
#[derive(Debug)]
pub struct Keeper {
    dir: PathBuf,
    registry: Arc<Registry>,
    /// Held while an incident is taken or released: one at a time.
    orders: Mutex<Option<Sender<Order>>>,
}

impl Keeper {
    /// And where the writer thread finds what it is to do.
    pub(crate) fn new(dir: PathBuf, registry: Arc<Registry>) -> (Keeper, Receiver<Order>) {
        let (orders, given) = channel();
        (Keeper { dir, registry, orders: Mutex::new(Some(orders)) }, given)
    }

    /// Poisoned only if a caller panicked; the sender is as it was.
    fn lock(&self) -> MutexGuard<'_, Option<Sender<Order>>> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what was received within this time until now. Takes until that is durable, some part of
    /// the loss window: not for a real-time thread.
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
        // This flush waits only: other flushes report losses.
        let received = Flush::new(&self.registry.ledgers(), &Arc::default());
        let kept = pin(orders, name, last)?;
        files::write(&self.dir, &kept.incident).inspect_err(|_| unpin(orders, name))?;
        drop(guard);
        Ok(Kept { durable: received.wait(PATIENCE) != Flushed::Timeout, ..kept })
    }

    /// Its segments may be overwritten from now on, unless another incident has them.
    pub fn release(&self, name: &str) -> Result<(), IncidentError> {
        let guard = self.lock();
        let orders = guard.as_ref().ok_or_else(|| ended(name))?;
        files::remove(&self.dir, name)?;
        unpin(orders, name);
        Ok(())
    }

    /// Waits until no incident is being taken or released, and allows no more: another recorder may
    /// have the pool afterwards.
    pub(crate) fn close(&self) {
        *self.lock() = None;
    }

    /// Pins, and nothing that lasts.
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
            // It may still get to it.
            unpin(orders, name);
            Err(IncidentError::NoAnswer { name: name.into(), waited: PATIENCE })
        }
    }
}

/// A writer thread that has ended chooses nothing any more.
fn unpin(orders: &Sender<Order>, name: &str) {
    let _ = orders.send(Order::Release { name: name.into() });
}
