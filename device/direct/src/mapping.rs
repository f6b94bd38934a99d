// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory of a file descriptor, mapped shared. Others may write to it at any time, so there is
//! no slice of it, only copies. `disk`, `nvme` and `buffer` use it.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

/// The mapping; dropping it unmaps.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping is owned, and only accessed by copies through raw pointers.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `bytes` of a file, readable and writable.
    pub fn of(fd: BorrowedFd, bytes: usize) -> io::Result<Mapping> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
        let start = unsafe { mmap(ptr::null_mut(), bytes, access, MapFlags::SHARED, fd, 0) }?;
        Mapping::own(start.cast(), bytes)
    }

    /// Maps memory of this process: page-aligned, zeroed, all pages present.
    pub fn anonymous(bytes: usize) -> io::Result<Mapping> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
        // SAFETY: as above.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), bytes, access, flags) }?;
        Mapping::own(start.cast(), bytes)
    }

    fn own(start: *mut u8, bytes: usize) -> io::Result<Mapping> {
        let start = NonNull::new(start).ok_or_else(|| io::Error::other("mapped at 0"))?;
        Ok(Mapping { start, bytes })
    }

    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Copies from `offset`. Panics beyond the end.
    pub fn copy_out(&self, offset: usize, to: &mut [u8]) {
        assert!(self.holds(offset, to.len()));
        // SAFETY: within the mapping, as checked, and `to` is separate memory.
        unsafe { ptr::copy_nonoverlapping(self.as_ptr().add(offset), to.as_mut_ptr(), to.len()) }
    }

    /// Copies to `offset`. Panics beyond the end.
    pub fn copy_in(&self, offset: usize, from: &[u8]) {
        assert!(self.holds(offset, from.len()));
        // SAFETY: as above.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), self.as_ptr().add(offset), from.len()) }
    }

    /// Whether this range lies within the mapping.
    pub fn holds(&self, offset: usize, bytes: usize) -> bool {
        offset.checked_add(bytes).is_some_and(|end| end <= self.bytes)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is owned here, and nothing refers to it any more.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "the mapping was ours");
    }
}
