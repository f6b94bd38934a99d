// SPDX-License-Identifier: MIT OR Apache-2.0
//! Simulates the CPU time of a host's storage software, as a load: the workload's `[host]`. `run`
//! calls it.
//!
//! Where time is virtual, software takes none, so it does not limit the throughput of threads and a
//! command queue. With `[host]`, threads do synchronous I/O, and each I/O costs the time in the
//! table: request-pre before the system call, request-post after it. Meanwhile the thread sleeps
//! and holds one of the host's cores. Block layer, driver and device below are the kernel's own.
//!
//! Simplifications: all software time is before or after the system call, none of it depends on
//! load, and a thread that holds a core is not preempted.
//!
//! [`crate::spec::host`] is the table, [`semaphore`] shares the cores, [`load`] runs the threads.

pub mod load;
pub mod semaphore;
