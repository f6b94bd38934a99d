// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady record`.

mod compression;
pub mod control;
mod encoding;
mod failures;
mod incidents;
pub mod input;
mod latched;
mod live;
mod mcap;
mod memory;
mod messages;
mod periodic;
mod plan;
mod pool;
mod ram;
