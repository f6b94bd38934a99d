// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages of a pool in the order of their log times, as `steady export` takes them.

use std::collections::VecDeque;
use std::ffi::CString;
use std::mem;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};
use steadyio_core::interrupt::Interrupt;
use steadyio_export::merge::{HELD_BYTES_MAX, Item, Merge, Next};
use steadyio_export::selection::Selection;
use steadyio_export::summary::{ChannelAccount, Missing, Recordings, recording_id};
use steadyio_export::survey::Survey;
use steadyio_recorder::mcap::definitions::{ChannelSpec, Definitions, SchemaSpec};
use steadyio_recorder::mcap::reading::Readable;
use steadyio_recorder::stream::filter::TopicPattern;

use crate::errors::{FailedError, MissingWarning, invalid};
use crate::types;

/// Messages, and bytes, that are taken while other Python threads run.
const BATCH_MESSAGES: usize = 1_000;
const BATCH_BYTES: usize = 1 << 20;
/// Bytes read without a message, before signals are looked for.
const READ_BYTES: u64 = 16 << 20;

/// What all messages of a channel have in common.
pub struct Origin {
    topic: Py<PyString>,
    encoding: Py<PyString>,
    schema: Option<Py<PyAny>>,
    metadata: Py<PyDict>,
    recording_id: Py<PyString>,
}

impl Origin {
    /// Topic, encoding, schema or None, and metadata.
    pub fn channel<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let schema = self.schema.as_ref().map(|schema| schema.bind(py));
        let (topic, encoding) = (self.topic.bind(py), self.encoding.bind(py));
        (topic, encoding, schema, self.metadata.bind(py)).into_pyobject(py)
    }
}

pub type Origins = Arc<Vec<Arc<Origin>>>;

/// A message of a recording.
#[pyclass(frozen, module = "steadyio")]
pub struct Message {
    /// ns since 1970, by custom.
    #[pyo3(get)]
    log_time_ns: u64,
    /// ns since 1970, by custom.
    #[pyo3(get)]
    publish_time_ns: u64,
    /// Counts the records of its topic in its recording, also those that were lost; modulo 2**32.
    #[pyo3(get)]
    sequence: u32,
    /// The record, as bytes.
    #[pyo3(get)]
    data: Py<PyBytes>,
    origin: Arc<Origin>,
}

#[pymethods]
impl Message {
    /// Name of the topic.
    #[getter]
    fn topic(&self, py: Python<'_>) -> Py<PyString> {
        self.origin.topic.clone_ref(py)
    }

    /// Encoding of the record, "json" or "cdr" for example.
    #[getter]
    fn encoding(&self, py: Python<'_>) -> Py<PyString> {
        self.origin.encoding.clone_ref(py)
    }

    /// The Schema of the topic, or None.
    #[getter]
    fn schema(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.origin.schema.as_ref().map(|schema| schema.clone_ref(py))
    }

    /// Keys and values of the topic.
    #[getter]
    fn metadata(&self, py: Python<'_>) -> Py<PyDict> {
        self.origin.metadata.clone_ref(py)
    }

    /// Which recording it is of: 32 hexadecimal digits.
    #[getter]
    fn recording_id(&self, py: Python<'_>) -> Py<PyString> {
        self.origin.recording_id.clone_ref(py)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!(
            "<steadyio.Message {} log_time_ns={} sequence={} {} bytes>",
            self.origin.topic.bind(py).to_string_lossy(),
            self.log_time_ns,
            self.sequence,
            self.data.as_bytes(py).len()
        )
    }
}

impl Message {
    /// A message with this log time and publish time.
    pub fn new(
        py: Python<'_>,
        origin: &Arc<Origin>,
        (log_time_ns, publish_time_ns): (u64, u64),
        sequence: u32,
        payload: &[u8],
    ) -> Message {
        let data = PyBytes::new(py, payload).unbind();
        Message { log_time_ns, publish_time_ns, sequence, data, origin: Arc::clone(origin) }
    }
}

/// What a batch consists of; nothing of Python.
enum Read {
    /// Position of a segment, with its recording and its definitions.
    Segment(usize, String, Box<Definitions>),
    Message(Next, Vec<u8>),
}

struct State {
    merge: Merge,
    batch: VecDeque<Read>,
    recordings: Recordings,
    /// By position of the segment.
    origins: Vec<Option<Origins>>,
    /// Of the segment that was opened last: the next one's are the same, most often.
    last: Option<(String, Definitions, Origins)>,
    ended: bool,
    warned: bool,
}

/// Messages in the order of their log times: an iterator. Made by read().
#[pyclass(frozen, module = "steadyio")]
pub struct Reading {
    state: Mutex<State>,
    survey: Survey,
}

