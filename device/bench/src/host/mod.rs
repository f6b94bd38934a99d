// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPU time of a host's storage software, as a load: the workload's `[host]`.
//!
//! Where time is virtual, software takes none, so it does not limit what threads and a command
//! queue can do together. With `[host]`, threads do synchronous I/O, and each I/O costs what the
//! table says: request-pre before the system call, request-post after it. Meanwhile the thread
//! sleeps and holds one of the host's cores. Block layer, driver and device below are the kernel's
//! own.
//!
//! Simplifications: all software time is before or after the system call, none of it depends on
//! load, and a thread that holds a core is not preempted.
//!
//! [`crate::spec::host`] is the table, [`semaphore`] shares the cores, [`load`] runs the threads.

pub mod load;
pub mod semaphore;
