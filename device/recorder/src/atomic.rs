// SPDX-License-Identifier: MIT OR Apache-2.0
//! The atomics of [`super::ledger`]; its model has others in this place.

pub use std::sync::atomic::{AtomicU64, Ordering};
