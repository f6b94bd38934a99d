// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recording segments: MCAP files of a fixed size, written in place and recycled.
//!
//! The official writers grow a file, keep an index that grows with it, and write the footer
//! where the data ended. A recorder that recycles files of a fixed size can do none of these: its
//! memory is bounded, its file is as long as before, and behind its last block lies what an
//! earlier recording left there. So this is a writer of its own, of the same format. The bytes are
//! specified in `docs/spec/recording-segment-1.md`.
//!
//! In reading order: [`wire`] (numbers and records), [`definitions`] (schemas and channels),
//! [`layout`] (sizes and bounds), [`private`] and [`account`] (our own records), [`index`] (for
//! the summary), [`encoder`]. The way back: [`scan`] decodes a block, [`digest`] adds up the contents
//! of blocks, and [`evidence`] says what they should be. `follow` goes from block to block, [`sealed`]
//! trusts a tail, [`recover`] decides and completes. [`files`] does so for directories, whose names
//! [`names`] sets. [`resume`] continues a segment; [`reading`] is for readers of messages.
//! [`sectors`] reads around sectors that a device cannot read. Only [`storage`], [`files`] and
//! [`names`] know what a file is.

pub mod account;
mod chunk;
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
