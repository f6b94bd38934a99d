// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of events from every source, the I/Os that follow from them, the reports, and the time
//! line.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]
#![allow(clippy::print_stderr, clippy::print_stdout)]

mod cases;
mod disk;
mod events;
mod follow;
mod imports;
mod made;
mod perfetto;
mod report;
mod samples;
mod source;
