// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bytes of any object that has a buffer, without a copy. `channel` uses it.
//!
//! PyO3 supports buffers only where they are in Python's stable interface, since 3.11. The struct
//! and the functions are the same in 3.9 and 3.10, which get no new versions.

use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::slice;

use pyo3::ffi::{Py_ssize_t, PyObject};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// `Py_buffer`, see <https://docs.python.org/3/c-api/buffer.html>.
#[repr(C)]
struct View {
    buf: *mut c_void,
    obj: *mut PyObject,
    len: Py_ssize_t,
    itemsize: Py_ssize_t,
    readonly: c_int,
    ndim: c_int,
    format: *mut c_char,
    shape: *mut Py_ssize_t,
    strides: *mut Py_ssize_t,
    suboffsets: *mut Py_ssize_t,
    internal: *mut c_void,
}

/// `PyBUF_SIMPLE`: contiguous bytes.
const SIMPLE: c_int = 0;

unsafe extern "C" {
    fn PyObject_GetBuffer(object: *mut PyObject, view: *mut View, flags: c_int) -> c_int;
    fn PyBuffer_Release(view: *mut View);
}

/// A buffer that is released when this goes.
struct Buffer(View);

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: filled by PyObject_GetBuffer, and released once.
        unsafe { PyBuffer_Release(&raw mut self.0) };
    }
}

/// Calls this with the object's bytes. An object without a buffer, or whose buffer is not
/// contiguous, raises TypeError or BufferError, as everywhere in Python.
pub fn with_bytes<T>(object: &Bound<'_, PyAny>, body: impl FnOnce(&[u8]) -> T) -> PyResult<T> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(body(bytes.as_bytes()));
    }
    let mut view = MaybeUninit::<View>::uninit();
    // SAFETY: the interpreter's lock is held, and there is room for the view.
    let status = unsafe { PyObject_GetBuffer(object.as_ptr(), view.as_mut_ptr(), SIMPLE) };
    if status != 0 {
        return Err(PyErr::fetch(object.py()));
    }
    // SAFETY: it was filled.
    let buffer = Buffer(unsafe { view.assume_init() });
    let bytes = match usize::try_from(buffer.0.len) {
        // SAFETY: a simple buffer is contiguous; it stays, and its owner cannot resize it, until it
        // is released. Other threads of Python need the interpreter's lock to change it.
        Ok(length) if length > 0 => unsafe { slice::from_raw_parts(buffer.0.buf.cast(), length) },
        // Its pointer may be anything.
        _ => &[],
    };
    Ok(body(bytes))
}
