// SPDX-License-Identifier: MIT OR Apache-2.0
//! From events to requests and I/Os.

mod calls;
mod files;
mod flush;
mod hardware;
mod length;
mod loss;
mod random;
mod requests;
mod simulated;
mod unseen;
mod workers;
