// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command as a user runs it, each product in its folder.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]
#![allow(clippy::print_stderr, clippy::print_stdout)]

mod apply;
mod bench;
mod bound;
mod command_line;
mod common;
mod contents;
mod device_names;
mod diagnostics;
mod direct;
mod doctor;
mod examples;
mod export;
mod export_ros2;
mod export_stream;
mod full_output;
mod losses;
mod manual;
mod model;
mod probe;
mod record;
mod record_file;
mod store;
mod trace;
mod tune;
mod watch;
mod with;
mod wrong_usage;
