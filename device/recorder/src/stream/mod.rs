// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records from other programs: through stdin, a FIFO, or a Unix socket with several producers.
//! `steady record` uses it.
//!
//! `docs/spec/record-framing-1.md` is the format. Reading order: [`item`] (what framings return),
//! [`framing`] (their common interface), [`lines`] and [`frames`] (bytes to records, no I/O),
//! [`producer`] (one stream of bytes), `channels` (their topics), [`input`] (all of them, as a
//! [`crate::source::Source`]); [`encode`] is for the producer's side.

mod channels;
pub mod encode;
pub mod filter;
pub mod frames;
pub mod framing;
pub mod input;
pub mod item;
pub mod lines;
pub mod mcap;
pub mod producer;
