// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs calls that take long, so that other Python threads can run and Ctrl-C takes effect.
//! `recorder` uses it.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

/// How long a signal may wait for its handler.
const LOOK: Duration = Duration::from_millis(50);

/// Runs this in a thread of its own, because signals are handled in the calling one. If a handler
/// raises, `interrupt` is called and says whether the end of the work is waited for; else it goes
/// on in its thread.
pub fn wait_for<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
    interrupt: impl FnOnce() -> bool,
) -> PyResult<T> {
    let (sender, done) = channel();
    let worker = thread::Builder::new().name("steadyio-wait".into()).spawn(move || {
        // Nobody listens any more if the caller was interrupted.
        let _ = sender.send(work());
    })?;
    let mut done = Some(done);
    loop {
        let (came, receiver) = py.detach(|| {
            let receiver = done.take();
            (receiver.as_ref().map(|done| done.recv_timeout(LOOK)), receiver)
        });
        done = receiver;
        match came {
            Some(Ok(result)) => return Ok(result),
            Some(Err(RecvTimeoutError::Timeout)) => {}
            _ => return Err(crate::errors::Base::new_err("a bug in steadyio: a thread panicked")),
        }
        if let Err(raised) = py.check_signals() {
            if interrupt() {
                py.detach(|| worker.join().is_ok());
            }
            return Err(raised);
        }
    }
}
