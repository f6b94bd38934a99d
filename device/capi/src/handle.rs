// SPDX-License-Identifier: MIT OR Apache-2.0
//! The objects behind the opaque pointers. The functions of `lib` and the Python package use them.
//!
//! In Rust the compiler ensures that a channel has one user and that nothing is appended after the
//! end. For C each channel has a state that an append takes and returns: two atomic operations,
//! neither of which waits.

use std::cell::UnsafeCell;
use std::ffi::{CString, c_char, c_void};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread;
use std::time::Duration;

use steadyio_core::interrupt::Interrupt;
use steadyio_recorder::channel::{Channel, Lost};
use steadyio_recorder::config::{ChannelConfig, RecorderConfig, defaults};
use steadyio_recorder::control::server::ControlServer;
use steadyio_recorder::control::socket::ControlSocket;
use steadyio_recorder::incident::IncidentError;
use steadyio_recorder::ledger::{Account, Ledger};
use steadyio_recorder::pool::Recorder;
use steadyio_recorder::pool::flush::{Flush, Flushed};
use steadyio_recorder::pool::meters::{Ended, Meters};

use crate::config::CConfig;
use crate::status::{Error, Status};

/// The interval of checks of a finish while a channel is in use.
const LOOK: Duration = Duration::from_millis(1);

const NEW: u8 = 0;
const READY: u8 = 1;
const IN_USE: u8 = 2;
const ENDED: u8 = 3;

/// `struct steadyio_channel`.
#[derive(Debug)]
pub struct ChannelHandle {
    state: AtomicU8,
    channel: UnsafeCell<Option<Channel>>,
    ledger: OnceLock<Arc<Ledger>>,
}

/// Returns a channel when dropped, also after a panic, because [`ChannelHandle::end`] waits for it.
struct InUse<'a>(&'a AtomicU8);

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        self.0.store(READY, Ordering::Release);
    }
}

// SAFETY: only the thread that set the state to IN_USE accesses the channel, or the starting thread
// before it is READY.
unsafe impl Sync for ChannelHandle {}

impl ChannelHandle {
    fn new() -> ChannelHandle {
        let channel = UnsafeCell::new(None);
        ChannelHandle { state: AtomicU8::new(NEW), channel, ledger: OnceLock::new() }
    }

    fn start(&self, channel: Channel, ledger: &Arc<Ledger>) {
        // SAFETY: the state is NEW, and only the thread that starts the recorder comes here.
        unsafe { *self.channel.get() = Some(channel) };
        self.ledger.get_or_init(|| Arc::clone(ledger));
        self.state.store(READY, Ordering::Release);
    }

    /// Appends a record. All append functions call it.
    pub fn append(
        &self,
        log_time_ns: u64,
        publish_time_ns: u64,
        data: &[u8],
    ) -> Result<Status, Error> {
        let _in_use = self.take()?;
        // SAFETY: this call has taken the channel.
        let channel = unsafe { &mut *self.channel.get() };
        let append =
            |channel: &mut Channel| channel.append_published(log_time_ns, publish_time_ns, data);
        match channel.as_mut().map(append) {
            Some(Ok(())) => Ok(Status::Ok),
            Some(Err(Lost::RingFull)) => Ok(Status::RingFull),
            Some(Err(Lost::TooLong)) => Ok(Status::TooLong),
            None => Err(Error::fixed(Status::State, "the channel has not been started")),
        }
    }

    fn take(&self) -> Result<InUse<'_>, Error> {
        let taken =
            self.state.compare_exchange(READY, IN_USE, Ordering::Acquire, Ordering::Relaxed);
        let text = match taken {
            Ok(_) => return Ok(InUse(&self.state)),
            Err(NEW) => "append before steadyio_start()",
            Err(IN_USE) => "another thread is appending to this channel: only one may",
            Err(_) => "append after steadyio_finish()",
        };
        Err(Error::fixed(Status::State, text))
    }

    /// Waits for an append in progress, and prevents others.
    fn end(&self) {
        while let Err(IN_USE) =
            self.state.compare_exchange(READY, ENDED, Ordering::Acquire, Ordering::Relaxed)
        {
            thread::sleep(LOOK);
        }
    }

    /// The account of its records; empty before the start.
    pub fn account(&self) -> Result<Account, Error> {
        Ok(self.ledger.get().map(|ledger| ledger.snapshot()).unwrap_or_default())
    }
}

