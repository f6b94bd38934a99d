// SPDX-License-Identifier: MIT OR Apache-2.0
//! A semaphore that serves threads in the order of their arrival. `load` uses it for the cores of a
//! host.
//!
//! The order decides the measured latencies. With the standard library's locks, a thread that
//! arrives late can overtake waiting ones.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A number of permits.
#[derive(Debug)]
pub struct FairSemaphore {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    free: u64,
    next_ticket: u64,
    served: u64,
}

/// A permit; dropping it returns it.
#[derive(Debug)]
pub struct Permit<'a>(&'a FairSemaphore);

impl FairSemaphore {
    /// `count` free permits.
    pub fn new(count: u64) -> FairSemaphore {
        let state = State { free: count, next_ticket: 0, served: 0 };
        FairSemaphore { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Waits for a permit, in order of arrival.
    pub fn take(&self) -> Permit<'_> {
        let mut state = self.lock();
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        while state.served != ticket || state.free == 0 {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.served += 1;
        state.free -= 1;
        // The next thread may find another permit free.
        self.changed.notify_all();
        Permit(self)
    }

    /// Locks the state. It is consistent between any two statements, so poison does not matter.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.lock().free += 1;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn never_more_are_taken_than_there_are() {
        let (semaphore, inside, most) =
            (FairSemaphore::new(3), AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let _permit = semaphore.take();
                        most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert!(most.into_inner() <= 3);
        assert_eq!(semaphore.lock().free, 3);
    }

    #[test]
    fn a_permit_goes_to_who_came_first() {
        let (semaphore, order) = (FairSemaphore::new(1), Mutex::new(Vec::new()));
        thread::scope(|scope| {
            let held = semaphore.take();
            for thread in 0..4 {
                let (semaphore, order) = (&semaphore, &order);
                scope.spawn(move || {
                    let _permit = semaphore.take();
                    order.lock().unwrap().push(thread);
                });
                while semaphore.lock().next_ticket != thread + 2 {
                    thread::yield_now();
                }
            }
            drop(held);
        });
        assert_eq!(order.into_inner().unwrap(), [0, 1, 2, 3]);
    }
}
