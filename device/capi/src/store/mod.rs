// SPDX-License-Identifier: MIT OR Apache-2.0
//! The C interface of the store, as `include/steadyio_store.h` describes it.
//!
//! [`structs`] has its structs, and [`handle`] the object behind the opaque pointer. This file has
//! the functions.

pub mod handle;
pub mod structs;

use std::ffi::{c_char, c_int, c_void};
use std::path::PathBuf;
use std::slice;

use crate::arguments::{self, bytes_of, input, output, reference, set};
use crate::status::{Error, Status, guard};

use self::handle::StoreHandle;
use self::structs::{CExtent, CExtentOptions, CStoreOptions, CStoreStats};

const STORE: &str = "a store of steadyio_store_open()";

/// The path of a device or file.
///
/// # Safety
/// As [`arguments::path`].
unsafe fn path(pointer: *const c_char) -> Result<PathBuf, Error> {
    // SAFETY: upheld by the caller.
    let path = unsafe { arguments::path("path", pointer)? };
    path.ok_or_else(|| Error::invalid("path", "NULL", "must be a device or a file"))
}

/// See `steadyio_store.h`.
///
/// # Safety
/// Pointers are NULL or valid, here and in all functions below; strings end with 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steadyio_store_create(
    path: *const c_char,
    options: *const CStoreOptions,
    handle: *mut *mut StoreHandle,
) -> c_int {
    guard(|| {
        let options = match options.is_null() {
            true => CStoreOptions::default(),
            // SAFETY: upheld by the caller.
            false => unsafe { input("options", options)? },
        };
        // Before anything is overwritten.
        // SAFETY: upheld by the caller.
        unsafe { set("store", handle, std::ptr::null_mut)? };
        // SAFETY: upheld by the caller.
        let made = StoreHandle::create(&unsafe { self::path(path)? }, &options)?;
        // SAFETY: upheld by the caller.
        unsafe { set("store", handle, || Box::into_raw(Box::new(made)))? };
        Ok(Status::Ok)
    })
}

/// See `steadyio_store.h`.
///
/// # Safety
/// As [`steadyio_store_create`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steadyio_store_open(
    path: *const c_char,
    flags: u32,
    handle: *mut *mut StoreHandle,
) -> c_int {
    guard(|| {
        // SAFETY: upheld by the caller.
        let opened = StoreHandle::open(&unsafe { self::path(path)? }, flags)?;
        // SAFETY: upheld by the caller.
        unsafe { set("store", handle, || Box::into_raw(Box::new(opened)))? };
        Ok(Status::Ok)
    })
}

/// See `steadyio_store.h`.
///
/// # Safety
/// As [`steadyio_store_create`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steadyio_store_add(
    handle: *const StoreHandle,
    id: u64,
    options: *const CExtentOptions,
) -> c_int {
    guard(|| {
        // SAFETY: upheld by the caller.
        let (handle, options) =
            unsafe { (reference("store", handle, STORE)?, input("options", options)?) };
        let options = options.to_rust()?;
        Ok(handle.lock()?.create_extent(id, &options).map(|()| Status::Ok)?)
    })
}

/// See `steadyio_store.h`.
///
/// # Safety
/// As [`steadyio_store_create`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steadyio_store_delete(handle: *const StoreHandle, id: u64) -> c_int {
    guard(|| {
        // SAFETY: upheld by the caller.
        let handle = unsafe { reference("store", handle, STORE)? };
        Ok(handle.lock()?.delete(id).map(|()| Status::Ok)?)
    })
}

/// See `steadyio_store.h`.
///
/// # Safety
/// As [`steadyio_store_create`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steadyio_store_write(
    handle: *const StoreHandle,
    id: u64,
    data: *const c_void,
    bytes: usize,
) -> c_int {
    guard(|| {
        // SAFETY: upheld by the caller.
        let (handle, data) = unsafe {
            (reference("store", handle, STORE)?, bytes_of("data", data, "bytes", bytes)?)
        };
        Ok(handle.lock()?.write(id, data).map(|()| Status::Ok)?)
    })
}

