// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPU time of a host's storage software, as a load: the workload's `[host]`.
//!
//! Where time is virtual, software takes none, so nothing there limits what threads and a command queue
//! can do together. With `[host]`, threads do synchronous I/O, and each I/O costs what the table says:
//! request-pre before the system call, request-post after it. Meanwhile the thread sleeps and holds one of
//! the host's cores. Block layer, driver and device below are the kernel's own.
//!
//! What it leaves out: all software time is before the system call or after it, and none of it depends
//! on load; a core that a thread holds is not taken from it before the time is over.
//!
//! [`crate::spec::host`] is the table, [`semaphore`] shares the cores, [`load`] runs the threads.

pub mod load;
pub mod semaphore;
