// SPDX-License-Identifier: MIT OR Apache-2.0
//! The record `steadyio.trace/1` of a trace (`docs/spec/steady-trace-record-1.schema.json`).
//!
//! In reading order: [`record`] holds everything; [`groups`] makes groups, [`times`], [`steps`] and [`distribution`]
//! say where their time went; [`worst`] names the longest, `case`
//! finds their causes ([`cause`]), `own_time` those of their own threads ([`thread_time`]), and `cause_text` puts
//! them into words; [`calls`] has what calls waited for ([`waiting`]); [`spans_file`] is what `steady model` takes. Tables are in the command.

pub mod calls;
mod case;
pub mod cause;
mod cause_text;
pub mod distribution;
pub mod groups;
mod medians;
mod own_time;
pub mod record;
pub mod rows;
pub mod spans_file;
pub mod steps;
pub mod sums;
pub mod thread_time;
pub mod times;
pub mod waiting;
pub mod words;
pub mod worst;