impl State {
    /// Takes what comes next. Needs no Python.
    fn fill(&mut self) -> Result<(), FailedRead> {
        let (mut bytes, mut read) = (0, 0);
        while self.batch.len() < BATCH_MESSAGES && bytes < BATCH_BYTES && read < READ_BYTES {
            match self.merge.step().map_err(|error| FailedRead(error.to_string()))? {
                Some(Item::Message(message)) => {
                    let payload = self.merge.payload(&message).to_vec();
                    bytes += payload.len();
                    self.batch.push_back(Read::Message(message, payload));
                }
                Some(Item::Segment(at, found)) => {
                    self.recordings.note(&found);
                    let Readable { life, definitions, .. } = *found;
                    let id = recording_id(&life.identity);
                    self.batch.push_back(Read::Segment(at, id, Box::new(definitions)));
                }
                Some(Item::Read(more)) => read += more,
                None => {
                    self.ended = true;
                    break;
                }
            }
        }
        Ok(())
    }

    fn open(
        &mut self,
        py: Python<'_>,
        at: usize,
        id: String,
        definitions: Definitions,
    ) -> PyResult<()> {
        let origins = match &self.last {
            Some((last_id, last, origins)) if *last_id == id && *last == definitions => {
                Arc::clone(origins)
            }
            _ => Arc::new(origins(py, &id, &definitions)?),
        };
        self.last = Some((id, definitions, Arc::clone(&origins)));
        self.origins[at] = Some(origins);
        Ok(())
    }

    fn message(&self, py: Python<'_>, next: &Next, payload: &[u8]) -> Option<Message> {
        let origin = self.origins[next.segment].as_ref()?.get(next.slot)?;
        let times_ns = (next.log_time_ns, next.publish_time_ns);
        Some(Message::new(py, origin, times_ns, next.sequence, payload))
    }
}

/// Reading failed; the file is named.
struct FailedRead(String);

impl From<FailedRead> for PyErr {
    fn from(FailedRead(text): FailedRead) -> PyErr {
        FailedError::new_err(text)
    }
}

/// The origin of each channel, in the order of the definitions.
pub fn origins(py: Python<'_>, id: &str, definitions: &Definitions) -> PyResult<Vec<Arc<Origin>>> {
    let Some((schemas, channels)) = definitions.specs() else {
        return Err(FailedError::new_err("schemas or channels of a segment are malformed"));
    };
    let schema = |SchemaSpec { name, encoding, data }: &SchemaSpec| {
        Ok(types::make(py, "Schema", (name, encoding, PyBytes::new(py, data)))?.unbind())
    };
    let schemas: Vec<Py<PyAny>> = schemas.iter().map(schema).collect::<PyResult<_>>()?;
    let id = PyString::new(py, id).unbind();
    let origin = |ChannelSpec { topic, message_encoding, schema, metadata }: ChannelSpec| {
        let keys = PyDict::new(py);
        for (key, value) in metadata {
            keys.set_item(key, value)?;
        }
        Ok(Arc::new(Origin {
            topic: PyString::new(py, &topic).unbind(),
            encoding: PyString::new(py, &message_encoding).unbind(),
            schema: schema.map(|at| schemas[at].clone_ref(py)),
            metadata: keys.unbind(),
            recording_id: id.clone_ref(py),
        }))
    };
    channels.into_iter().map(origin).collect()
}

