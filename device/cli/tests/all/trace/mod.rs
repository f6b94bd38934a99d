// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady trace`.

mod files;
mod live;
mod live_ends;
mod measure;
mod workers;
