// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory without page faults: mapped, written once and locked before use. The recorder, the bench
//! and `store` use it.
//!
//! It is page-aligned, as direct I/O requires.

use std::ffi::c_void;
use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use rustix::mm::{MapFlags, MlockFlags, ProtFlags, mlock, mlock_with, mmap_anonymous, munmap};
use rustix::process::{Resource, getrlimit};

/// Memory could not be mapped or locked.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// The kernel does not have enough memory.
    #[error("cannot map {bytes} bytes of memory: {why}")]
    Map {
        /// The requested size.
        bytes: usize,
        why: io::Error,
    },
    /// Mostly, RLIMIT_MEMLOCK is exceeded.
    #[error(
        "cannot lock {bytes} bytes of memory: {why}: raise the limit (ulimit -l, LimitMEMLOCK= in a \
         systemd unit), give the process CAP_IPC_LOCK, or switch locking off and accept page faults"
    )]
    Lock {
        /// The requested size.
        bytes: usize,
        why: io::Error,
    },
}

/// Whether the process may lock this much more memory. Nothing stays locked.
pub fn may_lock(bytes: u64) -> bool {
    let Ok(bytes) = usize::try_from(bytes) else { return false };
    let null = std::ptr::null_mut();
    // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
    let mapped = unsafe { mmap_anonymous(null, bytes, ProtFlags::empty(), MapFlags::PRIVATE) };
    let Ok(start) = mapped else { return false };
    // SAFETY: the mapping was made above, and nothing else refers to it.
    unsafe {
        let locked = mlock_with(start, bytes, MlockFlags::ONFAULT);
        let unmapped = munmap(start, bytes);
        locked.and(unmapped).is_ok()
    }
}

/// The number of bytes that the process may still lock; None without a limit.
pub fn lockable_bytes() -> Option<u64> {
    let limit = getrlimit(Resource::Memlock).current?;
    // With CAP_IPC_LOCK, the limit does not apply.
    (!may_lock(limit.saturating_add(1))).then(|| limit.saturating_sub(locked_bytes()))
}

/// The number of bytes that the process has locked.
pub fn locked_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status.lines().find_map(|line| line.strip_prefix("VmLck:"));
    let kib = kib.and_then(|kib| kib.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

/// The number of bytes that programs can still use without swapping; None if it is unknown.
pub fn available_bytes() -> Option<u64> {
    let memory = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kib = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(kib.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

/// Locks a mapped range. It stays locked until it is unmapped.
pub fn lock(range: &mut [u8]) -> Result<(), MemoryError> {
    let bytes = range.len();
    // SAFETY: the range is a live, exclusive borrow; locking changes none of its bytes.
    unsafe { mlock(range.as_mut_ptr().cast::<c_void>(), bytes) }
        .map_err(|error| MemoryError::Lock { bytes, why: error.into() })
}

/// A page-aligned, zeroed buffer in a separate mapping.
#[derive(Debug)]
pub struct AlignedBuffer {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the buffer owns its mapping, as a Box owns its memory.
unsafe impl Send for AlignedBuffer {}

impl AlignedBuffer {
    /// Maps `bytes` (at least one) with all pages present, locked on request.
    pub fn new(bytes: usize, locked: bool) -> Result<AlignedBuffer, MemoryError> {
        let map_error = |why: io::Error| MemoryError::Map { bytes, why };
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
        let start = unsafe {
            mmap_anonymous(std::ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, flags)
        }
        .map_err(|error| map_error(error.into()))?;
        let start = NonNull::new(start.cast()).ok_or(map_error(io::Error::other("null")))?;
        let mut buffer = AlignedBuffer { start, bytes };
        if locked {
            lock(&mut buffer)?;
        }
        Ok(buffer)
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the mapping is live and initialized (zeroed by the kernel) for `bytes`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        // SAFETY: the mapping is owned here, and no borrow of it is left.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast::<c_void>(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "the mapping was ours");
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_aligned_zeroed_and_writable() {
        let mut buffer = AlignedBuffer::new(10_000, false).unwrap();
        assert_eq!(buffer.as_ptr() as usize % 4096, 0);
        assert_eq!(buffer.len(), 10_000);
        assert!(buffer.iter().all(|&byte| byte == 0));
        buffer.fill(7);
        assert!(buffer.iter().all(|&byte| byte == 7));
    }
}
