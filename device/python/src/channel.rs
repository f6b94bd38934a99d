// SPDX-License-Identifier: MIT OR Apache-2.0
//! Appending to a topic.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use pyo3::prelude::*;
use steadyio_capi::handle::ChannelHandle;
use steadyio_capi::status::Status;

use crate::bytes::with_bytes;
use crate::errors::{Outcome, call};
use crate::recorder_core::Core;
use crate::types::{self, Topic};

/// A topic of a recorder, to append to. Made by Recorder.topic() and Recorder.declare().
#[pyclass(frozen, module = "steadyio")]
pub struct Channel {
    topic: String,
    record_bytes_max: u64,
    handle: Arc<ChannelHandle>,
    // The writer thread that empties its ring.
    core: Arc<Core>,
}

fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

impl Channel {
    pub fn new(topic: &Topic, handle: Arc<ChannelHandle>, core: Arc<Core>) -> Channel {
        let Topic { name, record_bytes_max, .. } = topic;
        Channel { topic: name.clone(), record_bytes_max: *record_bytes_max, handle, core }
    }

    fn explained(&self, outcome: Outcome, bytes: usize) -> Outcome {
        if !outcome.is(Status::TooLong) {
            return outcome;
        }
        let Channel { topic, record_bytes_max, .. } = self;
        outcome.because(format!(
            "a record of {bytes} bytes is lost: {topic} has record_bytes_max = {record_bytes_max}"
        ))
    }
}

#[pymethods]
impl Channel {
    /// Append a record: copy it into the topic's ring. Never waits.
    ///
    /// data: bytes, or any object with a contiguous buffer: bytearray, memoryview, a numpy array.
    /// log_time_ns: ns since 1970; default: now. publish_time_ns: default: log_time_ns.
    ///
    /// Returns whether the record was taken. False: the ring was full, and the record is counted as
    /// lost. Raises TooLongError, and counts the record as lost, if it is longer than
    /// record_bytes_max; StateError after finish(), or if another thread is appending.
    #[pyo3(signature = (data, *, log_time_ns=None, publish_time_ns=None))]
    fn append(
        &self,
        data: &Bound<'_, PyAny>,
        log_time_ns: Option<u64>,
        publish_time_ns: Option<u64>,
    ) -> PyResult<bool> {
        self.core.check()?;
        let log_time_ns = log_time_ns.unwrap_or_else(now_ns);
        let publish_time_ns = publish_time_ns.unwrap_or(log_time_ns);
        with_bytes(data, |data| {
            let outcome = call(|| self.handle.append(log_time_ns, publish_time_ns, data));
            if outcome.is(Status::RingFull) {
                return Ok(false);
            }
            self.explained(outcome, data.len()).done().map(|()| true)
        })?
    }

    /// What became of the topic's records: an Account.
    fn account<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        account_of(py, &self.handle)
    }

    /// Name of the topic.
    #[getter]
    fn topic(&self) -> &str {
        &self.topic
    }

    fn __repr__(&self) -> String {
        format!("<steadyio.Channel {:?}>", self.topic)
    }
}

/// What became of its records.
pub fn account_of<'py>(py: Python<'py>, handle: &ChannelHandle) -> PyResult<Bound<'py, PyAny>> {
    let mut account = None;
    call(|| {
        account = Some(handle.account()?);
        Ok(Status::Ok)
    })
    .done()?;
    types::account(py, &account.unwrap_or_default())
}
