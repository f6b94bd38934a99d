// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `file` and `aliases` share: the use for which a storage is opened, the errors, and the wait
//! for another program.

use std::io;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use steadyio_core::device::{DeviceError, access_hint};
use steadyio_direct::disk::DiskError;

use super::BLOCK_BYTES;

/// The time to wait for a lock, because udev locks a device while it examines it.
const LOCK_MAX: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The reason why a device or file cannot be used for a store.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{}{}", path.display(), access_hint(source))]
    Io { path: PathBuf, source: io::Error },
    /// The device is mounted, swap, a part of another device, or opened exclusively.
    #[error("{} is in use ({by}): unmount or release it first", path.display())]
    InUse { path: PathBuf, by: String },
    #[error(
        "{}: another program has this store open: only one may change it, and nobody may read it \
         meanwhile", path.display()
    )]
    Locked { path: PathBuf },
    #[error("{}: is read-only", path.display())]
    ReadOnly { path: PathBuf },
    /// A program that opened the file below a loop device could change the store, too.
    #[error(
        "{}: its file {} cannot be locked: {error} (open that file instead of the loop device)",
        path.display(), backing.display()
    )]
    Backing { path: PathBuf, backing: PathBuf, error: io::Error },
    /// It should be empty, but has contents.
    #[error("{} holds {what}, which would be lost", path.display())]
    Holds { path: PathBuf, what: String },
    /// The path is a directory, a pipe, a terminal or the like.
    #[error(
        "{}: must be a block device, a /dev/chardiskN, a /dev/ngXnY or a regular file", path.display()
    )]
    Kind { path: PathBuf },
    #[error(
        "{}: only regions of it can be reached (see `steady direct info`): a store needs a whole card, or \
         a lane", path.display()
    )]
    Regions { path: PathBuf },
    #[error("{}: has blocks of {block_bytes} bytes: must be 512 to {BLOCK_BYTES}", path.display())]
    Blocks { path: PathBuf, block_bytes: u64 },
    #[error(
        "{}: its namespace has no block device, with which the store keeps others out", path.display()
    )]
    NoBlockDevice { path: PathBuf },
    #[error(transparent)]
    Namespace(#[from] DiskError),
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// The intended use of a storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Shared with other readers.
    Read,
    /// Exclusive.
    Change,
}

/// Retries while another program holds the resource, which may be about to end.
pub(super) fn retried<T>(mut ask: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let began = Instant::now();
    loop {
        match ask() {
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::ResourceBusy
                ) && began.elapsed() < LOCK_MAX =>
            {
                thread::sleep(LOOK_EVERY);
            }
            answer => return answer,
        }
    }
}
