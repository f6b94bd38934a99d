// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keeps an incident after SIGUSR1, named after the time. `steady record` starts it.

use std::io;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, SystemTime};

use signal_hook::consts::SIGUSR1;
use signal_hook::iterator::{Handle, Signals};
use steadyio_core::diagnostic;
use steadyio_recorder::incident::keeper::Keeper;
use steadyio_recorder::incident::{IncidentError, Kept};

/// The limit of incidents in the same second.
const SAME_NAME_MAX: usize = 100;

/// The thread that waits for the signal; dropping it ends it. Signals that come before a recorder
/// runs take effect then.
pub struct IncidentSignal {
    signals: Option<Signals>,
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl IncidentSignal {
    pub fn new() -> io::Result<IncidentSignal> {
        let signals = Signals::new([SIGUSR1])?;
        Ok(IncidentSignal { handle: signals.handle(), signals: Some(signals), thread: None })
    }

    pub fn serve(&mut self, keeper: Arc<Keeper>, last: Duration) -> io::Result<()> {
        let Some(mut signals) = self.signals.take() else { return Ok(()) };
        let answer = move || {
            let mut taking: Vec<JoinHandle<()>> = Vec::new();
            for _ in signals.forever() {
                taking.retain(|thread| !thread.is_finished());
                taking.extend(keep_in_thread(&keeper, last));
            }
            // A panic of a thread has been printed.
            taking.into_iter().for_each(|thread| drop(thread.join()));
        };
        self.thread = Some(Builder::new().name("steady-signal".into()).spawn(answer)?);
        Ok(())
    }
}

impl Drop for IncidentSignal {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed.
            let _ = thread.join();
        }
    }
}

/// Keeps an incident in a thread, because another may begin while this one is being taken.
pub(super) fn keep_in_thread(keeper: &Arc<Keeper>, last: Duration) -> Option<JoinHandle<()>> {
    let keeper = Arc::clone(keeper);
    let thread = Builder::new().name("steady-incident".into());
    let thread = thread.spawn(move || keep_and_tell(&keeper, last));
    thread.inspect_err(|error| diagnostic!("steady: no incident: no thread: {error}")).ok()
}

fn keep_and_tell(keeper: &Keeper, last: Duration) {
    match keep(keeper, last) {
        Ok(kept) => diagnostic!("steady: {kept}"),
        Err(error) => diagnostic!("steady: {error}"),
    }
}

fn keep(keeper: &Keeper, last: Duration) -> Result<Kept, IncidentError> {
    let name = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let name = name.replace(['-', ':'], "");
    let more = (2..SAME_NAME_MAX).map(|number| format!("{name}-{number}"));
    let mut kept = keeper.keep(&name, last);
    for name in more {
        if !matches!(kept, Err(IncidentError::Exists(_))) {
            break;
        }
        kept = keeper.keep(&name, last);
    }
    kept
}
