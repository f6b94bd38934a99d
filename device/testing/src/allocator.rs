// SPDX-License-Identifier: MIT OR Apache-2.0
//! An allocator that counts, for tests of code that must not allocate.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator with a counter. Use it as the `#[global_allocator]` of a test program.
pub struct CountingAllocator;

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

impl CountingAllocator {
    /// The number of times that the calling thread has allocated, reallocated or freed memory.
    pub fn calls() -> u64 {
        CALLS.get()
    }
}

// SAFETY: the system's allocator does all of the work.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: passed on as it came.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: passed on as it came.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: passed on as it came.
        unsafe { System.realloc(memory, layout, bytes) }
    }
}
