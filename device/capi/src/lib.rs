// SPDX-License-Identifier: MIT OR Apache-2.0
//! The C interface of the recorder, of buffers in shared memory and of declared tasks, as
//! `include/steadyio.h` describes it, and of the [`store`]. C programs link it, and the Python
//! package calls it.
//!
//! Reading order: [`status`] (the functions' results, and panics, which must not reach C),
//! [`arguments`] (pointers from C), [`config`] and [`stats`] (structs), [`handle`] (the objects
//! behind the opaque pointers), and here the functions themselves; those on buffers in [`buffer`],
//! and on tasks in [`declared`].

pub mod arguments;
pub mod buffer;
pub mod config;
pub mod declared;
pub mod handle;
pub mod stats;
pub mod status;
pub mod store;

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use self::arguments::{bytes_of, input, output, reference, set, string};
use self::config::{CChannelConfig, CConfig};
use self::handle::{ChannelHandle, RecorderHandle};
use self::stats::{CAccount, CStats};
use self::status::{Status, guard, last_error, text_of};

const RECORDER: &str = "a recorder of steadyio_open()";
const CHANNEL: &str = "a channel of steadyio_add_channel()";

/// See `steadyio.h`.
///
/// # Safety
/// Pointers are NULL or valid, here and in all functions below; strings end with 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steadyio_open(
    config: *const CConfig,
    recorder: *mut *mut RecorderHandle,
) -> c_int {
    guard(|| {
        // SAFETY: upheld by the caller.
        let opened = unsafe { RecorderHandle::open(&input("config", config)?)? };
        // SAFETY: upheld by the caller.
        unsafe { set("recorder", recorder, || Box::into_raw(Box::new(opened)))? };
        Ok(Status::Ok)
    })
}

/// See `steadyio.h`.
///
/// # Safety
/// As [`steadyio_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steadyio_add_channel(
    recorder: *const RecorderHandle,
    config: *const CChannelConfig,
    channel: *mut *const ChannelHandle,
) -> c_int {
    guard(|| {
        // SAFETY: upheld by the caller.
        let (recorder, config) = unsafe {
            (reference("recorder", recorder, RECORDER)?, input("config", config)?.to_rust()?)
        };
        // Before anything changes. SAFETY: upheld by the caller.
        unsafe { set("channel", channel, ptr::null)? };
        let added = recorder.add_channel(config)?;
        // The recorder keeps another reference. SAFETY: upheld by the caller.
        unsafe { set("channel", channel, || Arc::as_ptr(&added))? };
        Ok(Status::Ok)
    })
}

/// See `steadyio.h`.
///
/// # Safety
/// As [`steadyio_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steadyio_start(recorder: *const RecorderHandle) -> c_int {
    // SAFETY: upheld by the caller.
    guard(|| unsafe { reference("recorder", recorder, RECORDER) }?.start())
}

/// See `steadyio.h`.
///
/// # Safety
/// As [`steadyio_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steadyio_append(
    channel: *const ChannelHandle,
    log_time_ns: u64,
    data: *const c_void,
    bytes: usize,
) -> c_int {
    guard(|| {
        // SAFETY: upheld by the caller.
        let (channel, data) = unsafe {
            (reference("channel", channel, CHANNEL)?, bytes_of("data", data, "bytes", bytes)?)
        };
        channel.append(log_time_ns, log_time_ns, data)
    })
}

/// See `steadyio.h`.
///
/// # Safety
/// As [`steadyio_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steadyio_append_published(
    channel: *const ChannelHandle,
    log_time_ns: u64,
    publish_time_ns: u64,
    data: *const c_void,
    bytes: usize,
) -> c_int {
    guard(|| {
        // SAFETY: upheld by the caller.
        let (channel, data) = unsafe {
            (reference("channel", channel, CHANNEL)?, bytes_of("data", data, "bytes", bytes)?)
        };
        channel.append(log_time_ns, publish_time_ns, data)
    })
}

