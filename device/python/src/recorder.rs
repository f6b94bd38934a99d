// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording in progress.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_void};
use std::fmt::Write;
use std::mem;
use std::path::PathBuf;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use steadyio_capi::config::CConfig;
use steadyio_capi::handle::ChannelHandle;
use steadyio_capi::stats::CStats;
use steadyio_capi::status::Status;
use steadyio_core::interrupt::Interrupt;

use crate::channel::{Channel, account_of};
use crate::errors::{Base, Outcome, call, invalid};
use crate::options::{self, Keep, Options, no_config, one_of, units, whole};
use crate::recorder_core::Core;
use crate::types::{self, Topic};
use crate::waiting::wait_for;

const WHEN_FULL: [&str; 2] = ["recycle", "stop"];
const COMPRESSIONS: [&str; 3] = ["none", "lz4", "zstd"];
const ON_FAILURE: [&str; 2] = ["wait", "exit"];
const ENGINES: [&str; 3] = ["best", "io_uring", "pwrite"];
const STATES: [&str; 3] = ["recording", "waiting", "ended"];
/// As in `enum steadyio_flags`.
const NO_LOCK: u32 = 1;
const WRITER_CPU: u32 = 2;
const DISCARD_DAMAGED: u32 = 4;
/// Topics with losses that an error names.
const NAMED_MAX: usize = 5;

/// How many topics may be declared while recording, by default.
const LATE_TOPICS: u32 = 16;

struct Topics {
    channels: BTreeMap<String, (Py<Channel>, Arc<ChannelHandle>)>,
    finished: bool,
}

/// A recording in progress: a directory of segments, each an MCAP file, the oldest overwritten
/// first. Starts when it is made; finish() ends it, and so does the end of a with statement.
///
/// Arguments: dir, directory of the segments, for nothing else, created if missing. topics, a list
/// of Topics, one at least. By keyword, None meaning the default:
///
/// segment_bytes: default 64 MiB.
/// segments, keep_bytes, keep_free_bytes, keep_s: how much is kept; one of them. segments is their
/// number (default 8). keep_bytes: as many as fit into so many bytes. keep_free_bytes: as many as
/// leave so many bytes of the file system free. keep_s: enough for so many seconds, if every topic
/// has a period and late_topics is 0.
/// loss_window_s: how much a power cut may lose, in seconds. Default 0.5.
/// unit_bytes: largest write. Default 1 MiB.
/// longest_record_bytes: longest record that a topic may have, 64 MiB at most. Default: what
/// unit_bytes has room for.
/// late_topics: how many may be declared while recording. Default 16.
/// late_definition_bytes: room for their names and schemas, together. Default: 4 KiB for each.
/// profile: what MCAP calls so, "ros2" for example.
/// when_full: "recycle" (the oldest segment is overwritten) or "stop".
/// on_failure: of the device, "wait" (for it) or "exit" (recording ends).
/// discard_damaged: overwrite damaged segments instead of renaming them.
/// lock_memory: without it, a page fault can delay an append.
/// engine: "best", "io_uring" or "pwrite".
/// compression: of the blocks, in the writer thread: "none", "lz4" or "zstd".
/// writer_fifo_priority: SCHED_FIFO priority of the writer thread, 1 to 99. writer_cpu: its CPU.
/// writer_io_class, writer_io_level: its I/O priority, as in ionice(1).
/// control_socket: Unix socket that answers how the recording goes, as JSON; `steady status` asks.
/// note: a function that is called with each line of progress at the start.
///
/// Raises InvalidError for an argument that is not allowed; nothing was created then. FailedError:
/// the system, the file system or the device failed. Ctrl-C is noticed while segments are made.
#[pyclass(frozen, module = "steadyio")]
pub struct Recorder {
    core: Arc<Core>,
    topics: Mutex<Topics>,
}

fn lock(topics: &Mutex<Topics>) -> MutexGuard<'_, Topics> {
    topics.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hands progress to a Python function, in whichever thread it comes.