/// See `steadyio_store.h`.
///
/// # Safety
/// As [`steadyio_store_create`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steadyio_store_flush(handle: *const StoreHandle) -> c_int {
    guard(|| {
        // SAFETY: upheld by the caller.
        let handle = unsafe { reference("store", handle, STORE)? };
        Ok(handle.lock()?.flush().map(|()| Status::Ok)?)
    })
}

/// See `steadyio_store.h`.
///
/// # Safety
/// As [`steadyio_store_create`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steadyio_store_unload(
    handle: *const StoreHandle,
    id: u64,
    data: *const c_void,
    bytes: usize,
) -> c_int {
    guard(|| {
        // SAFETY: upheld by the caller.
        let (handle, data) = unsafe {
            (reference("store", handle, STORE)?, bytes_of("data", data, "bytes", bytes)?)
        };
        Ok(handle.lock()?.unload(id, data).map(|()| Status::Ok)?)
    })
}

/// See `steadyio_store.h`.
///
/// # Safety
/// As [`steadyio_store_create`]; the buffer has `buffer_bytes`, and no other thread uses it
/// meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steadyio_store_load(
    handle: *const StoreHandle,
    id: u64,
    buffer: *mut c_void,
    buffer_bytes: usize,
    bytes: *mut u64,
) -> c_int {
    guard(|| {
        // SAFETY: upheld by the caller.
        let handle = unsafe { reference("store", handle, STORE)? };
        if buffer.is_null() {
            return Err(Error::invalid("buffer", "NULL", "must be memory for the contents"));
        }
        if isize::try_from(buffer_bytes).is_err() {
            return Err(Error::invalid(
                "buffer_bytes",
                buffer_bytes,
                "must be at most PTRDIFF_MAX",
            ));
        }
        // SAFETY: upheld by the caller.
        let buffer = unsafe { slice::from_raw_parts_mut(buffer.cast(), buffer_bytes) };
        let length = handle.lock()?.load(id, buffer)?;
        if !bytes.is_null() {
            // SAFETY: upheld by the caller.
            unsafe { bytes.write(length as u64) };
        }
        Ok(Status::Ok)
    })
}

/// See `steadyio_store.h`.
///
/// # Safety
/// As [`steadyio_store_create`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steadyio_store_check(handle: *const StoreHandle, id: u64) -> c_int {
    // SAFETY: upheld by the caller.
    guard(|| unsafe { reference("store", handle, STORE)? }.check(id))
}

/// See `steadyio_store.h`.
///
/// # Safety
/// As [`steadyio_store_create`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steadyio_store_extent(
    handle: *const StoreHandle,
    id: u64,
    extent: *mut CExtent,
) -> c_int {
    guard(|| {
        // SAFETY: upheld by the caller.
        let found = unsafe { reference("store", handle, STORE)? }.extent(id)?;
        // SAFETY: upheld by the caller.
        unsafe { output("extent", extent, found)? };
        Ok(Status::Ok)
    })
}

/// See `steadyio_store.h`.
///
/// # Safety
/// As [`steadyio_store_create`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steadyio_store_next(
    handle: *const StoreHandle,
    from_id: u64,
    extent: *mut CExtent,
) -> c_int {
    guard(|| {
        // SAFETY: upheld by the caller.
        let found = unsafe { reference("store", handle, STORE)? }.next(from_id)?;
        // SAFETY: upheld by the caller.
        unsafe { output("extent", extent, found)? };
        Ok(Status::Ok)
    })
}

/// See `steadyio_store.h`.
///
/// # Safety
/// As [`steadyio_store_create`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steadyio_store_stats(
    handle: *const StoreHandle,
    stats: *mut CStoreStats,
) -> c_int {
    guard(|| {
        // SAFETY: upheld by the caller.
        let found = unsafe { reference("store", handle, STORE)? }.stats()?;
        // SAFETY: upheld by the caller.
        unsafe { output("stats", stats, found)? };
        Ok(Status::Ok)
    })
}

/// See `steadyio_store.h`.
///
/// # Safety
/// As [`steadyio_store_create`]; the store must not be in use any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steadyio_store_close(handle: *mut StoreHandle) {
    if handle.is_null() {
        return;
    }
    guard(|| {
        // SAFETY: made from a box when it was opened, and not used any more.
        drop(unsafe { Box::from_raw(handle) });
        Ok(Status::Ok)
    });
}