impl Reading {
    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, State> {
        self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    /// The missing data in words; None if nothing is missing.
    fn damage(&self, missing: &Missing) -> Option<String> {
        let mut parts = missing.damage();
        parts.extend(self.survey.losses.iter().map(|loss| loss.describe()));
        for unreadable in &self.survey.unreadable {
            parts.push(format!("{}: {}", unreadable.path.display(), unreadable.why));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

#[pymethods]
impl Reading {
    fn __iter__(slf: Py<Reading>) -> Py<Reading> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Message>> {
        let mut locked = self.lock(py);
        // A guard must not change threads; what it guards may.
        let state: &mut State = &mut locked;
        loop {
            match state.batch.pop_front() {
                Some(Read::Message(next, payload)) => {
                    if let Some(message) = state.message(py, &next, &payload) {
                        return Ok(Some(message));
                    }
                }
                Some(Read::Segment(at, id, definitions)) => {
                    state.open(py, at, id, *definitions)?;
                }
                None if state.ended => break,
                None => {
                    py.detach(|| state.fill())?;
                    py.check_signals()?;
                }
            }
        }
        let missing = state.merge.missing;
        drop(locked);
        self.warn(py, &missing)?;
        Ok(None)
    }

    /// Recorded data that could not be read so far: Missing.
    #[getter]
    fn missing<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let missing = self.lock(py).merge.missing;
        let fields = (
            missing.blocks,
            missing.bytes,
            missing.durable_blocks,
            missing.unreadable_bytes,
            missing.overwritten_blocks,
            missing.overwritten_segments,
            missing.messages,
        );
        types::make(py, "Missing", fields)
    }

    /// Segments that cannot be read any more: path and reason of each.
    #[getter]
    fn unreadable(&self) -> Vec<(PathBuf, String)> {
        let unreadable = self.survey.unreadable.iter();
        unreadable.map(|unreadable| (unreadable.path.clone(), unreadable.why.clone())).collect()
    }

    /// Messages that came after later ones, because the recording is out of order by more than
    /// 256 MiB.
    #[getter]
    fn out_of_order(&self, py: Python<'_>) -> u64 {
        self.lock(py).merge.late
    }

    /// All topics of the recordings, sorted.
    #[getter]
    fn topics(&self) -> Vec<String> {
        self.survey.topics.iter().cloned().collect()
    }

    /// Earliest and latest log time of all that is there, in ns; None without messages.
    #[getter]
    fn times_ns(&self) -> Option<(u64, u64)> {
        self.survey.times_ns()
    }

    /// The Recordings of which segments were read so far, with the accounts of their topics.
    #[getter]
    fn recordings<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let found: Vec<_> = self.lock(py).recordings.summaries().cloned().collect();
        let mut recordings = Vec::with_capacity(found.len());
        for recording in found {
            let topics = PyDict::new(py);
            for (topic, account) in recording.channels {
                let ChannelAccount { received, written, durable, lost } = account;
                let fields = (received, written, durable, lost);
                topics.set_item(topic, types::make(py, "RecordedAccount", fields)?)?;
            }
            let fields = (recording.recording_id, recording.created_ns, recording.segments, topics);
            recordings.push(types::make(py, "Recording", fields)?);
        }
        Ok(recordings)
    }
}

impl Reading {
    /// At the end, once.
    fn warn(&self, py: Python<'_>, missing: &Missing) -> PyResult<()> {
        if mem::replace(&mut self.lock(py).warned, true) {
            return Ok(());
        }
        let Some(text) = self.damage(missing) else { return Ok(()) };
        // A 0 byte can only be in the name of a file, and a name has none.
        let text = CString::new(text).unwrap_or_default();
        PyErr::warn(py, &py.get_type::<MissingWarning>(), &text, 1)
    }
}

/// One path, or several.
#[derive(FromPyObject)]
pub enum Paths {
    One(PathBuf),
    Several(Vec<PathBuf>),
}

/// Read recordings: an iterator over Messages in the order of their log times.
///
/// path: directory of a recording, or a segment; or a list of such. A recorder may be running:
/// then at least all records are read that were durable when the call began. topics: names, where *
/// stands for any characters; default: all. from_ns and to_ns: log times, from the first up to the
/// last, which is not included.
///
/// Nothing is changed. The end of the iteration raises MissingWarning if data that had been durable
/// cannot be read any more. Raises InvalidError for a topic that is not there, FailedError if
/// nothing can be read.
#[pyfunction]
#[pyo3(signature = (path, topics=None, *, from_ns=None, to_ns=None))]
pub fn read(
    py: Python<'_>,
    path: Paths,
    topics: Option<Vec<String>>,
    from_ns: Option<u64>,
    to_ns: Option<u64>,
) -> PyResult<Reading> {
    let paths = match path {
        Paths::One(path) => vec![path],
        Paths::Several(paths) => paths,
    };
    let (start, end) = (from_ns.unwrap_or(0), to_ns.unwrap_or(u64::MAX));
    if start >= end {
        return Err(invalid("from_ns", start, &format!("must be less than to_ns = {end}")));
    }
    let survey = look(py, &paths)?;
    let topics = topics.unwrap_or_default();
    let topics = topics.iter().map(|topic| TopicPattern::new(topic)).collect();
    let selection = Selection { topics, times_ns: start..end };
    if let Some(unknown) = selection.unknown_topic(&survey.topics) {
        let known: Vec<&str> = survey.topics.iter().map(String::as_str).collect();
        let reason = format!("no such topic; must be one of {}", known.join(", "));
        return Err(invalid("topics", format!("{unknown:?}"), &reason));
    }
    let state = State {
        merge: Merge::new(&survey, selection, HELD_BYTES_MAX),
        batch: VecDeque::new(),
        recordings: Recordings::default(),
        origins: vec![None; survey.segments.len()],
        last: None,
        ended: false,
        warned: false,
    };
    Ok(Reading { state: Mutex::new(state), survey })
}

/// Looks at all segments; a signal's handler may end it.
fn look(py: Python<'_>, paths: &[PathBuf]) -> PyResult<Survey> {
    let mut raised = None;
    let surveyed = py.detach(|| {
        let stop = Interrupt::default();
        let mut progress = |_, _| {
            if let Err(error) = Python::attach(|py| py.check_signals()) {
                raised = Some(error);
                stop.request();
            }
        };
        Survey::of(paths, &stop, &mut progress)
    });
    match (raised, surveyed) {
        (Some(raised), _) => Err(raised),
        (None, surveyed) => surveyed.map_err(|error| FailedError::new_err(error.to_string())),
    }
}