#[derive(Debug)]
enum RecorderState {
    Open,
    Recording(Recorder),
    Finished,
}

#[derive(Debug)]
struct State {
    stage: RecorderState,
    config: RecorderConfig,
    channels: Vec<Arc<ChannelHandle>>,
    server: Option<ControlServer>,
}

fn add_late(
    recorder: &Recorder,
    mut config: ChannelConfig,
    room: u64,
    handle: &ChannelHandle,
) -> Result<(), Error> {
    if config.ring_bytes == 0 {
        config.ring_bytes = defaults::late_ring_bytes(config.record_bytes_max, config.period, room);
    }
    let (channel, ledger) = recorder.registry().add(&config)?;
    handle.start(channel, &ledger);
    Ok(())
}

/// The program's function for progress messages.
#[derive(Debug, Clone, Copy)]
struct Note {
    function: Option<unsafe extern "C" fn(*mut c_void, *const c_char)>,
    context: *mut c_void,
}

// SAFETY: it is called in the thread that calls steadyio_start(), which the program chooses.
unsafe impl Send for Note {}
// SAFETY: as above.
unsafe impl Sync for Note {}

impl Note {
    fn tell(&self, text: String) {
        let (Some(note), Ok(text)) = (self.function, CString::new(text)) else { return };
        // SAFETY: the program gave the function together with the context.
        unsafe { note(self.context, text.as_ptr()) };
    }
}

/// `struct steadyio_recorder`.
#[derive(Debug)]
pub struct RecorderHandle {
    state: Mutex<State>,
    meters: OnceLock<Arc<Meters>>,
    control_socket: Option<PathBuf>,
    note: Note,
}

impl RecorderHandle {
    /// Copies the configuration.
    ///
    /// # Safety
    /// Strings of the configuration are NULL or valid.
    pub unsafe fn open(config: &CConfig) -> Result<RecorderHandle, Error> {
        // SAFETY: upheld by the caller.
        let (rust, control_socket) = unsafe { (config.to_rust()?, config.control_socket()?) };
        let (stage, channels) = (RecorderState::Open, Vec::new());
        let state = State { stage, config: rust, channels, server: None };
        let note = Note { function: config.note, context: config.note_context };
        let (state, meters) = (Mutex::new(state), OnceLock::new());
        Ok(RecorderHandle { state, meters, control_socket, note })
    }

