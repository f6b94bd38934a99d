// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a trace says: the record `steadyio.trace/1` (`docs/spec/steady-trace-record-1.schema.json`).
//!
//! In reading order: [`record`] holds everything that is said; [`groups`] puts together what does the same,
//! [`times`], [`steps`] and [`distribution`] say where its time went; [`worst`] names the longest, `case`
//! finds their causes ([`cause`]), `own_time` those of their own threads ([`thread_time`]); [`spans_file`]
//! is what `steady model` takes. Tables are in the command.

mod case;
pub mod cause;
pub mod distribution;
pub mod groups;
pub mod intervals;
mod medians;
mod own_time;
pub mod record;
pub mod spans_file;
pub mod steps;
pub mod thread_time;
pub mod times;
pub mod words;
pub mod worst;
