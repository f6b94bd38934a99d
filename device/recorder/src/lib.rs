// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recording periodic data without ever making the caller wait.
//!
//! A thread that appends to a file waits for block allocation, for the journal and for the
//! flusher, now and then for longer than its period. Here the real-time thread copies its record
//! into a ring in locked memory and is done; whatever the file system does, it does to the writer
//! thread.
//!
//! Reading order: [`config`] says what is wanted, [`sizing`] how large the rings must be; [`ring`] and
//! [`channel`] are the append side, which makes no system call, takes no lock and allocates nothing, in
//! [`memory`] that is there; [`ledger`] counts what became of every record; [`pool`] is the recorder, [`mcap`]
//! its format; [`source`] is where records come from, [`stream`] those of other programs; [`task`] says what the
//! kernel did to a thread meanwhile, [`read_only`] whether the file system still writes.

mod atomic;
pub mod channel;
pub mod config;
pub mod ledger;
pub mod mcap;
pub mod memory;
pub mod pool;
pub mod read_only;
pub mod ring;
pub mod sizing;
pub mod source;
pub mod stream;
pub mod task;
