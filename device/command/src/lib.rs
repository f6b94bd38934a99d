// SPDX-License-Identifier: MIT OR Apache-2.0
//! The common parts of `steady`'s commands: exit statuses, standard output, progress, tables and
//! files for records. It also has the commands `bench` and `with`, so that `steady-guest` needs no
//! other crate.

pub mod bench;
pub mod exit;
pub mod output;
pub mod progress;
pub mod record_file;
pub mod table;
pub mod with;
