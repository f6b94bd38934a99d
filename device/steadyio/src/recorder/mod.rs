// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recording periodic data without ever making the caller wait.
//!
//! A thread that appends to a file waits for block allocation, for the journal and for the
//! flusher, now and then for longer than its period. Here the real-time thread copies its record
//! into a ring in locked memory and is done; whatever the file system does, it does to the writer
//! thread.
//!
//! Reading order: [`config`] and [`recipe`] say what is wanted; [`ring`] and [`channel`] are the
//! append side, which makes no system call, takes no lock and allocates nothing; [`ledger`] counts
//! what became of every record; [`pool`] is the recorder, [`mcap`] its format; [`source`],
//! [`caller`] and [`task`] are a measured caller, [`recipes`] those of its ways to record in which it
//! writes itself; [`session`] leads through all of it, [`result`] says what came out.

mod atomic;
pub mod caller;
pub mod channel;
pub mod config;
pub mod latency;
pub mod ledger;
pub mod mcap;
pub mod memory;
pub mod place;
pub mod pool;
pub mod recipe;
pub mod recipes;
pub mod result;
pub mod ring;
pub mod session;
pub mod sizing;
pub mod source;
pub mod stream;
pub mod task;
