// SPDX-License-Identifier: MIT OR Apache-2.0
//! Buffers through the C interface: what works, what is refused, and wrong arguments.

use std::ffi::{CStr, c_char};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::ptr;

use steadyio_capi::buffer::{
    BufferHandle, steadyio_buffer_can, steadyio_buffer_close, steadyio_buffer_data,
    steadyio_buffer_from_fd,
};
use steadyio_capi::status::Status;
use steadyio_capi::steadyio_error;

const BYTES: u64 = 64 << 10;
const DIRECT: u32 = 0;
const CHARDISK: u32 = 2;

fn error() -> String {
    // SAFETY: never NULL.
    unsafe { CStr::from_ptr(steadyio_error()) }.to_str().unwrap().to_string()
}

/// Read-write memory of a file, and a handle of it.
fn made(file: &File, bytes: u64) -> (i32, *mut BufferHandle) {
    let mut buffer = ptr::null_mut();
    // SAFETY: valid pointers.
    let status =
        unsafe { steadyio_buffer_from_fd(file.as_raw_fd(), bytes, ptr::null(), &mut buffer) };
    (status, buffer)
}

#[test]
fn memory_is_mapped_and_its_uses_are_told() {
    let file = tempfile::tempfile_in("/dev/shm").unwrap();
    file.set_len(BYTES).unwrap();
    let (status, buffer) = made(&file, BYTES);
    assert_eq!(status, Status::Ok as i32, "{}", error());
    drop(file);
    let mut reason: *const c_char = ptr::null();
    // SAFETY: the buffer was made above, its memory is as long as was asked for.
    unsafe {
        steadyio_buffer_data(buffer).cast::<u8>().add(BYTES as usize - 1).write(7);
        assert_eq!(steadyio_buffer_can(buffer, DIRECT, &mut reason), Status::Ok as i32);
        assert_eq!(CStr::from_ptr(reason), c"");
        let not_tried = steadyio_buffer_can(buffer, CHARDISK, ptr::null_mut());
        assert_eq!(not_tried, Status::Invalid as i32);
        assert!(error().starts_with("use = 2: was not tried"), "{}", error());
        assert_eq!(steadyio_buffer_can(buffer, 3, ptr::null_mut()), Status::Invalid as i32);
        steadyio_buffer_close(buffer);
    }
}

#[test]
fn wrong_arguments_are_named_and_leave_null() {
    let file = tempfile::tempfile_in("/dev/shm").unwrap();
    file.set_len(BYTES).unwrap();
    for (bytes, says) in [(BYTES * 2, "has only 65536 bytes"), (1, "bytes = 1: must be a multiple")]
    {
        let (status, buffer) = made(&file, bytes);
        assert_eq!((status, buffer.is_null()), (Status::Invalid as i32, true));
        assert!(error().contains(says), "{}", error());
    }
    // SAFETY: NULL and a bad descriptor are refused.
    unsafe {
        let mut buffer = ptr::null_mut();
        let status = steadyio_buffer_from_fd(-1, BYTES, ptr::null(), &mut buffer);
        assert_eq!(status, Status::Invalid as i32);
        let status =
            steadyio_buffer_from_fd(file.as_raw_fd(), BYTES, c"/none".as_ptr(), &mut buffer);
        assert_eq!(status, Status::Failed as i32);
        assert!(error().starts_with("/none: not a target"), "{}", error());
        let status = steadyio_buffer_from_fd(file.as_raw_fd(), BYTES, ptr::null(), ptr::null_mut());
        assert_eq!(status, Status::Invalid as i32);
        assert!(steadyio_buffer_data(ptr::null()).is_null());
        assert_eq!(steadyio_buffer_can(ptr::null(), 0, ptr::null_mut()), Status::Invalid as i32);
        steadyio_buffer_close(ptr::null_mut());
    }
}
