// SPDX-License-Identifier: MIT OR Apache-2.0
//! Buffers in shared memory, for C: the functions `steadyio_buffer_*`.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::ptr;

use steadyio_direct::buffer::{Buffer, BufferError, SCRATCH, Use};

use crate::arguments::{path, reference, set};
use crate::status::{Error, Status, guard};

const BUFFER: &str = "a buffer of steadyio_buffer_from_fd()";
/// The uses, indexed by `enum steadyio_use`.
const USES: [Use; 3] = [Use::Direct, Use::IoUringFixed, Use::Chardisk];

/// `struct steadyio_buffer`.
#[derive(Debug)]
pub struct BufferHandle {
    buffer: Buffer,
    /// The reason for each use; None: not tried.
    reasons: [Option<CString>; USES.len()],
}

impl BufferHandle {
    fn new(buffer: Buffer) -> BufferHandle {
        let reason = |way| {
            let reason = buffer.verdict(way)?.reason.replace('\0', "");
            CString::new(reason).ok()
        };
        BufferHandle { reasons: USES.map(reason), buffer }
    }
}

impl From<BufferError> for Error {
    fn from(error: BufferError) -> Error {
        let status = match error {
            BufferError::Target { .. } | BufferError::Map { .. } => Status::Failed,
            _ => Status::Invalid,
        };
        Error::new(status, error.to_string())
    }
}

/// See `steadyio.h`.
///
/// # Safety
/// As `steadyio_open`; `fd` is open, or negative.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steadyio_buffer_from_fd(
    fd: c_int,
    bytes: u64,
    target: *const c_char,
    buffer: *mut *mut BufferHandle,
) -> c_int {
    guard(|| {
        if fd < 0 {
            return Err(Error::invalid("fd", fd, "must be an open file"));
        }
        // Before anything is done.
        // SAFETY: upheld by the caller.
        unsafe { set("buffer", buffer, ptr::null_mut)? };
        // SAFETY: upheld by the caller.
        let target = unsafe { path("target", target)? };
        // SAFETY: not negative, and the caller keeps it open meanwhile.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        let target = target.as_deref().unwrap_or(Path::new(SCRATCH));
        let made = BufferHandle::new(Buffer::from_fd(fd, bytes, target)?);
        // SAFETY: upheld by the caller.
        unsafe { set("buffer", buffer, || Box::into_raw(Box::new(made)))? };
        Ok(Status::Ok)
    })
}

/// See `steadyio.h`.
///
/// # Safety
/// As `steadyio_open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steadyio_buffer_data(buffer: *const BufferHandle) -> *mut c_void {
    // SAFETY: upheld by the caller.
    unsafe { buffer.as_ref() }
        .map_or(ptr::null_mut(), |handle| handle.buffer.mapping.as_ptr().cast())
}

/// See `steadyio.h`.
///
/// # Safety
/// As `steadyio_open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steadyio_buffer_can(
    buffer: *const BufferHandle,
    way: u32,
    reason: *mut *const c_char,
) -> c_int {
    guard(|| {
        // SAFETY: upheld by the caller.
        let handle = unsafe { reference("buffer", buffer, BUFFER)? };
        let known = usize::try_from(way).ok().filter(|&way| way < USES.len());
        let index = known.ok_or_else(|| Error::invalid("use", way, "not an enum steadyio_use"))?;
        let text: &CStr = match &handle.reasons[index] {
            Some(text) => text,
            None => {
                let why = "was not tried with this target: io_uring is for files and block devices, \
                     registering with the card for /dev/chardiskN";
                return Err(Error::invalid("use", way, why));
            }
        };
        if !reason.is_null() {
            // SAFETY: upheld by the caller; the text lives as long as the buffer.
            unsafe { reason.write(text.as_ptr()) };
        }
        let works = handle.buffer.verdict(USES[index]).is_some_and(|verdict| verdict.works);
        Ok(if works { Status::Ok } else { Status::Rejected })
    })
}

/// See `steadyio.h`.
///
/// # Safety
/// As `steadyio_open`; the buffer and its memory must not be in use any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steadyio_buffer_close(buffer: *mut BufferHandle) {
    if buffer.is_null() {
        return;
    }
    guard(|| {
        // SAFETY: made by `steadyio_buffer_from_fd` from a box, and not used any more.
        drop(unsafe { Box::from_raw(buffer) });
        Ok(Status::Ok)
    });
}