    fn lock(&self) -> Result<MutexGuard<'_, State>, Error> {
        let poisoned = "an earlier call panicked: close this recorder";
        self.state.lock().map_err(|_| Error::fixed(Status::Panic, poisoned))
    }

    /// Adds a channel, before the start or while recording.
    pub fn add_channel(&self, config: ChannelConfig) -> Result<Arc<ChannelHandle>, Error> {
        let mut state = self.lock()?;
        let handle = Arc::new(ChannelHandle::new());
        match &state.stage {
            RecorderState::Open => state.config.channels.push(config),
            RecorderState::Recording(recorder) => {
                let room = state.config.lockable_bytes();
                add_late(recorder, config, room, &handle)?;
            }
            RecorderState::Finished => {
                return Err(Error::fixed(Status::State, "add channels before steadyio_finish()"));
            }
        }
        state.channels.push(Arc::clone(&handle));
        Ok(handle)
    }

    /// Checks the configuration, makes the pool, and starts the recorder.
    pub fn start(&self) -> Result<Status, Error> {
        self.start_unless(&Interrupt::default())
    }

    /// Like [`RecorderHandle::start`], but `stop` interrupts making the segments.
    pub fn start_unless(&self, stop: &Interrupt) -> Result<Status, Error> {
        let mut state = self.lock()?;
        if !matches!(state.stage, RecorderState::Open) {
            return Err(Error::fixed(Status::State, "steadyio_start() was called before"));
        }
        // Before anything is created: whether the socket can be bound.
        let socket = self.control_socket.as_deref().map(ControlSocket::bind).transpose();
        let socket = socket.map_err(|error| Error::new(Status::Failed, error.to_string()))?;
        let room = state.config.room_for_rings();
        defaults::fill_rings(&mut state.config.channels, room);
        let (recorder, channels) =
            Recorder::start_unless(stop, &state.config, &mut |text| self.note.tell(text))?;
        let serve = |socket| ControlServer::start(socket, recorder.control());
        let server = socket.map(serve).transpose();
        state.server = server.map_err(|error| {
            Error::new(Status::Failed, format!("the thread behind the control socket: {error}"))
        })?;
        for ((handle, channel), ledger) in
            state.channels.iter().zip(channels).zip(&recorder.ledgers())
        {
            handle.start(channel, ledger);
        }
        self.meters.get_or_init(|| Arc::clone(recorder.meters()));
        state.stage = RecorderState::Recording(recorder);
        Ok(Status::Ok)
    }

    /// Waits until all records received so far are durable, or known to be lost.
    pub fn flush(&self, timeout: Duration) -> Result<Status, Error> {
        Ok(match self.begin_flush()?.wait(timeout) {
            Flushed::Durable => Status::Ok,
            Flushed::Lost(_) => Status::Lost,
            Flushed::Timeout => Status::Timeout,
        })
    }

    /// Keeps the last records as an incident, and returns the time that they cover. With `Timeout`
    /// they are kept, and not durable yet.
    pub fn keep_incident(&self, name: &str, last: Duration) -> Result<(Status, Duration), Error> {
        let keeper = match &self.lock()?.stage {
            RecorderState::Recording(recorder) => Arc::clone(recorder.keeper()),
            _ => return Err(Error::fixed(Status::State, "nothing is being recorded")),
        };
        let kept = keeper.keep(name, last).map_err(|error| {
            let status = match &error {
                IncidentError::Name(_) | IncidentError::NoTime(_) => Status::Invalid,
                IncidentError::Exists(_)
                | IncidentError::Nothing(_)
                | IncidentError::NoRoom { .. }
                | IncidentError::Ended(_) => Status::State,
                _ => Status::Failed,
            };
            Error::new(status, error.to_string())
        })?;
        let status = if kept.durable { Status::Ok } else { Status::Timeout };
        Ok((status, Duration::from_nanos(kept.incident.covered_ns())))
    }

    fn begin_flush(&self) -> Result<Flush, Error> {
        match &self.lock()?.stage {
            RecorderState::Recording(recorder) => Ok(recorder.begin_flush()),
            _ => Err(Error::fixed(Status::State, "nothing is being recorded")),
        }
    }

    /// The statistics of the writer thread, also after the end.
    pub fn meters(&self) -> Result<&Arc<Meters>, Error> {
        let early = Error::fixed(Status::State, "steadyio_start() was not called yet");
        self.meters.get().ok_or(early)
    }

    /// Makes everything durable.
    pub fn finish(&self) -> Result<Status, Error> {
        let mut state = self.lock()?;
        if !matches!(state.stage, RecorderState::Recording(_)) {
            return Err(Error::fixed(Status::State, "nothing is being recorded"));
        }
        for channel in &state.channels {
            channel.end();
        }
        state.server = None;
        let RecorderState::Recording(mut recorder) =
            std::mem::replace(&mut state.stage, RecorderState::Finished)
        else {
            return Ok(Status::Ok);
        };
        let report = recorder.finish().map_err(|error| {
            Error::new(Status::Failed, format!("ending the recording: {error}"))
        })?;
        match report.ended {
            Ended::Finished if report.not_durable > 0 => Ok(Status::Lost),
            Ended::Finished => Ok(Status::Ok),
            Ended::Full => Ok(Status::Full),
            Ended::Failed => {
                let why = recorder.meters().trouble().unwrap_or_default();
                Err(Error::new(Status::Failed, format!("the device failed: {why}")))
            }
        }
    }
}
