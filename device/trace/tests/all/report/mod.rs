// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report of a trace.

mod calls;
mod causes;
mod figures;
mod own_time;
mod own_time_random;
mod rows;
