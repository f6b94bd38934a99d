// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decides whether a device may be written to. `run` calls it.
//!
//! It makes two checks, in this order. Is the device in use? An exclusive open fails for anything
//! mounted, swapped to or stacked upon, and keeps others out while it is held; sysfs shows loop
//! devices. No option overrides this. Does it hold data? Partitions and known signatures show it;
//! the user can consent to their loss by name.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use steadyio_core::device::{Device, access_hint};
use steadyio_core::occupied::{held_data, loops_on, users};

/// The reason why a device is not written to.
#[derive(Debug, thiserror::Error)]
pub enum SafetyError {
    /// The device is mounted, swap, a part of another device, or held open exclusively.
    #[error(
        "{device} is in use ({by}), and the workload writes to it; unmount or release it first"
    )]
    InUse {
        /// Kernel name.
        device: String,
        /// The user of the device.
        by: String,
    },
    /// The device holds data that the workload would overwrite.
    #[error(
        "{device} holds {what}: the workload would destroy it; to allow this, add \
         --destroy-data {device}"
    )]
    HoldsData {
        /// Kernel name.
        device: String,
        what: String,
    },
    /// Formatting needs consent, even if no data is known.
    #[error(
        "the workload makes a file system on {0} for each point, which destroys what it holds: to \
         allow this, add --destroy-data {0}"
    )]
    Formats(String),
    /// The consent names another device.
    #[error("--destroy-data {given}: must name the device that is written to, {device}")]
    WrongName {
        given: String,
        /// Kernel name.
        device: String,
    },
    /// The device is write-protected.
    #[error("{0} is read-only, but the workload writes to it")]
    ReadOnly(String),
    /// The device cannot be examined.
    #[error("{device}: cannot be opened{}", access_hint(source))]
    Examine {
        /// Kernel name.
        device: String,
        source: io::Error,
    },
}

/// Excludes mounts and other exclusive users as long as it lives.
#[derive(Debug)]
pub struct Claim(#[allow(dead_code, reason = "held for its lock")] OwnedFd);

/// Like [`allow_writes`], for a workload that makes a file system. It releases the claim, because
/// mkfs and the mount open the device exclusively themselves.
pub fn allow_formatting(device: &Device, destroy: Option<&str>) -> Result<(), SafetyError> {
    if destroy.is_none() {
        return Err(SafetyError::Formats(device.name.clone()));
    }
    allow_writes(device, destroy).map(drop)
}

/// Makes both checks. The claim must be held while writing.
pub fn allow_writes(device: &Device, destroy: Option<&str>) -> Result<Claim, SafetyError> {
    let name = device.name.clone();
    if destroy.is_some_and(|given| !device.is_named(given)) {
        let given = destroy.unwrap_or_default().to_string();
        return Err(SafetyError::WrongName { given, device: name });
    }
    if device.is_read_only() {
        return Err(SafetyError::ReadOnly(name));
    }
    let flags = OFlags::RDWR | OFlags::EXCL | OFlags::CLOEXEC;
    let claim = match rustix::fs::open(&device.node, flags, Mode::empty()) {
        Ok(claim) => claim,
        Err(rustix::io::Errno::BUSY) => {
            return Err(SafetyError::InUse { device: name, by: users(device) });
        }
        Err(error) => return Err(SafetyError::Examine { device: name, source: error.into() }),
    };
    let loops = loops_on(device);
    if !loops.is_empty() {
        return Err(SafetyError::InUse { device: name, by: format!("below {}", loops.join(", ")) });
    }
    if destroy.is_none() {
        let examine = |source| SafetyError::Examine { device: name.clone(), source };
        if let Some(what) = held_data(device).map_err(examine)? {
            return Err(SafetyError::HoldsData { device: name, what });
        }
    }
    Ok(Claim(claim))
}
