// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records from their framing through a pool of segments to the official reader.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

mod framing;
mod mcap;
mod mcap_stream;
mod pool;
mod stream_input;
