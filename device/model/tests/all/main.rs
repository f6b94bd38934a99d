// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model: its formulas, random spans, and the record of a trace.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

/// The tracer's own tests make the same traces.
#[allow(dead_code, reason = "the model needs a part of them")]
#[path = "../../../trace/tests/all/made.rs"]
mod made;
mod pipeline;
mod random;
mod trace_record;
