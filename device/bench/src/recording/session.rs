// SPDX-License-Identifier: MIT OR Apache-2.0
//! A whole recording: sets it up, runs and watches the caller, and ends it.
//!
//! `steady record` calls it; `recipes` shares the caller. Other programs use
//! [`steadyio_recorder::pool::Recorder`] directly, in their own thread.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use steadyio_core::interrupt::Interrupt;
use steadyio_core::scheduling::set_fifo;
use steadyio_recorder::channel::{Channel, Lost, SharedChannels};
use steadyio_recorder::config::{ChannelConfig, RecorderConfig};
use steadyio_recorder::ledger::Account;
use steadyio_recorder::pool::meters::{Listener, Meters, RecordingState, WriterReport};
use steadyio_recorder::pool::registry::Registry;
use steadyio_recorder::pool::{Preparation, Recorder, StartError};
use steadyio_recorder::source::{Record, Source, now_ns};
use steadyio_recorder::task::{lock_process, not_started, process_cpu_ns, set_cpu};

use super::caller::{CallerReport, Gauge, Measuring, Sink, run};
use super::place::{Filesystem, filesystem_of};
use super::recipe::Recipe;
use super::recipes::background::BackgroundReport;
use super::recipes::caller_writes::WriteReport;
use super::recipes::flusher;

/// The interval at which a waiting caller checks whether the ring has room.
const ROOM_LOOK: Duration = Duration::from_millis(1);
/// The interval of repeated reports while a device fails.
const REMIND_EVERY: Duration = Duration::from_secs(10);

/// The settings of the caller's thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallerConfig {
    /// Run with SCHED_FIFO at this priority.
    pub fifo_priority: Option<u8>,
    /// Run on this CPU only.
    pub cpu: Option<usize>,
}

/// The channels and the limits of a recording.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Channels, sizes, directory. The ext4 recording paper's recipes have one channel, take
    /// `segment_bytes` as the size of a file and `unit_bytes` as bytes per write-back, and ignore
    /// the rest.
    pub config: RecorderConfig,
    pub caller: CallerConfig,
    /// The time between records; zero: as fast as the recorder takes them.
    pub period: Duration,
    /// The size of the whole recording; None if it has no end.
    pub total_bytes: Option<u64>,
    /// Whether the caller waits for room in the ring before it takes the next record. For sources
    /// that can block; never for real-time.
    pub back_pressure: bool,
    /// Whether each call is measured, with four system calls.
    pub measure_calls: bool,
}

/// A recording could not be set up or finished.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error(transparent)]
    Start(#[from] StartError),
    /// A thread failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Locking memory failed for another reason than the limit.
    #[error("cannot lock memory: {0} (use --no-lock to run without it)")]
    Lock(io::Error),
    /// The scheduling of the caller failed.
    #[error("cannot run the caller {wanted}: {why}")]
    Caller { wanted: String, why: io::Error },
}

/// The state of a recording in progress.
#[derive(Debug, Clone, Copy)]
pub struct Live {
    pub elapsed: Duration,
    /// The sum of all channels.
    pub account: Account,
    /// The size of all rings; 0 without rings.
    pub ring_bytes: u64,
    /// The longest call; None if calls are not measured.
    pub call_ns_max: Option<u64>,
    /// The lag of the latest sync; None if the recipe does not measure it.
    pub durable_lag_ns: Option<u64>,
}

/// The results of the other threads.
#[derive(Debug)]
pub enum Beside {
    Pool(Box<WriterReport>, Arc<Meters>),
    CallerWrites(Recipe, Box<WriteReport>, Option<Box<BackgroundReport>>),
}

#[derive(Debug)]
pub struct Outcome {
    pub caller: CallerReport,
    /// The accounts by topic.
    pub channels: Vec<(String, Account)>,
    pub beside: Beside,
    /// The file system of the recording.
    pub filesystem: Option<Filesystem>,
    /// The settings of the kernel's flusher while recording.
    pub flusher: BTreeMap<String, u64>,
    /// The CPU time of the process, from the first record until all is durable.
    pub cpu_ns: u64,
    /// The time from the first record until all is durable.
    pub duration_ns: u64,
    /// Whether the whole process was locked into memory, not only rings and blocks.
    pub process_locked: bool,
    /// The number of records lost because they are longer than their channel allows.
    pub too_long: u64,
}

