// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records periodic data without blocking the caller. `steady record`, the bench and `capi` use it.
//!
//! A thread that appends to a file waits for block allocation, for the journal and for the flusher,
//! now and then for longer than its period. Here the real-time thread copies its record into a ring
//! in locked memory and returns; only the writer thread waits for the file system.
//!
//! Reading order: [`config`]; [`sizing`] computes how large the rings must be. [`ring`] and
//! [`channel`] are the append side, in locked [memory](steadyio_core::memory): it makes no system
//! call, takes no lock and allocates nothing. [`ledger`] counts each record's outcome. [`pool`] is
//! the recorder, [`mcap`] its format; [`audit`] finds missing messages in it. [`source`] has the
//! sources of records, [`stream`] those of other programs. [`incident`] protects segments from
//! being overwritten, and [`control`] answers other programs. [`task`] reads the kernel's counters
//! of a thread, [`read_only`] checks whether the file system still accepts writes, [`outputs`]
//! whether an output would replace a file of a recording.

mod atomic;
pub mod audit;
pub mod channel;
pub mod config;
pub mod control;
pub mod incident;
pub mod ledger;
pub mod mcap;
pub mod named_socket;
pub mod outputs;
pub mod pool;
pub mod read_only;
pub mod ring;
pub mod sizing;
pub mod source;
pub mod stream;
pub mod task;