unsafe extern "C" fn note(context: *mut c_void, text: *const c_char) {
    Python::attach(|py| {
        // SAFETY: the context is the function, which outlives the start; the text is a string.
        let (function, text) =
            unsafe { (&*context.cast::<Py<PyAny>>(), CStr::from_ptr(text).to_string_lossy()) };
        if let Err(error) = function.call1(py, (text,)) {
            error.write_unraisable(py, Some(function.bind(py)));
        }
    });
}

fn start(
    py: Python<'_>,
    options: Options,
    dir: PathBuf,
    topics: &[Topic],
    noted: Option<Py<PyAny>>,
) -> PyResult<Recorder> {
    let noted = noted.map(Box::new);
    let context = noted
        .as_ref()
        .map(|function| (note as _, ptr::from_ref::<Py<PyAny>>(function).cast_mut().cast()));
    let handle = options.open(&dir, context)?;
    let core = Arc::new(Core::new(handle));
    let mut channels = BTreeMap::new();
    for topic in topics {
        let channel = add(py, &core, topic)?;
        channels.insert(topic.name.clone(), channel);
    }
    let stop = Interrupt::default();
    let (starting, told) = (Arc::clone(&core), stop.clone());
    // The function goes along, because it is called until the start has ended.
    let work = move || (call(|| starting.handle().start_unless(&told)), noted).0;
    let interrupt = || {
        stop.request();
        true
    };
    wait_for(py, work, interrupt)?.done()?;
    Ok(Recorder { core, topics: Mutex::new(Topics { channels, finished: false }) })
}

fn add(
    py: Python<'_>,
    core: &Arc<Core>,
    topic: &Topic,
) -> PyResult<(Py<Channel>, Arc<ChannelHandle>)> {
    let config = options::channel(topic)?;
    let mut added = None;
    let outcome = py.detach(|| {
        call(|| {
            added = Some(core.handle().add_channel(config)?);
            Ok(Status::Ok)
        })
    });
    outcome.done()?;
    let handle = added.ok_or_else(|| Base::new_err("a bug in steadyio: nothing was added"))?;
    let channel = Channel::new(topic, Arc::clone(&handle), Arc::clone(core));
    Ok((Py::new(py, channel)?, handle))
}

