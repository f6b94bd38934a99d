// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recording segments: MCAP files of a fixed size, written in place and recycled. The pool writes
//! them; exports and the recovery read them.
//!
//! The official writers grow a file, keep an index that grows with it, and write the footer after
//! the data. A recorder that recycles files of a fixed size cannot do this: its memory is bounded,
//! its file keeps its length, and data of an earlier recording follows its last block. So this is a
//! separate writer for the same format. `docs/spec/recording-segment-1.md` specifies the bytes.
//!
//! In reading order: [`wire`] (numbers and records), [`definitions`] (schemas and channels),
//! [`layout`] (sizes and bounds), [`private`] and [`account`] (our own records), [`index`] (for the
//! summary), [`compression`], [`encoder`]. For reading: [`scan`] decodes a block, [`digest`] sums
//! the contents of blocks, and [`evidence`] computes the expected contents. `follow` goes from
//! block to block, [`sealed`] checks a tail, [`recover`] decides and completes. [`files`] does so
//! for directories, whose names [`names`] sets. [`resume`] continues a segment; [`reading`] is for
//! readers of messages, and [`cursor`] for those behind a running recorder. [`sectors`] reads
//! around sectors that a device cannot read. Only [`storage`], [`files`] and [`names`] access
//! files.

pub mod account;
mod chunk;
pub mod compression;
pub mod cursor;
pub mod definitions;
pub mod digest;
pub mod encoder;
pub mod evidence;
pub mod files;
mod follow;
pub mod index;
pub mod layout;
pub mod names;
pub mod private;
pub mod reading;
pub mod recover;
pub mod resume;
pub mod scan;
pub mod sealed;
pub mod sectors;
pub mod storage;
pub mod wire;