/// The time of the first record, and the CPU time of the process until then.
pub(super) struct Begun {
    pub at_ns: u64,
    pub cpu_ns: u64,
    pub process_locked: bool,
}

/// The callbacks of a recording.
pub struct Watch<'a> {
    /// Called when the recorder runs, before its first record.
    pub started: &'a mut dyn FnMut(&Recorder) -> io::Result<()>,
    /// The interval of calls to `tell`; None: never.
    pub every: Option<Duration>,
    pub tell: &'a mut dyn FnMut(&Live),
    /// Called when the recording begins, at once when the device fails or works again, now and then
    /// while it fails, and when the recording ends by itself.
    pub state: &'a mut dyn FnMut(&RecordingState, &Account),
}

const NOT_LOCKED: &str = "rings and blocks are locked into memory, but not the rest of the process: the limit (ulimit \
     -l, or LimitMEMLOCK= in a systemd unit) is below its mapped size; page faults may delay the \
     caller";

/// An event for the watching thread.
pub(super) enum Event {
    State(RecordingState),
    /// A message to report.
    Note(&'static str),
    /// The caller's thread or the recorder has ended.
    Ended,
}

/// Sends `Ended` when it is dropped, also by a thread that panics.
struct SendsEnded(Sender<Event>);

impl Drop for SendsEnded {
    fn drop(&mut self) {
        // The receiver waits for this.
        let _ = self.0.send(Event::Ended);
    }
}

/// The recording, as seen by the thread that started it.
pub(super) struct Watching<'a, 'b> {
    watch: Option<&'a mut Watch<'b>>,
    note: &'a mut dyn FnMut(String),
    events: Receiver<Event>,
    /// The sum of all channels.
    account: &'a dyn Fn() -> Account,
    ring_bytes: u64,
    measure_calls: bool,
    gauge: Arc<Gauge>,
    durable_lag_ns: &'a dyn Fn() -> Option<u64>,
    start_ns: u64,
    state: RecordingState,
}

impl Watching<'_, '_> {
    fn until_ended(&mut self) {
        loop {
            let every = self.watch.as_ref().and_then(|watch| watch.every);
            let waits = matches!(self.state, RecordingState::Waiting { .. });
            let remind = waits.then_some(REMIND_EVERY);
            let timeout = every.into_iter().chain(remind).min().unwrap_or(Duration::MAX);
            match self.events.recv_timeout(timeout.min(Duration::from_secs(3_600))) {
                Ok(Event::State(state)) => {
                    self.state = state;
                    self.tell_state();
                }
                Ok(Event::Note(text)) => (self.note)(text.into()),
                Ok(Event::Ended) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) if every.is_some() => self.tell(),
                Err(RecvTimeoutError::Timeout) if waits => self.tell_state(),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn tell_state(&mut self) {
        let account = (self.account)();
        if let Some(watch) = &mut self.watch {
            (watch.state)(&self.state, &account);
        }
    }

    fn tell(&mut self) {
        let live = Live {
            elapsed: Duration::from_nanos(now_ns() - self.start_ns),
            account: (self.account)(),
            ring_bytes: self.ring_bytes,
            call_ns_max: self.measure_calls.then(|| self.gauge.call_ns_max.load(Ordering::Relaxed)),
            durable_lag_ns: (self.durable_lag_ns)(),
        };
        if let Some(watch) = &mut self.watch {
            (watch.tell)(&live);
        }
    }
}

/// The rings through which the records pass.
enum Rings {
    Own(Vec<Channel>),
    Shared(SharedChannels),
}

struct PoolSink {
    rings: Rings,
    registry: Arc<Registry>,
    /// The size of each channel's ring, if the caller waits for room.
    ring_bytes: Option<Vec<u64>>,
    last: usize,
    too_long: u64,
    meters: Arc<Meters>,
    stop: Interrupt,
}

impl Sink for PoolSink {
    fn take(&mut self, record: &Record<'_>) -> io::Result<()> {
        self.last = record.channel;
        let Record { channel, log_time_ns: log_ns, publish_time_ns, data, .. } = *record;
        // The channel counts a loss. The caller of a real-time system would continue, too.
        let taken = match &mut self.rings {
            Rings::Own(channels) => {
                channels[channel].append_published(log_ns, publish_time_ns, data)
            }
            Rings::Shared(channels) => {
                channels.append_published(channel, log_ns, publish_time_ns, data)
            }
        };
        self.too_long += u64::from(taken == Err(Lost::TooLong));
        Ok(())
    }

    fn declare(&mut self, channel: &ChannelConfig) -> Result<usize, String> {
        let Rings::Shared(channels) = &mut self.rings else {
            return Err("the channels do not share a ring".into());
        };
        let added = self.registry.add_shared(channels, channel);
        let position = added.map_err(|error| error.to_string())?;
        if let Some(all) = &mut self.ring_bytes {
            all.push(channels.ring_bytes() as u64);
        }
        Ok(position)
    }

    fn has_ended(&self) -> bool {
        self.meters.has_ended()
    }

    /// Waits for room. Half a ring has room for any record; the configuration ensures it.
    fn settle(&mut self) -> io::Result<()> {
        if let Some(ring_bytes) = &self.ring_bytes {
            let used = || match &self.rings {
                Rings::Own(channels) => channels[self.last].ring_used(),
                Rings::Shared(channels) => channels.ring_used(),
            };
            // A failing device may never make room again.
            while used() as u64 > ring_bytes[self.last] / 2 && !self.stop.requested() {
                thread::sleep(ROOM_LOOK);
            }
        }
        Ok(())
    }
}

impl Plan {
    /// Records all of a source; `prepared` was made for it. `note` receives messages about long
    /// operations, `watch` the progress.
    pub fn record(
        &self,
        source: Box<dyn Source + Send>,
        prepared: Option<Preparation>,
        stop: &Interrupt,
        note: &mut dyn FnMut(String),
        watch: Option<&mut Watch<'_>>,
    ) -> Result<Outcome, SessionError> {
        let shared = self.config.shared_ring_bytes;
        let (mut recorder, rings) = if shared.is_some() {
            let (recorder, channels) = Recorder::start_shared(prepared, stop, &self.config, note)?;
            (recorder, Rings::Shared(channels))
        } else {
            let (recorder, channels) = Recorder::start_unless(stop, &self.config, note)?;
            (recorder, Rings::Own(channels))
        };
        let mut watch = watch;
        if let Some(watch) = &mut watch {
            (watch.started)(&recorder)?;
        }
        let rings_bytes = self.config.channels.iter().map(|channel| channel.ring_bytes);
        let rings_bytes = rings_bytes.map(|own| shared.unwrap_or(own));
        let ring_bytes = self.back_pressure.then(|| rings_bytes.collect());
        let registry = Arc::clone(recorder.registry());
        let meters = Arc::clone(recorder.meters());
        let sink = PoolSink {
            rings,
            registry: Arc::clone(&registry),
            ring_bytes,
            last: 0,
            too_long: 0,
            meters: Arc::clone(&meters),
            stop: stop.clone(),
        };
        let lag = || Some(meters.durable_lag_ns.load(Ordering::Relaxed));
        let (sender, events) = channel();
        let of_writer = sender.clone();
        let told = move |state: &RecordingState| drop(of_writer.send(Event::State(state.clone())));
        meters.on_change(Listener(Box::new(told)));
        let account = || registry.total();
        let mut watching = self.watching(watch, note, events, &account, &lag);
        let (begun, caller, sink) = self.run_caller(source, sink, stop, &sender, &mut watching)?;
        let report = thread::scope(|scope| {
            // The device may fail now as well; this thread waits for it.
            let ended = SendsEnded(sender);
            let finishing = scope.spawn(|| {
                let _ended = ended;
                recorder.finish()
            });
            watching.until_ended();
            finishing.join().map_err(|_| io::Error::other("ending the recording panicked"))?
        })?;
        let channels = registry.channels().into_iter();
        Ok(Outcome {
            caller,
            channels: channels.map(|channel| (channel.topic, channel.account)).collect(),
            beside: Beside::Pool(Box::new(report), Arc::clone(&meters)),
            filesystem: filesystem_of(&self.config.dir),
            flusher: flusher::in_force(),
            cpu_ns: process_cpu_ns() - begun.cpu_ns,
            duration_ns: now_ns() - begun.at_ns,
            process_locked: begun.process_locked,
            too_long: sink.too_long,
        })
    }

    pub(super) fn watching<'a, 'b>(
        &self,
        watch: Option<&'a mut Watch<'b>>,
        note: &'a mut dyn FnMut(String),
        events: Receiver<Event>,
        account: &'a dyn Fn() -> Account,
        durable_lag_ns: &'a dyn Fn() -> Option<u64>,
    ) -> Watching<'a, 'b> {
        Watching {
            watch,
            note,
            events,
            account,
            ring_bytes: self.config.rings_bytes(),
            measure_calls: self.measure_calls,
            gauge: Arc::default(),
            durable_lag_ns,
            start_ns: now_ns(),
            state: RecordingState::Recording,
        }
    }

    /// Runs the caller in a separate thread, and watches it from this one.
    pub(super) fn run_caller<S: Sink + Send + 'static>(
        &self,
        mut source: Box<dyn Source + Send>,
        mut sink: S,
        stop: &Interrupt,
        done: &Sender<Event>,
        watching: &mut Watching<'_, '_>,
    ) -> Result<(Begun, CallerReport, S), SessionError> {
        let (shared, stop, config) = (Arc::clone(&watching.gauge), stop.clone(), self.caller);
        let (lock, calls) = (self.config.lock_memory, self.measure_calls);
        let measuring = Measuring { late_after_ns: self.period.as_nanos() as u64, calls };
        let (done, notes) = (SendsEnded(done.clone()), done.clone());
        let thread = thread::Builder::new().name("steady-caller".into());
        let thread = thread.spawn(move || {
            let _done = done;
            prepare_caller(&config)?;
            let process_locked = lock && lock_process().map_err(SessionError::Lock)?;
            if lock && !process_locked {
                let _ = notes.send(Event::Note(NOT_LOCKED));
            }
            let begun = Begun { at_ns: now_ns(), cpu_ns: process_cpu_ns(), process_locked };
            let report = run(&mut *source, &mut sink, measuring, &stop, &shared);
            Ok((begun, report, sink))
        });
        let thread = thread.map_err(not_started("the caller's thread"))?;
        watching.start_ns = now_ns();
        watching.tell_state();
        watching.until_ended();
        thread.join().map_err(|_| io::Error::other("the caller's thread panicked"))?
    }
}

impl CallerConfig {
    /// Checks whether a thread may have these settings. Call it before anything is made.
    pub fn check(self) -> Result<(), SessionError> {
        let thread = thread::Builder::new().spawn(move || prepare_caller(&self));
        let thread = thread.map_err(not_started("the caller's thread"))?;
        thread.join().map_err(|_| io::Error::other("the caller's thread panicked"))?
    }
}

fn prepare_caller(config: &CallerConfig) -> Result<(), SessionError> {
    if let Some(cpu) = config.cpu {
        let wanted = format!("on CPU {cpu}");
        set_cpu(cpu).map_err(|why| SessionError::Caller { wanted, why })?;
    }
    if let Some(priority) = config.fifo_priority {
        let wanted = format!(
            "under SCHED_FIFO at priority {priority} (needs root, or ulimit -r {priority})"
        );
        set_fifo(priority).map_err(|why| SessionError::Caller { wanted, why })?;
    }
    Ok(())
}