#[pymethods]
impl Recorder {
    #[new]
    #[pyo3(signature = (
        dir, topics, *, segment_bytes=None, segments=None, keep_bytes=None,
        keep_free_bytes=None, keep_s=None, loss_window_s=None, unit_bytes=None,
        longest_record_bytes=None, late_topics=None, late_definition_bytes=None, profile="",
        when_full="recycle", on_failure="wait", discard_damaged=false, lock_memory=true,
        engine="best", writer_fifo_priority=None, writer_cpu=None, writer_io_class=None,
        writer_io_level=None, control_socket=None, compression="none", note=None
    ))]
    // As many as struct steadyio_config has fields.
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        dir: PathBuf,
        topics: Vec<Bound<'_, PyAny>>,
        segment_bytes: Option<Bound<'_, PyAny>>,
        segments: Option<Bound<'_, PyAny>>,
        keep_bytes: Option<Bound<'_, PyAny>>,
        keep_free_bytes: Option<Bound<'_, PyAny>>,
        keep_s: Option<f64>,
        loss_window_s: Option<f64>,
        unit_bytes: Option<Bound<'_, PyAny>>,
        longest_record_bytes: Option<Bound<'_, PyAny>>,
        late_topics: Option<Bound<'_, PyAny>>,
        late_definition_bytes: Option<Bound<'_, PyAny>>,
        profile: &str,
        when_full: &str,
        on_failure: &str,
        discard_damaged: bool,
        lock_memory: bool,
        engine: &str,
        writer_fifo_priority: Option<Bound<'_, PyAny>>,
        writer_cpu: Option<Bound<'_, PyAny>>,
        writer_io_class: Option<Bound<'_, PyAny>>,
        writer_io_level: Option<Bound<'_, PyAny>>,
        control_socket: Option<PathBuf>,
        compression: &str,
        note: Option<Py<PyAny>>,
    ) -> PyResult<Recorder> {
        let keep = Keep {
            segments: whole("segments", segments)?,
            bytes: whole("keep_bytes", keep_bytes)?,
            free_bytes: whole("keep_free_bytes", keep_free_bytes)?,
            s: keep_s,
        };
        let writer_cpu: Option<u32> = whole("writer_cpu", writer_cpu)?;
        let (keep_by, keep) = keep.as_c()?;
        let flag = |set: bool, flag: u32| if set { flag } else { 0 };
        let config = CConfig {
            loss_window_ms: loss_window_s.map_or(Ok(0), |s| units("loss_window_s", s, 1e3))?,
            unit_bytes: whole("unit_bytes", unit_bytes)?.unwrap_or(0),
            segment_bytes: whole("segment_bytes", segment_bytes)?.unwrap_or(0),
            keep,
            keep_by,
            when_full: one_of("when_full", when_full, &WHEN_FULL)?,
            engine: one_of("engine", engine, &ENGINES)?,
            flags: flag(!lock_memory, NO_LOCK)
                | flag(writer_cpu.is_some(), WRITER_CPU)
                | flag(discard_damaged, DISCARD_DAMAGED),
            writer_fifo_priority: whole("writer_fifo_priority", writer_fifo_priority)?.unwrap_or(0),
            writer_cpu: writer_cpu.unwrap_or(0),
            writer_io_class: whole("writer_io_class", writer_io_class)?.unwrap_or(0),
            writer_io_level: whole("writer_io_level", writer_io_level)?.unwrap_or(0),
            longest_record_bytes: whole("longest_record_bytes", longest_record_bytes)?.unwrap_or(0),
            on_failure: one_of("on_failure", on_failure, &ON_FAILURE)?,
            late_channels: whole("late_topics", late_topics)?.unwrap_or(LATE_TOPICS),
            late_definition_bytes: whole("late_definition_bytes", late_definition_bytes)?
                .unwrap_or(0),
            compression: one_of("compression", compression, &COMPRESSIONS)?,
            ..no_config()
        };
        let options = Options { config, profile: profile.into(), control_socket };
        let topics = topics.iter().map(types::topic).collect::<PyResult<Vec<Topic>>>()?;
        start(py, options, dir, &topics, note)
    }

    /// The channel of a topic that was declared. Raises InvalidError if there is none.
    fn topic(&self, py: Python<'_>, name: &str) -> PyResult<Py<Channel>> {
        let topics = lock(&self.topics);
        if let Some((channel, _)) = topics.channels.get(name) {
            return Ok(channel.clone_ref(py));
        }
        let known: Vec<&str> = topics.channels.keys().map(String::as_str).collect();
        let reason = format!("not declared; must be one of {}", known.join(", "));
        Err(invalid("name", format!("{name:?}"), &reason))
    }

    /// Declare a topic while recording, and return its channel. Allocates and locks memory.
    ///
    /// Raises InvalidError if late_topics or late_definition_bytes leave no room.
    fn declare(&self, py: Python<'_>, topic: &Bound<'_, PyAny>) -> PyResult<Py<Channel>> {
        self.core.check()?;
        let topic = types::topic(topic)?;
        let (channel, handle) = add(py, &self.core, &topic)?;
        lock(&self.topics).channels.insert(topic.name, (channel.clone_ref(py), handle));
        Ok(channel)
    }

    /// Wait until all records appended before are durable: for timeout_s seconds at most.
    ///
    /// Raises FlushTimeoutError if that takes longer, LostError if a record was lost before or
    /// meanwhile. One flush reports each loss.
    #[pyo3(signature = (timeout_s=10.0))]
    fn flush(&self, py: Python<'_>, timeout_s: f64) -> PyResult<()> {
        self.core.check()?;
        let timeout = Duration::from_millis(units("timeout_s", timeout_s, 1e3)?);
        let core = Arc::clone(&self.core);
        let outcome = wait_for(py, move || call(|| core.handle().flush(timeout)), || false)?;
        self.explained(outcome).done()
    }

    /// Keep what was received in the last so many seconds from being overwritten, now and in later
    /// recordings, until `steady incidents release`. What was received before is durable then.
    ///
    /// Returns how many seconds are there: less, if what is older is overwritten already. Raises
    /// FlushTimeoutError if it is kept and not durable within 10 s, InvalidError for a wrong name,
    /// StateError if there is an incident of this name, or if fewer than two segments would be left.
    fn keep_incident(&self, py: Python<'_>, name: String, last_s: f64) -> PyResult<f64> {
        self.core.check()?;
        let last = Duration::from_millis(units("last_s", last_s, 1e3)?);
        let core = Arc::clone(&self.core);
        let work = move || {
            let mut covered = Duration::ZERO;
            let outcome = call(|| {
                let (status, kept) = core.handle().keep_incident(&name, last)?;
                covered = kept;
                Ok(status)
            });
            (outcome, covered)
        };
        let (outcome, covered) = wait_for(py, work, || false)?;
        outcome.done().map(|()| covered.as_secs_f64())
    }

    /// Make everything durable, end the segment, stop the writer thread. Does nothing the second
    /// time.
    ///
    /// Raises LostError if any record of the recording is not durable, FullError if recording ended
    /// before because all segments were full, FailedError if the device does not work within 5 s.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        self.core.check()?;
        if mem::replace(&mut lock(&self.topics).finished, true) {
            return Ok(());
        }
        let outcome = py.detach(|| call(|| self.core.handle().finish()));
        self.explained(outcome).done()
    }

    /// What became of the records of each topic: Accounts by name.
    fn ledger<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let ledger = PyDict::new(py);
        for (topic, handle) in self.handles() {
            ledger.set_item(topic, account_of(py, &handle)?)?;
        }
        Ok(ledger)
    }

    /// How the recording goes: Stats of the writer thread.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut found = None;
        call(|| {
            let meters = self.core.handle().meters()?;
            found = Some((CStats::from(meters.as_ref()), meters.trouble()));
            Ok(Status::Ok)
        })
        .done()?;
        let (stats, trouble) =
            found.ok_or_else(|| Base::new_err("a bug in steadyio: there are no statistics"))?;
        let state = STATES.get(stats.state as usize).copied().unwrap_or("unknown");
        let fields = (
            state,
            trouble,
            stats.poll_gap_ns_max,
            stats.durable_lag_ns,
            stats.durable_lag_ns_max,
            stats.window_exceeded,
            stats.rotations,
            stats.device_bytes,
            stats.failed_segments,
            stats.failures,
        );
        types::make(py, "Stats", fields)
    }

    fn __enter__(slf: Py<Recorder>) -> Py<Recorder> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _type: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.finish(py)
    }

    fn __repr__<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        let state = if lock(&self.topics).finished { "finished" } else { "recording" };
        let names: Vec<String> = self.handles().into_iter().map(|(topic, _)| topic).collect();
        PyString::new(py, &format!("<steadyio.Recorder {state} {}>", names.join(" ")))
    }
}

