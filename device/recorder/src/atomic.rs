// SPDX-License-Identifier: MIT OR Apache-2.0
//! The atomics of [`super::ledger`]; `tests/ledger_model.rs` uses those of the model checker.

pub use std::sync::atomic::{AtomicU64, Ordering};
