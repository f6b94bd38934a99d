// SPDX-License-Identifier: MIT OR Apache-2.0
//! The native half of the Python package `steadyio`: the recorder and its reader.
//!
//! It is made with PyO3 and not with cffi, because `append()` keeps the interpreter's lock. cffi
//! gives the lock up around each call. A thread that wants it back may then wait for a whole switch
//! interval, 5 ms, behind one that computes. Only calls that wait anyway give it up. The reader is
//! that of `steady export`, which has no C interface.
//!
//! Reading order: `errors` (statuses become exceptions), `waiting` (long calls, and Ctrl-C),
//! `options` (arguments become the structs of `steadyio.h`), `recorder`, `channel`,
//! `reading`, `following`. The package's types are in `steadyio/types.py`.

mod bytes;
mod channel;
mod errors;
mod following;
mod fork;
mod options;
mod reading;
mod recorder;
mod recorder_core;
mod types;
mod waiting;

/// Native half of the package steadyio.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use super::channel::Channel;
    #[pymodule_export]
    use super::following::Following;
    #[pymodule_export]
    use super::reading::{Message, Reading, read};
    #[pymodule_export]
    use super::recorder::Recorder;

    #[pymodule_init]
    fn init(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        use pyo3::types::PyModuleMethods;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        super::fork::watch()
    }
}
