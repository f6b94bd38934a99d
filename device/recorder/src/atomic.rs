// SPDX-License-Identifier: MIT OR Apache-2.0
//! The atomics of [`super::ledger`]. `tests/ledger_model.rs` replaces them by the model checker's.

pub use std::sync::atomic::{AtomicU64, Ordering};
