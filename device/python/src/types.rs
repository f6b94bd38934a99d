// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts to and from the classes of `steadyio/types.py`. All modules use it.

use std::collections::BTreeMap;

use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use steadyio_recorder::ledger::{Account, Amount};

/// A new object of this class.
pub fn make<'py>(
    py: Python<'py>,
    class: &str,
    arguments: impl PyCallArgs<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    py.import("steadyio.types")?.getattr(class)?.call1(arguments)
}

/// What the records of a topic are.
#[derive(Debug, FromPyObject)]
pub struct Schema {
    pub name: String,
    pub encoding: String,
    pub data: Vec<u8>,
}

/// The declaration of a topic.
#[derive(Debug, FromPyObject)]
pub struct Topic {
    pub name: String,
    pub record_bytes_max: u64,
    pub period_s: Option<f64>,
    pub encoding: String,
    pub schema: Option<Schema>,
    pub metadata: BTreeMap<String, String>,
    pub ring_bytes: Option<u64>,
    pub latched: bool,
}

/// The declaration; another object raises TypeError.
pub fn topic(object: &Bound<'_, PyAny>) -> PyResult<Topic> {
    let class = object.py().import("steadyio.types")?.getattr("Topic")?;
    if object.is_instance(&class)? {
        return object.extract();
    }
    let found = object.get_type().name()?;
    Err(PyTypeError::new_err(format!("a topic must be a steadyio.Topic, not {found}")))
}

fn amount(py: Python<'_>, amount: Amount) -> PyResult<Bound<'_, PyAny>> {
    make(py, "Amount", (amount.records, amount.bytes))
}

pub fn account<'py>(py: Python<'py>, account: &Account) -> PyResult<Bound<'py, PyAny>> {
    let fields = (
        amount(py, account.received)?,
        amount(py, account.buffered)?,
        amount(py, account.written)?,
        amount(py, account.durable)?,
        amount(py, account.lost_ring_full)?,
        amount(py, account.lost_in_writing)?,
        account.last_received_ns,
        account.last_durable_ns,
        account.first_lost_ns,
        account.last_lost_ns,
        account.ring_used_bytes,
        account.ring_used_bytes_max,
    );
    make(py, "Account", fields)
}