impl Recorder {
    /// A copy: while the lock is held, no function of Python may be called, since another thread
    /// may get the interpreter's lock in it and wait for this one.
    fn handles(&self) -> Vec<(String, Arc<ChannelHandle>)> {
        let topics = lock(&self.topics);
        let handle =
            |(topic, (_, handle)): (&String, &(_, Arc<_>))| (topic.clone(), Arc::clone(handle));
        topics.channels.iter().map(handle).collect()
    }

    /// An outcome with the numbers of lost records.
    fn explained(&self, outcome: Outcome) -> Outcome {
        if !outcome.is(Status::Lost) && !outcome.is(Status::Full) {
            return outcome;
        }
        let (mut lost, mut named, mut text) = (0, 0, String::new());
        for (topic, (_, handle)) in &lock(&self.topics).channels {
            let account = handle.account().unwrap_or_default();
            let (full, writing) = (account.lost_ring_full.records, account.lost_in_writing.records);
            lost += full + writing;
            if full + writing > 0 && named < NAMED_MAX {
                named += 1;
                let received = account.received.records;
                let _ = write!(
                    text,
                    "; {topic}: {full} of {received} because the ring was full or the record too \
                     long, {writing} in writing"
                );
            }
        }
        let why = if outcome.is(Status::Full) { "all segments are full: " } else { "" };
        outcome.because(format!("{why}{lost} records were lost{text}"))
    }
}
