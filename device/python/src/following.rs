// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages behind a running recorder, for `steadyio/live.py`.

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyTuple;
use steadyio_export::behind::{Behind, Next};
use steadyio_export::summary::recording_id;
use steadyio_recorder::mcap::definitions::Definitions;
use steadyio_recorder::mcap::reading::{MessageInBlock, messages};

use crate::errors::FailedError;
use crate::reading::{Message, Origins, origins};

/// Bytes read before other Python threads and signals get their turn.
const READ_BYTES: usize = 4 << 20;
/// Blocks passed unread before that.
const BLOCKS_MAX: usize = 1_000;

/// A place behind the recorder of a directory, which may be missing or empty so far.
#[pyclass(frozen, module = "steadyio._native")]
pub struct Following {
    state: Mutex<State>,
}

struct State {
    behind: Behind,
    origins: Option<Origins>,
}

/// A message with its payload; nothing of Python.
type Found = (MessageInBlock, Vec<u8>);

impl State {
    /// Takes messages up to a change of the definitions. Returns whether these have changed.
    fn read(&mut self, topics: &HashSet<String>, found: &mut Vec<Found>) -> io::Result<bool> {
        let mut bytes = 0;
        for _ in 0..BLOCKS_MAX {
            match self.behind.step(!topics.is_empty())? {
                Some(Next::Definitions) => return Ok(true),
                Some(Next::Block(block)) => {
                    bytes += block.len();
                    if let Some(definitions) = self.behind.definitions() {
                        found.extend(select(&block, definitions, topics));
                    }
                }
                None => break,
            }
            if bytes >= READ_BYTES {
                break;
            }
        }
        Ok(false)
    }

    fn message(&self, py: Python<'_>, (found, payload): &Found) -> Option<Message> {
        let origin = self.origins.as_ref()?.get(found.slot)?;
        let times_ns = (found.log_time_ns, found.publish_time_ns);
        Some(Message::new(py, origin, times_ns, found.sequence, payload))
    }

    fn define(&mut self, py: Python<'_>) -> PyResult<()> {
        if let Some((definitions, identity)) = self.behind.definitions().zip(self.behind.identity())
        {
            self.origins = Some(Arc::new(origins(py, &recording_id(&identity), definitions)?));
        }
        Ok(())
    }
}

/// The messages of these topics.
fn select(block: &[u8], definitions: &Definitions, topics: &HashSet<String>) -> Vec<Found> {
    let is_wanted = |message: &MessageInBlock| topics.contains(&definitions.topics()[message.slot]);
    let found = messages(block, definitions).into_iter().flatten().filter(is_wanted);
    found.map(|message| (message.clone(), block[message.payload].to_vec())).collect()
}

fn failed(error: io::Error) -> PyErr {
    FailedError::new_err(error.to_string())
}

impl Following {
    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, State> {
        self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Following {
    #[new]
    fn new(dir: PathBuf) -> Following {
        Following { state: Mutex::new(State { behind: Behind::new(&dir), origins: None }) }
    }

    /// Messages of these topics that have come since the last call, in the order of the recording,
    /// and whether the channels have changed after them. Not necessarily all messages. Raises
    /// FailedError.
    fn poll(&self, py: Python<'_>, topics: HashSet<String>) -> PyResult<(Vec<Message>, bool)> {
        let mut locked = self.lock(py);
        let state: &mut State = &mut locked;
        let mut found = Vec::new();
        let is_new = py.detach(|| state.read(&topics, &mut found)).map_err(failed)?;
        let found = found.iter().filter_map(|found| state.message(py, found)).collect();
        if is_new {
            state.define(py)?;
        }
        Ok((found, is_new))
    }

    /// The last message of a topic that the segment in use has; None if it has none. Raises
    /// FailedError.
    fn last(&self, py: Python<'_>, topic: &str) -> PyResult<Option<Message>> {
        let locked = self.lock(py);
        let state: &State = &locked;
        let found = py.detach(|| state.behind.last_of(topic)).map_err(failed)?;
        Ok(found.and_then(|found| state.message(py, &found)))
    }

    /// Topic, encoding, Schema or None, and metadata of each channel of the segment in use.
    #[getter]
    fn channels<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let origins = self.lock(py).origins.clone();
        origins.iter().flat_map(|origins| origins.iter()).map(|one| one.channel(py)).collect()
    }

    /// Segments that were passed, completely or from some place on, because the caller was late.
    #[getter]
    fn skipped_segments(&self, py: Python<'_>) -> u64 {
        self.lock(py).behind.skipped_segments
    }
}
