// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sources of events: the running kernel (`capture`), and files (`files`).
//!
//! Each source reads one format and returns [`Event`]s in time order. Input that it cannot read
//! becomes a [`Problem`] between them. Reading continues after a problem if the format allows that.

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

/// Events in time order, with problems between them. The iterator ends with the trace, or where
/// reading cannot continue; then its last item is a problem.
pub type Events<'a> = Box<dyn Iterator<Item = Result<Event, Problem>> + 'a>;

/// A part of a source that cannot be read as an event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}{place}: {what}")]
pub struct Problem {
    /// The file's path, or another name of the source such as `standard input`.
    pub file: String,
    pub place: Position,
    /// The error, with the unexpected value.
    pub what: String,
}

/// The place of a problem, printed after the file's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
pub enum Position {
    #[strum(to_string = "")]
    Whole,
    /// A line, counted from 1.
    #[strum(to_string = ":{0}")]
    Line(u64),
    /// A byte, counted from 0.
    #[strum(to_string = ", byte {0}")]
    Byte(u64),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Problems {
    /// The number of all problems.
    pub count: u64,
    /// The texts of the first problems.
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
