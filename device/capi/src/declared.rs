// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steadyio_declare`: declares real-time tasks to k2.

use std::ffi::{c_char, c_int};
use std::os::fd::{IntoRawFd, OwnedFd};
use std::path::Path;

use steadyio_core::declared::{DeclareError, Declared, Task};
use steadyio_core::device::{Device, DeviceError};

use crate::arguments::{set, string};
use crate::status::{Error, Status, guard, with_causes};

impl From<DeclareError> for Error {
    fn from(error: DeclareError) -> Error {
        let status = match error {
            DeclareError::Rejected { .. } => Status::Invalid,
            _ => Status::Failed,
        };
        Error::new(status, with_causes(&error))
    }
}

impl From<DeviceError> for Error {
    fn from(error: DeviceError) -> Error {
        Error::new(Status::Invalid, format!("device: {}", with_causes(&error)))
    }
}

/// See `steadyio.h`.
///
/// # Safety
/// As `steadyio_open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steadyio_declare(
    device: *const c_char,
    task: *const c_char,
    fd: *mut c_int,
) -> c_int {
    guard(|| {
        // SAFETY: upheld by the caller.
        let (device, task) = unsafe { (string("device", device)?, string("task", task)?) };
        let needed = |name: &str| Error::invalid(name, "NULL", "must be a string");
        let device = device.ok_or_else(|| needed("device"))?;
        let task: Task = (task.ok_or_else(|| needed("task"))?)
            .parse()
            .map_err(|reason| Error::new(Status::Invalid, format!("task: {reason}")))?;
        // Before anything is done.
        // SAFETY: upheld by the caller.
        unsafe { set("fd", fd, || -1)? };
        let device = Device::open(Path::new(&device))?;
        let mut declared = Declared::open()?;
        declared.add(&device, &task)?;
        // SAFETY: upheld by the caller.
        unsafe { set("fd", fd, || OwnedFd::from(declared).into_raw_fd())? };
        Ok(Status::Ok)
    })
}
