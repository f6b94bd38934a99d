// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts statuses of the C interface to exceptions, with its texts. All modules use it.

use std::ffi::{CStr, c_int};

use pyo3::PyErr;
use steadyio_capi::status::{Error, Status, guard, last_error, text_of};

/// Those of `steadyio/errors.py`.
mod python {
    use pyo3::import_exception;

    import_exception!(steadyio.errors, Error);
    import_exception!(steadyio.errors, FailedError);
    import_exception!(steadyio.errors, FlushTimeoutError);
    import_exception!(steadyio.errors, FullError);
    import_exception!(steadyio.errors, InvalidError);
    import_exception!(steadyio.errors, LostError);
    import_exception!(steadyio.errors, MissingWarning);
    import_exception!(steadyio.errors, StateError);
    import_exception!(steadyio.errors, TooLongError);
}

pub use self::python::{
    Error as Base, FailedError, FlushTimeoutError, FullError, InvalidError, LostError,
    MissingWarning, StateError, TooLongError,
};

/// What a call returned; its text is that of the thread that made the call.
#[derive(Debug)]
pub struct Outcome {
    status: c_int,
    text: String,
}

fn to_text(text: &CStr) -> String {
    text.to_string_lossy().replace("steadyio_", "")
}

/// Calls a function of the C interface's crate; a panic in it becomes a status.
pub fn call(body: impl FnOnce() -> Result<Status, Error>) -> Outcome {
    let status = guard(body);
    let text = match status {
        // SAFETY: ends with 0, and stays until this thread's next error.
        ..0 => to_text(unsafe { CStr::from_ptr(last_error()) }),
        _ => String::new(),
    };
    Outcome { status, text }
}

impl Outcome {
    /// For what must not fail but with an error.
    pub fn done(self) -> Result<(), PyErr> {
        if self.is(Status::Ok) { Ok(()) } else { Err(self.into()) }
    }

    pub fn is(&self, status: Status) -> bool {
        self.status == status as c_int
    }

    /// The same with more to say.
    pub fn because(self, text: String) -> Outcome {
        Outcome { text, ..self }
    }
}

impl From<Outcome> for PyErr {
    fn from(Outcome { status, text }: Outcome) -> PyErr {
        let text = if text.is_empty() { to_text(text_of(status)) } else { text };
        let is = |known: Status| status == known as c_int;
        if is(Status::Invalid) {
            InvalidError::new_err(text)
        } else if is(Status::State) {
            StateError::new_err(text)
        } else if is(Status::Failed) {
            FailedError::new_err(text)
        } else if is(Status::TooLong) {
            TooLongError::new_err(text)
        } else if is(Status::Timeout) {
            FlushTimeoutError::new_err(text)
        } else if is(Status::Full) {
            FullError::new_err(text)
        } else if is(Status::Lost) {
            LostError::new_err(text)
        } else {
            Base::new_err(text)
        }
    }
}

/// A wrong argument of a Python function.
pub fn invalid(name: &str, value: impl std::fmt::Display, reason: &str) -> PyErr {
    InvalidError::new_err(format!("{name} = {value}: {reason}"))
}
