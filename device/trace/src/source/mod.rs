// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where events come from.
//!
//! Each source reads one format and gives [`Event`]s in the order of their time. What it cannot read is a
//! [`Problem`] between them, and reading goes on after it if the format allows that.

use serde::Serialize;

use super::event::Event;

pub mod capture;
mod commands;
pub mod decode;
pub mod detect;
mod fields;
pub mod files;
pub mod format;
pub mod merge;
pub mod pages;
pub mod pid_namespace;
pub mod ring;
pub mod rwbs;
pub mod table;
pub mod text;
mod trace_dat;
pub mod tracefs;

/// Events in the order of their time, with problems between them. The end of the iterator is the end of the
/// trace, or the place behind which nothing can be read; in that case its last item is a problem.
pub type Events<'a> = Box<dyn Iterator<Item = Result<Event, Problem>> + 'a>;

/// A part of a source that could not be read as an event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}{place}: {what}")]
pub struct Problem {
    /// The file's path, or what else names the source, such as `standard input`.
    pub file: String,
    pub place: Position,
    /// The error, with the value.
    pub what: String,
}

/// Printed behind the name of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
pub enum Position {
    #[strum(to_string = "")]
    Whole,
    /// A line; the first is 1.
    #[strum(to_string = ":{0}")]
    Line(u64),
    /// A byte; the first is 0.
    #[strum(to_string = ", byte {0}")]
    Byte(u64),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Problems {
    /// How many there were in all.
    pub count: u64,
    /// The first of them, in words.
    pub first: Vec<String>,
}

impl Problems {
    pub const KEPT_MAX: usize = 100;

    pub fn note(&mut self, problem: &Problem) {
        self.count += 1;
        if self.first.len() < Problems::KEPT_MAX {
            self.first.push(problem.to_string());
        }
    }
}
