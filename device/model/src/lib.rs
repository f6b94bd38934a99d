// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes the throughput that a storage stack could reach, from a request's time in each layer.
//! `steady model` reads the input and prints the results.
//!
//! The model is that of the e.MMC analysis paper ("Linux Storage System Analysis for e.MMC With
//! Command Queuing", Bean Huo and Zoltan Szubbocsev, Micron, 2017), section "Theoretical System
//! Performance Limitation". A request passes three stages. Request-pre is software, from the system
//! call to the device's queue. Hardware transfer follows. Request-post is software, from the
//! interrupt to the return. Stages of different requests may overlap.
//!
//! In reading order: [`spans`] reads measured spans (`docs/spec/spans-1.md`), [`spans_file`] makes
//! them from the record of a trace, [`pipeline`] is the arithmetic, [`report`] applies it to each
//! entry of a file. Nothing here does I/O.

pub mod pipeline;
pub mod report;
pub mod spans;
pub mod spans_file;

/// Input that cannot be used; the text names the key, the value and the allowed values.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ModelError(pub String);