/// See `steadyio.h`.
///
/// # Safety
/// As [`steadyio_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steadyio_flush(recorder: *const RecorderHandle, timeout_ms: u64) -> c_int {
    guard(|| {
        // SAFETY: upheld by the caller.
        let recorder = unsafe { reference("recorder", recorder, RECORDER)? };
        recorder.flush(Duration::from_millis(timeout_ms))
    })
}

/// See `steadyio.h`.
///
/// # Safety
/// As [`steadyio_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steadyio_keep_incident(
    recorder: *const RecorderHandle,
    name: *const c_char,
    last_ms: u64,
    covered_ms: *mut u64,
) -> c_int {
    guard(|| {
        // SAFETY: upheld by the caller.
        let (recorder, name) =
            unsafe { (reference("recorder", recorder, RECORDER)?, string("name", name)?) };
        let last = Duration::from_millis(last_ms);
        let (status, covered) = recorder.keep_incident(&name.unwrap_or_default(), last)?;
        if !covered_ms.is_null() {
            // SAFETY: upheld by the caller.
            unsafe { covered_ms.write(covered.as_millis() as u64) };
        }
        Ok(status)
    })
}

/// See `steadyio.h`.
///
/// # Safety
/// As [`steadyio_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steadyio_channel_account(
    channel: *const ChannelHandle,
    account: *mut CAccount,
) -> c_int {
    guard(|| {
        // SAFETY: upheld by the caller.
        let channel = unsafe { reference("channel", channel, CHANNEL)? };
        // SAFETY: upheld by the caller.
        unsafe { output("account", account, CAccount::from(channel.account()?))? };
        Ok(Status::Ok)
    })
}

/// See `steadyio.h`.
///
/// # Safety
/// As [`steadyio_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steadyio_recorder_stats(
    recorder: *const RecorderHandle,
    stats: *mut CStats,
) -> c_int {
    guard(|| {
        // SAFETY: upheld by the caller.
        let recorder = unsafe { reference("recorder", recorder, RECORDER)? };
        // SAFETY: upheld by the caller.
        unsafe { output("stats", stats, CStats::from(recorder.meters()?.as_ref()))? };
        Ok(Status::Ok)
    })
}

/// See `steadyio.h`.
///
/// # Safety
/// As [`steadyio_open`]; `text` has room for `text_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steadyio_trouble(
    recorder: *const RecorderHandle,
    text: *mut c_char,
    text_bytes: usize,
) -> usize {
    let mut length = 0;
    guard(|| {
        // SAFETY: upheld by the caller.
        let recorder = unsafe { reference("recorder", recorder, RECORDER)? };
        let trouble = recorder.meters()?.trouble().unwrap_or_default();
        length = trouble.len();
        if !text.is_null() && text_bytes > 0 {
            let copied = length.min(text_bytes - 1);
            // SAFETY: at most `text_bytes` bytes, the last of them for the 0.
            unsafe {
                ptr::copy_nonoverlapping(trouble.as_ptr().cast(), text, copied);
                text.add(copied).write(0);
            }
        }
        Ok(Status::Ok)
    });
    length
}

/// See `steadyio.h`.
///
/// # Safety
/// As [`steadyio_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steadyio_finish(recorder: *const RecorderHandle) -> c_int {
    // SAFETY: upheld by the caller.
    guard(|| unsafe { reference("recorder", recorder, RECORDER) }?.finish())
}

/// See `steadyio.h`.
///
/// # Safety
/// As [`steadyio_open`]; the recorder and its channels must not be in use any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steadyio_close(recorder: *mut RecorderHandle) {
    if recorder.is_null() {
        return;
    }
    guard(|| {
        // SAFETY: made by `steadyio_open` from a box, and not used any more.
        drop(unsafe { Box::from_raw(recorder) });
        Ok(Status::Ok)
    });
}

/// See `steadyio.h`.
#[unsafe(no_mangle)]
pub extern "C" fn steadyio_error() -> *const c_char {
    last_error()
}

/// See `steadyio.h`.
#[unsafe(no_mangle)]
pub extern "C" fn steadyio_status_text(status: c_int) -> *const c_char {
    text_of(status).as_ptr()
}

/// See `steadyio.h`.
#[unsafe(no_mangle)]
pub extern "C" fn steadyio_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
